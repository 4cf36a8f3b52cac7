//! Content blocks of the Messages API.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Json;

/// Who a message is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    User,
    Assistant,
}

/// One block of a message. Unknown kinds are kept as they came.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ContentBlock {
    Text {
        text: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        citations: Option<Json>,
    },
    /// Reasoning; replayed only with its signature, byte for byte.
    Thinking {
        thinking: String,
        #[serde(default)]
        signature: String,
    },
    RedactedThinking {
        data: String,
    },
    ToolUse {
        id: String,
        name: String,
        input: Json,
    },
    ToolResult {
        tool_use_id: String,
        #[serde(default)]
        content: ResultContent,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
    Image {
        source: ImageSource,
    },
    #[serde(untagged)]
    Other(Json),
}

impl ContentBlock {
    /// A plain text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text {
            text: text.into(),
            citations: None,
        }
    }

    /// The result of a call as one text.
    pub fn result_text(tool_use_id: &str, text: impl Into<String>, is_error: bool) -> Self {
        Self::ToolResult {
            tool_use_id: tool_use_id.to_owned(),
            content: ResultContent::Text(text.into()),
            is_error,
        }
    }

    /// Whether the block is text that the Messages API refuses as empty.
    pub fn is_blank_text(&self) -> bool {
        matches!(self, Self::Text { text, .. } if text.trim().is_empty())
    }

    /// The id of the call that this block answers.
    pub fn answers(&self) -> Option<&str> {
        match self {
            Self::ToolResult { tool_use_id, .. } => Some(tool_use_id),
            _ => None,
        }
    }

    /// The id of the call that this block makes.
    pub fn call_id(&self) -> Option<&str> {
        match self {
            Self::ToolUse { id, .. } => Some(id),
            _ => None,
        }
    }
}

/// Where the bytes of an image are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ImageSource {
    Base64 { media_type: String, data: String },
    Url { url: String },
}

/// Content of a tool result: one text, or blocks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ResultContent {
    Text(String),
    Blocks(Vec<ContentBlock>),
}

impl Default for ResultContent {
    fn default() -> Self {
        Self::Text(String::new())
    }
}

/// Content of a message: a plain text (prompts), or blocks.
///
/// Blocks are shared, so that building a request over a long conversation copies no text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum MessageContent {
    Text(String),
    Blocks(Vec<Arc<ContentBlock>>),
}

impl MessageContent {
    /// The content as blocks; a plain text becomes one text block.
    pub fn blocks(&self) -> Vec<Arc<ContentBlock>> {
        match self {
            Self::Text(text) => vec![Arc::new(ContentBlock::text(text.as_str()))],
            Self::Blocks(blocks) => blocks.clone(),
        }
    }

    /// The blocks, when the content has any.
    pub fn as_blocks(&self) -> &[Arc<ContentBlock>] {
        match self {
            Self::Text(_) => &[],
            Self::Blocks(blocks) => blocks,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn round_trip(value: &Json) -> Json {
        let block: ContentBlock = serde_json::from_value(value.clone()).unwrap();
        serde_json::to_value(block).unwrap()
    }

    #[test]
    fn known_blocks_keep_their_form() {
        for value in [
            json!({"type": "text", "text": "hi"}),
            json!({"type": "thinking", "thinking": "hm", "signature": "c2ln"}),
            json!({"type": "tool_use", "id": "t1", "name": "add", "input": {"b": 1, "a": 2}}),
            json!({"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "3"}], "is_error": true}),
            json!({"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}),
        ] {
            assert_eq!(round_trip(&value), value);
        }
    }

    #[test]
    fn unknown_blocks_survive_untouched() {
        let value = json!({"type": "server_tool_use", "id": "s1", "nested": {"z": 1, "a": [null]}});
        assert_eq!(round_trip(&value).to_string(), value.to_string());
    }
}
