//! The events of a model in the words of the Messages API, whatever protocol it speaks.

use serde_json::json;

use crate::model::{AnswerBuilder, BlockDelta, ModelEvent};
use crate::protocol::{ContentBlock, Json, Usage};

/// Writes the events of one answer.
#[derive(Debug, Default)]
pub struct RawEvents {
    usage: Usage,
}

impl RawEvents {
    /// The event of the API; none for what it has no event for.
    /// `answer` has applied the event: its ids are the ones that count.
    pub fn event(&mut self, event: &ModelEvent, answer: &AnswerBuilder<'_>) -> Option<Json> {
        Some(match event {
            ModelEvent::Started { model, .. } => json!({
                "type": "message_start",
                "message": {
                    "id": answer.id(), "type": "message", "role": "assistant", "model": model, "content": [],
                    "stop_reason": null, "stop_sequence": null, "usage": Usage::default(),
                },
            }),
            ModelEvent::BlockStarted { index, block } => json!({
                "type": "content_block_start", "index": index, "content_block": begun(answer.block(*index).unwrap_or(block)),
            }),
            ModelEvent::BlockDelta { index, delta } => json!({
                "type": "content_block_delta", "index": index, "delta": grown(delta),
            }),
            ModelEvent::BlockStopped { index } => {
                json!({ "type": "content_block_stop", "index": index })
            }
            ModelEvent::Usage(usage) => {
                self.usage = *usage;
                return None;
            }
            ModelEvent::Stopped { reason } => json!({
                "type": "message_delta",
                "delta": { "stop_reason": reason, "stop_sequence": null },
                "usage": self.usage,
            }),
            ModelEvent::Finished => json!({ "type": "message_stop" }),
            ModelEvent::FellBack { .. } | ModelEvent::Restart { .. } => return None,
        })
    }
}

fn begun(block: &ContentBlock) -> Json {
    serde_json::to_value(block).unwrap_or_default()
}

fn grown(delta: &BlockDelta) -> Json {
    match delta {
        BlockDelta::Text(text) => json!({ "type": "text_delta", "text": text }),
        BlockDelta::Thinking(text) => json!({ "type": "thinking_delta", "thinking": text }),
        BlockDelta::Signature(text) => json!({ "type": "signature_delta", "signature": text }),
        BlockDelta::Input(text) => json!({ "type": "input_json_delta", "partial_json": text }),
        BlockDelta::Citation(citation) => {
            json!({ "type": "citations_delta", "citation": citation })
        }
    }
}
