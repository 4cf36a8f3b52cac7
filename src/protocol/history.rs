//! Records of a session's history, as programs show them.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::{Json, Role};

/// One message of the history: what a person wrote, or all that the agent answered to it.
#[derive(Clone, Debug, PartialEq, Serialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct MessageRecord {
    /// Id of the first message in the record.
    pub id: String,
    pub conversation_id: String,
    #[ts(type = "'user' | 'assistant' | 'system'")]
    pub role: Role,
    /// In the order in which they came; the result of a call follows the call.
    pub parts: Vec<MessagePart>,
    pub status: MessageStatus,
    /// Milliseconds since the epoch of the first message in the record.
    #[ts(type = "number")]
    pub created_at: u64,
    /// Opaque. `getHistory({cursor})` continues before this record.
    pub cursor: String,
}

/// How a message ended. Stored histories hold `done` and `error`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "lowercase")]
pub enum MessageStatus {
    Pending,
    Streaming,
    Done,
    /// The gateway failed; there may be no parts.
    Error,
    Cancel,
}

/// A part of a message.
#[derive(Clone, Debug, PartialEq, Serialize, TS)]
#[serde(
    tag = "type",
    rename_all = "snake_case",
    rename_all_fields = "camelCase"
)]
pub enum MessagePart {
    Text {
        text: String,
    },
    /// Reasoning of the model.
    Thinking {
        text: String,
    },
    Image {
        /// `image/*` when it is not known.
        mime_type: String,
        r#ref: ImageRef,
    },
    ToolCall {
        tool_use_id: String,
        /// The bare name for tools of `config.tools`.
        tool_name: String,
        #[ts(type = "unknown")]
        input: Json,
        status: CallStatus,
    },
    ToolResult {
        tool_use_id: String,
        /// As stored: a text or an array of content blocks; null when there is none.
        #[ts(type = "unknown")]
        output: Json,
        is_error: bool,
        status: CallStatus,
    },
    /// The call in front of this waits for a person.
    ToolApprovalRequired {
        tool_use_id: String,
        tool_name: String,
        /// What would run.
        #[ts(type = "unknown")]
        input: Json,
    },
}

/// How far a call is. Stored histories hold all but `pending`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(rename = "ToolStatus")]
pub enum CallStatus {
    Pending,
    /// There is no result.
    Executing,
    /// There is a result, maybe an error.
    Done,
    /// It was not allowed to run.
    Denied,
    AwaitingApproval,
}

/// Where an image is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(
    tag = "kind",
    rename_all = "lowercase",
    rename_all_fields = "camelCase"
)]
pub enum ImageRef {
    /// In cloud storage; `fileId` is a `cloud://` address that is signed again when it is needed.
    Cos {
        file_id: String,
    },
    Base64 {
        data_url: String,
    },
    /// It may not be valid any more.
    Url {
        url: String,
    },
}
