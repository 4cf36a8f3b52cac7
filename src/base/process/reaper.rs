//! Takes note of ended helpers, so that none stays as a zombie.

use std::process::Child;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use tokio::time::sleep;

use super::tree;

/// Helpers that were left in the middle, when the runtime was shut down.
static LEFT: Mutex<Vec<Child>> = Mutex::new(Vec::new());
/// How often to look for the end of a helper, with pauses from 1 ms that double: two seconds in all.
const LOOKS: u32 = 11;
/// How often to look for processes that a helper left; they may still be starting others.
const SWEEPS: usize = 20;

/// A helper of which the system still keeps a record. Only its own pid is waited for: other children of
/// this process belong to others.
#[derive(Debug)]
pub(super) struct HelperProcess(Option<Child>);

impl HelperProcess {
    pub(super) fn new(child: Child) -> Self {
        left().retain_mut(is_running);
        Self(Some(child))
    }

    /// Ends with SIGKILL what is left of a helper that did not do its work, and it.
    pub(super) async fn destroy(&mut self) {
        let Some(pid) = self.pid() else { return };
        for _ in 0..SWEEPS {
            if !kill_below(pid) {
                break;
            }
            sleep(Duration::from_millis(1)).await;
        }
        let _ = kill_process(pid, Signal::KILL);
    }

    /// Waits for a helper that has closed its socket, which it does by ending.
    pub(super) async fn reap(mut self) {
        if self.has_ended_soon().await {
            return;
        }
        if let Some(pid) = self.pid() {
            let _ = kill_process(pid, Signal::KILL);
        }
        if !self.has_ended_soon().await {
            tracing::warn!("a helper does not end although it was killed");
        }
    }

    async fn has_ended_soon(&mut self) -> bool {
        for look in 0..LOOKS {
            let Some(child) = self.0.as_mut() else {
                return true;
            };
            if !is_running(child) {
                self.0 = None;
                return true;
            }
            sleep(Duration::from_millis(1 << look)).await;
        }
        false
    }

    /// The pid, as long as it certainly is that of the helper: until the helper is reaped.
    fn pid(&self) -> Option<Pid> {
        let id = self.0.as_ref()?.id();
        let pid = Pid::from_raw(id.try_into().ok()?)?;
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        waitid(WaitId::Pid(pid), look).ok()?;
        Some(pid)
    }
}

impl Drop for HelperProcess {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take()
            && is_running(&mut child)
        {
            left().push(child);
        }
    }
}

/// Kills the tree and the session of a helper. False when there was nothing.
///
/// The session finds what a helper that is dead already had started, unless it made its own session.
fn kill_below(helper: Pid) -> bool {
    let below = tree::descendants(helper).unwrap_or_default();
    let session = tree::processes().unwrap_or_default();
    let in_session = session
        .into_iter()
        .filter(|process| process.session == helper.as_raw_pid() && process.pid != helper);
    let mut found = false;
    for process in below.into_iter().chain(in_session) {
        found |= kill_process(process.pid, Signal::KILL).is_ok();
    }
    found
}

/// An error means that the record is gone: the program ignores SIGCHLD, or waits for every child.
fn is_running(child: &mut Child) -> bool {
    matches!(child.try_wait(), Ok(None))
}

fn left() -> MutexGuard<'static, Vec<Child>> {
    LEFT.lock().unwrap_or_else(PoisonError::into_inner)
}
