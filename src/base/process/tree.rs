//! The processes below a process, read from `/proc`.
//!
//! Compiled into the kernel and into `oak-helper`.

use rustix::process::{Pid, RawPid};

/// A process as `/proc` shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Process {
    pub pid: Pid,
    pub parent: RawPid,
    pub session: RawPid,
    /// Tells apart processes that have had the same pid.
    pub start: u64,
}

/// Every process that descends from `root`, without itself. None where `/proc` does not tell: it is not
/// mounted, shows another PID namespace, or the system has none.
///
/// What has just died is in the list too; a signal to it has no effect.
pub fn descendants(root: Pid) -> Option<Vec<Process>> {
    let mut others = processes()?;
    let mut found = Vec::new();
    let mut parents = vec![root.as_raw_pid()];
    while let Some(parent) = parents.pop() {
        others.retain(|process| {
            let is_child = process.parent == parent;
            if is_child {
                parents.push(process.pid.as_raw_pid());
                found.push(*process);
            }
            !is_child
        });
    }
    Some(found)
}

/// Every process that this one can see.
pub fn processes() -> Option<Vec<Process>> {
    if !shows_this_namespace() {
        return None;
    }
    let entries = std::fs::read_dir("/proc").ok()?;
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    Some(pids.filter_map(read).collect())
}

fn shows_this_namespace() -> bool {
    std::fs::read_link("/proc/self")
        .is_ok_and(|link| link.to_str() == Some(&std::process::id().to_string()))
}

/// Reads `stat` of a process: the fields behind its name, which may contain anything.
fn read(pid: RawPid) -> Option<Process> {
    let line = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    let name_end = line.iter().rposition(|&byte| byte == b')')?;
    let fields = str::from_utf8(&line[name_end + 1..]).ok()?;
    let mut fields = fields.split_ascii_whitespace().skip(1);
    let parent = fields.next()?.parse().ok()?;
    let session = fields.nth(1)?.parse().ok()?;
    let start = fields.nth(15)?.parse().ok()?;
    Some(Process {
        pid: Pid::from_raw(pid)?,
        parent,
        session,
        start,
    })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::process::Command;

    use rustix::process::getpid;

    use super::*;

    #[test]
    fn children_and_theirs_are_found_whatever_their_name() {
        let folder = tempfile::tempdir().unwrap();
        let odd = folder.path().join("a) S 1 (b");
        std::os::unix::fs::symlink("/bin/sh", &odd).unwrap();
        let mut child = Command::new(odd)
            .args(["-c", "sleep 60 & wait"])
            .spawn()
            .unwrap();
        let pid = RawPid::try_from(child.id()).unwrap();
        let of_child = || {
            let found = descendants(getpid()).unwrap();
            found.into_iter().find(|process| process.parent == pid)
        };
        let grandchild = loop {
            if let Some(process) = of_child() {
                break process;
            }
            std::thread::yield_now();
        };
        assert!(descendants(getpid()).unwrap().iter().any(|process| {
            process.pid.as_raw_pid() == pid && process.session == grandchild.session
        }));
        rustix::process::kill_process(grandchild.pid, rustix::process::Signal::KILL).unwrap();
        child.wait().unwrap();
    }
}
