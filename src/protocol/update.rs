//! The neutral stream: what a run does, told as it happens.
//!
//! `engine` makes updates, `render` turns them into the format the user chose. Nothing in here is
//! specific to a format.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::{Entry, Json, JsonMap, OpenCall, Usage};
use crate::error::KernelError;

/// One thing that happened in a turn.
#[derive(Clone, Debug)]
pub struct Update {
    /// The turn this belongs to; the runs of a turn that paused share it.
    pub turn_id: Arc<str>,
    /// Position in the run, from 0, without gaps.
    pub seq: u64,
    /// The call whose sub-agent caused this; none on the main thread.
    pub parent: Option<Arc<str>>,
    /// Milliseconds since the epoch.
    pub at_ms: u64,
    pub body: Body,
}

/// What happened.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Body {
    Phase {
        phase: Phase,
        tool: Option<String>,
    },
    Text {
        message_id: Arc<str>,
        delta: String,
    },
    /// A text block is complete; `text` is all of it.
    TextEnd {
        message_id: Arc<str>,
        text: Arc<str>,
    },
    Thinking {
        message_id: Arc<str>,
        delta: String,
    },
    ToolCall {
        id: Arc<str>,
        name: Arc<str>,
        title: Arc<str>,
        kind: ToolKind,
        input: Option<Json>,
    },
    /// The input of a call as far as it is known; always whole JSON.
    ToolInput {
        id: Arc<str>,
        name: Arc<str>,
        input: Json,
        /// Whether this is all of it; told exactly once a call, before the call runs.
        is_complete: bool,
    },
    /// What a running tool reports, in its own form.
    ToolProgress {
        id: Arc<str>,
        content: Json,
    },
    ToolEnd {
        id: Arc<str>,
        name: Arc<str>,
        status: ToolStatus,
        output: Json,
        is_error: bool,
        /// Whether the complete input was told before; not when the answer broke off.
        input_told: bool,
    },
    /// A tool of the program that reads the stream was called: the run ends until it answers.
    ClientToolOpen {
        call: Arc<OpenCall>,
        /// Whether an earlier run told it.
        repeated: bool,
    },
    /// The model asks the user: the run ends until they answer.
    QuestionOpen {
        call: Arc<OpenCall>,
        /// Whether an earlier run told it.
        repeated: bool,
    },
    Usage {
        /// Tokens in the context window after the last answer.
        used: u64,
        /// Size of the context window.
        size: u64,
        /// Sum over the requests of this run.
        totals: Usage,
    },
    Log {
        level: LogLevel,
        message: String,
        error: Option<ErrorInfo>,
    },
    /// The text shown for `message_id` is void: the request is repeated.
    Restart {
        message_id: Arc<str>,
        reason: RestartReason,
    },
    /// An event of the model in the words of the Messages API; only for custom stream adapters.
    Raw(Json),
    /// An entry was appended to the transcript; only for custom stream adapters.
    Appended(Arc<Entry>),
    /// The end of the run; always the last update, exactly once.
    Idle {
        stop_reason: StopReason,
        summary: RunSummary,
        /// For [`StopReason::Aborted`]: who asked, and the text of the reason.
        abort: Option<(AbortCause, Option<String>)>,
    },
}

/// What a run came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunSummary {
    /// Sum over the requests.
    pub usage: Usage,
    /// Model requests that were answered.
    pub requests: u32,
    /// Text of the last answer.
    pub text: String,
    pub elapsed_ms: u64,
    /// What went wrong, when the run failed.
    pub error: Option<String>,
}

/// What the run is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(rename = "AgentPhaseName")]
pub enum Phase {
    /// Getting ready: hooks, transcript, request.
    Preparing,
    /// A model request is under way.
    ModelResponding,
    /// A tool runs.
    ToolExecuting,
    /// The conversation is being summarised.
    Compacting,
    /// Nothing runs any more.
    Idle,
}

/// What kind of thing a tool does, in the words of ACP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum ToolKind {
    Read,
    Edit,
    Delete,
    Move,
    Search,
    Execute,
    Think,
    Fetch,
    SwitchMode,
    #[default]
    Other,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolStatus {
    Completed,
    Failed,
    /// It was not allowed to run.
    Denied,
}

/// Weight of a log update.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    Info,
    Error,
    Success,
    Command,
}

/// The parts of an error that a stream element carries.
#[derive(Clone, Debug, PartialEq)]
pub struct ErrorInfo {
    pub code: &'static str,
    pub name: &'static str,
    pub retryable: bool,
    pub status: Option<u16>,
    pub request_id: Option<String>,
    pub details: JsonMap,
    /// Number under which the host keeps what a callback threw.
    pub thrown: Option<u64>,
}

impl From<&KernelError> for ErrorInfo {
    fn from(error: &KernelError) -> Self {
        Self {
            code: error.code(),
            name: error.kind().class(),
            retryable: error.is_retryable(),
            status: error.status(),
            request_id: error.request_id().map(str::to_owned),
            details: error.details().clone(),
            thrown: error.thrown(),
        }
    }
}

/// Why a request is repeated after text was shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum RestartReason {
    /// The gateway sent an error event.
    ErrorEvent,
    /// The connection broke.
    Network,
    /// The gateway fell silent.
    Timeout,
    /// The stream ended early.
    Truncated,
}

/// Who ended an aborted run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "lowercase")]
pub enum AbortCause {
    /// `session.abort()`.
    Abort,
    /// The `AbortSignal` given to `send`.
    Signal,
    /// `session.close()`, `agent.close()`, or the consumer left the loop.
    Close,
}

/// Why a run ended. A reason of the gateway that the kernel does not know is passed through.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StopReason {
    EndTurn,
    MaxTurns,
    MaxTokens,
    Budget,
    Refusal,
    /// A call waits for a decision.
    AwaitingPermission,
    /// A call waits for its result, or a question for its answer.
    AwaitingClientTool,
    Aborted,
    Error,
    Other(String),
}

impl StopReason {
    /// The name that consumers see.
    pub fn as_str(&self) -> &str {
        match self {
            Self::EndTurn => "end_turn",
            Self::MaxTurns => "max_turns",
            Self::MaxTokens => "max_tokens",
            Self::Budget => "budget",
            Self::Refusal => "refusal",
            Self::AwaitingPermission => "awaiting_permission",
            Self::AwaitingClientTool => "awaiting_client_tool",
            Self::Aborted => "aborted",
            Self::Error => "error",
            Self::Other(name) => name,
        }
    }
}

impl Serialize for StopReason {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
