//! Frames on their way to a server, in the order in which they were given.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::base::clock::SharedClock;

/// Bytes that may wait for a server that does not read.
const MAX_WAITING: usize = 64 * 1024 * 1024;
/// Time for what still waits when the connection is closed.
const LAST_FRAMES: Duration = Duration::from_millis(100);

/// Why a frame did not reach the server.
#[derive(Clone, Debug)]
pub struct SendError(pub String);

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SendError {}

/// Where frames go.
#[async_trait]
pub trait Put<F>: Send + 'static {
    async fn put(&mut self, frame: F) -> Result<(), SendError>;
}

/// A queue in front of a place where frames go.
#[derive(Debug)]
pub struct Outbox<F> {
    queue: Option<mpsc::UnboundedSender<Queued<F>>>,
    waiting: Arc<AtomicUsize>,
    task: JoinHandle<()>,
    clock: SharedClock,
}

#[derive(Debug)]
struct Queued<F> {
    frame: F,
    weight: usize,
    done: oneshot::Sender<Result<(), SendError>>,
}

impl<F: Send + 'static> Outbox<F> {
    /// Starts writing. Needs a tokio runtime.
    pub fn new(mut target: impl Put<F>, clock: SharedClock) -> Self {
        let (queue, mut frames) = mpsc::unbounded_channel::<Queued<F>>();
        let waiting = Arc::new(AtomicUsize::new(0));
        let left = waiting.clone();
        let task = tokio::spawn(async move {
            while let Some(queued) = frames.recv().await {
                let result = target.put(queued.frame).await;
                left.fetch_sub(queued.weight, Ordering::Relaxed);
                // Whoever gave the frame may not wait for it.
                let _ = queued.done.send(result);
            }
        });
        Self {
            queue: Some(queue),
            waiting,
            task,
            clock,
        }
    }

    /// Queues a frame of about `weight` bytes at once; the future waits until it is written.
    pub fn send(
        &self,
        frame: F,
        weight: usize,
    ) -> impl Future<Output = Result<(), SendError>> + Send + use<F> {
        let (done, written) = oneshot::channel();
        let queued = self.enqueue(Queued {
            frame,
            weight,
            done,
        });
        async move {
            queued?;
            written.await.unwrap_or_else(|_| Err(closed()))
        }
    }

    fn enqueue(&self, queued: Queued<F>) -> Result<(), SendError> {
        let weight = queued.weight;
        if self.waiting.load(Ordering::Relaxed).saturating_add(weight) > MAX_WAITING {
            return Err(SendError("the server does not read its input".to_owned()));
        }
        self.waiting.fetch_add(weight, Ordering::Relaxed);
        let queue = self.queue.as_ref().ok_or_else(closed)?;
        queue.send(queued).map_err(|_| closed())
    }

    /// Lets go of the target, after a moment for what still waits.
    pub async fn close(&mut self) {
        self.queue = None;
        tokio::select! {
            biased;
            _ = &mut self.task => {}
            () = self.clock.sleep(LAST_FRAMES) => {
                self.task.abort();
                // Dropping the target is what closes the server's input.
                let _ = (&mut self.task).await;
            }
        }
    }
}

impl<F> Drop for Outbox<F> {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn closed() -> SendError {
    SendError("the connection is closed".to_owned())
}
