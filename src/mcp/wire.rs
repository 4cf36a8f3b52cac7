//! What every connection does with messages, whatever carries them.
//!
//! Reports of progress go to the call that they belong to, in order and before its result. A changed
//! list of tools is noted. Other notifications mean nothing here and end here.

use std::borrow::Cow;
use std::collections::HashMap;
use std::error::Error;
use std::sync::{Arc, OnceLock};

use rmcp::RoleClient;
use rmcp::model::{
    ClientNotification, ClientRequest, GetExtensions, GetMeta, JsonRpcMessage,
    ProgressNotificationParam, ProgressToken, RequestId, ServerNotification,
};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::json;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::diagnosis::{Diagnosis, causes};
use crate::error::{ErrorKind, KernelError};
use crate::protocol::{Json, JsonMap};
use crate::tool::Progress;

/// Calls whose reports are routed; more get none.
const MAX_ROUTES: usize = 10_000;

/// Counts the connections that are not closed yet.
#[derive(Debug)]
pub struct OpenGuard(watch::Sender<usize>);

impl OpenGuard {
    pub fn new(open: &watch::Sender<usize>) -> Self {
        open.send_modify(|open| *open += 1);
        Self(open.clone())
    }
}

impl Drop for OpenGuard {
    fn drop(&mut self) {
        self.0.send_modify(|open| *open -= 1);
    }
}

/// Goes with a request and says why it did not reach the server: when the connection breaks at the same
/// time, nobody else knows.
#[derive(Clone, Debug, Default)]
pub struct Receipt(Arc<Loss>);

#[derive(Debug, Default)]
struct Loss {
    error: OnceLock<KernelError>,
    known: CancellationToken,
}

impl Receipt {
    fn lost(&self, error: &(dyn Error + 'static)) {
        let error = error
            .downcast_ref::<KernelError>()
            .cloned()
            .unwrap_or_else(|| KernelError::new(ErrorKind::McpServer, causes(error)));
        // A request is sent once.
        let _ = self.0.error.set(error);
        self.0.known.cancel();
    }

    /// Waits until the request is lost.
    pub async fn known(&self) {
        self.0.known.cancelled().await;
    }

    /// Why the request is lost.
    pub fn error(&self) -> Option<&KernelError> {
        self.0.error.get()
    }
}

/// A transport, watched.
pub struct Wire<T> {
    inner: T,
    routes: Routes,
    /// Grows with each change of the server's tools.
    changes: watch::Sender<u64>,
    diagnosis: Arc<Diagnosis>,
    _open: OpenGuard,
}

impl<T> Wire<T> {
    pub fn new(
        inner: T,
        changes: watch::Sender<u64>,
        diagnosis: Arc<Diagnosis>,
        open: OpenGuard,
    ) -> Self {
        Self {
            inner,
            routes: Routes::default(),
            changes,
            diagnosis,
            _open: open,
        }
    }

    fn notice(&mut self, notification: ServerNotification) {
        match notification {
            ServerNotification::ProgressNotification(report) => self.routes.report(report.params),
            ServerNotification::ToolListChangedNotification(_) => {
                self.changes.send_modify(|changes| *changes += 1);
            }
            _ => {}
        }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Wire<T> {
    type Error = T::Error;

    fn name() -> Cow<'static, str> {
        T::name()
    }

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), T::Error>> + Send + 'static {
        self.routes.sent(&message);
        let receipt = match &message {
            JsonRpcMessage::Request(message) => message.request.extensions().get::<Receipt>(),
            _ => None,
        };
        let receipt = receipt.cloned();
        let sending = self.inner.send(message);
        async move {
            let sent = sending.await;
            if let (Err(error), Some(receipt)) = (&sent, receipt) {
                receipt.lost(error);
            }
            sent
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let Some(message) = self.inner.receive().await else {
                self.diagnosis.close();
                return None;
            };
            match message {
                JsonRpcMessage::Notification(message) => self.notice(message.notification),
                JsonRpcMessage::Response(message) => {
                    self.routes.forget(&message.id);
                    return Some(JsonRpcMessage::Response(message));
                }
                JsonRpcMessage::Error(message) => {
                    if let Some(id) = &message.id {
                        self.routes.forget(id);
                    }
                    return Some(JsonRpcMessage::Error(message));
                }
                JsonRpcMessage::Request(message) => return Some(JsonRpcMessage::Request(message)),
            }
        }
    }

    async fn close(&mut self) -> Result<(), T::Error> {
        self.diagnosis.end_now("was disconnected");
        self.inner.close().await
    }
}

impl<T> Drop for Wire<T> {
    fn drop(&mut self) {
        // Nothing may wait for a connection that nobody reads.
        self.diagnosis.end_now("was disconnected");
    }
}

/// Where reports of progress go.
#[derive(Debug, Default)]
struct Routes {
    by_token: HashMap<ProgressToken, Progress>,
    tokens: HashMap<RequestId, ProgressToken>,
}

impl Routes {
    fn sent(&mut self, message: &TxJsonRpcMessage<RoleClient>) {
        match message {
            JsonRpcMessage::Request(message) => {
                let ClientRequest::CallToolRequest(call) = &message.request else {
                    return;
                };
                let token = message.request.get_meta().get_progress_token();
                let progress = call.extensions().get::<Progress>();
                if let (Some(token), Some(progress)) = (token, progress)
                    && self.tokens.len() < MAX_ROUTES
                {
                    self.by_token.insert(token.clone(), progress.clone());
                    self.tokens.insert(message.id.clone(), token);
                }
            }
            JsonRpcMessage::Notification(message) => {
                if let ClientNotification::CancelledNotification(cancelled) = &message.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.forget(id);
                }
            }
            _ => {}
        }
    }

    fn forget(&mut self, id: &RequestId) {
        if let Some(token) = self.tokens.remove(id) {
            self.by_token.remove(&token);
        }
    }

    fn report(&self, report: ProgressNotificationParam) {
        let Some(progress) = self.by_token.get(&report.progress_token) else {
            return;
        };
        let mut content = JsonMap::new();
        content.insert("progress".to_owned(), number(report.progress));
        if let Some(total) = report.total {
            content.insert("total".to_owned(), number(total));
        }
        if let Some(message) = report.message {
            content.insert("message".to_owned(), message.into());
        }
        progress.report(Json::Object(content));
    }
}

/// A number as JavaScript writes it: whole ones without a fraction.
fn number(value: f64) -> Json {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "checked to be whole and small"
    )]
    if value.fract() == 0.0 && value.abs() < 9e15 {
        json!(value as i64)
    } else {
        json!(value)
    }
}
