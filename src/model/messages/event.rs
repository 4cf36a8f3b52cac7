//! Messages API events, from JSON text to the neutral form.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::base::text::excerpt;
use crate::error::{ErrorKind, KernelError, Result};
use crate::model::gateway::{Decoded, Decoder};
use crate::model::halves::{self, Halves};
use crate::model::{BlockDelta, ModelEvent, failure};
use crate::protocol::{ContentBlock, Json, Usage};

/// Any event. Flat, with the parts that most events lack left unread: a stream is mostly deltas, and
/// they are read in one pass.
#[derive(Deserialize)]
struct Event<'a> {
    /// Gateways of the other protocol send errors without a type.
    #[serde(borrow, default)]
    r#type: Cow<'a, str>,
    #[serde(default)]
    index: u64,
    #[serde(borrow, default)]
    delta: Delta<'a>,
    #[serde(borrow, default)]
    content_block: Option<&'a RawValue>,
    #[serde(borrow, default)]
    message: Option<&'a RawValue>,
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
    #[serde(default)]
    request_id: Option<String>,
}

/// The delta of a block, or of the message.
#[derive(Default, Deserialize)]
struct Delta<'a> {
    #[serde(borrow, default)]
    r#type: Cow<'a, str>,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    thinking: Option<String>,
    #[serde(default)]
    signature: Option<String>,
    #[serde(default)]
    partial_json: Option<String>,
    #[serde(default)]
    citation: Option<Json>,
    #[serde(default)]
    stop_reason: Option<String>,
}

impl Delta<'_> {
    /// How a block grows; none for kinds that the kernel does not know.
    fn of_block(self) -> Option<BlockDelta> {
        match self.r#type.as_ref() {
            "text_delta" => self.text.map(BlockDelta::Text),
            "thinking_delta" => self.thinking.map(BlockDelta::Thinking),
            "signature_delta" => self.signature.map(BlockDelta::Signature),
            "input_json_delta" => self.partial_json.map(BlockDelta::Input),
            "citations_delta" => self.citation.map(BlockDelta::Citation),
            _ => None,
        }
    }
}

/// Decodes the events of one answer; remembers the token counts, which later events complete.
#[derive(Debug, Default)]
pub struct EventDecoder {
    usage: Usage,
    halves: Halves,
    request_id: Option<String>,
}

impl Decoder for EventDecoder {
    fn decode(&mut self, data: &str) -> Result<Decoded> {
        match serde_json::from_str(data) {
            Ok(event) => self.event(event, data),
            // Only a half of a pair is read a second time: the common case pays nothing.
            Err(error) => match halves::mark(data) {
                Some(marked) => {
                    let event = serde_json::from_str(&marked);
                    self.event(event.map_err(|error| unreadable(&error, data))?, &marked)
                }
                None => Err(unreadable(&error, data)),
            },
        }
    }

    fn decode_message(&mut self, message: &Json) -> Result<Vec<ModelEvent>> {
        if message["type"] == "error" || message["error"].is_object() {
            return Err(failure::from_event(&message["error"]));
        }
        let Some(content) = message["content"].as_array() else {
            return Err(protocol(
                "the answer of the gateway is JSON without a content list",
            ));
        };
        let mut events = self.start(message);
        for (index, block) in (0_u64..).zip(content) {
            let block = Self::block(block)?;
            events.push(ModelEvent::BlockStarted { index, block });
            events.push(ModelEvent::BlockStopped { index });
        }
        let stop_reason = message["stop_reason"].as_str().map(str::to_owned);
        events.extend(self.end_of(stop_reason, &Json::Null));
        events.push(ModelEvent::Finished);
        Ok(events)
    }

    fn end(&mut self) -> Vec<ModelEvent> {
        Vec::new()
    }
}

impl EventDecoder {
    fn event(&mut self, event: Event<'_>, data: &str) -> Result<Decoded> {
        let index = event.index;
        Ok(match event.r#type.as_ref() {
            "content_block_delta" => match event.delta.of_block() {
                Some(delta) => {
                    let delta = self.halves.join(index, delta);
                    Decoded::Event(ModelEvent::BlockDelta { index, delta })
                }
                None => Decoded::Events(Vec::new()),
            },
            "content_block_start" => {
                let block = Self::block(&Self::part(event.content_block, data)?)?;
                Decoded::Event(ModelEvent::BlockStarted { index, block })
            }
            "content_block_stop" => self.stop(index),
            "message_start" => Decoded::Events(self.start(&Self::part(event.message, data)?)),
            "message_delta" => {
                let usage = event
                    .usage
                    .map(|_| Self::part(event.usage, data))
                    .transpose()?;
                Decoded::Events(self.end_of(event.delta.stop_reason, &usage.unwrap_or_default()))
            }
            "message_stop" => Decoded::Event(ModelEvent::Finished),
            "ping" => Decoded::Ping,
            "" | "error" if event.error.is_some() => {
                let error = Self::part(event.error, data).unwrap_or_default();
                return Err(failure::from_event(&error).with_request_id(event.request_id));
            }
            _ => Decoded::Events(Vec::new()),
        })
    }

    fn stop(&mut self, index: u64) -> Decoded {
        let stopped = ModelEvent::BlockStopped { index };
        match self.halves.end(index) {
            None => Decoded::Event(stopped),
            Some(delta) => Decoded::Events(vec![ModelEvent::BlockDelta { index, delta }, stopped]),
        }
    }

    pub fn new(request_id: Option<String>) -> Self {
        Self {
            request_id,
            ..Self::default()
        }
    }

    fn start(&mut self, message: &Json) -> Vec<ModelEvent> {
        let text = |key: &str| message[key].as_str().unwrap_or_default().to_owned();
        self.count(&message["usage"]);
        vec![
            ModelEvent::Started {
                id: text("id"),
                model: text("model"),
                request_id: self.request_id.clone(),
            },
            ModelEvent::Usage(self.usage),
        ]
    }

    fn end_of(&mut self, stop_reason: Option<String>, usage: &Json) -> Vec<ModelEvent> {
        self.count(usage);
        let stopped = stop_reason.map(|reason| ModelEvent::Stopped {
            reason: Some(reason),
        });
        std::iter::once(ModelEvent::Usage(self.usage))
            .chain(stopped)
            .collect()
    }

    /// Counts are cumulative: a value replaces the one before, a missing one keeps it.
    fn count(&mut self, usage: &Json) {
        let set = |field: &mut u64, key: &str| *field = usage[key].as_u64().unwrap_or(*field);
        set(&mut self.usage.input_tokens, "input_tokens");
        set(&mut self.usage.output_tokens, "output_tokens");
        set(
            &mut self.usage.cache_creation_input_tokens,
            "cache_creation_input_tokens",
        );
        set(
            &mut self.usage.cache_read_input_tokens,
            "cache_read_input_tokens",
        );
    }

    /// A call whose fields are incomplete is completed where that is safe: the id is ours to choose.
    fn block(fields: &Json) -> Result<ContentBlock> {
        let block = ContentBlock::deserialize(fields)
            .map_err(|error| protocol(format!("a block of the gateway cannot be read: {error}")))?;
        let ContentBlock::Other(fields) = block else {
            return Ok(block);
        };
        if fields["type"] != "tool_use" {
            return Ok(ContentBlock::Other(fields));
        }
        let Some(name) = fields["name"].as_str() else {
            return Err(protocol("the gateway sent a tool call without a name"));
        };
        Ok(ContentBlock::ToolUse {
            id: fields["id"].as_str().unwrap_or_default().to_owned(),
            name: name.to_owned(),
            input: fields["input"].clone(),
        })
    }

    /// A part that an event of its kind must have.
    fn part(raw: Option<&RawValue>, data: &str) -> Result<Json> {
        let text = raw.map(RawValue::get).unwrap_or_default();
        let mut part = serde_json::from_str(text).map_err(|error| unreadable(&error, data))?;
        unmark(&mut part);
        Ok(part)
    }
}

fn unreadable(error: &serde_json::Error, data: &str) -> KernelError {
    let shown = excerpt(data, 120);
    protocol(format!(
        "an event of the gateway cannot be read ({error}): {shown}"
    ))
}

fn protocol(message: impl Into<String>) -> KernelError {
    KernelError::new(ErrorKind::ModelProtocol, message)
}

/// Halves in what comes at once never find their other half.
fn unmark(value: &mut Json) {
    match value {
        Json::String(text) => *text = halves::unmark(std::mem::take(text)),
        Json::Array(items) => items.iter_mut().for_each(unmark),
        Json::Object(fields) => fields.values_mut().for_each(unmark),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn events(decoder: &mut EventDecoder, event: &Json) -> Vec<ModelEvent> {
        decoder
            .decode(&event.to_string())
            .unwrap()
            .into_iter()
            .collect()
    }

    #[test]
    fn usage_values_replace_each_other_and_missing_ones_stay() {
        let mut decoder = EventDecoder::default();
        let start = json!({"type": "message_start", "message": {"id": "m", "model": "x", "usage":
            {"input_tokens": 27, "cache_read_input_tokens": 10, "output_tokens": 1}}});
        events(&mut decoder, &start);
        let delta = json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"},
            "usage": {"input_tokens": 27, "output_tokens": 47, "cache_creation_input_tokens": null}});
        let expected = Usage {
            input_tokens: 27,
            output_tokens: 47,
            cache_read_input_tokens: 10,
            cache_creation_input_tokens: 0,
        };
        assert_eq!(events(&mut decoder, &delta)[0], ModelEvent::Usage(expected));
    }

    #[test]
    fn unknown_events_and_deltas_are_skipped() {
        let mut decoder = EventDecoder::default();
        for event in [
            json!({"type": "new_thing", "x": 1}),
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "new_delta"}}),
        ] {
            assert_eq!(events(&mut decoder, &event), []);
        }
        assert_eq!(decoder.decode(r#"{"type":"ping"}"#).unwrap(), Decoded::Ping);
    }

    #[test]
    fn a_character_that_the_gateway_cut_is_joined_again() {
        let mut decoder = EventDecoder::default();
        let mut text = String::new();
        for piece in [r"ab\ud83d", r"\ude00\ud83d"] {
            let data = format!(
                r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"{piece}"}}}}"#
            );
            for event in decoder.decode(&data).unwrap() {
                if let ModelEvent::BlockDelta {
                    delta: BlockDelta::Text(more),
                    ..
                } = event
                {
                    text.push_str(&more);
                }
            }
        }
        assert_eq!(text, "ab😀");
        let end = events(
            &mut decoder,
            &json!({"type": "content_block_stop", "index": 0}),
        );
        let lost = ModelEvent::BlockDelta {
            index: 0,
            delta: BlockDelta::Text("\u{fffd}".into()),
        };
        assert_eq!(end, [lost, ModelEvent::BlockStopped { index: 0 }]);
    }

    #[test]
    fn broken_json_is_a_protocol_error() {
        let error = EventDecoder::default().decode("{\"type\":").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ModelProtocol);
    }

    #[test]
    fn an_error_event_carries_the_words_of_the_gateway() {
        let event = json!({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}, "request_id": "req_1"});
        let error = EventDecoder::default()
            .decode(&event.to_string())
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ModelOverloaded);
        assert_eq!(error.status(), Some(529));
        assert_eq!(error.request_id(), Some("req_1"));
        assert!(error.message().contains("busy"));
    }

    #[test]
    fn a_whole_message_gives_the_events_of_a_stream() {
        let message = json!({"type": "message", "id": "m", "model": "x", "stop_reason": "tool_use",
            "content": [{"type": "text", "text": "hi"}, {"type": "tool_use", "name": "n", "input": {"a": 1}}],
            "usage": {"input_tokens": 3, "output_tokens": 4}});
        let events = EventDecoder::default().decode_message(&message).unwrap();
        assert!(matches!(&events[0], ModelEvent::Started { id, .. } if id == "m"));
        assert!(events.contains(&ModelEvent::Stopped {
            reason: Some("tool_use".into())
        }));
        assert!(
            matches!(&events[4], ModelEvent::BlockStarted { block: ContentBlock::ToolUse { name, .. }, .. } if name == "n")
        );
        assert_eq!(events.last(), Some(&ModelEvent::Finished));
    }

    #[test]
    fn json_that_is_no_message_is_refused() {
        let error = EventDecoder::default()
            .decode_message(&json!({"ok": true}))
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ModelProtocol);
    }
}
