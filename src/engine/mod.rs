//! One turn: build the request, stream the answer, run the tools, go round again.
//!
//! The engine works on a transcript and a set of tools that it is given, and reports through a
//! sink. It knows nothing of configuration, stores or JavaScript. What it needs from above comes in
//! as a trait: [`TurnHooks`].

mod answer;
mod budget;
mod dispatch;
mod end;
mod journal;
mod lost;
mod measure;
mod open;
mod outcome;
mod raw;
mod repair;
mod request;
mod run;
mod sink;
mod tell;
mod toolbox;
mod transcript;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

pub use answer::{CallReply, ReplyTo};
pub use budget::{Prices, RunLimits};
pub use end::RunEnd;
pub use journal::{Journal, JournalSettings};
pub use lost::LostCall;
pub use measure::set_usage;
pub use request::build as build_request;
pub use run::{Run, Work};
pub use sink::{UpdateReceiver, UpdateSink, update_channel};
pub use toolbox::{Offer, Toolbox};
pub use transcript::{StoredCall, Transcript};

use crate::base::clock::SharedClock;
use crate::error::Result;
use crate::model::{Model, RequestSettings};
use crate::protocol::Json;
use crate::tool::{SessionRef, ToolContext, ToolOutput};

/// What stays the same over the turns of a session.
pub struct EngineConfig {
    /// The model, retry layer included.
    pub model: Arc<dyn Model>,
    pub settings: RequestSettings,
    pub system: Option<String>,
    /// Tokens that fit the model's context.
    pub context_window: u64,
    /// Whether text is told as it grows, or each block at once.
    pub stream_text: bool,
    /// Whether a text is told once more when it is complete.
    pub tell_whole_texts: bool,
    /// Limit on calls of tools that have none of their own; zero: no limit.
    pub tool_timeout: Duration,
    /// Whether the events of the model and the entries of the transcript are told as well.
    pub tell_all: bool,
    pub limits: RunLimits,
    /// Most read-only tools that run at once.
    pub tool_concurrency: usize,
    /// Most characters of a tool's output.
    pub tool_result_limit: usize,
    pub clock: SharedClock,
}

/// What the user wants to know of, or change in, a turn. Each may fail the run.
#[async_trait]
pub trait TurnHooks: Send + Sync {
    /// Before a prompt is stored; gives the text that replaces it.
    async fn user_message(&self, session: &SessionRef, prompt: &str) -> Result<Option<String>>;

    /// Before a tool runs.
    async fn tool_start(&self, call: &HookedCall<'_>) -> Result<()>;

    /// After a tool ran; gives the output that replaces its own.
    async fn tool_end(&self, call: &HookedCall<'_>, output: &ToolOutput) -> Result<Option<Json>>;

    /// What to do about a call of an earlier run whose outcome is not known.
    async fn unknown_outcome(&self, session: &SessionRef, call: &StoredCall) -> Result<LostCall>;

    /// After an answer with text. An observer: it cannot fail the run.
    async fn agent_message(&self, session: &SessionRef, text: &str);
}

/// The call that a hook is told about.
#[derive(Clone, Copy, Debug)]
pub struct HookedCall<'a> {
    pub name: &'a str,
    pub input: &'a Json,
    pub ctx: &'a ToolContext,
}

/// Limits that are off when zero.
fn optional(limit: Duration) -> Option<Duration> {
    (!limit.is_zero()).then_some(limit)
}
