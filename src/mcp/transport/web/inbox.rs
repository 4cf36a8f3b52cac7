//! Messages of a server on their way to the connection.

use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::base::sse::SseEvent;
use crate::mcp::transport::decode::{self, Content};

pub use crate::mcp::transport::decode::Incoming;

/// Messages that wait for their reader.
const ROOM: usize = 8;

/// The messages in a text: one, or those of a batch. Empty when it is not the protocol.
pub fn messages(text: &[u8]) -> Vec<Incoming> {
    match decode::read_line(text) {
        Content::Messages(messages) => messages,
        Content::Noise => Vec::new(),
    }
}

/// The messages in an event. Other events, and what is not the protocol, are for somebody else.
pub fn messages_in(event: &SseEvent) -> Vec<Incoming> {
    match (event.name.as_str(), &event.data) {
        ("" | "message", Some(data)) => messages(data.as_bytes()),
        _ => Vec::new(),
    }
}

/// The end that is read. Dropping it ends everything that works for the connection.
pub struct Inbox {
    messages: mpsc::Receiver<Incoming>,
    ended: CancellationToken,
    _guard: DropGuard,
}

/// The end that the readers of the wire write to.
#[derive(Clone)]
pub struct Outlet {
    messages: mpsc::Sender<Incoming>,
    ended: CancellationToken,
}

/// Both ends.
pub fn inbox() -> (Outlet, Inbox) {
    let (sender, receiver) = mpsc::channel(ROOM);
    let ended = CancellationToken::new();
    let outlet = Outlet {
        messages: sender,
        ended: ended.clone(),
    };
    let inbox = Inbox {
        messages: receiver,
        _guard: ended.clone().drop_guard(),
        ended,
    };
    (outlet, inbox)
}

impl Inbox {
    /// The next message; none when the connection is over and all were read.
    pub async fn receive(&mut self) -> Option<Incoming> {
        tokio::select! {
            biased;
            message = self.messages.recv() => message,
            () = self.ended.cancelled() => None,
        }
    }

    /// Ends the connection.
    pub fn end(&self) {
        self.ended.cancel();
    }
}

impl Outlet {
    /// Hands over a message; waits while the reader is behind. False: nobody reads any more.
    pub async fn deliver(&self, message: Incoming) -> bool {
        tokio::select! {
            biased;
            () = self.ended.cancelled() => false,
            sent = self.messages.send(message) => sent.is_ok(),
        }
    }

    /// Ends the connection.
    pub fn end(&self) {
        self.ended.cancel();
    }

    /// Waits for the end of the connection.
    pub async fn ended(&self) {
        self.ended.cancelled().await;
    }
}
