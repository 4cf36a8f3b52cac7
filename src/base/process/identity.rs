//! Which process this is, and whether another one still exists.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

/// Names a process of a machine for as long as the machine runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProcessId {
    pub host: String,
    /// Changes with every start of the machine; empty where the system does not tell.
    pub boot_id: String,
    pub pid: u32,
    /// When the process started, in ticks since the start of the machine: tells apart processes that
    /// have had the same pid. 0 where the system does not tell.
    pub pid_start: u64,
}

impl ProcessId {
    /// This process.
    pub fn current() -> &'static Self {
        static CURRENT: LazyLock<ProcessId> = LazyLock::new(|| {
            let pid = std::process::id();
            ProcessId {
                host: host_name(),
                boot_id: boot_id(),
                pid,
                pid_start: start_of(pid).unwrap_or_default(),
            }
        });
        &CURRENT
    }

    /// Whether the process certainly does not exist any more. Of a process of another machine, or of
    /// another start of this one in a container with its own name, nothing can be known.
    pub fn is_gone(&self) -> bool {
        let here = Self::current();
        let is_here =
            !here.boot_id.is_empty() && self.host == here.host && self.boot_id == here.boot_id;
        if !is_here || self.pid_start == 0 || here.pid_start == 0 {
            return false;
        }
        start_of(self.pid) != Some(self.pid_start)
    }
}

/// The name of this machine, with its PID namespace: containers that share a name do not see each
/// other's processes.
fn host_name() -> String {
    let name = rustix::system::uname();
    let name = name.nodename().to_string_lossy().into_owned();
    let namespace = std::fs::read_link("/proc/self/ns/pid")
        .map(|link| link.to_string_lossy().into_owned())
        .unwrap_or_default();
    format!("{name} {namespace}")
}

fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map(|id| id.trim().to_owned())
        .unwrap_or_default()
}

/// Start time of a process: field 22 of its `stat`, counted behind the name in parentheses. A zombie
/// runs no more.
fn start_of(pid: u32) -> Option<u64> {
    let line = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = line.rsplit_once(')')?.1.split_ascii_whitespace();
    let state = fields.next()?;
    let start = fields.nth(18)?.parse().ok()?;
    (!matches!(state, "Z" | "X")).then_some(start)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn this_process_is_there_and_one_that_ended_is_gone() {
        assert!(!ProcessId::current().is_gone());
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let other = ProcessId {
            pid: child.id(),
            pid_start: start_of(child.id()).unwrap(),
            ..ProcessId::current().clone()
        };
        assert!(!other.is_gone());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(other.is_gone());
    }

    #[test]
    fn nothing_is_known_of_other_machines() {
        let other = ProcessId {
            host: "elsewhere".into(),
            pid: u32::MAX,
            ..ProcessId::current().clone()
        };
        assert!(!other.is_gone());
    }
}
