//! Putting an answer together from events.

use std::collections::HashSet;

use crate::base::id;
use crate::base::text::excerpt;
use crate::error::{ErrorKind, KernelError, Result};
use crate::protocol::{ContentBlock, Json, Usage};

use super::{BlockDelta, ModelEvent};

/// Largest answer; a longer one is a fault of the gateway.
const MAX_ANSWER_BYTES: usize = 64 << 20;
/// Characters of an unreadable input that are kept for the model to look at.
const RAW_INPUT_KEPT: usize = 2_000;

/// A complete answer of the model.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// The gateway's message id; never empty.
    pub id: String,
    pub model: String,
    pub request_id: Option<String>,
    pub blocks: Vec<ContentBlock>,
    /// As the gateway spelled it.
    pub stop_reason: Option<String>,
    pub usage: Usage,
    /// Ids of calls whose input was not valid JSON.
    pub unreadable: Vec<String>,
}

/// Collects the events of one answer.
#[derive(Debug)]
pub struct AnswerBuilder<'a> {
    /// Ids that the conversation has used already.
    taken: &'a HashSet<String>,
    /// Ids of attempts that became void: a consumer has seen them.
    void: HashSet<String>,
    answer: Answer,
    open: Vec<OpenBlock>,
    bytes: usize,
}

#[derive(Debug)]
struct OpenBlock {
    index: u64,
    at: usize,
    input: String,
}

impl<'a> AnswerBuilder<'a> {
    /// A builder that replaces ids in `taken`: the gateway may use one twice, the conversation
    /// must not.
    pub fn new(taken: &'a HashSet<String>) -> Self {
        Self {
            taken,
            void: HashSet::new(),
            answer: Answer::default(),
            open: Vec::new(),
            bytes: 0,
        }
    }

    /// Takes an event. Deltas of a block that never began open one of their kind, so that no text
    /// is lost to a gateway that leaves the first event out.
    pub fn apply(&mut self, event: ModelEvent) -> Result<()> {
        match event {
            ModelEvent::Started {
                id,
                model,
                request_id,
            } => {
                self.answer.id = self.unused("msg", id);
                self.answer.model = model;
                self.answer.request_id = request_id;
            }
            ModelEvent::BlockStarted { index, block } => self.open(index, block),
            ModelEvent::BlockDelta { index, delta } => self.grow(index, delta)?,
            ModelEvent::BlockStopped { index } => self.close(index),
            ModelEvent::Usage(usage) => self.answer.usage = usage,
            ModelEvent::Stopped { reason } => self.answer.stop_reason = reason,
            ModelEvent::Restart { .. } => self.restart(),
            ModelEvent::FellBack { .. } => {}
            ModelEvent::Finished => {
                self.identify();
                for index in self.open_indexes() {
                    self.close(index);
                }
            }
        }
        Ok(())
    }

    /// The message id, once the answer began.
    pub fn id(&self) -> &str {
        &self.answer.id
    }

    /// The block that `index` names, as far as it is known.
    pub fn block(&self, index: u64) -> Option<&ContentBlock> {
        self.answer.blocks.get(self.position(index)?)
    }

    /// Where the open block that `index` names is in [`AnswerBuilder::blocks`].
    pub fn position(&self, index: u64) -> Option<usize> {
        self.open
            .iter()
            .rev()
            .find(|open| open.index == index)
            .map(|open| open.at)
    }

    /// The JSON text of a call's input as far as it came.
    pub fn raw_input(&self, index: u64) -> Option<&str> {
        let open = self.open.iter().rev().find(|open| open.index == index)?;
        Some(&open.input)
    }

    /// The indexes of blocks that did not end.
    pub fn open_indexes(&self) -> Vec<u64> {
        self.open.iter().map(|open| open.index).collect()
    }

    /// The blocks so far, unfinished ones included.
    pub fn blocks(&self) -> &[ContentBlock] {
        &self.answer.blocks
    }

    /// The answer; call it after [`ModelEvent::Finished`].
    pub fn finish(self) -> Answer {
        self.answer
    }

    fn open(&mut self, index: u64, block: ContentBlock) {
        self.close(index);
        self.identify();
        let block = match block {
            ContentBlock::ToolUse { id, name, input } => ContentBlock::ToolUse {
                id: self.unused("toolu", id),
                name,
                input,
            },
            other => other,
        };
        self.open.push(OpenBlock {
            index,
            at: self.answer.blocks.len(),
            input: String::new(),
        });
        self.answer.blocks.push(block);
    }

    /// Gives an answer that the gateway did not begin an id of its own.
    fn identify(&mut self) {
        if self.answer.id.is_empty() {
            self.answer.id = self.unused("msg", String::new());
        }
    }

    /// Begins anew; the ids of the void attempt are not used again.
    fn restart(&mut self) {
        let mut void = std::mem::take(&mut self.void);
        let calls = self.answer.blocks.iter().filter_map(ContentBlock::call_id);
        void.extend(calls.map(str::to_owned));
        void.insert(std::mem::take(&mut self.answer.id));
        *self = Self {
            void,
            ..Self::new(self.taken)
        };
    }

    /// An id, replaced when the gateway sent none or one that was used before.
    fn unused(&self, prefix: &str, id: String) -> String {
        let mut calls = self.answer.blocks.iter().filter_map(ContentBlock::call_id);
        if id.is_empty()
            || self.taken.contains(&id)
            || self.void.contains(&id)
            || calls.any(|used| used == id)
        {
            return format!("{prefix}_{}", id::random());
        }
        id
    }

    fn grow(&mut self, index: u64, delta: BlockDelta) -> Result<()> {
        if self.block(index).is_none() {
            match &delta {
                BlockDelta::Text(_) => self.open(index, ContentBlock::text("")),
                BlockDelta::Thinking(_) => self.open(
                    index,
                    ContentBlock::Thinking {
                        thinking: String::new(),
                        signature: String::new(),
                    },
                ),
                _ => return Ok(()),
            }
        }
        let Some(open) = self.open.iter_mut().rev().find(|open| open.index == index) else {
            return Ok(());
        };
        let Some(block) = self.answer.blocks.get_mut(open.at) else {
            return Ok(());
        };
        self.bytes += append(block, &mut open.input, delta);
        if self.bytes > MAX_ANSWER_BYTES {
            return Err(KernelError::new(
                ErrorKind::ModelProtocol,
                format!("the answer of the gateway is longer than {MAX_ANSWER_BYTES} bytes"),
            )
            .with_retryable(false));
        }
        Ok(())
    }

    fn close(&mut self, index: u64) {
        let Some(position) = self.open.iter().rposition(|open| open.index == index) else {
            return;
        };
        let open = self.open.remove(position);
        let Some(ContentBlock::ToolUse { id, input, .. }) = self.answer.blocks.get_mut(open.at)
        else {
            return;
        };
        if open.input.trim().is_empty() {
            match input {
                Json::Object(_) => {}
                Json::Null => *input = Json::Object(serde_json::Map::new()),
                other => {
                    self.answer.unreadable.push(id.clone());
                    *other = unreadable_input(&other.to_string());
                }
            }
            return;
        }
        if let Ok(value @ Json::Object(_)) = serde_json::from_str(&open.input) {
            *input = value;
        } else {
            self.answer.unreadable.push(id.clone());
            *input = unreadable_input(&open.input);
        }
    }
}

fn append(block: &mut ContentBlock, raw_input: &mut String, delta: BlockDelta) -> usize {
    match (block, delta) {
        (ContentBlock::Text { text, .. }, BlockDelta::Text(delta)) => push(text, &delta),
        (ContentBlock::Thinking { thinking, .. }, BlockDelta::Thinking(delta)) => {
            push(thinking, &delta)
        }
        (ContentBlock::Thinking { signature, .. }, BlockDelta::Signature(delta)) => {
            push(signature, &delta)
        }
        (ContentBlock::ToolUse { .. }, BlockDelta::Input(delta)) => push(raw_input, &delta),
        (ContentBlock::Text { citations, .. }, BlockDelta::Citation(citation)) => {
            let list = citations.get_or_insert_with(|| Json::Array(Vec::new()));
            if let Json::Array(list) = list {
                list.push(citation);
            }
            0
        }
        _ => 0,
    }
}

fn push(text: &mut String, delta: &str) -> usize {
    text.push_str(delta);
    delta.len()
}

/// Stands for an input that is no JSON object: the model sees what it wrote.
/// Source of the form: the transcripts of the Claude Agent SDK.
fn unreadable_input(raw: &str) -> Json {
    serde_json::json!({
        "__unparsedToolInput": { "raw": excerpt(raw, RAW_INPUT_KEPT), "len": raw.len() }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn call(index: u64, id: &str) -> ModelEvent {
        let block = ContentBlock::ToolUse {
            id: id.into(),
            name: "n".into(),
            input: json!({}),
        };
        ModelEvent::BlockStarted { index, block }
    }

    fn input(index: u64, piece: &str) -> ModelEvent {
        ModelEvent::BlockDelta {
            index,
            delta: BlockDelta::Input(piece.into()),
        }
    }

    fn build(events: impl IntoIterator<Item = ModelEvent>) -> Answer {
        let taken = HashSet::from(["used".to_owned()]);
        let mut builder = AnswerBuilder::new(&taken);
        for event in events {
            builder.apply(event).unwrap();
        }
        builder.apply(ModelEvent::Finished).unwrap();
        builder.finish()
    }

    fn inputs(answer: &Answer) -> Vec<&Json> {
        let inputs = answer.blocks.iter().filter_map(|block| match block {
            ContentBlock::ToolUse { input, .. } => Some(input),
            _ => None,
        });
        inputs.collect()
    }

    #[test]
    fn interleaved_fragments_are_joined_by_index() {
        let texts = [r#"{"a":"x\"北京","n":12}"#, r#"{"b":[1,2,{"c":"😀"}]}"#];
        let mut events = vec![call(0, "t0"), call(7, "t7")];
        let pieces = |text: &str| text.chars().map(String::from).collect::<Vec<_>>();
        let (first, second) = (pieces(texts[0]), pieces(texts[1]));
        for at in 0..first.len().max(second.len()) {
            events.extend(first.get(at).map(|piece| input(0, piece)));
            events.extend(second.get(at).map(|piece| input(7, piece)));
        }
        let answer = build(events);
        let parsed: Vec<Json> = texts
            .iter()
            .map(|text| serde_json::from_str(text).unwrap())
            .collect();
        assert_eq!(inputs(&answer), parsed.iter().collect::<Vec<_>>());
    }

    #[test]
    fn an_input_without_text_is_an_empty_object() {
        for pieces in [vec![], vec![""], vec![" \n"]] {
            let events = pieces.into_iter().map(|piece| input(0, piece));
            let answer = build(std::iter::once(call(0, "t")).chain(events));
            assert_eq!(inputs(&answer), [&json!({})]);
            assert!(answer.unreadable.is_empty());
        }
    }

    #[test]
    fn an_input_that_is_no_object_is_kept_for_the_model() {
        for raw in ["{\"a\":", "[1]", "3"] {
            let answer = build([call(0, "t"), input(0, raw)]);
            assert_eq!(answer.unreadable, ["t"]);
            assert_eq!(inputs(&answer)[0]["__unparsedToolInput"]["raw"], raw);
        }
    }

    #[test]
    fn missing_and_repeated_call_ids_are_replaced() {
        let answer = build([call(0, ""), call(1, "t"), call(2, "t"), call(3, "used")]);
        let mut ids: HashSet<_> = answer
            .blocks
            .iter()
            .filter_map(ContentBlock::call_id)
            .collect();
        assert_eq!(ids.len(), 4);
        assert!(ids.remove("t") && ids.iter().all(|id| id.starts_with("toolu_")));
    }

    #[test]
    fn a_delta_without_its_block_is_not_lost() {
        let delta = ModelEvent::BlockDelta {
            index: 3,
            delta: BlockDelta::Text("hi".into()),
        };
        assert_eq!(build([delta]).blocks, [ContentBlock::text("hi")]);
    }
}
