//! Messages to the server and their direct answers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Method, Response, StatusCode};
use rmcp::RoleClient;
use rmcp::model::{ClientNotification, ClientRequest, JsonRpcMessage, RequestId};
use rmcp::service::TxJsonRpcMessage;
use tokio_util::sync::CancellationToken;

use crate::error::{KernelError, Result};
use crate::mcp::transport::web::{
    Ask, Asked, EVENT_STREAM, Endpoint, Events, Incoming, JSON, Limits, Outlet, SESSION_ENDED,
    content_type, messages, read_body,
};

use super::session::Session;

/// How long the connection outlives its session, so that the caller sees why first.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// A message to a server.
type Outgoing = TxJsonRpcMessage<RoleClient>;

/// The connection to one server.
pub struct Link {
    pub endpoint: Arc<Endpoint>,
    pub limits: Limits,
    pub session: Session,
    pub outlet: Outlet,
    /// Requests without an answer, and what stops waiting for it.
    pending: Mutex<HashMap<RequestId, CancellationToken>>,
}

/// A request that is waited for.
pub struct Call<'a> {
    pub id: RequestId,
    pub is_initialize: bool,
    link: &'a Link,
    stop: CancellationToken,
}

impl Link {
    pub fn new(endpoint: Endpoint, limits: Limits, outlet: Outlet) -> Self {
        Self {
            endpoint: Arc::new(endpoint),
            limits,
            session: Session::default(),
            outlet,
            pending: Mutex::default(),
        }
    }

    /// Sends a message and, for a request, reads its answer.
    pub async fn send(self: Arc<Self>, message: Outgoing) -> Result<()> {
        let sending = self.send_kind(&message);
        let sent = tokio::select! {
            biased;
            () = self.outlet.ended() => Err(self.endpoint.misread("is no longer connected")),
            sent = sending => sent,
        };
        if let Err(error) = &sent {
            self.end_with_session(error);
        }
        sent
    }

    async fn send_kind(self: &Arc<Self>, message: &Outgoing) -> Result<()> {
        match message {
            JsonRpcMessage::Request(request) => {
                let is_initialize = matches!(request.request, ClientRequest::InitializeRequest(_));
                let call = self.call(request.id.clone(), is_initialize);
                tokio::select! {
                    biased;
                    () = call.stop.cancelled() => Ok(()),
                    answered = self.request(message, &call) => answered,
                }
            }
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) =
                    &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.stop_waiting(id);
                }
                self.tell(message).await?;
                let is_initialized = matches!(
                    notification.notification,
                    ClientNotification::InitializedNotification(_)
                );
                if is_initialized {
                    self.start_listening();
                }
                Ok(())
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => self.tell(message).await,
        }
    }

    async fn request(&self, message: &Outgoing, call: &Call<'_>) -> Result<()> {
        let response = self.endpoint.send(self.post(message)?).await?;
        let status = response.status();
        if !status.is_success() {
            return self.refused(response, call).await;
        }
        if call.is_initialize {
            self.session.begin(response.headers());
        }
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            // The answer comes on the stream of the server.
            return Ok(());
        }
        match content_type(&response).as_str() {
            // Whoever asks says how long the answer may take.
            EVENT_STREAM => self.follow(call, self.events(response, None)).await,
            JSON => self.direct(response, call).await,
            other => {
                let other = if other.is_empty() {
                    "no content type"
                } else {
                    other
                };
                let what = format!("answered with {other} instead of JSON or an event stream");
                let error = self.endpoint.misread(&what).advise("check url");
                Err(error.with_retryable(false))
            }
        }
    }

    /// An answer that is a whole body.
    async fn direct(&self, response: Response, call: &Call<'_>) -> Result<()> {
        let body = read_body(&self.endpoint, response, self.limits.stall).await?;
        let messages = messages(&body);
        let what = if messages.is_empty() {
            "answered with JSON that is no JSON-RPC message"
        } else {
            "answered another request than the one it got"
        };
        if self.take_whole(call, messages).await {
            return Ok(());
        }
        Err(self.endpoint.misread(what).with_retryable(false))
    }

    /// A failure may carry the answer; without one of this request it is an error of the connection.
    async fn refused(&self, response: Response, call: &Call<'_>) -> Result<()> {
        let asked = self.asked();
        let status = response.status();
        let is_denied = matches!(status.as_u16(), 401 | 403 | 404 | 407);
        if is_denied || content_type(&response) != JSON {
            return Err(self.endpoint.failure(response, asked).await);
        }
        let headers = response.headers().clone();
        let body = self.endpoint.text(response).await;
        if self.take_whole(call, messages(body.as_bytes())).await {
            return Ok(());
        }
        Err(self.endpoint.refusal(status, &headers, &body, asked))
    }

    /// Hands over the messages of a body that has the answer to a request; none of any other.
    async fn take_whole(&self, call: &Call<'_>, messages: Vec<Incoming>) -> bool {
        messages.iter().any(|message| call.is_answered_by(message))
            && self.take(call, messages).await
    }

    /// Hands over messages up to the answer to a request; says whether it was among them.
    pub async fn take(&self, call: &Call<'_>, messages: Vec<Incoming>) -> bool {
        for message in messages {
            let is_answer = call.is_answered_by(&message);
            if is_answer && call.is_initialize {
                self.session.agree(&message);
            }
            // Before the answer to `initialize` nobody reads.
            if is_answer || !call.is_initialize {
                self.outlet.deliver(message).await;
            }
            if is_answer {
                return true;
            }
        }
        false
    }

    /// Sends what needs no answer.
    async fn tell(&self, message: &Outgoing) -> Result<()> {
        let ask = self.post(message)?;
        let sent = self
            .endpoint
            .send_soon(ask, self.limits.headers, self.asked());
        sent.await.map(drop)
    }

    /// Makes the server forget the session, if it keeps one.
    pub async fn delete_session(&self) {
        if !self.session.is_open() {
            return;
        }
        let ask = Ask {
            method: Method::DELETE,
            url: self.endpoint.url().clone(),
            headers: self.session.headers(),
            body: None,
        };
        // A server may refuse to: it ends the session in its own time.
        let _ = self.endpoint.send(ask).await;
    }

    /// The events of an answer; `stall` is the longest silence.
    pub fn events(&self, response: Response, stall: Option<Duration>) -> Events {
        Events::new(self.endpoint.clone(), response, stall)
    }

    /// What a message is to the server.
    fn asked(&self) -> Asked {
        if self.session.is_open() {
            Asked::SessionMessage
        } else {
            Asked::Message
        }
    }

    fn post(&self, message: &Outgoing) -> Result<Ask> {
        let body = serde_json::to_vec(message).map_err(|error| {
            KernelError::invalid(format!("an MCP message cannot be written: {error}"))
        })?;
        let mut headers = self.headers("application/json, text/event-stream");
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
        Ok(Ask {
            method: Method::POST,
            url: self.endpoint.url().clone(),
            headers,
            body: Some(body.into()),
        })
    }

    pub fn headers(&self, accept: &'static str) -> HeaderMap {
        let mut headers = self.session.headers();
        headers.insert(ACCEPT, HeaderValue::from_static(accept));
        headers
    }

    fn call(&self, id: RequestId, is_initialize: bool) -> Call<'_> {
        let stop = CancellationToken::new();
        self.lock().insert(id.clone(), stop.clone());
        Call {
            id,
            is_initialize,
            link: self,
            stop,
        }
    }

    /// Nobody waits for this answer any more, or it came on another way.
    pub fn stop_waiting(&self, id: &RequestId) {
        if let Some(stop) = self.lock().get(id) {
            stop.cancel();
        }
    }

    /// Ends the connection when the server has ended the session.
    fn end_with_session(&self, error: &KernelError) {
        if !error.details().contains_key(SESSION_ENDED) {
            return;
        }
        let outlet = self.outlet.clone();
        tokio::spawn(async move {
            tokio::time::sleep(LAST_WORDS).await;
            outlet.end();
        });
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<RequestId, CancellationToken>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Call<'_> {
    /// Whether a message is the answer to this request. Some servers turn a number into a text.
    pub fn is_answered_by(&self, message: &Incoming) -> bool {
        answered(message).is_some_and(|id| id == &self.id || id.to_string() == self.id.to_string())
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        self.link.lock().remove(&self.id);
    }
}

/// The request that a message answers.
pub fn answered(message: &Incoming) -> Option<&RequestId> {
    match message {
        JsonRpcMessage::Response(response) => Some(&response.id),
        JsonRpcMessage::Error(error) => error.id.as_ref(),
        JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
    }
}
