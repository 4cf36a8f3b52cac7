//! Streamable HTTP: every message is a POST, whose answer is one JSON message or an event stream; a
//! GET opens a stream for what the server says on its own.
//!
//! A stream that ends before its answer is opened again where it broke off. Requests are never sent
//! twice: when the server has ended the session the connection ends, and whoever uses it connects
//! again.

mod link;
mod session;
mod stream;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::service::TxJsonRpcMessage;
use rmcp::transport::Transport;
use url::Url;

use crate::base::http::ProxyRules;
use crate::base::secret::Secret;
use crate::error::{KernelError, Result};

use super::web::{Endpoint, Inbox, Incoming, Limits, inbox};
use link::Link;

/// How long the server may take to forget the session at the end.
const GOODBYE: Duration = Duration::from_secs(5);

/// Opens a transport to a server of streamable HTTP. Nothing is sent before the first message.
///
/// `headers` go with every request, and to no other origin. Fails when one of them cannot be sent.
pub fn connect(
    url: &Url,
    headers: &[(String, Secret)],
    proxy: &ProxyRules,
) -> Result<impl Transport<RoleClient, Error = KernelError> + use<>> {
    let endpoint = Endpoint::new(url, headers, proxy)?;
    Ok(HttpTransport::new(endpoint, Limits::default()))
}

struct HttpTransport {
    link: Arc<Link>,
    inbox: Inbox,
}

impl HttpTransport {
    fn new(endpoint: Endpoint, limits: Limits) -> Self {
        let (outlet, inbox) = inbox();
        let link = Arc::new(Link::new(endpoint, limits, outlet));
        Self { link, inbox }
    }
}

impl Transport<RoleClient> for HttpTransport {
    type Error = KernelError;

    /// Ends when the message is accepted, for a request when it is answered.
    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<()>> + Send + 'static {
        let link = self.link.clone();
        async move { link.send(message).await }
    }

    async fn receive(&mut self) -> Option<Incoming> {
        self.inbox.receive().await
    }

    async fn close(&mut self) -> Result<()> {
        self.inbox.end();
        // The session is over for us whether or not the server hears of it.
        let _ = tokio::time::timeout(GOODBYE, self.link.delete_session()).await;
        Ok(())
    }
}
