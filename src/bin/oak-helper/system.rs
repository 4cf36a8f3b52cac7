//! System calls that have no safe form: what this process inherited, and the step before `exec`.

use std::io;
use std::process::Command;

/// Signals with which others end or stop a process. This one ends with its tree.
const IGNORED: [libc::c_int; 9] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGPIPE,
    libc::SIGALRM,
    libc::SIGTERM,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGTSTP,
];
/// Highest number of a signal, on any system.
const LAST_SIGNAL: libc::c_int = 64;
const FIRST_UNKNOWN: libc::c_int = 3;

/// Closes every descriptor but the standard streams: what the kernel's process leaves open for its
/// children is not for this one.
pub fn close_inherited() {
    if !close_range() {
        close_listed();
    }
}

#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "descriptors without an owner")]
fn close_range() -> bool {
    // SAFETY: called at the start of `main`, when this program has opened nothing.
    let closed =
        unsafe { libc::syscall(libc::SYS_close_range, FIRST_UNKNOWN, libc::c_uint::MAX, 0) };
    closed == 0
}

#[cfg(not(target_os = "linux"))]
fn close_range() -> bool {
    false
}

/// For systems without `close_range`.
#[expect(unsafe_code, reason = "descriptors without an owner")]
fn close_listed() {
    let Ok(entries) = std::fs::read_dir("/dev/fd") else {
        return;
    };
    let open: Vec<libc::c_int> = entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    for fd in open.into_iter().filter(|&fd| fd >= FIRST_UNKNOWN) {
        // SAFETY: called at the start of `main`; the folder, the only thing opened since, is closed.
        unsafe { libc::close(fd) };
    }
}

/// Ignores what would end this process before its tree, and waits for children as usual.
pub fn ignore_signals() {
    for signal in IGNORED {
        dispose(signal, libc::SIG_IGN);
    }
    // Whoever ignores it never sees a child end.
    dispose(libc::SIGCHLD, libc::SIG_DFL);
}

/// Adds a step that runs in the child before the program. There every signal has its default effect
/// again; none is blocked, which the standard library sees to.
#[expect(unsafe_code, reason = "runs between fork and exec")]
pub fn before_exec(
    command: &mut Command,
    mut step: impl FnMut() -> io::Result<()> + Send + Sync + 'static,
) {
    use std::os::unix::process::CommandExt;
    // SAFETY: this process has one thread when it starts the program, so that none holds a lock in the
    // child; and the step makes system calls only.
    unsafe {
        command.pre_exec(move || {
            for signal in 1..=LAST_SIGNAL {
                dispose(signal, libc::SIG_DFL);
            }
            step()
        });
    }
}

/// Sets what a signal does, where the system allows it.
#[expect(unsafe_code, reason = "the standard library has no such function")]
fn dispose(signal: libc::c_int, action: libc::sighandler_t) {
    // SAFETY: the actions are the two that run no code of this program.
    unsafe { libc::signal(signal, action) };
}
