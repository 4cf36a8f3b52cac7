//! A connection to a server: handshake, list of tools, calls.
//!
//! Limits on time are the business of the callers: a request that is given up is cancelled.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::handler::client::ClientHandler;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CancelledNotification, CancelledNotificationParam,
    ClientCapabilities, ClientConfig, ClientNotification, ClientRequest, ElicitRequestParams,
    ElicitResult, ErrorCode, ErrorData, GetExtensions, Implementation, InitializeRequest,
    InitializedNotification, ListToolsRequest, MetaObject, PaginatedRequestParams, ProtocolVersion,
    RequestId, RequestMetaObject, ServerResult,
};
use rmcp::service::{
    Peer, PeerRequestOptions, RequestContext, RunningService, ServiceError, serve_directly,
};
use rmcp::transport::Transport;
use tokio::sync::watch;

use super::diagnosis::{Diagnosis, causes};
use super::listing::Pages;
use super::transport::SESSION_ENDED;
use super::wire::{OpenGuard, Receipt, Wire};
use crate::base::clock::SharedClock;
use crate::base::text::excerpt;
use crate::protocol::{Json, JsonMap};
use crate::tool::Progress;

/// How this client names itself.
const CLIENT_NAME: &str = "open-agent-kernel";
/// Key under which servers find the id of the call.
const TOOL_USE_ID: &str = "claudecode/toolUseId";
/// Time for telling a server that a request was given up.
const CANCEL_TIME: Duration = Duration::from_secs(5);
/// Time for learning whether a connection broke, and why.
const REASON_TIME: Duration = Duration::from_millis(500);
/// Time for closing, the end of a child included.
const CLOSE_TIME: Duration = Duration::from_secs(10);
/// Most characters of a message of the server.
const MESSAGE_LENGTH: usize = 2_000;
/// Most characters of a server's instructions.
const INSTRUCTIONS_LENGTH: usize = 2_048;

/// Why a request got no result.
#[derive(Debug)]
pub enum Fault {
    /// The connection is over.
    Gone,
    /// The server refused the request.
    Refused { code: i32, message: String },
    /// The request did not reach the server, or its answer means nothing.
    Failed(String),
    /// The server has forgotten the connection: it did not work on the request.
    Forgotten(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone => f.write_str("is not connected"),
            Self::Refused { code, message } => write!(f, "answered with error {code}: {message}"),
            Self::Failed(why) | Self::Forgotten(why) => write!(f, "failed: {why}"),
        }
    }
}

/// What a connection is made of before there is a transport.
#[derive(Debug)]
pub struct Opening {
    pub diagnosis: Arc<Diagnosis>,
    pub clock: SharedClock,
    open: OpenGuard,
}

impl Opening {
    pub fn new(diagnosis: Arc<Diagnosis>, clock: SharedClock, open: OpenGuard) -> Self {
        Self {
            diagnosis,
            clock,
            open,
        }
    }

    /// Starts to read and write. Needs a tokio runtime.
    pub fn over(self, transport: impl Transport<RoleClient> + 'static) -> Connection {
        let changes = watch::Sender::new(0);
        let wire = Wire::new(
            transport,
            changes.clone(),
            self.diagnosis.clone(),
            self.open,
        );
        let running = serve_directly(Handler, wire, None);
        Connection {
            peer: running.peer().clone(),
            running: Mutex::new(Some(running)),
            diagnosis: self.diagnosis,
            changed: changes.subscribe(),
            clock: self.clock,
        }
    }
}

/// A connection. It is closed when it is dropped.
pub struct Connection {
    peer: Peer<RoleClient>,
    running: Mutex<Option<RunningService<RoleClient, Handler>>>,
    diagnosis: Arc<Diagnosis>,
    changed: watch::Receiver<u64>,
    clock: SharedClock,
}

/// One call of a tool.
#[derive(Clone, Debug)]
pub struct ToolCall<'a> {
    pub name: &'a str,
    pub arguments: JsonMap,
    pub tool_use_id: &'a str,
    pub progress: Progress,
}

impl Connection {
    pub fn diagnosis(&self) -> &Diagnosis {
        &self.diagnosis
    }

    /// Counts the changes of the server's tools.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changed.clone()
    }

    /// Shakes hands; gives what the server says about the use of its tools.
    pub async fn initialize(&self) -> Result<Option<String>, Fault> {
        let request = ClientRequest::InitializeRequest(InitializeRequest::new(client_info()));
        let result = self.request(request, None, false).await?;
        let version = result.get("protocolVersion").and_then(Json::as_str);
        let version = version.unwrap_or_default();
        let is_known = ProtocolVersion::KNOWN_VERSIONS
            .iter()
            .any(|known| known.as_str() == version && known.has_initialize());
        if !is_known {
            let version = excerpt(version, 40);
            return Err(Fault::Failed(format!(
                "it speaks version \"{version}\" of the protocol, which is not known here"
            )));
        }
        let initialized =
            ClientNotification::InitializedNotification(InitializedNotification::default());
        let sent = self.peer.send_notification(initialized);
        tokio::select! {
            biased;
            sent = sent => if let Err(error) = sent {
                return Err(Fault::Failed(causes(&error)));
            },
            () = self.diagnosis.over() => return Err(Fault::Gone),
        }
        let instructions = result.get("instructions").and_then(Json::as_str);
        let instructions = instructions.map(str::trim).filter(|text| !text.is_empty());
        Ok(instructions.map(|text| excerpt(text, INSTRUCTIONS_LENGTH)))
    }

    /// The tools as the server describes them, of all pages. A server without tools has none.
    pub async fn list_tools(&self) -> Result<Vec<Json>, Fault> {
        let mut pages = Pages::default();
        loop {
            let request = match pages.cursor() {
                None => ListToolsRequest::default(),
                Some(cursor) => ListToolsRequest::with_param(
                    PaginatedRequestParams::default().with_cursor(Some(cursor.to_owned())),
                ),
            };
            let request = ClientRequest::ListToolsRequest(request);
            match self.request(request, None, true).await {
                Ok(page) => {
                    if !pages.add(page) {
                        return Ok(pages.into_tools());
                    }
                }
                Err(Fault::Refused { code, .. })
                    if ErrorCode(code) == ErrorCode::METHOD_NOT_FOUND =>
                {
                    return Ok(pages.into_tools());
                }
                Err(fault) => return Err(fault),
            }
        }
    }

    /// Calls a tool; the result is as the server wrote it.
    pub async fn call(&self, call: ToolCall<'_>) -> Result<Json, Fault> {
        let params =
            CallToolRequestParams::new(call.name.to_owned()).with_arguments(call.arguments);
        let mut request = CallToolRequest::new(params);
        request.extensions_mut().insert(call.progress);
        let mut meta = MetaObject::default();
        meta.0
            .insert(TOOL_USE_ID.to_owned(), call.tool_use_id.into());
        let request = ClientRequest::CallToolRequest(request);
        self.request(request, Some(RequestMetaObject(meta)), true)
            .await
    }

    /// Ends the connection and waits for it.
    pub async fn close(&self) {
        let running = self.running();
        let Some(mut running) = running else { return };
        tokio::select! {
            biased;
            _ = running.close() => {}
            () = self.clock.sleep(CLOSE_TIME) => {}
        }
    }

    fn running(&self) -> Option<RunningService<RoleClient, Handler>> {
        // An option: never half written.
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.take()
    }

    /// One request. When the wait is given up the server is told, if the request may be cancelled.
    async fn request(
        &self,
        mut request: ClientRequest,
        meta: Option<RequestMetaObject>,
        may_cancel: bool,
    ) -> Result<Json, Fault> {
        let receipt = Receipt::default();
        request.extensions_mut().insert(receipt.clone());
        let mut options = PeerRequestOptions::no_options();
        options.meta = meta;
        let work = async {
            let mut handle = self.peer.send_request_with_option(request, options).await?;
            let mut guard = CancelGuard {
                peer: &self.peer,
                id: may_cancel.then(|| handle.id.clone()),
                clock: &self.clock,
            };
            let response = (&mut handle.rx).await;
            guard.id = None;
            response.unwrap_or(Err(ServiceError::TransportClosed))
        };
        let response = tokio::select! {
            biased;
            response = work => response,
            () = self.diagnosis.over() => Err(ServiceError::TransportClosed),
        };
        match response {
            Ok(ServerResult::CustomResult(result)) => Ok(result.0),
            Ok(result) => {
                serde_json::to_value(result).map_err(|error| Fault::Failed(error.to_string()))
            }
            Err(error) => Err(self.explain(error, &receipt).await),
        }
    }

    async fn explain(&self, error: ServiceError, receipt: &Receipt) -> Fault {
        match error {
            ServiceError::McpError(error) => Fault::Refused {
                code: error.code.0,
                message: excerpt(error.message.trim(), MESSAGE_LENGTH),
            },
            ServiceError::TransportSend(_) | ServiceError::TransportClosed => {
                self.explain_loss(receipt).await
            }
            other => Fault::Failed(causes(&other)),
        }
    }

    /// A broken connection says more about itself in a moment.
    async fn explain_loss(&self, receipt: &Receipt) -> Fault {
        if self.diagnosis.reason().is_none() {
            self.soon(receipt.known()).await;
        }
        let Some(error) = receipt.error() else {
            return Fault::Gone;
        };
        let is_forgotten = error.details().contains_key(SESSION_ENDED);
        if is_forgotten || error.status().is_none() {
            // Who asks again must not be given this connection.
            self.soon(self.diagnosis.over()).await;
        }
        if self.diagnosis.reason().is_some() {
            return Fault::Gone;
        }
        let message = excerpt(error.message(), MESSAGE_LENGTH);
        if is_forgotten {
            Fault::Forgotten(message)
        } else {
            Fault::Failed(message)
        }
    }

    async fn soon(&self, work: impl Future<Output = ()>) {
        tokio::select! {
            biased;
            () = work => {}
            () = self.clock.sleep(REASON_TIME) => {}
        }
    }
}

fn client_info() -> ClientConfig {
    let client = Implementation::new(CLIENT_NAME, env!("CARGO_PKG_VERSION"));
    ClientConfig::new(ClientCapabilities::default(), client)
        .with_protocol_version(ProtocolVersion::V_2025_11_25)
}

/// Tells the server that nobody waits for the answer any more.
struct CancelGuard<'a> {
    peer: &'a Peer<RoleClient>,
    id: Option<RequestId>,
    clock: &'a SharedClock,
}

impl Drop for CancelGuard<'_> {
    fn drop(&mut self) {
        let Some(id) = self.id.take() else { return };
        let reason = "the call was given up".to_owned();
        let params = CancelledNotificationParam::new(Some(id), Some(reason));
        let (peer, clock) = (self.peer.clone(), self.clock.clone());
        // Outside a runtime nothing runs that would send it.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                let cancelled = CancelledNotification::new(params).into();
                tokio::select! {
                    _ = peer.send_notification(cancelled) => {}
                    () = clock.sleep(CANCEL_TIME) => {}
                }
            });
        }
    }
}

/// Answers what servers ask: only a ping.
struct Handler;

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        client_info()
    }

    #[expect(deprecated, reason = "older servers still ask")]
    async fn list_roots(
        &self,
        _: RequestContext<RoleClient>,
    ) -> Result<rmcp::model::ListRootsResult, ErrorData> {
        Err(not_found("roots/list"))
    }

    async fn create_elicitation(
        &self,
        _: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        Err(not_found("elicitation/create"))
    }
}

fn not_found(method: &'static str) -> ErrorData {
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method, None)
}
