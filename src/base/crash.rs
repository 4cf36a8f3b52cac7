//! Points at which the crash harness kills the process, to show what a power cut there would leave.
//!
//! They exist only with the cargo feature `crash-points`. `OAK_CRASH=<name>:<n>` kills the process
//! with SIGKILL when it passes the point for the n-th time; `OAK_CRASH_LOG=<file>` appends the name
//! of every point that is passed, one a line.

/// Passes a point with a name.
macro_rules! crash_point {
    ($name:literal) => {
        #[cfg(feature = "crash-points")]
        $crate::base::crash::pass($name);
    };
}

pub(crate) use crash_point;

/// Counts the pass and kills the process when its time has come.
#[cfg(feature = "crash-points")]
pub fn pass(name: &str) {
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicI64, Ordering};

    static PLAN: LazyLock<Option<(String, AtomicI64)>> = LazyLock::new(|| {
        let plan = std::env::var("OAK_CRASH").ok()?;
        let (name, count) = plan.rsplit_once(':')?;
        Some((name.to_owned(), AtomicI64::new(count.parse().ok()?)))
    });
    log(name);
    let Some((planned, left)) = PLAN.as_ref() else {
        return;
    };
    if planned == name && left.fetch_sub(1, Ordering::SeqCst) == 1 {
        // Nothing may run after this point: SIGKILL to the process itself cannot fail.
        let _ =
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
        loop {
            std::thread::park();
        }
    }
}

/// Writes the pass down. The page cache keeps it when the process is killed right behind.
#[cfg(feature = "crash-points")]
fn log(name: &str) {
    use std::fs::File;
    use std::io::Write;
    use std::sync::LazyLock;

    static LOG: LazyLock<Option<File>> = LazyLock::new(|| {
        let path = std::env::var_os("OAK_CRASH_LOG")?;
        File::options().create(true).append(true).open(path).ok()
    });
    if let Some(mut file) = LOG.as_ref() {
        // One write for a whole line: passes of several threads do not mix.
        let _ = file.write_all(format!("{name}\n").as_bytes());
    }
}
