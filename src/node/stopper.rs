//! Stopping a run from JavaScript.

use napi_derive::napi;

use crate::base::cancel::{Interrupt, Interrupter};
use crate::protocol::AbortCause;

/// Stops one run; may be told to before the run starts.
#[napi]
#[derive(Default)]
pub struct Stopper {
    interrupter: Interrupter,
}

#[napi]
impl Stopper {
    #[napi(constructor)]
    pub fn new() -> Self {
        Self::default()
    }

    /// The `AbortSignal` fired.
    #[napi(catch_unwind)]
    pub fn stop(&self, reason: Option<String>) {
        self.interrupter
            .interrupt(Interrupt::Aborted(AbortCause::Signal, reason));
    }
}

impl Stopper {
    pub fn interrupter(&self) -> Interrupter {
        self.interrupter.clone()
    }
}
