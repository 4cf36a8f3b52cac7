//! The format `'events'`: objects told apart by `type`.
//!
//! Text comes in pieces and then whole; a call is told once, with its complete input. An error is an
//! element with the fields of the error, from which the binding makes the error object.

use serde::Serialize;
use ts_rs::TS;

use crate::protocol::{
    AbortCause, Body, ErrorInfo, Json, JsonMap, LogLevel, OpenCall, Question, StopReason, Update,
    questions,
};

/// One element of the stream in the format `'events'`, except the error, which holds an object.
#[derive(Debug, Serialize, TS)]
#[serde(
    tag = "type",
    rename_all = "snake_case",
    rename_all_fields = "camelCase"
)]
#[ts(rename = "SessionEventData")]
pub enum Event<'a> {
    /// A piece of the answer.
    MessageDelta { text: &'a str },
    /// A whole text of the answer.
    MessageComplete { text: &'a str },
    /// The model calls a tool.
    ToolCall {
        tool_use_id: &'a str,
        tool_name: &'a str,
        #[ts(type = "unknown")]
        input: &'a Json,
    },
    /// A call ended.
    ToolResult {
        tool_use_id: &'a str,
        tool_name: &'a str,
        #[ts(type = "unknown")]
        output: &'a Json,
        is_error: bool,
    },
    /// A call waits for its result: answer it with `respondToolUse`.
    ToolUseRequired {
        tool_use_id: &'a str,
        tool_name: &'a str,
        #[ts(type = "unknown")]
        input: &'a Json,
        /// Whether an earlier stream told it.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[ts(type = "true", optional)]
        repeated: Option<bool>,
    },
    /// The model asks the user: answer with `respondAskUser`.
    AskUserRequired {
        tool_use_id: &'a str,
        /// The first question, and the labels of its options.
        question: String,
        options: Vec<String>,
        /// All questions.
        questions: Vec<Question>,
        /// Whether an earlier stream told it.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[ts(type = "true", optional)]
        repeated: Option<bool>,
    },
    /// The run failed.
    #[ts(skip)]
    Error { error: ErrorFields<'a> },
    /// The end of the run; the last element, exactly once.
    SessionIdle {
        reason: IdleReason,
        /// Why the run ended, in full.
        #[ts(type = "StopReason")]
        stop_reason: &'a str,
        /// With reason `aborted`: who asked.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[ts(optional)]
        cause: Option<AbortCause>,
    },
}

/// Why a run ended, in the words of this format.
#[derive(Clone, Copy, Debug, Serialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum IdleReason {
    /// The run came to its end.
    Completed,
    /// A call waits for an answer.
    RequiresAction,
    /// It was stopped.
    Aborted,
    /// It failed, or came to its limit of turns or of cost.
    Error,
}

/// What the binding makes the error object from.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ErrorFields<'a> {
    code: &'a str,
    class: &'a str,
    message: &'a str,
    retryable: bool,
    status: Option<u16>,
    request_id: Option<&'a str>,
    details: &'a JsonMap,
    thrown: Option<u64>,
}

/// The element for an update; none for what this format does not tell.
pub fn render(update: &Update) -> Option<Event<'_>> {
    Some(match &update.body {
        Body::Text { delta, .. } => Event::MessageDelta { text: delta },
        Body::TextEnd { text, .. } => Event::MessageComplete { text },
        Body::ToolInput {
            id,
            name,
            input,
            is_complete: true,
        } => Event::ToolCall {
            tool_use_id: id,
            tool_name: name,
            input,
        },
        Body::ToolEnd {
            id,
            name,
            output,
            is_error,
            input_told: true,
            ..
        } => Event::ToolResult {
            tool_use_id: id,
            tool_name: name,
            output,
            is_error: *is_error,
        },
        Body::ClientToolOpen { call, repeated } => Event::ToolUseRequired {
            tool_use_id: &call.tool_use_id,
            tool_name: &call.tool_name,
            input: &call.input,
            repeated: repeated.then_some(true),
        },
        Body::QuestionOpen { call, repeated } => ask_user(call, *repeated),
        Body::Log {
            level: LogLevel::Error,
            message,
            error: Some(error),
        } => Event::Error {
            error: fields(message, error),
        },
        Body::Idle {
            stop_reason, abort, ..
        } => Event::SessionIdle {
            reason: idle_reason(stop_reason),
            stop_reason: stop_reason.as_str(),
            cause: abort.as_ref().map(|(cause, _)| *cause),
        },
        _ => return None,
    })
}

fn ask_user(call: &OpenCall, repeated: bool) -> Event<'_> {
    let questions = questions(&call.input);
    let first = questions.first();
    let labels = first.map(|first| first.options.iter().map(|option| option.label.clone()));
    Event::AskUserRequired {
        tool_use_id: &call.tool_use_id,
        question: first
            .map(|first| first.question.clone())
            .unwrap_or_default(),
        options: labels.map(Iterator::collect).unwrap_or_default(),
        questions,
        repeated: repeated.then_some(true),
    }
}

fn idle_reason(stop_reason: &StopReason) -> IdleReason {
    match stop_reason {
        StopReason::Error | StopReason::MaxTurns | StopReason::Budget => IdleReason::Error,
        StopReason::Aborted => IdleReason::Aborted,
        StopReason::AwaitingPermission | StopReason::AwaitingClientTool => {
            IdleReason::RequiresAction
        }
        _ => IdleReason::Completed,
    }
}

fn fields<'a>(message: &'a str, error: &'a ErrorInfo) -> ErrorFields<'a> {
    ErrorFields {
        code: error.code,
        class: error.name,
        message,
        retryable: error.retryable,
        status: error.status,
        request_id: error.request_id.as_deref(),
        details: &error.details,
        thrown: error.thrown,
    }
}
