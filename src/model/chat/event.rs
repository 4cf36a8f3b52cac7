//! Chat completion chunks, from JSON text to the neutral form.

use serde::Deserialize;
use serde_json::json;

use crate::base::text::excerpt;
use crate::error::{ErrorKind, KernelError, Result};
use crate::model::gateway::{Decoded, Decoder};
use crate::model::halves::{self, Halves};
use crate::model::{BlockDelta, ModelEvent, failure};
use crate::protocol::{ContentBlock, Json, Usage};

/// The last event of a stream.
const DONE: &str = "[DONE]";

#[derive(Deserialize)]
struct Chunk {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    choices: Vec<Choice>,
    #[serde(default)]
    usage: Json,
    #[serde(default)]
    error: Json,
}

#[derive(Deserialize)]
struct Choice {
    #[serde(default)]
    delta: Option<Delta>,
    /// A whole message comes under this name.
    #[serde(default)]
    message: Option<Delta>,
    #[serde(default)]
    finish_reason: Option<String>,
}

#[derive(Default, Deserialize)]
struct Delta {
    #[serde(default)]
    content: Option<String>,
    #[serde(default)]
    reasoning_content: Option<String>,
    /// The same under another name; some gateways send both.
    #[serde(default)]
    reasoning: Option<String>,
    #[serde(default)]
    refusal: Option<String>,
    #[serde(default)]
    tool_calls: Option<Vec<CallPiece>>,
}

#[derive(Deserialize)]
struct CallPiece {
    #[serde(default)]
    index: Option<u64>,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    function: Option<FunctionPiece>,
}

#[derive(Default, Deserialize)]
struct FunctionPiece {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    arguments: Option<Arguments>,
}

/// Arguments are JSON in a string; some gateways send the value itself.
#[derive(Deserialize)]
#[serde(untagged)]
enum Arguments {
    Text(String),
    Value(Json),
}

/// Decodes the chunks of one answer. A chunk names no blocks: a text or reasoning block lasts until
/// something else comes, calls until the end.
#[derive(Debug, Default)]
pub struct ChunkDecoder {
    request_id: Option<String>,
    started: bool,
    next_index: u64,
    /// The text or reasoning block that grows.
    open: Option<(u64, Text)>,
    calls: Vec<OpenCall>,
    usage: Usage,
    stop_reason: Option<String>,
    halves: Halves,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Text {
    Answer,
    Reasoning,
}

#[derive(Debug)]
struct OpenCall {
    /// The number that the gateway gave it.
    number: u64,
    id: String,
    /// The block; none until the name is known.
    block: Option<u64>,
    /// Arguments that came before the name.
    early: String,
}

impl ChunkDecoder {
    pub fn new(request_id: Option<String>) -> Self {
        Self {
            request_id,
            ..Self::default()
        }
    }

    fn chunk(&mut self, chunk: Chunk) -> Result<Vec<ModelEvent>> {
        if !chunk.error.is_null() {
            return Err(failure::from_event(&chunk.error));
        }
        let mut events = Vec::new();
        if !std::mem::replace(&mut self.started, true) {
            events.push(ModelEvent::Started {
                id: chunk.id.unwrap_or_default(),
                model: chunk.model.unwrap_or_default(),
                request_id: self.request_id.clone(),
            });
        }
        if chunk.usage.is_object() {
            self.usage = usage(&chunk.usage);
            events.push(ModelEvent::Usage(self.usage));
        }
        // One answer was asked for: further choices are not ours.
        if let Some(choice) = chunk.choices.into_iter().next() {
            let delta = choice.delta.or(choice.message);
            self.delta(delta.unwrap_or_default(), &mut events);
            if let Some(reason) = choice.finish_reason.filter(|reason| !reason.is_empty()) {
                self.stop_reason = Some(stop_reason(&reason));
            }
        }
        Ok(events)
    }

    fn delta(&mut self, delta: Delta, events: &mut Vec<ModelEvent>) {
        if let Some(text) = delta.reasoning_content.or(delta.reasoning) {
            self.text(Text::Reasoning, text, events);
        }
        for text in delta.content.into_iter().chain(delta.refusal) {
            self.text(Text::Answer, text, events);
        }
        for (at, piece) in (0..).zip(delta.tool_calls.into_iter().flatten()) {
            self.call(at, piece, events);
        }
    }

    fn text(&mut self, kind: Text, text: String, events: &mut Vec<ModelEvent>) {
        if text.is_empty() {
            return;
        }
        let index = match self.open {
            Some((index, open)) if open == kind => index,
            _ => {
                self.close_text(events);
                let index = self.take_index();
                let block = match kind {
                    Text::Answer => ContentBlock::text(""),
                    Text::Reasoning => ContentBlock::Thinking {
                        thinking: String::new(),
                        signature: String::new(),
                    },
                };
                events.push(ModelEvent::BlockStarted { index, block });
                self.open = Some((index, kind));
                index
            }
        };
        let delta = match kind {
            Text::Answer => BlockDelta::Text(text),
            Text::Reasoning => BlockDelta::Thinking(text),
        };
        let delta = self.halves.join(index, delta);
        events.push(ModelEvent::BlockDelta { index, delta });
    }

    fn close_text(&mut self, events: &mut Vec<ModelEvent>) {
        if let Some((index, _)) = self.open.take() {
            self.stop(index, events);
        }
    }

    fn stop(&mut self, index: u64, events: &mut Vec<ModelEvent>) {
        let rest = self
            .halves
            .end(index)
            .map(|delta| ModelEvent::BlockDelta { index, delta });
        events.extend(rest);
        events.push(ModelEvent::BlockStopped { index });
    }

    fn call(&mut self, at: u64, piece: CallPiece, events: &mut Vec<ModelEvent>) {
        self.close_text(events);
        let id = piece.id.unwrap_or_default();
        let position = self.position(piece.index.unwrap_or(at), &id);
        let function = piece.function.unwrap_or_default();
        if let Some(name) = function.name.filter(|name| !name.is_empty())
            && self.calls[position].block.is_none()
        {
            self.begin(position, name, events);
        }
        let text = match function.arguments {
            None | Some(Arguments::Value(Json::Null)) => return,
            Some(Arguments::Text(text)) => text,
            Some(Arguments::Value(value)) => value.to_string(),
        };
        let call = &mut self.calls[position];
        match call.block {
            Some(index) => {
                let delta = self.halves.join(index, BlockDelta::Input(text));
                events.push(ModelEvent::BlockDelta { index, delta });
            }
            None => call.early.push_str(&text),
        }
    }

    /// The call that a piece belongs to. A new id under a number in use is a new call: some gateways
    /// give every call the same number.
    fn position(&mut self, number: u64, id: &str) -> usize {
        let same = |call: &OpenCall| call.number == number && (id.is_empty() || call.id == id);
        if let Some(position) = self.calls.iter().rposition(same) {
            return position;
        }
        self.calls.push(OpenCall {
            number,
            id: id.to_owned(),
            block: None,
            early: String::new(),
        });
        self.calls.len() - 1
    }

    fn begin(&mut self, position: usize, name: String, events: &mut Vec<ModelEvent>) {
        let index = self.take_index();
        let call = &mut self.calls[position];
        call.block = Some(index);
        let block = ContentBlock::ToolUse {
            id: call.id.clone(),
            name,
            input: json!({}),
        };
        events.push(ModelEvent::BlockStarted { index, block });
        let early = std::mem::take(&mut call.early);
        if !early.is_empty() {
            events.push(ModelEvent::BlockDelta {
                index,
                delta: BlockDelta::Input(early),
            });
        }
    }

    fn take_index(&mut self) -> u64 {
        let index = self.next_index;
        self.next_index += 1;
        index
    }

    /// The end of an answer whose reason is known.
    fn finish(&mut self) -> Vec<ModelEvent> {
        let mut events = Vec::new();
        self.close_text(&mut events);
        // A call whose name never came is one that the model must hear about.
        for position in 0..self.calls.len() {
            if self.calls[position].block.is_none() {
                self.begin(position, String::new(), &mut events);
            }
        }
        let calls = std::mem::take(&mut self.calls);
        for index in calls.into_iter().filter_map(|call| call.block) {
            self.stop(index, &mut events);
        }
        events.push(ModelEvent::Stopped {
            reason: self.stop_reason.take(),
        });
        events.push(ModelEvent::Finished);
        events
    }
}

fn unreadable(error: &serde_json::Error, data: &str) -> KernelError {
    let shown = excerpt(data, 120);
    KernelError::new(
        ErrorKind::ModelProtocol,
        format!("a chunk of the gateway cannot be read ({error}): {shown}"),
    )
}

impl Decoder for ChunkDecoder {
    fn decode(&mut self, data: &str) -> Result<Decoded> {
        if data.trim() == DONE {
            return Ok(Decoded::Events(self.end()));
        }
        let marked;
        let read = match serde_json::from_str(data) {
            // Only a half of a pair is read a second time: the common case pays nothing.
            Err(error) => match halves::mark(data) {
                Some(text) => {
                    marked = text;
                    serde_json::from_str(&marked)
                }
                None => Err(error),
            },
            read => read,
        };
        let chunk = read.map_err(|error| unreadable(&error, data))?;
        self.chunk(chunk).map(Decoded::Events)
    }

    fn decode_message(&mut self, message: &Json) -> Result<Vec<ModelEvent>> {
        if message["type"] == "error" {
            return Err(failure::from_event(&message["error"]));
        }
        let chunk: Chunk = serde_json::from_value(message.clone())
            .map_err(|error| unreadable(&error, &message.to_string()))?;
        if chunk.error.is_null() && chunk.choices.is_empty() {
            return Err(KernelError::new(
                ErrorKind::ModelProtocol,
                "the answer of the gateway is JSON without choices",
            ));
        }
        let mut events = self.chunk(chunk)?;
        events.extend(self.finish());
        Ok(events)
    }

    /// An answer is complete when its reason came: some gateways send no closing event.
    fn end(&mut self) -> Vec<ModelEvent> {
        if self.stop_reason.is_some() {
            self.finish()
        } else {
            Vec::new()
        }
    }
}

/// The reasons of this protocol in the words of the other.
fn stop_reason(reason: &str) -> String {
    match reason {
        "stop" => "end_turn",
        "length" => "max_tokens",
        "tool_calls" | "function_call" => "tool_use",
        "content_filter" => "refusal",
        other => other,
    }
    .to_owned()
}

/// Input counts include what was read from the cache.
fn usage(usage: &Json) -> Usage {
    let count = |value: &Json| value.as_u64().unwrap_or(0);
    let cached = count(&usage["prompt_tokens_details"]["cached_tokens"]);
    Usage {
        input_tokens: count(&usage["prompt_tokens"]).saturating_sub(cached),
        output_tokens: count(&usage["completion_tokens"]),
        cache_creation_input_tokens: 0,
        cache_read_input_tokens: cached,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::model::{Answer, AnswerBuilder};

    fn answer(chunks: &[Json], end: &str) -> Answer {
        let mut decoder = ChunkDecoder::new(Some("req".into()));
        let taken = HashSet::new();
        let mut builder = AnswerBuilder::new(&taken);
        let texts = chunks
            .iter()
            .map(Json::to_string)
            .chain(std::iter::once(end.to_owned()));
        for text in texts.filter(|text| !text.is_empty()) {
            for event in decoder.decode(&text).unwrap() {
                builder.apply(event).unwrap();
            }
        }
        for event in decoder.end() {
            builder.apply(event).unwrap();
        }
        builder.finish()
    }

    fn delta(delta: Json) -> Json {
        json!({"id": "c1", "model": "glm", "choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
    }

    fn finish(reason: &str) -> Json {
        json!({"id": "c1", "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
    }

    fn call(id: &str, name: &str, input: Json) -> ContentBlock {
        ContentBlock::ToolUse {
            id: id.into(),
            name: name.into(),
            input,
        }
    }

    #[test]
    fn reasoning_text_and_usage() {
        let chunks = [
            delta(json!({"role": "assistant", "reasoning_content": "hm"})),
            delta(json!({"reasoning_content": "m"})),
            delta(json!({"content": "Hel"})),
            delta(json!({"content": "lo"})),
            finish("stop"),
            json!({"choices": [], "usage": {"prompt_tokens": 27, "completion_tokens": 5,
                "prompt_tokens_details": {"cached_tokens": 10}}}),
        ];
        let answer = answer(&chunks, DONE);
        let thinking = ContentBlock::Thinking {
            thinking: "hmm".into(),
            signature: String::new(),
        };
        assert_eq!(answer.blocks, [thinking, ContentBlock::text("Hello")]);
        assert_eq!(answer.stop_reason.as_deref(), Some("end_turn"));
        let usage = Usage {
            input_tokens: 17,
            output_tokens: 5,
            cache_read_input_tokens: 10,
            ..Usage::default()
        };
        assert_eq!(answer.usage, usage);
        assert_eq!(answer.id, "c1");
    }

    #[test]
    fn parallel_calls_in_fragments() {
        let piece = |index: u64, id: &str, name: &str, arguments: &str| json!({"index": index, "id": id, "function": {"name": name, "arguments": arguments}});
        let more = |index: u64, arguments: &str| json!({"index": index, "function": {"arguments": arguments}});
        let chunks = [
            delta(json!({"content": "I add."})),
            delta(json!({"tool_calls": [piece(0, "t0", "add", "")]})),
            delta(json!({"tool_calls": [piece(1, "t1", "mul", "{\"x\"")]})),
            delta(json!({"tool_calls": [more(0, "{\"a\":"), more(1, ":2}")]})),
            delta(json!({"tool_calls": [more(0, "1}")]})),
            finish("tool_calls"),
        ];
        let answer = answer(&chunks, DONE);
        let calls = [
            call("t0", "add", json!({"a": 1})),
            call("t1", "mul", json!({"x": 2})),
        ];
        assert_eq!(answer.blocks[1..], calls);
        assert_eq!(answer.stop_reason.as_deref(), Some("tool_use"));
    }

    #[test]
    fn calls_of_careless_gateways() {
        // One number for every call, arguments as a value, a name that comes late.
        let chunks = [
            delta(
                json!({"tool_calls": [{"index": 0, "id": "t0", "function": {"name": "add", "arguments": {"a": 1}}}]}),
            ),
            delta(
                json!({"tool_calls": [{"index": 0, "id": "t1", "function": {"arguments": "{\"b\""}}]}),
            ),
            delta(
                json!({"tool_calls": [{"index": 0, "id": "t1", "function": {"name": "mul", "arguments": ":2}"}}]}),
            ),
            finish("stop"),
        ];
        let calls = [
            call("t0", "add", json!({"a": 1})),
            call("t1", "mul", json!({"b": 2})),
        ];
        assert_eq!(answer(&chunks, DONE).blocks, calls);
    }

    #[test]
    fn the_closing_event_may_be_missing_but_not_the_reason() {
        let complete = [delta(json!({"content": "hi"})), finish("length")];
        assert_eq!(
            answer(&complete, "").stop_reason.as_deref(),
            Some("max_tokens")
        );
        let mut decoder = ChunkDecoder::default();
        decoder
            .decode(&delta(json!({"content": "hi"})).to_string())
            .unwrap();
        assert_eq!(decoder.decode(DONE).unwrap(), Decoded::Events(Vec::new()));
        assert!(decoder.end().is_empty());
    }

    #[test]
    fn errors_of_both_protocols_are_understood() {
        for (event, kind) in [
            (
                json!({"error": {"message": "busy", "type": "overloaded_error"}}),
                ErrorKind::ModelOverloaded,
            ),
            (
                json!({"type": "error", "error": {"type": "rate_limit_error", "message": "slow"}}),
                ErrorKind::ModelRateLimit,
            ),
            (
                json!({"error": {"message": "too long", "code": "context_length_exceeded", "type": "invalid_request_error"}}),
                ErrorKind::ModelContext,
            ),
        ] {
            let error = ChunkDecoder::default()
                .decode(&event.to_string())
                .unwrap_err();
            assert_eq!(error.kind(), kind, "{event}");
        }
    }

    #[test]
    fn a_whole_message_gives_the_events_of_a_stream() {
        let message = json!({"id": "c1", "model": "glm", "choices": [{"message":
            {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 3, "completion_tokens": 1}});
        let events = ChunkDecoder::default().decode_message(&message).unwrap();
        assert_eq!(events.last(), Some(&ModelEvent::Finished));
        assert!(events.contains(&ModelEvent::Stopped {
            reason: Some("end_turn".into())
        }));
    }
}
