//! The older transport, HTTP with server-sent events: one GET stream brings everything that the
//! server says, its first event names the address that messages are posted to.
//!
//! The connection is over when the stream is.

#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use reqwest::Method;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use rmcp::RoleClient;
use rmcp::service::TxJsonRpcMessage;
use rmcp::transport::Transport;
use url::Url;

use crate::base::http::ProxyRules;
use crate::base::secret::Secret;
use crate::base::sse::SseEvent;
use crate::error::{KernelError, Result};

use super::web::{
    Ask, Asked, EVENT_STREAM, Endpoint, Events, Inbox, Incoming, JSON, Limits, Outlet,
    content_type, inbox, messages_in,
};

/// Opens the stream of a server and waits for the address of its messages.
///
/// `headers` go with every request, and to no other origin. Fails when one of them cannot be sent,
/// when the server gives no stream, and when the address it names is of another origin.
pub async fn connect(
    url: &Url,
    headers: &[(String, Secret)],
    proxy: &ProxyRules,
) -> Result<impl Transport<RoleClient, Error = KernelError> + use<>> {
    let endpoint = Endpoint::new(url, headers, proxy)?;
    SseTransport::open(endpoint, Limits::default()).await
}

struct SseTransport {
    post: Arc<Post>,
    inbox: Inbox,
}

/// Where messages go.
struct Post {
    endpoint: Arc<Endpoint>,
    limits: Limits,
    address: Mutex<Url>,
    outlet: Outlet,
    /// Why the stream is over.
    reason: OnceLock<KernelError>,
}

impl SseTransport {
    async fn open(endpoint: Endpoint, limits: Limits) -> Result<Self> {
        let endpoint = Arc::new(endpoint);
        let opening = async {
            let mut events = stream(&endpoint, limits).await?;
            let address = first_address(&endpoint, &mut events).await?;
            Ok::<_, KernelError>((events, address))
        };
        let (events, address) = tokio::time::timeout(limits.headers, opening)
            .await
            .map_err(|_| endpoint.silent(limits.headers))??;
        let (outlet, inbox) = inbox();
        let post = Arc::new(Post {
            endpoint,
            limits,
            address: Mutex::new(address),
            outlet,
            reason: OnceLock::new(),
        });
        tokio::spawn(post.clone().read(events));
        Ok(Self { post, inbox })
    }
}

impl Transport<RoleClient> for SseTransport {
    type Error = KernelError;

    /// Ends when the server has taken the message; an answer comes on the stream.
    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<()>> + Send + 'static {
        let post = self.post.clone();
        async move { post.send(message).await }
    }

    async fn receive(&mut self) -> Option<Incoming> {
        self.inbox.receive().await
    }

    async fn close(&mut self) -> Result<()> {
        self.inbox.end();
        Ok(())
    }
}

impl Post {
    async fn send(&self, message: TxJsonRpcMessage<RoleClient>) -> Result<()> {
        let body = serde_json::to_vec(&message).map_err(|error| {
            KernelError::invalid(format!("an MCP message cannot be written: {error}"))
        })?;
        let ask = Ask {
            method: Method::POST,
            url: self.lock().clone(),
            headers: HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(JSON))]),
            body: Some(body.into()),
        };
        let sending = self
            .endpoint
            .send_soon(ask, self.limits.headers, Asked::OldMessage);
        tokio::select! {
            biased;
            () = self.outlet.ended() => Err(self.over()),
            sent = sending => sent.map(drop),
        }
    }

    /// Reads the stream to its end, which is the end of the connection.
    async fn read(self: Arc<Self>, mut events: Events) {
        let reading = async {
            while let Some(event) = events.next().await? {
                self.take(event).await?;
            }
            Ok::<_, KernelError>(())
        };
        let ended = tokio::select! {
            biased;
            () = self.outlet.ended() => return,
            ended = reading => ended,
        };
        if let Err(error) = ended {
            let _ = self.reason.set(error);
        }
        self.outlet.end();
    }

    async fn take(&self, event: SseEvent) -> Result<()> {
        if let ("endpoint", Some(data)) = (event.name.as_str(), &event.data) {
            *self.lock() = address(&self.endpoint, data)?;
        }
        for message in messages_in(&event) {
            self.outlet.deliver(message).await;
        }
        Ok(())
    }

    fn over(&self) -> KernelError {
        let reason = self.reason.get().cloned();
        reason.unwrap_or_else(|| self.endpoint.misread("has ended the stream"))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Url> {
        self.address.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn stream(endpoint: &Arc<Endpoint>, limits: Limits) -> Result<Events> {
    let ask = Ask {
        method: Method::GET,
        url: endpoint.url().clone(),
        headers: HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(EVENT_STREAM))]),
        body: None,
    };
    let asked = Asked::OldStream;
    let response = endpoint.send_soon(ask, limits.headers, asked).await?;
    if content_type(&response) != EVENT_STREAM {
        return Err(endpoint
            .misread("opened no event stream")
            .advise("check url; a server of streamable HTTP needs type: 'http'")
            .with_retryable(false));
    }
    // A server may have nothing to say for as long as nobody asks it anything.
    Ok(Events::new(endpoint.clone(), response, None))
}

/// Waits for the address of the messages, which comes first.
async fn first_address(endpoint: &Endpoint, events: &mut Events) -> Result<Url> {
    while let Some(event) = events.next().await? {
        if let ("endpoint", Some(data)) = (event.name.as_str(), event.data) {
            return address(endpoint, &data);
        }
    }
    Err(endpoint.misread("ended the stream before it named the address of messages"))
}

fn address(endpoint: &Endpoint, data: &str) -> Result<Url> {
    endpoint.resolve(endpoint.url(), data.trim(), "names for messages")
}
