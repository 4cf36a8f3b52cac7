//! The format `'acp-jsonrpc'`: every element is a JSON-RPC message that can be written to a stream
//! of server-sent events as it is.
//!
//! A call that waits is a request to the client, whose answer is `respondToolUse`.

use serde::Serialize;
use serde_json::json;

use crate::protocol::{Body, Json, OpenCall, Update};

use super::acp::{self, Element, Spelling};

const VERSION: &str = "2.0";

/// A message.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Message<'a> {
    Notification(Notification<'a>),
    Request(Request<'a>),
}

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

/// A request to the client.
#[derive(Debug, Serialize)]
pub struct Request<'a> {
    jsonrpc: &'static str,
    id: String,
    method: String,
    params: Json,
    #[serde(rename = "_meta")]
    meta: RequestMeta<'a>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct RequestMeta<'a> {
    session_id: &'a str,
    tool_call_id: &'a str,
    assistant_message_id: &'a str,
    oak: Json,
}

/// The message for an update; none when it has no element.
pub fn render<'a>(update: &'a Update, session_id: &'a str, extras: bool) -> Option<Message<'a>> {
    match &update.body {
        Body::ClientToolOpen { call, repeated } | Body::QuestionOpen { call, repeated } => {
            let request = request(update, call, *repeated, session_id);
            Some(Message::Request(request))
        }
        _ => {
            let update = acp::render(update, session_id, Spelling::Raw, extras)?;
            Some(Message::Notification(Notification {
                jsonrpc: VERSION,
                method: "session/update",
                params: Params { session_id, update },
            }))
        }
    }
}

fn request<'a>(
    update: &'a Update,
    call: &'a OpenCall,
    repeated: bool,
    session_id: &'a str,
) -> Request<'a> {
    let mut oak = json!({ "kind": call.kind });
    if repeated {
        oak["repeated"] = true.into();
    }
    Request {
        jsonrpc: VERSION,
        id: format!("{session_id}:{}", call.tool_use_id),
        method: format!("client/{}", call.tool_name),
        params: match &call.input {
            Json::Object(_) => call.input.clone(),
            other => json!({ "value": other }),
        },
        meta: RequestMeta {
            session_id,
            tool_call_id: &call.tool_use_id,
            assistant_message_id: &update.turn_id,
            oak,
        },
    }
}
