//! The default format `'acp'`: flat objects told apart by `sessionUpdate`.
//!
//! Tool elements carry the field names of both generations of consumers: `input` and `rawInput`,
//! `result` and `rawOutput`.

mod element;
mod pieces;

pub use element::*;
pub use pieces::Pieces;

use crate::base::json;
use crate::protocol::{
    Body, ErrorInfo, JsonMap, LogLevel, OpenCall, Phase, StopReason, ToolKind, ToolStatus, Update,
    questions,
};

/// Field names of tool elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spelling {
    /// `rawInput` and `rawOutput`, and beside them `input`, `result`, `error`, `parentToolCallId`.
    Both,
    /// Those of ACP 1.0 alone.
    Raw,
}

impl Spelling {
    fn both<T>(self, value: Option<T>) -> Option<T> {
        value.filter(|_| self == Self::Both)
    }
}

/// The element for an update; none when it has none, or when it shows extras that are not wanted.
pub fn render<'a>(
    update: &'a Update,
    session_id: &'a str,
    spelling: Spelling,
    extras: bool,
) -> Option<Element<'a>> {
    Some(match &update.body {
        Body::Phase { phase, tool } => Element::AgentPhase(AgentPhase {
            tool_name: tool.as_deref(),
            ..AgentPhase::new(*phase, update.at_ms)
        }),
        Body::Text { message_id, delta } => {
            Element::AgentMessageChunk(Chunk::new(message_id, delta))
        }
        Body::Thinking { message_id, delta } if extras => {
            Element::AgentThoughtChunk(Chunk::new(message_id, delta))
        }
        Body::Usage { used, size, totals } if extras => Element::UsageUpdate(UsageUpdate {
            used: *used,
            size: *size,
            totals: totals.into(),
        }),
        Body::Thinking { .. }
        | Body::Usage { .. }
        | Body::TextEnd { .. }
        | Body::Raw(_)
        | Body::Appended(_) => return None,
        Body::ToolCall { .. } => Element::ToolCall(tool_call(update, spelling)?),
        Body::ToolInput { .. } | Body::ToolProgress { .. } | Body::ToolEnd { .. } => {
            Element::ToolCallUpdate(tool_call_update(update, spelling)?)
        }
        Body::ClientToolOpen { call, repeated } => {
            client_tool(update, call, *repeated, session_id, spelling)
        }
        Body::QuestionOpen { call, repeated } => Element::AskUser(AskUser {
            tool_call_id: &call.tool_use_id,
            assistant_message_id: &update.turn_id,
            questions: questions(&call.input),
            meta: open_meta(update, call, *repeated),
        }),
        Body::Log {
            level,
            message,
            error,
        } => Element::Log(log(*level, message, error.as_ref(), update.at_ms)),
        Body::Restart { message_id, reason } => Element::AgentPhase(AgentPhase {
            restart: Some(true),
            message_id: Some(message_id),
            restart_reason: Some(*reason),
            ..AgentPhase::new(Phase::ModelResponding, update.at_ms)
        }),
        Body::Idle {
            stop_reason, abort, ..
        } => Element::AgentPhase(AgentPhase {
            stop_reason: Some(StopReason::as_str(stop_reason)),
            cause: abort.as_ref().map(|(cause, _)| *cause),
            reason: abort.as_ref().and_then(|(_, reason)| reason.as_deref()),
            ..AgentPhase::new(Phase::Idle, update.at_ms)
        }),
    })
}

fn client_tool<'a>(
    update: &'a Update,
    call: &'a OpenCall,
    repeated: bool,
    session_id: &'a str,
    spelling: Spelling,
) -> Element<'a> {
    let meta = open_meta(update, call, repeated);
    match spelling {
        Spelling::Both => Element::ToolConfirm(ToolConfirm {
            tool_call_id: &call.tool_use_id,
            assistant_message_id: &update.turn_id,
            tool_name: &call.tool_name,
            input: &call.input,
            meta,
        }),
        Spelling::Raw => Element::RequestPermission(RequestPermission {
            session_id,
            tool_call: PendingToolCall {
                tool_call_id: &call.tool_use_id,
                title: &call.tool_name,
                kind: ToolKind::Other,
                status: ToolCallStatus::Pending,
                raw_input: &call.input,
            },
            options: &[],
            meta,
        }),
    }
}

fn open_meta<'a>(update: &'a Update, call: &OpenCall, repeated: bool) -> OpenMeta<'a> {
    OpenMeta {
        oak: OpenOak {
            kind: call.kind,
            assistant_message_id: &update.turn_id,
            repeated: repeated.then_some(true),
        },
    }
}

fn tool_call(update: &Update, spelling: Spelling) -> Option<ToolCall<'_>> {
    let Body::ToolCall {
        id,
        name,
        title,
        kind,
        input,
    } = &update.body
    else {
        return None;
    };
    let parent = update.parent.as_deref();
    Some(ToolCall {
        tool_call_id: id,
        title,
        kind: *kind,
        status: ToolCallStatus::InProgress,
        input: spelling.both(Some(Input(input.as_ref()))),
        raw_input: Input(input.as_ref()),
        parent_tool_call_id: spelling.both(parent),
        meta: ToolMeta {
            oak: OakMeta {
                tool_name: name,
                assistant_message_id: &update.turn_id,
                parent_tool_call_id: parent,
            },
            parent_tool_call_id: parent,
        },
    })
}

fn tool_call_update(update: &Update, spelling: Spelling) -> Option<ToolCallUpdate<'_>> {
    let parent_tool_call_id = spelling.both(update.parent.as_deref());
    let plain = |id, status| ToolCallUpdate {
        parent_tool_call_id,
        ..ToolCallUpdate::new(id, status)
    };
    Some(match &update.body {
        // The announcement showed the empty input.
        Body::ToolInput { input, .. } if input.as_object().is_some_and(JsonMap::is_empty) => {
            return None;
        }
        Body::ToolInput { id, input, .. } => ToolCallUpdate {
            input: spelling.both(Some(input)),
            raw_input: Some(input),
            ..plain(id, ToolCallStatus::InProgress)
        },
        Body::ToolProgress { id, content } => ToolCallUpdate {
            content: Some([ToolContent::text(json::to_text(content))]),
            ..plain(id, ToolCallStatus::InProgress)
        },
        Body::ToolEnd {
            id,
            status: ToolStatus::Completed,
            output,
            ..
        } => ToolCallUpdate {
            result: spelling.both(Some(output)),
            raw_output: Some(output),
            ..plain(id, ToolCallStatus::Completed)
        },
        Body::ToolEnd { id, output, .. } => ToolCallUpdate {
            result: spelling.both(Some(output)),
            raw_output: Some(output),
            content: Some([ToolContent::text(json::to_text(output))]),
            error: spelling.both(Some(ToolFailure {
                message: json::to_text(output),
            })),
            ..plain(id, ToolCallStatus::Failed)
        },
        _ => return None,
    })
}

fn log<'a>(
    level: LogLevel,
    message: &'a str,
    error: Option<&'a ErrorInfo>,
    timestamp: u64,
) -> Log<'a> {
    Log {
        level,
        message,
        timestamp,
        code: error.map(|error| error.code),
        name: error.map(|error| error.name),
        retryable: error.map(|error| error.retryable),
        status: error.and_then(|error| error.status),
        request_id: error.and_then(|error| error.request_id.as_deref()),
        details: error
            .map(|error| &error.details)
            .filter(|details| !details.is_empty()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::protocol::{AbortCause, Json, RestartReason, RunSummary, ToolKind, Usage};
    use crate::render::{Format, RenderOptions, Renderer};

    fn rendered(body: Body) -> Json {
        let update = Update {
            turn_id: "turn".into(),
            seq: 0,
            parent: None,
            at_ms: 7,
            body,
        };
        serde_json::to_value(render(&update, "s", Spelling::Both, true)).unwrap()
    }

    #[test]
    fn every_body_has_its_element() {
        let totals = Usage {
            input_tokens: 3,
            output_tokens: 4,
            ..Usage::default()
        };
        for (body, element) in [
            (
                Body::Phase {
                    phase: Phase::ToolExecuting,
                    tool: Some("add".into()),
                },
                json!({"sessionUpdate": "agent_phase", "phase": "tool_executing", "toolName": "add", "timestamp": 7}),
            ),
            (
                Body::Text {
                    message_id: "m".into(),
                    delta: "hi".into(),
                },
                json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "hi"}, "messageId": "m"}),
            ),
            (
                Body::Thinking {
                    message_id: "m".into(),
                    delta: "hm".into(),
                },
                json!({"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": "hm"}, "messageId": "m"}),
            ),
            (
                Body::ToolCall {
                    id: "t".into(),
                    name: "add".into(),
                    title: "add".into(),
                    kind: ToolKind::Other,
                    input: None,
                },
                json!({"sessionUpdate": "tool_call", "toolCallId": "t", "title": "add", "kind": "other", "status": "in_progress",
                    "input": {}, "rawInput": {}, "_meta": {"oak": {"toolName": "add", "assistantMessageId": "turn"}}}),
            ),
            (
                Body::ToolInput {
                    id: "t".into(),
                    name: "add".into(),
                    input: json!({"a": 1}),
                    is_complete: true,
                },
                json!({"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "in_progress", "input": {"a": 1}, "rawInput": {"a": 1}}),
            ),
            (
                Body::ToolProgress {
                    id: "t".into(),
                    content: json!("half"),
                },
                json!({"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "in_progress",
                    "content": [{"type": "content", "content": {"type": "text", "text": "half"}}]}),
            ),
            (
                Body::ToolEnd {
                    id: "t".into(),
                    name: "add".into(),
                    status: ToolStatus::Completed,
                    output: json!({"sum": 3}),
                    is_error: false,
                    input_told: true,
                },
                json!({"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "completed", "result": {"sum": 3}, "rawOutput": {"sum": 3}}),
            ),
            (
                Body::ToolEnd {
                    id: "t".into(),
                    name: "add".into(),
                    status: ToolStatus::Denied,
                    output: json!("no"),
                    is_error: true,
                    input_told: true,
                },
                json!({"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "failed", "result": "no", "rawOutput": "no",
                    "error": {"message": "no"}, "content": [{"type": "content", "content": {"type": "text", "text": "no"}}]}),
            ),
            (
                Body::Usage {
                    used: 7,
                    size: 200_000,
                    totals,
                },
                json!({"sessionUpdate": "usage_update", "used": 7, "size": 200_000, "totals":
                    {"inputTokens": 3, "outputTokens": 4, "cacheCreationInputTokens": 0, "cacheReadInputTokens": 0}}),
            ),
            (
                Body::Restart {
                    message_id: "m".into(),
                    reason: RestartReason::Network,
                },
                json!({"sessionUpdate": "agent_phase", "phase": "model_responding", "timestamp": 7, "restart": true, "messageId": "m", "restartReason": "network"}),
            ),
            (
                Body::Log {
                    level: LogLevel::Info,
                    message: "note".into(),
                    error: None,
                },
                json!({"sessionUpdate": "log", "level": "info", "message": "note", "timestamp": 7}),
            ),
            (
                Body::Idle {
                    stop_reason: StopReason::Aborted,
                    summary: RunSummary::default(),
                    abort: Some((AbortCause::Signal, Some("late".into()))),
                },
                json!({"sessionUpdate": "agent_phase", "phase": "idle", "timestamp": 7, "stopReason": "aborted", "cause": "signal", "reason": "late"}),
            ),
        ] {
            assert_eq!(rendered(body), element);
        }
    }

    #[test]
    fn an_error_shows_its_fields() {
        let error =
            crate::error::KernelError::new(crate::error::ErrorKind::ModelRateLimit, "slow down")
                .with_status(429)
                .with_request_id(Some("req".into()))
                .with_detail("attempts", 3);
        let body = Body::Log {
            level: LogLevel::Error,
            message: "slow down".into(),
            error: Some((&error).into()),
        };
        assert_eq!(
            rendered(body),
            json!({"sessionUpdate": "log", "level": "error", "message": "slow down", "timestamp": 7, "code": "E_MODEL_RATE_LIMIT",
                "name": "ModelError", "retryable": true, "status": 429, "requestId": "req", "details": {"attempts": 3}})
        );
    }

    #[test]
    fn the_names_of_acp_1_0_stand_alone() {
        let end = Body::ToolEnd {
            id: "t".into(),
            name: "add".into(),
            status: ToolStatus::Failed,
            output: json!("no"),
            is_error: true,
            input_told: true,
        };
        let update = Update {
            turn_id: "turn".into(),
            seq: 0,
            parent: None,
            at_ms: 7,
            body: end,
        };
        assert_eq!(
            serde_json::to_value(render(&update, "s", Spelling::Raw, true)).unwrap(),
            json!({"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "failed", "rawOutput": "no",
                "content": [{"type": "content", "content": {"type": "text", "text": "no"}}]})
        );
    }

    #[test]
    fn a_batch_is_a_json_array_without_hidden_elements() {
        let update = |body| Update {
            turn_id: "turn".into(),
            seq: 0,
            parent: None,
            at_ms: 7,
            body,
        };
        let thought = || {
            update(Body::Thinking {
                message_id: "m".into(),
                delta: "hm".into(),
            })
        };
        let text = || {
            update(Body::Text {
                message_id: "m".into(),
                delta: "a\"b".into(),
            })
        };
        let options = RenderOptions {
            format: Format::Acp,
            extras: false,
        };
        let renderer = Renderer::new(options, "s".into());
        let shown = renderer.batch(&[thought(), text(), thought(), text()]);
        assert_eq!(
            serde_json::from_str::<Json>(&shown)
                .unwrap()
                .as_array()
                .unwrap()
                .len(),
            2
        );
        assert_eq!(renderer.batch(&[thought()]), "[]");
    }
}
