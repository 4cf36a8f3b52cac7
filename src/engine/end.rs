//! How a run ended.

use crate::base::cancel::{Interrupt, Interrupter};
use crate::error::KernelError;
use crate::protocol::{AbortCause, OpenCall, StopReason, Usage};
use crate::store::session::fenced_out;

/// How a run ended.
#[derive(Debug)]
pub struct RunEnd {
    pub stop_reason: StopReason,
    /// For [`StopReason::Aborted`]: who asked, and the text of their reason.
    pub abort: Option<(AbortCause, Option<String>)>,
    /// For [`StopReason::Error`].
    pub error: Option<KernelError>,
    /// Sum over the requests.
    pub usage: Usage,
    /// Model requests that were answered.
    pub requests: u32,
    /// Text of the last answer.
    pub text: String,
    /// Calls that wait for an answer from outside, in the order of the model.
    pub pending: Vec<OpenCall>,
}

impl RunEnd {
    pub(super) fn without_work(stop_reason: StopReason) -> Self {
        Self {
            stop_reason,
            abort: None,
            error: None,
            usage: Usage::default(),
            requests: 0,
            text: String::new(),
            pending: Vec::new(),
        }
    }

    /// The end of a run that failed before it did anything.
    pub fn failed(error: KernelError) -> Self {
        Self {
            error: Some(error),
            ..Self::without_work(StopReason::Error)
        }
    }

    /// The end of a run that was told to stop before it did anything.
    pub fn interrupted(interrupter: &Interrupter) -> Self {
        let mut end = Self::without_work(StopReason::Aborted);
        end.explain(interrupter);
        end
    }

    /// Says who stopped the run.
    fn explain(&mut self, interrupter: &Interrupter) {
        match interrupter.reason() {
            Some(Interrupt::Deadline) => self.stop_reason = StopReason::Budget,
            Some(Interrupt::LeaseLost) => {
                self.stop_reason = StopReason::Error;
                self.error = Some(fenced_out());
            }
            Some(Interrupt::Aborted(cause, reason)) => self.abort = Some((*cause, reason.clone())),
            None => {}
        }
    }
}
