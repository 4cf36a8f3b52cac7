//! Tools: the trait, what a tool says of itself, and what it gives back.
//!
//! Knows nothing of models, permissions or sessions. Where a tool comes from is its own business.

mod ask_user;
mod limit;
mod progress;
mod schema;
mod set;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

pub use ask_user::{AskUser, HINT as ASK_USER_HINT, answered};
pub use limit::fit;
pub use progress::{Progress, ProgressReceiver, progress_channel};
pub use schema::{SchemaCheck, describes_object};
pub use set::{NAME_LENGTH, ToolSet, is_valid_name};

use crate::base::text::Cut;
use crate::error::Result;
use crate::protocol::{ContentBlock, Json, ResultContent, ToolKind};

/// Something the model can call.
#[async_trait]
pub trait Tool: Send + Sync {
    fn spec(&self) -> &ToolSpec;

    /// What is wrong with an input, in words that the model can act on; none when it fits.
    async fn faults(&self, input: &Json, ctx: &ToolContext) -> Option<String> {
        let _ = ctx;
        self.spec().check.as_ref()?.faults(input)
    }

    /// Runs the call. A failure of the tool is an output with `is_error`; `Err` is the kernel's own.
    /// When `ctx.cancel` fires the result no longer matters.
    async fn call(&self, input: Json, ctx: ToolContext) -> Result<ToolOutput>;
}

/// What a tool says of itself.
#[derive(Debug)]
pub struct ToolSpec {
    /// The name that the model sees: letters, digits, `_` and `-`, at most 64.
    pub name: Arc<str>,
    pub description: String,
    /// JSON Schema of the input, passed on unchanged.
    pub schema: Json,
    /// Where the tool was defined, for messages: `config.tools[0]`.
    pub source: String,
    /// Who does the work.
    pub origin: Origin,
    pub kind: ToolKind,
    /// Whether calls change nothing: those run in parallel.
    pub read_only: bool,
    /// Whether running a call again is harmless.
    pub idempotent: bool,
    /// Limit on one call, zero for no limit; none: that of the agent.
    pub timeout: Option<Duration>,
    /// Checks inputs before a call; none when the tool has its own way, see [`Tool::faults`].
    pub check: Option<SchemaCheck>,
}

/// Who does the work of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A function of the program.
    Custom,
    /// The program that reads the stream: the run pauses until it answers.
    Client,
    /// The user, by way of the program that reads the stream: the run pauses until they answer.
    User,
    /// A server that speaks the Model Context Protocol.
    Mcp {
        server: Arc<str>,
        /// Whether what the server says of its tools counts for permission.
        trusted: bool,
    },
}

impl Origin {
    /// Whether calls are answered in a later run.
    pub fn pauses(&self) -> bool {
        matches!(self, Self::Client | Self::User)
    }
}

/// Whose call it is.
#[derive(Clone, Debug)]
pub struct SessionRef {
    pub conversation_id: Arc<str>,
    pub user_id: Arc<str>,
    pub env_id: Arc<str>,
}

/// What a call may know and watch.
#[derive(Clone, Debug)]
pub struct ToolContext {
    pub tool_use_id: Arc<str>,
    pub turn_id: Arc<str>,
    pub session: SessionRef,
    /// Fires when the run stops or the call's time is over.
    pub cancel: CancellationToken,
    /// The same for every attempt at this call.
    pub idempotency_key: String,
    /// Where the call tells how far it is.
    pub progress: Progress,
}

/// What a call gave.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolOutput {
    /// What the model reads.
    pub blocks: Vec<ContentBlock>,
    /// The output in the tool's own form, for the stream and for hooks; none: the text.
    pub structured: Option<Json>,
    pub is_error: bool,
    /// What was left out to keep within the size limit.
    pub cut: Option<Cut>,
}

/// Stands for an output without any text: the gateway refuses empty content.
pub const NO_OUTPUT: &str = "(no output)";

impl ToolOutput {
    /// A successful text.
    pub fn text(text: impl Into<String>) -> Self {
        let blocks = vec![ContentBlock::text(text)];
        Self {
            blocks,
            structured: None,
            is_error: false,
            cut: None,
        }
    }

    /// A failure that the model is told about.
    pub fn error(text: impl Into<String>) -> Self {
        Self {
            is_error: true,
            ..Self::text(text)
        }
    }

    /// A successful value: the model reads text as it is and everything else as JSON.
    pub fn value(value: Json) -> Self {
        match value {
            Json::Null => Self::text(NO_OUTPUT),
            Json::String(text) if text.trim().is_empty() => Self::text(NO_OUTPUT),
            Json::String(text) => Self::text(text),
            other => Self {
                structured: Some(other.clone()),
                ..Self::text(other.to_string())
            },
        }
    }

    /// The output as consumers of the stream see it.
    pub fn to_json(&self) -> Json {
        if let Some(value) = &self.structured {
            return value.clone();
        }
        match self.blocks.as_slice() {
            [ContentBlock::Text { text, .. }] => Json::String(text.clone()),
            blocks => serde_json::to_value(blocks).unwrap_or_default(),
        }
    }

    /// The content of the tool result that answers the call.
    pub fn into_content(self) -> ResultContent {
        match <[ContentBlock; 1]>::try_from(self.blocks) {
            Ok([ContentBlock::Text { text, .. }]) => ResultContent::Text(text),
            Ok(blocks) => ResultContent::Blocks(blocks.into()),
            Err(blocks) => ResultContent::Blocks(blocks),
        }
    }
}
