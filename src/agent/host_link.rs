//! The way to an MCP server that lives in the host program.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use super::config::Fields;
use super::host::{FunctionId, Host, HostFailure};
use crate::base::clock::{Clock, SystemClock};
use crate::base::json::type_name;
use crate::error::{ErrorKind, KernelError, Result};
use crate::mcp::{Link, LinkFactory};
use crate::protocol::Json;

/// Time that opening a link and giving it a frame may take.
const CALL_TIME: Duration = Duration::from_mins(1);
/// Time that letting go of a server may take.
const CLOSE_TIME: Duration = Duration::from_secs(5);

/// Code of JSON-RPC for what a server did wrong.
const INTERNAL_ERROR: i32 = -32603;

/// Links from the functions that the host program prepared: `open`, `send`, `receive` and `close`, each
/// of which takes one object with the number of the `link`. `path` names the server in messages, such
/// as `config.mcpServers.weather.instance`.
///
/// Fails with an `InvalidConfig` error when one of the functions is missing.
pub fn link_factory(
    path: &str,
    value: &Json,
    host: &Arc<dyn Host>,
) -> Result<Arc<dyn LinkFactory>> {
    let refused = || {
        KernelError::invalid(format!(
            "{path} must be an MCP server object: one with connect() and close()"
        ))
    };
    let fields = Fields::of(path, value).map_err(|_| refused())?;
    let needed = |name: &'static str| fields.function(name).ok().flatten().ok_or_else(refused);
    Ok(Arc::new(HostServer {
        calls: Arc::new(Calls {
            path: path.to_owned(),
            host: host.clone(),
            open: needed("open")?,
            send: needed("send")?,
            receive: needed("receive")?,
            close: needed("close")?,
        }),
        links: AtomicU64::new(0),
    }))
}

/// A server of the host program.
struct HostServer {
    calls: Arc<Calls>,
    links: AtomicU64,
}

/// The functions of one server.
struct Calls {
    path: String,
    host: Arc<dyn Host>,
    open: FunctionId,
    send: FunctionId,
    receive: FunctionId,
    close: FunctionId,
}

#[async_trait]
impl LinkFactory for HostServer {
    async fn open(&self) -> Result<Arc<dyn Link>> {
        // It exists before the program opens it: whatever happens meanwhile, dropping it closes.
        let link = HostLink {
            calls: self.calls.clone(),
            number: self.links.fetch_add(1, Ordering::Relaxed),
            receiving: Mutex::default(),
            closed: AtomicBool::new(false),
        };
        let argument = link.argument();
        self.calls
            .limited(self.calls.open, argument, "connect")
            .await?;
        Ok(Arc::new(link))
    }
}

/// A connection to a server of the host program.
struct HostLink {
    calls: Arc<Calls>,
    number: u64,
    /// The call that waits for frames. It outlives a dropped [`Link::receive`], so that no frame is
    /// lost on the way.
    receiving: Mutex<Option<BoxFuture<'static, Result<Json, HostFailure>>>>,
    closed: AtomicBool,
}

#[async_trait]
impl Link for HostLink {
    async fn send(&self, frame: Json) -> Result<()> {
        let argument = json!({ "link": self.number, "frame": frame });
        self.calls
            .limited(self.calls.send, argument, "send")
            .await
            .map(drop)
    }

    async fn receive(&self) -> Result<Option<Vec<Json>>> {
        let mut receiving = self.receiving.lock().await;
        let call =
            receiving.get_or_insert_with(|| self.calls.call(self.calls.receive, self.argument()));
        let reply = call.await;
        *receiving = None;
        let reply = reply.map_err(|failure| self.calls.failed("receive", &failure))?;
        self.calls.frames(reply)
    }

    async fn close(&self) {
        if self.closed.load(Ordering::Acquire) {
            return;
        }
        let closing = self.calls.call(self.calls.close, self.argument());
        tokio::select! {
            biased;
            // The link is gone for this side, whatever the program made of it.
            _ = closing => self.closed.store(true, Ordering::Release),
            () = SystemClock.sleep(CLOSE_TIME) => {}
        }
    }
}

impl HostLink {
    fn argument(&self) -> Json {
        json!({ "link": self.number })
    }
}

impl Drop for HostLink {
    fn drop(&mut self) {
        if !*self.closed.get_mut() {
            self.calls.host.notify(self.calls.close, self.argument());
        }
    }
}

impl Calls {
    /// Calls a function; dropping the future tells it to stop.
    fn call(
        &self,
        function: FunctionId,
        argument: Json,
    ) -> BoxFuture<'static, Result<Json, HostFailure>> {
        let host = self.host.clone();
        Box::pin(async move {
            host.call(function, argument, CancellationToken::new())
                .await
        })
    }

    async fn limited(&self, function: FunctionId, argument: Json, what: &str) -> Result<Json> {
        tokio::select! {
            biased;
            reply = self.call(function, argument) => {
                reply.map_err(|failure| self.failed(what, &failure))
            }
            () = SystemClock.sleep(CALL_TIME) => Err(self.error(format!(
                "did not {what} within {} s", CALL_TIME.as_secs()
            ))),
        }
    }

    /// The frames in the reply of `receive`: none when the server is gone.
    fn frames(&self, reply: Json) -> Result<Option<Vec<Json>>> {
        let texts = match reply {
            Json::Null => return Ok(None),
            Json::Array(texts) => texts,
            other => return Err(self.not_frames(&other)),
        };
        let mut frames = Vec::with_capacity(texts.len());
        for text in texts {
            let Json::String(text) = text else {
                return Err(self.not_frames(&text));
            };
            frames.extend(read_frame(&text));
        }
        Ok(Some(frames))
    }

    fn failed(&self, what: &str, failure: &HostFailure) -> KernelError {
        let what = format!("failed to {what}: {}", failure.text());
        self.error(what).with_thrown(failure.thrown)
    }

    fn not_frames(&self, found: &Json) -> KernelError {
        self.error(format!("gave {} where frames belong", type_name(found)))
    }

    fn error(&self, what: impl std::fmt::Display) -> KernelError {
        KernelError::new(ErrorKind::McpServer, format!("{} {what}", self.path))
    }
}

/// What is read of a frame that is too deep for the rest.
#[derive(Deserialize)]
struct Head {
    id: Option<Json>,
    method: Option<String>,
}

/// Reads a frame. One that cannot be read becomes the failure of the request that it answers; it is
/// left out when it answers none.
fn read_frame(text: &str) -> Option<Json> {
    if let Ok(frame) = serde_json::from_str(text) {
        return Some(frame);
    }
    match serde_json::from_str(text) {
        Ok(Head {
            id: Some(id),
            method: None,
        }) => Some(json!({
            "jsonrpc": "2.0",
            "id": id,
            "error": { "code": INTERNAL_ERROR, "message": "the answer is nested too deeply" },
        })),
        _ => None,
    }
}
