//! Ending a run early, with the reason.

use std::sync::{Arc, OnceLock};

use tokio_util::sync::CancellationToken;

use crate::protocol::AbortCause;

/// Why a run was told to stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Interrupt {
    /// Somebody asked, with the text of their reason.
    Aborted(AbortCause, Option<String>),
    /// The time that the run was given is over.
    Deadline,
    /// Another process has taken the session over.
    LeaseLost,
}

/// Tells a run to stop; the first reason stays.
#[derive(Clone, Debug, Default)]
pub struct Interrupter {
    token: CancellationToken,
    reason: Arc<OnceLock<Interrupt>>,
}

impl Interrupter {
    /// Stops the run. Later calls change nothing.
    pub fn interrupt(&self, reason: Interrupt) {
        // Losing the race is fine: the run stops either way.
        let _ = self.reason.set(reason);
        self.token.cancel();
    }

    /// Why the run was told to stop, if it was.
    pub fn reason(&self) -> Option<&Interrupt> {
        self.reason.get()
    }

    /// The signal that tools and requests watch.
    pub fn token(&self) -> &CancellationToken {
        &self.token
    }

    /// Runs `work` unless the run is told to stop first.
    pub async fn unless<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.token.cancelled() => None,
            value = work => Some(value),
        }
    }
}
