//! What an HTTP status means for a connection to a server.

use reqwest::StatusCode;
use reqwest::header::HeaderValue;

use crate::base::text::excerpt;
use crate::error::{ErrorKind, KernelError};
use crate::protocol::Json;

/// Characters of a foreign message that are passed on.
const MESSAGE_KEPT: usize = 500;

/// What was asked, which decides the remedy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// A message to a server of streamable HTTP.
    Message,
    /// A message of a session that the server opened.
    SessionMessage,
    /// A stream of a server of streamable HTTP.
    Stream,
    /// The stream of a server of the older transport.
    OldStream,
    /// A message to a server of the older transport.
    OldMessage,
}

/// An error that names the server by its place.
pub fn server(message: String) -> KernelError {
    KernelError::new(ErrorKind::McpServer, message)
}

/// Key of the detail that marks an error as the end of the session on the server: a new connection
/// helps, and the message was not worked on.
pub const SESSION_ENDED: &str = "sessionEnded";

/// The error for an answer that is no success.
pub fn from_status(
    place: &str,
    status: StatusCode,
    retry_after: Option<&HeaderValue>,
    body: &str,
    asked: Asked,
) -> KernelError {
    let code = status.as_u16();
    let said = said(body);
    let session_ended = asked == Asked::SessionMessage && ends_session(code, &said);
    let meaning = if session_ended {
        format!("has ended the session (HTTP {code})")
    } else {
        meaning(code)
    };
    let retryable = session_ended || status.is_server_error() || matches!(code, 408 | 425 | 429);
    let error = server(format!("{place} {meaning}{said}"))
        .with_status(code)
        .with_retryable(retryable)
        .with_retry_after_ms(retry_after.and_then(milliseconds));
    if session_ended {
        return error.with_detail(SESSION_ENDED, true);
    }
    match remedy(code, asked) {
        Some(remedy) => error.advise(remedy),
        None => error,
    }
}

/// The protocol says 404; many servers answer 400 and name the session.
fn ends_session(code: u16, said: &str) -> bool {
    code == 404 || (code == 400 && said.to_ascii_lowercase().contains("session"))
}

fn meaning(code: u16) -> String {
    let what = match code {
        401 => "does not accept the credential",
        403 => "refuses access",
        404 => "has nothing at this path",
        405 => "does not take this method",
        407 => "is not reached: the proxy wants a credential",
        408 | 504 => "took too long",
        429 => "limits the rate",
        _ => return format!("answered HTTP {code}"),
    };
    format!("{what} (HTTP {code})")
}

fn remedy(code: u16, asked: Asked) -> Option<&'static str> {
    match (code, asked) {
        (401 | 403, _) => Some(
            "check headers of the server, such as Authorization; signing in by OAuth is not supported",
        ),
        (404, Asked::Message | Asked::OldStream | Asked::OldMessage) => Some("check url"),
        (405, Asked::Message) => {
            Some("check url; a server of the older transport needs type: 'sse'")
        }
        (405, Asked::OldStream) => {
            Some("check url; a server of streamable HTTP needs type: 'http'")
        }
        (407, _) => Some("check proxy, or the proxy variables"),
        _ => None,
    }
}

/// What the server says about it, in one line.
fn said(body: &str) -> String {
    let json: Json = serde_json::from_str(body).unwrap_or(Json::Null);
    let message = json["error"]["message"]
        .as_str()
        .or_else(|| json["error_description"].as_str())
        .or_else(|| json["message"].as_str())
        .or_else(|| json["error"].as_str());
    let text = message.unwrap_or(body).trim();
    // A page of HTML or other markup says nothing to a reader of errors.
    if text.is_empty() || (message.is_none() && text.starts_with(['<', '{', '['])) {
        return String::new();
    }
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    format!(": {}", excerpt(&line, MESSAGE_KEPT))
}

fn milliseconds(value: &HeaderValue) -> Option<u64> {
    let seconds: u64 = value.to_str().ok()?.trim().parse().ok()?;
    Some(seconds.saturating_mul(1_000))
}
