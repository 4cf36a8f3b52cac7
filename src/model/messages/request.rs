//! The request body, written straight from the shared blocks of the transcript.

use std::sync::Arc;

use serde::{Serialize, Serializer};

use crate::model::{ModelRequest, RequestMessage, ToolDeclaration};
use crate::protocol::{ContentBlock, Json, JsonMap, Role};

/// The JSON text of a request.
///
/// With cache marks on there are at most two: on the system text and on the last block of the last
/// message that may carry one. The same conversation gives the same bytes, so that prefixes match.
pub fn body(request: &ModelRequest, max_tokens: u32) -> Result<Vec<u8>, serde_json::Error> {
    let last = request.messages.len().saturating_sub(1);
    let marked = |at| request.settings.cache_marks && at == last;
    let wire = Body {
        model: &request.settings.model,
        max_tokens,
        system: request.system.as_deref().map(|text| {
            [Block {
                block: ContentBlock::text(text),
                cache_control: mark(request.settings.cache_marks),
            }]
        }),
        messages: request
            .messages
            .iter()
            .enumerate()
            .map(|(at, message)| Message {
                message,
                marked: marked(at),
            })
            .collect(),
        tools: &request.tools,
        temperature: request.settings.temperature,
        thinking: request.settings.thinking.as_ref(),
        stream: true,
        extra: &request.settings.extra,
    };
    serde_json::to_vec(&wire)
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    max_tokens: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<[Block<ContentBlock>; 1]>,
    messages: Vec<Message<'a>>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    tools: &'a [ToolDeclaration],
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<&'a Json>,
    stream: bool,
    #[serde(flatten)]
    extra: &'a JsonMap,
}

struct Message<'a> {
    message: &'a RequestMessage,
    marked: bool,
}

#[derive(Serialize)]
struct PlainMessage<'a> {
    role: Role,
    content: &'a [Arc<ContentBlock>],
}

#[derive(Serialize)]
struct MarkedMessage<'a> {
    role: Role,
    content: Vec<Block<&'a ContentBlock>>,
}

#[derive(Serialize)]
struct Block<B> {
    #[serde(flatten)]
    block: B,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

#[derive(Clone, Copy, Serialize)]
struct CacheControl {
    r#type: &'static str,
}

fn mark(on: bool) -> Option<CacheControl> {
    on.then_some(CacheControl {
        r#type: "ephemeral",
    })
}

impl Serialize for Message<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let RequestMessage { role, content } = self.message;
        let markable = self
            .marked
            .then(|| content.iter().rposition(|block| may_be_marked(block)));
        let Some(Some(marked)) = markable else {
            return PlainMessage {
                role: *role,
                content,
            }
            .serialize(serializer);
        };
        let blocks = content.iter().enumerate();
        let content = blocks
            .map(|(at, block)| Block {
                block: block.as_ref(),
                cache_control: mark(at == marked),
            })
            .collect();
        MarkedMessage {
            role: *role,
            content,
        }
        .serialize(serializer)
    }
}

/// The API refuses marks on thinking and on empty text.
fn may_be_marked(block: &ContentBlock) -> bool {
    match block {
        ContentBlock::Text { .. } => !block.is_blank_text(),
        ContentBlock::ToolUse { .. }
        | ContentBlock::ToolResult { .. }
        | ContentBlock::Image { .. } => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::RequestSettings;

    fn request(messages: Vec<RequestMessage>, cache_marks: bool) -> ModelRequest {
        ModelRequest {
            settings: RequestSettings {
                model: "glm".into(),
                max_tokens: 100,
                cache_marks,
                ..RequestSettings::default()
            },
            system: Some("be brief".into()),
            messages,
            tools: Arc::new([ToolDeclaration {
                name: "add".into(),
                description: "adds".into(),
                input_schema: json!({"type": "object", "z": 1, "a": 2}),
            }]),
        }
    }

    fn message(role: Role, blocks: Vec<ContentBlock>) -> RequestMessage {
        RequestMessage {
            role,
            content: blocks.into_iter().map(Arc::new).collect(),
        }
    }

    fn sent(request: &ModelRequest) -> Json {
        serde_json::from_slice(&body(request, request.settings.max_tokens).unwrap()).unwrap()
    }

    #[test]
    fn a_plain_request_has_only_the_classic_fields() {
        let request = request(
            vec![message(Role::User, vec![ContentBlock::text("hi")])],
            false,
        );
        assert_eq!(
            serde_json::to_string(&sent(&request)).unwrap(),
            r#"{"model":"glm","max_tokens":100,"system":[{"type":"text","text":"be brief"}],"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}],"tools":[{"name":"add","description":"adds","input_schema":{"type":"object","z":1,"a":2}}],"stream":true}"#
        );
    }

    #[test]
    fn marks_sit_on_the_system_text_and_the_last_block() {
        let messages = vec![
            message(Role::User, vec![ContentBlock::text("a")]),
            message(Role::Assistant, vec![ContentBlock::text("b")]),
            message(
                Role::User,
                vec![ContentBlock::text("c"), ContentBlock::text("d")],
            ),
        ];
        let body = sent(&request(messages, true));
        let mark = json!({"type": "ephemeral"});
        assert_eq!(body["system"][0]["cache_control"], mark);
        assert_eq!(body["messages"][2]["content"][1]["cache_control"], mark);
        assert_eq!(body.to_string().matches("cache_control").count(), 2);
    }

    #[test]
    fn thinking_is_never_marked() {
        let thinking = ContentBlock::Thinking {
            thinking: "hm".into(),
            signature: "s".into(),
        };
        let messages = vec![
            message(Role::User, vec![ContentBlock::text("a")]),
            message(Role::Assistant, vec![ContentBlock::text("b"), thinking]),
        ];
        let body = sent(&request(messages, true));
        assert!(body["messages"][1]["content"][0]["cache_control"].is_object());
        assert!(body["messages"][1]["content"][1]["cache_control"].is_null());
    }
}
