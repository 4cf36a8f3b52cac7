//! A way to a server that lives in this program.

use std::sync::Arc;

use async_trait::async_trait;

use crate::error::Result;
use crate::protocol::Json;

/// Opens links to one server.
#[async_trait]
pub trait LinkFactory: Send + Sync {
    /// Connects to the server. Fails when it is connected elsewhere.
    async fn open(&self) -> Result<Arc<dyn Link>>;
}

/// A connection to a server in this program. Frames are JSON-RPC messages.
#[async_trait]
pub trait Link: Send + Sync {
    /// Gives the server a frame.
    async fn send(&self, frame: Json) -> Result<()>;

    /// Waits for frames of the server; none: it is closed.
    async fn receive(&self) -> Result<Option<Vec<Json>>>;

    /// Lets go of the server.
    async fn close(&self);
}
