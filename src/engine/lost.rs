//! Calls of an earlier run that have no result: the process ended while they ran, or before.
//!
//! Their outcome is unknown, so they are not run again, unless the tool says that this is harmless or
//! the user knows better.

use crate::protocol::{Body, ContentBlock, Json};
use crate::tool::{ToolOutput, ToolSet};

use super::Transcript;
use super::open::pauses;
use super::repair::UNKNOWN_OUTCOME;
use super::run::{Progress, Run, Stop};
use super::transcript::StoredCall;

/// The result of a call that never reached the program that should answer it.
const NOT_DELIVERED: &str =
    "This call was not run: it was never delivered to the program that answers it.";

/// What becomes of a call whose outcome is not known.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum LostCall {
    /// The model is told that the outcome is unknown.
    #[default]
    Unknown,
    /// It runs again.
    Retry,
    /// This was its result.
    Result(Json),
}

impl Run<'_> {
    /// Answers calls that have no result and of which no record says that they wait.
    pub(super) async fn settle_lost_calls(
        &self,
        transcript: &mut Transcript,
        progress: &mut Progress,
        lost: Vec<StoredCall>,
    ) -> Result<(), Stop> {
        let mut again = Vec::new();
        for call in lost {
            if pauses(&call, &progress.offer.tools) {
                let result = ContentBlock::result_text(&call.id, NOT_DELIVERED, true);
                transcript.append_result(&call, result, None);
                continue;
            }
            match self.fate(&call, &progress.offer.tools).await? {
                LostCall::Retry => again.push(call),
                LostCall::Result(value) => {
                    let output = ToolOutput::value(value);
                    let raw = output.structured.clone();
                    let result = ContentBlock::ToolResult {
                        tool_use_id: call.id.to_string(),
                        content: output.into_content(),
                        is_error: false,
                    };
                    transcript.append_result(&call, result, raw);
                }
                LostCall::Unknown => {
                    let result = ContentBlock::result_text(&call.id, UNKNOWN_OUTCOME, true);
                    transcript.append_result(&call, result, None);
                }
            }
        }
        if again.is_empty() {
            return Ok(());
        }
        for call in &again {
            self.announce(call, &progress.offer.tools);
        }
        self.dispatch(transcript, progress).run(again, &[]).await
    }

    async fn fate(&self, call: &StoredCall, tools: &ToolSet) -> Result<LostCall, Stop> {
        let tool = tools.get(&call.name);
        if tool.is_some_and(|tool| tool.spec().idempotent) {
            return Ok(LostCall::Retry);
        }
        let asked = self.hooks.unknown_outcome(self.session, call);
        Ok(self.unless_interrupted(asked).await??)
    }

    fn announce(&self, call: &StoredCall, tools: &ToolSet) {
        let kind = tools.get(&call.name).map(|tool| tool.spec().kind);
        self.sink.emit_now(Body::ToolCall {
            id: call.id.clone(),
            name: call.name.clone(),
            title: call.name.clone(),
            kind: kind.unwrap_or_default(),
            input: Some(call.input.clone()),
        });
    }
}
