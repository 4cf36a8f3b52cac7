//! The elements of the format, as they are written and typed.

use serde::Serialize;
use ts_rs::TS;

use crate::protocol::{
    AbortCause, Json, JsonMap, LogLevel, OpenKind, Phase, Question, RestartReason, ToolKind, Usage,
};

/// One element of the stream in the format `'acp'`.
#[derive(Debug, Serialize, TS)]
#[serde(tag = "sessionUpdate", rename_all = "snake_case")]
#[ts(rename = "AcpSessionUpdate")]
pub enum Element<'a> {
    /// A piece of the answer.
    AgentMessageChunk(Chunk<'a>),
    /// A piece of the model's reasoning. Left out with `streamExtras: false`.
    AgentThoughtChunk(Chunk<'a>),
    /// The model calls a tool.
    ToolCall(ToolCall<'a>),
    /// Something about a call changed.
    ToolCallUpdate(ToolCallUpdate<'a>),
    /// A call waits: answer it with `respondToolUse`. In the format `'acp'`.
    ToolConfirm(ToolConfirm<'a>),
    /// The same in the format `'acp-v1'`.
    RequestPermission(RequestPermission<'a>),
    /// The model asks the user: answer with `respondAskUser`.
    AskUser(AskUser<'a>),
    /// Token counts. Left out with `streamExtras: false`.
    UsageUpdate(UsageUpdate),
    /// A message about the run.
    Log(Log<'a>),
    /// What the run is doing. Phase `idle` is the last element of every stream, exactly once.
    AgentPhase(AgentPhase<'a>),
}

/// A piece of text.
#[derive(Debug, Serialize, TS)]
#[serde(rename_all = "camelCase")]
#[ts(rename = "AcpChunk")]
pub struct Chunk<'a> {
    content: TextBlock<'a>,
    /// The answer this belongs to; see `restart` of `agent_phase`.
    message_id: &'a str,
}

impl<'a> Chunk<'a> {
    pub(super) fn new(message_id: &'a str, text: &'a str) -> Self {
        Self {
            content: TextBlock {
                r#type: TextType::Text,
                text,
            },
            message_id,
        }
    }
}

/// A text block.
#[derive(Debug, Serialize, TS)]
#[ts(rename = "AcpTextBlock")]
pub struct TextBlock<'a> {
    r#type: TextType,
    text: &'a str,
}

/// The type of a text block.
#[derive(Clone, Copy, Debug, Serialize, TS)]
#[serde(rename_all = "lowercase")]
#[ts(rename = "AcpTextType")]
pub enum TextType {
    Text,
}

/// The model calls a tool.
#[derive(Debug, Serialize, TS)]
#[serde(rename_all = "camelCase")]
#[ts(rename = "AcpToolCall", optional_fields)]
pub struct ToolCall<'a> {
    pub tool_call_id: &'a str,
    /// Name of the tool.
    pub title: &'a str,
    pub kind: ToolKind,
    pub status: ToolCallStatus,
    /// The input as far as it is known; complete in the last `tool_call_update` before the tool runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(type = "Record<string, unknown>", optional = false)]
    pub input: Option<Input<'a>>,
    /// Same as `input`.
    #[ts(type = "Record<string, unknown>")]
    pub raw_input: Input<'a>,
    /// The call whose sub-agent made this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_tool_call_id: Option<&'a str>,
    #[serde(rename = "_meta")]
    pub meta: ToolMeta<'a>,
}

/// Something about a call changed.
#[derive(Debug, Serialize, TS)]
#[serde(rename_all = "camelCase")]
#[ts(rename = "AcpToolCallUpdate", optional_fields)]
pub struct ToolCallUpdate<'a> {
    pub tool_call_id: &'a str,
    pub status: ToolCallStatus,
    /// The input as far as it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(type = "Record<string, unknown>", optional)]
    pub input: Option<&'a Json>,
    /// Same as `input`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(type = "Record<string, unknown>", optional)]
    pub raw_input: Option<&'a Json>,
    /// What the tool gave.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(type = "unknown", optional)]
    pub result: Option<&'a Json>,
    /// Same as `result`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(type = "unknown", optional)]
    pub raw_output: Option<&'a Json>,
    /// Set when the call failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ToolFailure>,
    /// Set when the call failed or reports progress.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(type = "Array<AcpToolCallContent>", optional)]
    pub content: Option<[ToolContent; 1]>,
    /// The call whose sub-agent made this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_tool_call_id: Option<&'a str>,
}

impl<'a> ToolCallUpdate<'a> {
    pub(super) fn new(tool_call_id: &'a str, status: ToolCallStatus) -> Self {
        Self {
            tool_call_id,
            status,
            input: None,
            raw_input: None,
            result: None,
            raw_output: None,
            error: None,
            content: None,
            parent_tool_call_id: None,
        }
    }
}

/// A call waits for an answer.
#[derive(Debug, Serialize, TS)]
#[serde(rename_all = "camelCase")]
#[ts(rename = "ToolConfirmUpdate")]
pub struct ToolConfirm<'a> {
    pub tool_call_id: &'a str,
    /// The turn this belongs to.
    pub assistant_message_id: &'a str,
    pub tool_name: &'a str,
    /// Complete and checked.
    #[ts(type = "Record<string, unknown>")]
    pub input: &'a Json,
    #[serde(rename = "_meta")]
    pub meta: OpenMeta<'a>,
}

/// A call waits for an answer, in the words of ACP.
#[derive(Debug, Serialize, TS)]
#[serde(rename_all = "camelCase")]
#[ts(rename = "RequestPermissionUpdate")]
pub struct RequestPermission<'a> {
    pub session_id: &'a str,
    pub tool_call: PendingToolCall<'a>,
    /// What may be decided; empty for a client tool, which waits for a result.
    pub options: &'a [PermissionOption],
    #[serde(rename = "_meta")]
    pub meta: OpenMeta<'a>,
}

/// The call that waits.
#[derive(Debug, Serialize, TS)]
#[serde(rename_all = "camelCase")]
#[ts(rename = "AcpPendingToolCall")]
pub struct PendingToolCall<'a> {
    pub tool_call_id: &'a str,
    /// Name of the tool.
    pub title: &'a str,
    pub kind: ToolKind,
    pub status: ToolCallStatus,
    #[ts(type = "Record<string, unknown>")]
    pub raw_input: &'a Json,
}

/// A decision that can be made.
#[derive(Debug, Serialize, TS)]
#[serde(rename_all = "camelCase")]
#[ts(rename = "AcpPermissionOption")]
pub struct PermissionOption {
    pub option_id: &'static str,
    pub name: &'static str,
    #[ts(type = "'allow_once' | 'allow_always' | 'reject_once' | 'reject_always'")]
    pub kind: &'static str,
}

/// Questions wait for their answers.
#[derive(Debug, Serialize, TS)]
#[serde(rename_all = "camelCase")]
#[ts(rename = "AskUserUpdate")]
pub struct AskUser<'a> {
    pub tool_call_id: &'a str,
    /// The turn this belongs to.
    pub assistant_message_id: &'a str,
    pub questions: Vec<Question>,
    #[serde(rename = "_meta")]
    pub meta: OpenMeta<'a>,
}

/// Facts about a call that waits.
#[derive(Debug, Serialize, TS)]
#[ts(rename = "AcpPendingMeta")]
pub struct OpenMeta<'a> {
    pub oak: OpenOak<'a>,
}

/// Extension data of the kernel about a call that waits.
#[derive(Debug, Serialize, TS)]
#[serde(rename_all = "camelCase")]
#[ts(rename = "PendingOakMeta", optional_fields)]
pub struct OpenOak<'a> {
    pub kind: OpenKind,
    /// The turn this belongs to.
    pub assistant_message_id: &'a str,
    /// Whether an earlier stream told it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(type = "true", optional)]
    pub repeated: Option<bool>,
}

/// How far a call is.
#[derive(Clone, Copy, Debug, Serialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum ToolCallStatus {
    /// It waits for somebody outside of the run.
    Pending,
    /// Its input is being written, or it runs.
    InProgress,
    /// It gave a result.
    Completed,
    /// It failed, was refused or did not run.
    Failed,
}

/// An input; an empty object while it is not known.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a>(pub(super) Option<&'a Json>);

impl Serialize for Input<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Some(input) => input.serialize(serializer),
            None => JsonMap::new().serialize(serializer),
        }
    }
}

/// Facts about a call for those who look closer.
#[derive(Debug, Serialize, TS)]
#[serde(rename_all = "camelCase")]
#[ts(rename = "AcpToolMeta", optional_fields)]
pub struct ToolMeta<'a> {
    pub oak: OakMeta<'a>,
    /// Same as `oak.parentToolCallId`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_tool_call_id: Option<&'a str>,
}

/// Extension data of the kernel.
#[derive(Debug, Serialize, TS)]
#[serde(rename_all = "camelCase")]
#[ts(optional_fields)]
pub struct OakMeta<'a> {
    /// Name of the tool as the model sees it.
    pub tool_name: &'a str,
    /// The turn this belongs to.
    pub assistant_message_id: &'a str,
    /// The call whose sub-agent made this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_tool_call_id: Option<&'a str>,
}

/// What went wrong in a call.
#[derive(Debug, Serialize, TS)]
#[ts(rename = "AcpToolFailure")]
pub struct ToolFailure {
    pub message: String,
}

/// Content of a call for display.
#[derive(Debug, Serialize, TS)]
#[ts(rename = "AcpToolCallContent")]
pub struct ToolContent {
    r#type: ContentType,
    #[ts(type = "AcpTextBlock")]
    content: OwnedText,
}

/// The type of a tool content.
#[derive(Clone, Copy, Debug, Serialize, TS)]
#[serde(rename_all = "lowercase")]
#[ts(rename = "AcpToolContentType")]
pub enum ContentType {
    Content,
}

#[derive(Debug, Serialize)]
struct OwnedText {
    r#type: TextType,
    text: String,
}

impl ToolContent {
    pub(super) fn text(text: String) -> Self {
        Self {
            r#type: ContentType::Content,
            content: OwnedText {
                r#type: TextType::Text,
                text,
            },
        }
    }
}

/// Token counts of the run.
#[derive(Debug, Serialize, TS)]
#[ts(rename = "AcpUsageUpdate")]
pub struct UsageUpdate {
    /// Tokens in the context window after the last answer.
    #[ts(type = "number")]
    pub used: u64,
    /// Size of the context window, in tokens.
    #[ts(type = "number")]
    pub size: u64,
    /// Sum over the requests of this run.
    pub totals: UsageTotals,
}

/// Sums of token counts.
#[derive(Clone, Copy, Debug, Serialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct UsageTotals {
    /// Input tokens that were neither read from nor written to the cache.
    #[ts(type = "number")]
    pub input_tokens: u64,
    /// Tokens the model wrote.
    #[ts(type = "number")]
    pub output_tokens: u64,
    /// Input tokens written to the prompt cache.
    #[ts(type = "number")]
    pub cache_creation_input_tokens: u64,
    /// Input tokens read from the prompt cache.
    #[ts(type = "number")]
    pub cache_read_input_tokens: u64,
}

impl From<&Usage> for UsageTotals {
    fn from(usage: &Usage) -> Self {
        Self {
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            cache_creation_input_tokens: usage.cache_creation_input_tokens,
            cache_read_input_tokens: usage.cache_read_input_tokens,
        }
    }
}

/// A message about the run; level `error` carries the fields of the error.
#[derive(Debug, Serialize, TS)]
#[serde(rename_all = "camelCase")]
#[ts(rename = "LogUpdate", optional_fields)]
pub struct Log<'a> {
    pub level: LogLevel,
    pub message: &'a str,
    /// Milliseconds since the epoch.
    #[ts(type = "number")]
    pub timestamp: u64,
    /// With level `error`: the stable code, see docs/errors.md.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<&'a str>,
    /// With level `error`: the class of the error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<&'a str>,
    /// With level `error`: whether the same call may succeed later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retryable: Option<bool>,
    /// HTTP status of the gateway.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The gateway's id of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<&'a str>,
    /// More about the error, such as `attempts`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(type = "Record<string, unknown>", optional)]
    pub details: Option<&'a JsonMap>,
}

/// What the run is doing.
#[derive(Debug, Serialize, TS)]
#[serde(rename_all = "camelCase")]
#[ts(rename = "AgentPhaseUpdate", optional_fields)]
pub struct AgentPhase<'a> {
    pub phase: Phase,
    /// With `tool_executing`: the tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<&'a str>,
    /// Milliseconds since the epoch.
    #[ts(type = "number")]
    pub timestamp: u64,
    /// With `idle`: why the run ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(type = "StopReason", optional)]
    pub stop_reason: Option<&'a str>,
    /// With `stopReason: 'aborted'`: who asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<AbortCause>,
    /// With `stopReason: 'aborted'`: the text of the reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'a str>,
    /// The request is repeated: drop what was shown for `messageId`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restart: Option<bool>,
    /// With `restart`: the answer that is void.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_id: Option<&'a str>,
    /// With `restart`: what went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restart_reason: Option<RestartReason>,
}

impl AgentPhase<'_> {
    pub(super) fn new(phase: Phase, timestamp: u64) -> Self {
        Self {
            phase,
            tool_name: None,
            timestamp,
            stop_reason: None,
            cause: None,
            reason: None,
            restart: None,
            message_id: None,
            restart_reason: None,
        }
    }
}
