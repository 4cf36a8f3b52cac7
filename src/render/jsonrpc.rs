//! The format `'acp-jsonrpc'`: every element is a JSON-RPC message that can be written to a stream
//! of server-sent events as it is.

use serde::Serialize;

use crate::protocol::Update;

use super::acp::{self, Element, Spelling};

/// A notification.
#[derive(Debug, Serialize)]
pub struct Notification<'a> {
    jsonrpc: &'static str,
    method: &'static str,
    params: Params<'a>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Params<'a> {
    session_id: &'a str,
    update: Element<'a>,
}

/// The message for an update; none when it has no element.
pub fn render<'a>(
    update: &'a Update,
    session_id: &'a str,
    extras: bool,
) -> Option<Notification<'a>> {
    let update = acp::render(update, Spelling::Raw, extras)?;
    Some(Notification {
        jsonrpc: "2.0",
        method: "session/update",
        params: Params { session_id, update },
    })
}
