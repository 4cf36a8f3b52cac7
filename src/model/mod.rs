//! Talking to a model: the trait, its request and its events.
//!
//! A driver turns a request into a stream of events and knows one wire protocol. Retrying is a
//! layer around any driver. Nothing here knows of transcripts, tools that run, or sessions.

mod answer;
pub mod chat;
mod failure;
mod fallback;
pub mod gateway;
mod halves;
pub mod messages;
mod retry;

use std::sync::Arc;

use futures_util::stream::BoxStream;
use serde::Serialize;

pub use answer::{Answer, AnswerBuilder};
pub use fallback::{Fallback, Target};
pub use retry::{Retry, RetryPolicy};

use crate::error::{ErrorKind, KernelError, Result};
use crate::protocol::{ContentBlock, Json, JsonMap, RestartReason, Role, Usage};

/// A model behind some wire protocol.
pub trait Model: Send + Sync {
    /// Sends a request. Nothing happens before the stream is polled; dropping it closes the
    /// connection. A stream ends after [`ModelEvent::Finished`] or after its first error.
    fn stream(&self, request: Arc<ModelRequest>) -> ModelStream;
}

pub type ModelStream = BoxStream<'static, Result<ModelEvent>>;

/// A request, independent of the wire protocol. Valid by construction: see `engine::request`.
#[derive(Clone, Debug, Default)]
pub struct ModelRequest {
    pub settings: RequestSettings,
    pub system: Option<String>,
    pub messages: Vec<RequestMessage>,
    /// Sorted by name.
    pub tools: Arc<[ToolDeclaration]>,
}

/// What the model is asked to be, apart from the conversation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RequestSettings {
    /// Id of the model.
    pub model: String,
    /// Most tokens of the answer.
    pub max_tokens: u32,
    pub temperature: Option<f64>,
    /// Settings of the model's reasoning, as the protocol spells them.
    pub thinking: Option<Json>,
    /// Whether prompt cache marks are set.
    pub cache_marks: bool,
    /// Further fields of the request body.
    pub extra: JsonMap,
}

/// One message of a request. Its role differs from those of its neighbours.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestMessage {
    pub role: Role,
    pub content: Vec<Arc<ContentBlock>>,
}

/// A tool as the model sees it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ToolDeclaration {
    pub name: String,
    pub description: String,
    pub input_schema: Json,
}

/// What a model sends, independent of the wire protocol.
#[derive(Clone, Debug, PartialEq)]
pub enum ModelEvent {
    /// An answer begins.
    Started {
        id: String,
        model: String,
        request_id: Option<String>,
    },
    /// A block begins; `index` names it in later events.
    BlockStarted { index: u64, block: ContentBlock },
    /// A block grows.
    BlockDelta { index: u64, delta: BlockDelta },
    /// A block is complete.
    BlockStopped { index: u64 },
    /// Token counts as known so far; each replaces the one before.
    Usage(Usage),
    /// Why the model stopped.
    Stopped { reason: Option<String> },
    /// The answer is complete.
    Finished,
    /// Another model takes over.
    FellBack { from: String, to: String },
    /// The answer so far is void: the request is sent again. `shown` says whether a consumer may
    /// have seen a part of it.
    Restart { reason: RestartReason, shown: bool },
}

/// How a block grows.
#[derive(Clone, Debug, PartialEq)]
pub enum BlockDelta {
    Text(String),
    Thinking(String),
    Signature(String),
    /// A piece of the JSON text of a tool's input.
    Input(String),
    Citation(Json),
}

/// The error for an answer that ends too early.
pub fn truncated() -> KernelError {
    KernelError::new(
        ErrorKind::ModelTruncated,
        "the gateway ended the answer before it was complete",
    )
}

impl ModelEvent {
    /// Whether a consumer that gets each block whole has seen something because of this event.
    pub fn completes_something(&self) -> bool {
        match self {
            Self::BlockStopped { .. } => true,
            Self::BlockStarted { block, .. } => block.call_id().is_some(),
            _ => false,
        }
    }

    /// Whether a consumer that sees text grow has seen something because of this event.
    pub fn is_visible(&self) -> bool {
        match self {
            Self::BlockStarted { block, .. } => match block {
                ContentBlock::Text { text, .. } => !text.is_empty(),
                ContentBlock::Thinking { thinking, .. } => !thinking.is_empty(),
                ContentBlock::ToolUse { .. } => true,
                _ => false,
            },
            Self::BlockDelta {
                delta: BlockDelta::Text(text) | BlockDelta::Thinking(text),
                ..
            } => !text.is_empty(),
            _ => false,
        }
    }
}
