//! What the server gave this connection, and every later request carries.

use std::sync::{Mutex, PoisonError};

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use rmcp::model::{JsonRpcMessage, ServerResult};

use crate::mcp::transport::web::Incoming;

const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");

/// The session of a connection; empty before the answer to `initialize`.
#[derive(Default)]
pub struct Session {
    given: Mutex<HeaderMap>,
}

impl Session {
    /// Keeps the id that the headers of the answer to `initialize` name.
    pub fn begin(&self, headers: &HeaderMap) {
        let Some(id) = headers.get(SESSION_ID).filter(|id| !id.is_empty()) else {
            return;
        };
        let mut id = id.clone();
        id.set_sensitive(true);
        self.insert(SESSION_ID, id);
    }

    /// Keeps the version that the server chose.
    pub fn agree(&self, answer: &Incoming) {
        let JsonRpcMessage::Response(response) = answer else {
            return;
        };
        let version = match &response.result {
            ServerResult::InitializeResult(result) => Some(result.protocol_version.as_str()),
            ServerResult::CustomResult(result) => result.0["protocolVersion"].as_str(),
            _ => None,
        };
        if let Some(Ok(version)) = version.map(HeaderValue::from_str) {
            self.insert(PROTOCOL_VERSION, version);
        }
    }

    /// The headers of a request.
    pub fn headers(&self) -> HeaderMap {
        self.lock().clone()
    }

    /// Whether the server keeps a session.
    pub fn is_open(&self) -> bool {
        self.lock().contains_key(SESSION_ID)
    }

    fn insert(&self, name: HeaderName, value: HeaderValue) {
        self.lock().insert(name, value);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HeaderMap> {
        self.given.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
