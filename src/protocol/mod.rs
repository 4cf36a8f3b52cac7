//! Pure data that crosses floors: content blocks, transcript entries, usage, updates.
//!
//! Knows nothing of transports, stores or JavaScript; everything here is plain serde.

mod content;
mod entry;
mod history;
mod open_call;
mod question;
mod sentinel;
mod stored;
mod update;
mod usage;

pub use content::{ContentBlock, ImageSource, MessageContent, ResultContent, Role};
pub use entry::{Entry, EntryMessage, Thread};
pub use history::{CallStatus, ImageRef, MessagePart, MessageRecord, MessageStatus};
pub use open_call::{OpenCall, OpenKind, bare_name};
pub use question::{ASK_USER, Choice, Question, questions};
pub use sentinel::{is_sentinel, puts_off, sentinel};
pub use stored::{MessageRef, StoredEntry};
pub use update::{
    AbortCause, Body, ErrorInfo, LogLevel, Phase, RestartReason, RunSummary, StopReason, ToolKind,
    ToolStatus, Update,
};
pub use usage::Usage;

/// A JSON value that the kernel passes on without looking inside.
pub use serde_json::Value as Json;

/// A JSON object that the kernel passes on without looking inside.
pub type JsonMap = serde_json::Map<String, Json>;
