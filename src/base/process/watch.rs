//! The task that sees a child to its end.

use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};

use super::child::Life;
use super::link::Link;
use super::reaper::HelperProcess;
use super::start::milliseconds;
use super::wire::{ExitStatus, Order, Report};

/// What a helper may take beyond the grace before its work is done for it.
const PATIENCE: Duration = Duration::from_secs(5);

/// A helper whose program was started.
pub(super) struct Watch {
    link: Link,
    process: HelperProcess,
    /// Graces of ends that are wished. Closed when the child was dropped.
    wishes: mpsc::UnboundedReceiver<Duration>,
    life: watch::Sender<Life>,
    grace: Duration,
    /// When an end that has begun must be over.
    deadline: Option<Instant>,
    /// Whether the helper has said that nothing is left.
    is_done: bool,
}

impl Watch {
    pub(super) fn new(
        link: Link,
        process: HelperProcess,
        wishes: mpsc::UnboundedReceiver<Duration>,
        life: watch::Sender<Life>,
        grace: Duration,
    ) -> Self {
        Self {
            link,
            process,
            wishes,
            life,
            grace,
            deadline: None,
            is_done: false,
        }
    }

    pub(super) async fn run(mut self) {
        self.follow().await;
        if !self.is_done {
            self.process.destroy().await;
        }
        self.process.reap().await;
        let status = self.life.borrow().status();
        self.life
            .send_replace(Life::Gone(status.unwrap_or(ExitStatus::Unknown)));
    }

    /// Passes on what is wished and what happens, until the helper has closed its end or is late.
    async fn follow(&mut self) {
        let mut is_held = true;
        loop {
            let deadline = self.deadline.unwrap_or_else(Instant::now);
            tokio::select! {
                report = self.link.report() => match report {
                    Ok(Some(report)) => self.hear(&report),
                    Ok(None) | Err(_) => return,
                },
                wish = self.wishes.recv(), if is_held => {
                    is_held = wish.is_some();
                    self.end(wish.unwrap_or(self.grace));
                }
                () = sleep_until(deadline), if self.deadline.is_some() => {
                    tracing::warn!("a helper did not end its child in time: it is killed");
                    return;
                }
            }
        }
    }

    fn hear(&mut self, report: &Report) {
        match *report {
            Report::Exited { status } => {
                self.life.send_replace(Life::Ended(status));
                self.hurry(self.grace);
            }
            Report::Done => self.is_done = true,
            Report::Hello { .. } | Report::Started { .. } | Report::Refused { .. } => {}
        }
    }

    fn end(&mut self, grace: Duration) {
        let grace_ms = milliseconds(grace);
        self.link.order(&Order::Terminate { grace_ms });
        self.hurry(grace);
    }

    /// The earliest of the deadlines counts.
    fn hurry(&mut self, grace: Duration) {
        let wanted = Instant::now().checked_add(grace.saturating_add(PATIENCE));
        self.deadline = match (self.deadline, wanted) {
            (Some(set), Some(wanted)) => Some(set.min(wanted)),
            (set, wanted) => set.or(wanted),
        };
    }
}
