//! Messages API events, from JSON text to the neutral form.

use serde::Deserialize;

use crate::base::text::excerpt;
use crate::error::{ErrorKind, KernelError, Result};
use crate::model::gateway::{Decoded, Decoder};
use crate::model::{BlockDelta, ModelEvent, failure};
use crate::protocol::{ContentBlock, Json, JsonMap, Usage};

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Event {
    MessageStart {
        message: Json,
    },
    ContentBlockStart {
        index: u64,
        content_block: ContentBlock,
    },
    ContentBlockDelta {
        index: u64,
        delta: Delta,
    },
    ContentBlockStop {
        index: u64,
    },
    MessageDelta {
        #[serde(default)]
        delta: JsonMap,
        #[serde(default)]
        usage: Json,
    },
    MessageStop,
    Ping,
    Error {
        #[serde(default)]
        error: Json,
        #[serde(default)]
        request_id: Option<String>,
    },
    #[serde(other)]
    Unknown,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[expect(clippy::enum_variant_names, reason = "the names of the protocol")]
enum Delta {
    TextDelta {
        text: String,
    },
    ThinkingDelta {
        thinking: String,
    },
    SignatureDelta {
        signature: String,
    },
    InputJsonDelta {
        partial_json: String,
    },
    CitationsDelta {
        citation: Json,
    },
    #[serde(other)]
    Unknown,
}

/// Decodes the events of one answer; remembers the token counts, which later events complete.
#[derive(Debug, Default)]
pub struct EventDecoder {
    usage: Usage,
    request_id: Option<String>,
}

impl Decoder for EventDecoder {
    fn decode(&mut self, data: &str) -> Result<Decoded> {
        let event = serde_json::from_str(data).map_err(|error| {
            let shown = excerpt(data, 120);
            self.protocol(format!(
                "an event of the gateway cannot be read ({error}): {shown}"
            ))
        })?;
        let one = |event| Ok(Decoded::Events(vec![event]));
        match event {
            Event::Ping => Ok(Decoded::Ping),
            Event::Unknown => Ok(Decoded::Events(Vec::new())),
            Event::MessageStart { message } => Ok(Decoded::Events(self.start(&message))),
            Event::ContentBlockStart {
                index,
                content_block,
            } => {
                let block = self.block(content_block)?;
                one(ModelEvent::BlockStarted { index, block })
            }
            Event::ContentBlockDelta { index, delta } => match block_delta(delta) {
                Some(delta) => one(ModelEvent::BlockDelta { index, delta }),
                None => Ok(Decoded::Events(Vec::new())),
            },
            Event::ContentBlockStop { index } => one(ModelEvent::BlockStopped { index }),
            Event::MessageDelta { delta, usage } => Ok(Decoded::Events(self.end(&delta, &usage))),
            Event::MessageStop => one(ModelEvent::Finished),
            Event::Error { error, request_id } => Err(failure::from_event(
                &error,
                request_id.or_else(|| self.request_id.clone()),
            )),
        }
    }

    fn decode_message(&mut self, message: &Json) -> Result<Vec<ModelEvent>> {
        if message["type"] == "error" {
            return Err(failure::from_event(
                &message["error"],
                self.request_id.clone(),
            ));
        }
        let Some(content) = message["content"].as_array() else {
            return Err(self.protocol("the answer of the gateway is JSON without a content list"));
        };
        let mut events = self.start(message);
        for (index, block) in (0_u64..).zip(content) {
            let block = serde_json::from_value(block.clone()).map_err(|error| {
                self.protocol(format!(
                    "content.{index} of the answer cannot be read: {error}"
                ))
            })?;
            let block = self.block(block)?;
            events.push(ModelEvent::BlockStarted { index, block });
            events.push(ModelEvent::BlockStopped { index });
        }
        events.extend(
            message
                .as_object()
                .map(|fields| self.end(fields, &Json::Null))
                .into_iter()
                .flatten(),
        );
        events.push(ModelEvent::Finished);
        Ok(events)
    }

    fn end(&mut self) -> Vec<ModelEvent> {
        Vec::new()
    }
}

impl EventDecoder {
    pub fn new(request_id: Option<String>) -> Self {
        Self {
            usage: Usage::default(),
            request_id,
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

    fn end(&mut self, delta: &JsonMap, usage: &Json) -> Vec<ModelEvent> {
        self.count(usage);
        let mut events = vec![ModelEvent::Usage(self.usage)];
        if let Some(reason) = delta.get("stop_reason") {
            events.push(ModelEvent::Stopped {
                reason: reason.as_str().map(str::to_owned),
            });
        }
        events
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
    fn block(&self, block: ContentBlock) -> Result<ContentBlock> {
        let ContentBlock::Other(fields) = block else {
            return Ok(block);
        };
        if fields["type"] != "tool_use" {
            return Ok(ContentBlock::Other(fields));
        }
        let Some(name) = fields["name"].as_str() else {
            return Err(self.protocol("the gateway sent a tool call without a name"));
        };
        Ok(ContentBlock::ToolUse {
            id: fields["id"].as_str().unwrap_or_default().to_owned(),
            name: name.to_owned(),
            input: fields["input"].clone(),
        })
    }

    fn protocol(&self, message: impl Into<String>) -> KernelError {
        KernelError::new(ErrorKind::ModelProtocol, message).with_request_id(self.request_id.clone())
    }
}

fn block_delta(delta: Delta) -> Option<BlockDelta> {
    Some(match delta {
        Delta::TextDelta { text } => BlockDelta::Text(text),
        Delta::ThinkingDelta { thinking } => BlockDelta::Thinking(thinking),
        Delta::SignatureDelta { signature } => BlockDelta::Signature(signature),
        Delta::InputJsonDelta { partial_json } => BlockDelta::Input(partial_json),
        Delta::CitationsDelta { citation } => BlockDelta::Citation(citation),
        Delta::Unknown => return None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn events(decoder: &mut EventDecoder, event: &Json) -> Vec<ModelEvent> {
        match decoder.decode(&event.to_string()).unwrap() {
            Decoded::Events(events) => events,
            Decoded::Ping => panic!("a ping"),
        }
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
    fn broken_json_is_a_protocol_error() {
        let error = EventDecoder::default().decode("{\"type\":").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ModelProtocol);
    }

    #[test]
    fn an_error_event_carries_the_words_of_the_gateway() {
        let event =
            json!({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}});
        let mut decoder = EventDecoder::new(Some("req_1".into()));
        let error = decoder.decode(&event.to_string()).unwrap_err();
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
