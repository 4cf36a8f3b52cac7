//! What a running call reports.

use tokio::sync::mpsc;

use crate::protocol::Json;

/// Reports that wait to be told; more are lost.
const WAITING: usize = 16;

/// Where a call tells how far it is. Never waits: a report that comes too fast is lost.
#[derive(Clone, Debug, Default)]
pub struct Progress(Option<mpsc::Sender<Json>>);

/// What calls reported.
pub type ProgressReceiver = mpsc::Receiver<Json>;

/// A place for the reports of one call.
pub fn progress_channel() -> (Progress, ProgressReceiver) {
    let (sender, receiver) = mpsc::channel(WAITING);
    (Progress(Some(sender)), receiver)
}

impl Progress {
    /// Reports something, in the form that the tool chooses.
    pub fn report(&self, content: Json) {
        if let Some(sender) = &self.0 {
            // Full or gone: nobody needs this one.
            let _ = sender.try_send(content);
        }
    }
}
