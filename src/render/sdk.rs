//! The messages of the Claude Agent SDK, for custom stream adapters that were written for them.
//!
//! Shapes as measured on that SDK (0.3.x): `system` first, `stream_event` for each event of the
//! model, `assistant` and `user` for each entry of the transcript, `result` last.

use serde::Serialize;
use serde_json::json;

use crate::base::id;
use crate::protocol::{
    Body, ContentBlock, Entry, Json, LogLevel, OpenCall, Phase, RunSummary, StopReason, Update,
    sentinel,
};

/// One message.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct Message(Json);

/// The message for an update; none when it has none.
pub fn render(update: &Update, session_id: &str) -> Option<Message> {
    let mut message = match &update.body {
        Body::Phase {
            phase: Phase::Preparing,
            ..
        } => json!({ "type": "system", "subtype": "init" }),
        Body::Raw(event) => {
            json!({ "type": "stream_event", "event": event, "parent_tool_use_id": null })
        }
        Body::Appended(entry) => transcript_message(entry)?,
        Body::ClientToolOpen { call, .. } | Body::QuestionOpen { call, .. } => {
            waiting(call, session_id)
        }
        Body::Log {
            level: LogLevel::Error,
            message,
            error: Some(error),
        } => json!({
            "type": "system", "subtype": "informational", "level": "warning", "content": message,
            "code": error.code,
        }),
        Body::Idle {
            stop_reason,
            summary,
            ..
        } => result(stop_reason, summary),
        _ => return None,
    };
    message["session_id"] = session_id.into();
    if message["uuid"].is_null() {
        message["uuid"] = id::random().into();
    }
    Some(Message(message))
}

fn transcript_message(entry: &Entry) -> Option<Json> {
    let mut message = json!({
        "type": entry.kind,
        "message": entry.message,
        "parent_tool_use_id": null,
        "uuid": entry.uuid,
        "timestamp": entry.timestamp,
    });
    match entry.kind.as_str() {
        "assistant" => {
            message["message"]["type"] = "message".into();
            message["request_id"] = entry.request_id.clone().into();
        }
        "user" if entry.is_meta => message["isSynthetic"] = true.into(),
        "user" => message["tool_use_result"] = entry.tool_use_result.clone().unwrap_or_default(),
        _ => return None,
    }
    Some(message)
}

/// A result that is in no transcript: by it adapters learn that a call waits.
fn waiting(call: &OpenCall, session_id: &str) -> Json {
    let text = sentinel(call, session_id);
    let result = ContentBlock::result_text(&call.tool_use_id, text, true);
    json!({
        "type": "user",
        "message": { "role": "user", "content": [result] },
        "parent_tool_use_id": null,
        "isSynthetic": true,
    })
}

fn result(stop_reason: &StopReason, summary: &RunSummary) -> Json {
    let subtype = match stop_reason {
        StopReason::MaxTurns => "error_max_turns",
        StopReason::Budget => "error_max_budget_usd",
        StopReason::Error | StopReason::Aborted => "error_during_execution",
        _ => "success",
    };
    let is_error = subtype != "success";
    let mut message = json!({
        "type": "result", "subtype": subtype, "is_error": is_error,
        "duration_ms": summary.elapsed_ms, "duration_api_ms": summary.elapsed_ms,
        "num_turns": summary.requests, "stop_reason": stop_reason.as_str(), "total_cost_usd": 0,
        "usage": summary.usage, "modelUsage": {}, "permission_denials": [],
    });
    if is_error {
        let why = summary.error.as_deref().unwrap_or(stop_reason.as_str());
        message["errors"] = json!([why]);
    } else {
        message["result"] = summary.text.clone().into();
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(body: Body) -> Option<Json> {
        let update = Update {
            turn_id: "turn".into(),
            seq: 0,
            parent: None,
            at_ms: 7,
            body,
        };
        render(&update, "s").map(|message| message.0)
    }

    #[test]
    fn an_entry_keeps_its_uuid() {
        let entry: Entry = serde_json::from_value(json!({
            "type": "assistant", "uuid": "u1", "parentUuid": null, "timestamp": "t", "requestId": "r",
            "message": {"role": "assistant", "id": "m1", "content": [{"type": "text", "text": "hi"}]},
        }))
        .unwrap();
        let message = rendered(Body::Appended(entry.into())).unwrap();
        assert_eq!(message["uuid"], "u1");
        assert_eq!(message["session_id"], "s");
        assert_eq!(message["message"]["content"][0]["text"], "hi");
        assert_eq!(message["request_id"], "r");
    }

    #[test]
    fn the_result_tells_success_and_failure_apart() {
        let summary = RunSummary {
            text: "done".into(),
            requests: 2,
            ..RunSummary::default()
        };
        let idle = |stop_reason| Body::Idle {
            stop_reason,
            summary: summary.clone(),
            abort: None,
        };
        let success = rendered(idle(StopReason::EndTurn)).unwrap();
        assert_eq!(
            (&success["subtype"], &success["result"]),
            (&json!("success"), &json!("done"))
        );
        let limit = rendered(idle(StopReason::MaxTurns)).unwrap();
        assert_eq!(
            (&limit["subtype"], &limit["is_error"]),
            (&json!("error_max_turns"), &json!(true))
        );
    }

    #[test]
    fn what_the_sdk_does_not_tell_is_left_out() {
        let text = Body::Text {
            message_id: "m".into(),
            delta: "hi".into(),
        };
        assert_eq!(rendered(text), None);
    }
}
