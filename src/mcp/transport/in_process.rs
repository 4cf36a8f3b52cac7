//! A server in this program, reached over a [`Link`].

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rmcp::RoleClient;
use rmcp::service::TxJsonRpcMessage;
use rmcp::transport::Transport;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::decode::{Incoming, messages};
use super::outbox::{Outbox, Put, SendError};
use crate::base::clock::SharedClock;
use crate::mcp::Link;
use crate::mcp::diagnosis::Diagnosis;
use crate::protocol::Json;

/// Messages that wait to be read.
const WAITING: usize = 64;
/// Time that the program may take for a frame.
const FRAME_TIME: Duration = Duration::from_mins(1);
/// Time that closing may take.
const CLOSE_TIME: Duration = Duration::from_secs(5);

/// The connection.
pub struct InProcess {
    link: Arc<dyn Link>,
    outbox: Outbox<Json>,
    incoming: mpsc::Receiver<Incoming>,
    pump: JoinHandle<()>,
    clock: SharedClock,
}

impl InProcess {
    /// Starts to read. Needs a tokio runtime.
    pub fn new(link: Arc<dyn Link>, diagnosis: Arc<Diagnosis>, clock: SharedClock) -> Self {
        let (sender, incoming) = mpsc::channel(WAITING);
        let target = Target {
            link: link.clone(),
            clock: clock.clone(),
        };
        Self {
            pump: tokio::spawn(pump(link.clone(), sender, diagnosis)),
            outbox: Outbox::new(target, clock.clone()),
            link,
            incoming,
            clock,
        }
    }
}

/// Reads in a task of its own: frames would be lost if the wait for them was given up.
async fn pump(link: Arc<dyn Link>, sender: mpsc::Sender<Incoming>, diagnosis: Arc<Diagnosis>) {
    loop {
        match link.receive().await {
            Ok(Some(frames)) => {
                for message in frames.into_iter().flat_map(messages) {
                    if sender.send(message).await.is_err() {
                        return;
                    }
                }
            }
            Ok(None) => return diagnosis.end("closed the connection"),
            Err(error) => return diagnosis.end(format!("failed: {}", error.message())),
        }
    }
}

impl Transport<RoleClient> for InProcess {
    type Error = SendError;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), SendError>> + Send + 'static {
        let queued = serde_json::to_value(&message).map(|frame| self.outbox.send(frame, 0));
        async move {
            match queued {
                Ok(sent) => sent.await,
                Err(error) => Err(SendError(error.to_string())),
            }
        }
    }

    async fn receive(&mut self) -> Option<Incoming> {
        self.incoming.recv().await
    }

    async fn close(&mut self) -> Result<(), SendError> {
        self.outbox.close().await;
        self.pump.abort();
        tokio::select! {
            biased;
            () = self.link.close() => {}
            () = self.clock.sleep(CLOSE_TIME) => {}
        }
        Ok(())
    }
}

impl Drop for InProcess {
    fn drop(&mut self) {
        self.pump.abort();
    }
}

/// The receiving side of the link.
struct Target {
    link: Arc<dyn Link>,
    clock: SharedClock,
}

#[async_trait]
impl Put<Json> for Target {
    async fn put(&mut self, frame: Json) -> Result<(), SendError> {
        tokio::select! {
            biased;
            sent = self.link.send(frame) => sent.map_err(|error| SendError(error.message().to_owned())),
            () = self.clock.sleep(FRAME_TIME) => {
                let seconds = FRAME_TIME.as_secs();
                Err(SendError(format!("it did not take a message within {seconds} s")))
            }
        }
    }
}
