//! Telling an answer as it grows.

use std::sync::Arc;

use serde::de::IgnoredAny;
use tokio::time::{Duration, Instant};

use crate::base::json::parse_prefix;
use crate::error::Result;
use crate::model::{AnswerBuilder, BlockDelta, ModelEvent};
use crate::protocol::{Body, ContentBlock, Json, ToolKind, ToolStatus};
use crate::tool::ToolSet;

use super::raw::RawEvents;
use super::{EngineConfig, UpdateSink};

/// Shortest time between two updates of one answer's inputs: parsing what came so far costs more the
/// longer it gets.
const INPUT_INTERVAL: Duration = Duration::from_millis(50);

/// A call that the stream has announced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announced {
    pub id: Arc<str>,
    pub name: Arc<str>,
    /// Whether its complete input was told.
    pub is_complete: bool,
}

/// Turns the events of one answer into updates.
pub struct Teller<'a> {
    sink: &'a UpdateSink,
    tools: &'a ToolSet,
    /// Whether text is told as it grows; otherwise each block at its end.
    as_it_grows: bool,
    /// Whether a text is told once more when it is complete.
    tell_whole: bool,
    input_told: Instant,
    /// Writes the events of the model, when they are told as well.
    raw: Option<RawEvents>,
    /// The answer's id, made once for all its chunks.
    message_id: Arc<str>,
}

impl<'a> Teller<'a> {
    pub fn new(sink: &'a UpdateSink, tools: &'a ToolSet, config: &EngineConfig) -> Self {
        Self {
            sink,
            tools,
            as_it_grows: config.stream_text,
            tell_whole: config.tell_whole_texts,
            input_told: sink.instant(),
            raw: config.tell_all.then(RawEvents::default),
            message_id: "".into(),
        }
    }

    /// The id of the answer that is being told.
    pub fn message_id(&self) -> Arc<str> {
        self.message_id.clone()
    }

    /// Applies an event to the answer and tells what it changed. Announced calls are noted.
    pub async fn tell(
        &mut self,
        event: ModelEvent,
        answer: &mut AnswerBuilder<'_>,
        announced: &mut Vec<Announced>,
    ) -> Result<()> {
        // Told after the event was applied: ids that the gateway repeats are replaced there.
        let raw = self.raw.is_some().then(|| event.clone());
        match event {
            ModelEvent::BlockStarted { index, block } => {
                answer.apply(ModelEvent::BlockStarted { index, block })?;
                if let Some(block) = answer.block(index) {
                    self.started(block, announced).await;
                }
            }
            ModelEvent::BlockDelta { index, delta } => {
                let text = self.grown(&delta);
                let is_input = matches!(delta, BlockDelta::Input(_));
                answer.apply(ModelEvent::BlockDelta { index, delta })?;
                let input = if is_input {
                    self.input_so_far(index, answer)
                } else {
                    None
                };
                self.emit(text.or(input)).await;
            }
            ModelEvent::BlockStopped { index } => self.stop(index, answer, announced).await?,
            ModelEvent::Finished => {
                for index in answer.open_indexes() {
                    self.stop(index, answer, announced).await?;
                }
                answer.apply(ModelEvent::Finished)?;
            }
            other => {
                answer.apply(other)?;
            }
        }
        if *self.message_id != *answer.id() {
            self.message_id = answer.id().into();
        }
        let events = self.raw.as_mut().zip(raw);
        if let Some(event) = events.and_then(|(events, event)| events.event(&event, answer)) {
            self.sink.emit(Body::Raw(event)).await;
        }
        Ok(())
    }

    async fn stop(
        &self,
        index: u64,
        answer: &mut AnswerBuilder<'_>,
        announced: &mut [Announced],
    ) -> Result<()> {
        let Some(at) = answer.position(index) else {
            return Ok(());
        };
        answer.apply(ModelEvent::BlockStopped { index })?;
        self.complete(&answer.blocks()[at], announced).await;
        Ok(())
    }

    async fn emit(&self, body: Option<Body>) {
        if let Some(body) = body {
            self.sink.emit(body).await;
        }
    }

    async fn started(&self, block: &ContentBlock, announced: &mut Vec<Announced>) {
        match block {
            ContentBlock::ToolUse { id, name, .. } => {
                let (id, name) = (id.as_str().into(), name.as_str().into());
                let call = Announced {
                    id,
                    name,
                    is_complete: false,
                };
                self.sink.emit(self.call(&call)).await;
                // Noted when it is told: what was not announced needs no end.
                announced.push(call);
            }
            block if self.as_it_grows => self.emit(self.text_of(block)).await,
            _ => {}
        }
    }

    fn call(&self, call: &Announced) -> Body {
        let kind = self
            .tools
            .get(&call.name)
            .map_or(ToolKind::Other, |tool| tool.spec().kind);
        Body::ToolCall {
            id: call.id.clone(),
            name: call.name.clone(),
            title: call.name.clone(),
            kind,
            input: None,
        }
    }

    fn grown(&self, delta: &BlockDelta) -> Option<Body> {
        match delta {
            BlockDelta::Text(text) if self.as_it_grows => self.text(text),
            BlockDelta::Thinking(text) if self.as_it_grows => self.thinking(text),
            _ => None,
        }
    }

    /// The input of a call as far as it is whole, unless one was told just now.
    fn input_so_far(&mut self, index: u64, answer: &AnswerBuilder<'_>) -> Option<Body> {
        let now = self.sink.instant();
        if !self.as_it_grows || now - self.input_told < INPUT_INTERVAL {
            return None;
        }
        let raw = answer.raw_input(index)?;
        // A whole input is told when its block ends, in a moment.
        if serde_json::from_str::<IgnoredAny>(raw).is_ok() {
            return None;
        }
        let input = parse_prefix(raw).filter(has_fields)?;
        self.input_told = now;
        let ContentBlock::ToolUse { id, name, .. } = answer.block(index)? else {
            return None;
        };
        Some(input_body(id, name, input, false))
    }

    async fn complete(&self, block: &ContentBlock, announced: &mut [Announced]) {
        match block {
            ContentBlock::ToolUse { id, name, input } => {
                self.sink
                    .emit(input_body(id, name, input.clone(), true))
                    .await;
                for call in announced.iter_mut().filter(|call| *call.id == **id) {
                    call.is_complete = true;
                }
            }
            ContentBlock::Text { text, .. } if !text.is_empty() => {
                if !self.as_it_grows {
                    self.emit(self.text(text)).await;
                }
                if !self.tell_whole {
                    return;
                }
                let text = text.as_str().into();
                self.sink
                    .emit(Body::TextEnd {
                        message_id: self.message_id(),
                        text,
                    })
                    .await;
            }
            block if !self.as_it_grows => self.emit(self.text_of(block)).await,
            _ => {}
        }
    }

    fn text_of(&self, block: &ContentBlock) -> Option<Body> {
        match block {
            ContentBlock::Text { text, .. } => self.text(text),
            ContentBlock::Thinking { thinking, .. } => self.thinking(thinking),
            _ => None,
        }
    }

    fn text(&self, text: &str) -> Option<Body> {
        let message_id = self.message_id();
        (!text.is_empty()).then(|| Body::Text {
            message_id,
            delta: text.to_owned(),
        })
    }

    fn thinking(&self, text: &str) -> Option<Body> {
        let message_id = self.message_id();
        (!text.is_empty()).then(|| Body::Thinking {
            message_id,
            delta: text.to_owned(),
        })
    }
}

/// The end of a call that did not run.
pub fn failed_call(call: Announced, why: &str) -> Body {
    let Announced {
        id,
        name,
        is_complete,
    } = call;
    let (status, output) = (ToolStatus::Failed, Json::from(why));
    Body::ToolEnd {
        id,
        name,
        status,
        output,
        is_error: true,
        input_told: is_complete,
    }
}

fn input_body(id: &str, name: &str, input: Json, is_complete: bool) -> Body {
    Body::ToolInput {
        id: id.into(),
        name: name.into(),
        input,
        is_complete,
    }
}

fn has_fields(input: &Json) -> bool {
    input.as_object().is_some_and(|fields| !fields.is_empty())
}
