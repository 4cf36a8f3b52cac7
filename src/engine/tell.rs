//! Telling an answer as it grows.

use std::sync::Arc;

use tokio::time::{Duration, Instant};

use crate::base::json::parse_prefix;
use crate::error::Result;
use crate::model::{AnswerBuilder, BlockDelta, ModelEvent};
use crate::protocol::{Body, ContentBlock, Json, ToolKind, ToolStatus};
use crate::tool::ToolSet;

use super::UpdateSink;

/// Shortest time between two updates of one answer's inputs: parsing what came so far costs more the
/// longer it gets.
const INPUT_INTERVAL: Duration = Duration::from_millis(50);

/// Turns the events of one answer into updates.
pub struct Teller<'a> {
    sink: &'a UpdateSink,
    tools: &'a ToolSet,
    /// Whether text is told as it grows; otherwise each block at its end.
    as_it_grows: bool,
    input_told: Instant,
}

impl<'a> Teller<'a> {
    pub fn new(sink: &'a UpdateSink, tools: &'a ToolSet, as_it_grows: bool) -> Self {
        Self {
            sink,
            tools,
            as_it_grows,
            input_told: sink.instant(),
        }
    }

    /// Applies an event to the answer and tells what it changed. Announced calls are noted.
    pub async fn tell(
        &mut self,
        event: ModelEvent,
        answer: &mut AnswerBuilder<'_>,
        announced: &mut Vec<Arc<str>>,
    ) -> Result<()> {
        match event {
            ModelEvent::BlockStarted { index, block } => {
                answer.apply(ModelEvent::BlockStarted { index, block })?;
                if let Some(block) = answer.block(index) {
                    self.started(block, answer.id(), announced).await;
                }
            }
            ModelEvent::BlockDelta { index, delta } => {
                let is_input = matches!(delta, BlockDelta::Input(_));
                let text = self.grown(&delta, answer.id());
                answer.apply(ModelEvent::BlockDelta { index, delta })?;
                let body = if is_input {
                    self.input_so_far(index, answer)
                } else {
                    text
                };
                self.emit(body).await;
            }
            ModelEvent::BlockStopped { index } => self.stop(index, answer).await?,
            ModelEvent::Finished => {
                for index in answer.open_indexes() {
                    self.stop(index, answer).await?;
                }
                answer.apply(ModelEvent::Finished)?;
            }
            other => answer.apply(other)?,
        }
        Ok(())
    }

    async fn stop(&self, index: u64, answer: &mut AnswerBuilder<'_>) -> Result<()> {
        let Some(at) = answer.position(index) else {
            return Ok(());
        };
        answer.apply(ModelEvent::BlockStopped { index })?;
        let body = self.complete(&answer.blocks()[at], answer.id());
        self.emit(body).await;
        Ok(())
    }

    async fn emit(&self, body: Option<Body>) {
        if let Some(body) = body {
            self.sink.emit(body).await;
        }
    }

    async fn started(&self, block: &ContentBlock, message_id: &str, announced: &mut Vec<Arc<str>>) {
        let body = match block {
            ContentBlock::ToolUse { id, name, .. } => {
                let id: Arc<str> = id.as_str().into();
                announced.push(id.clone());
                Some(self.call(id, name))
            }
            block if self.as_it_grows => text_of(block, message_id),
            _ => None,
        };
        self.emit(body).await;
    }

    fn call(&self, id: Arc<str>, name: &str) -> Body {
        let kind = self
            .tools
            .get(name)
            .map_or(ToolKind::Other, |tool| tool.spec().kind);
        let name: Arc<str> = name.into();
        Body::ToolCall {
            id,
            title: name.clone(),
            name,
            kind,
            input: None,
        }
    }

    fn grown(&self, delta: &BlockDelta, message_id: &str) -> Option<Body> {
        if !self.as_it_grows {
            return None;
        }
        match delta {
            BlockDelta::Text(text) => text_body(message_id, text),
            BlockDelta::Thinking(text) => thinking_body(message_id, text),
            _ => None,
        }
    }

    /// The input of a call as far as it is whole, unless one was told just now.
    fn input_so_far(&mut self, index: u64, answer: &AnswerBuilder<'_>) -> Option<Body> {
        let now = self.sink.instant();
        if !self.as_it_grows || now - self.input_told < INPUT_INTERVAL {
            return None;
        }
        let input = parse_prefix(answer.raw_input(index)?).filter(has_fields)?;
        self.input_told = now;
        Some(Body::ToolInput {
            id: answer.block(index)?.call_id()?.into(),
            input,
        })
    }

    fn complete(&self, block: &ContentBlock, message_id: &str) -> Option<Body> {
        match block {
            ContentBlock::ToolUse { id, input, .. } if has_fields(input) => Some(Body::ToolInput {
                id: id.as_str().into(),
                input: input.clone(),
            }),
            block if !self.as_it_grows => text_of(block, message_id),
            _ => None,
        }
    }
}

/// The end of a call that did not run.
pub fn failed_call(id: Arc<str>, why: &str) -> Body {
    Body::ToolEnd {
        id,
        status: ToolStatus::Failed,
        output: Json::from(why),
        is_error: true,
    }
}

fn has_fields(input: &Json) -> bool {
    input.as_object().is_some_and(|fields| !fields.is_empty())
}

fn text_of(block: &ContentBlock, message_id: &str) -> Option<Body> {
    match block {
        ContentBlock::Text { text, .. } => text_body(message_id, text),
        ContentBlock::Thinking { thinking, .. } => thinking_body(message_id, thinking),
        _ => None,
    }
}

fn text_body(message_id: &str, text: &str) -> Option<Body> {
    (!text.is_empty()).then(|| Body::Text {
        message_id: message_id.into(),
        delta: text.to_owned(),
    })
}

fn thinking_body(message_id: &str, text: &str) -> Option<Body> {
    (!text.is_empty()).then(|| Body::Thinking {
        message_id: message_id.into(),
        delta: text.to_owned(),
    })
}
