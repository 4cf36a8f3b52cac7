//! The request body.

use serde::Serialize;
use serde_json::json;

use crate::model::{ModelRequest, RequestMessage, ToolDeclaration};
use crate::protocol::{ContentBlock, ImageSource, Json, JsonMap, ResultContent, Role};

/// The JSON text of a request.
pub fn body(request: &ModelRequest, max_tokens: u32) -> Result<Vec<u8>, serde_json::Error> {
    let system = request
        .system
        .as_deref()
        .map(|text| json!({ "role": "system", "content": text }));
    let messages = system
        .into_iter()
        .chain(request.messages.iter().flat_map(messages));
    serde_json::to_vec(&Body {
        model: &request.settings.model,
        messages: messages.collect(),
        tools: request.tools.iter().map(tool).collect(),
        // Some models accept only the newer name, which users give as an option.
        max_tokens: (!request.settings.extra.contains_key("max_completion_tokens"))
            .then_some(max_tokens),
        temperature: request.settings.temperature,
        stream: true,
        stream_options: StreamOptions {
            include_usage: true,
        },
        extra: &request.settings.extra,
    })
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Vec<Json>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    stream: bool,
    stream_options: StreamOptions,
    #[serde(flatten)]
    extra: &'a JsonMap,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

fn tool(tool: &ToolDeclaration) -> Json {
    json!({
        "type": "function",
        "function": {
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.input_schema,
        },
    })
}

/// The messages for one of ours: results become messages of their own, before what else the user
/// said.
fn messages(message: &RequestMessage) -> Vec<Json> {
    match message.role {
        Role::Assistant => vec![assistant(message)],
        Role::User => user(message),
    }
}

fn assistant(message: &RequestMessage) -> Json {
    let mut text = String::new();
    let mut calls = Vec::new();
    for block in &message.content {
        match block.as_ref() {
            ContentBlock::Text { text: more, .. } => text.push_str(more),
            ContentBlock::ToolUse { id, name, input } => calls.push(json!({
                "id": id,
                "type": "function",
                "function": { "name": name, "arguments": input.to_string() },
            })),
            _ => {}
        }
    }
    let content = if text.is_empty() && !calls.is_empty() {
        Json::Null
    } else {
        Json::String(text)
    };
    let mut written = json!({ "role": "assistant", "content": content });
    if !calls.is_empty() {
        written["tool_calls"] = Json::Array(calls);
    }
    written
}

fn user(message: &RequestMessage) -> Vec<Json> {
    let mut written = Vec::new();
    let mut parts = Vec::new();
    for block in &message.content {
        match block.as_ref() {
            ContentBlock::ToolResult {
                tool_use_id,
                content,
                is_error,
            } => {
                let (text, images) = result(content);
                let text = if *is_error { failed(text) } else { text };
                written
                    .push(json!({ "role": "tool", "tool_call_id": tool_use_id, "content": text }));
                // A tool message holds text alone.
                parts.extend(images);
            }
            block => parts.extend(part(block)),
        }
    }
    match parts.as_slice() {
        [] => {}
        [only] if only["type"] == "text" => {
            written.push(json!({ "role": "user", "content": only["text"] }));
        }
        _ => written.push(json!({ "role": "user", "content": parts })),
    }
    written
}

fn result(content: &ResultContent) -> (String, Vec<Json>) {
    let blocks = match content {
        ResultContent::Text(text) => return (text.clone(), Vec::new()),
        ResultContent::Blocks(blocks) => blocks,
    };
    let parts = blocks.iter().filter_map(part);
    let (texts, images): (Vec<_>, Vec<_>) = parts.partition(|part| part["type"] == "text");
    let texts: Vec<_> = texts
        .iter()
        .filter_map(|part| part["text"].as_str())
        .collect();
    let text = if texts.is_empty() && !images.is_empty() {
        "[image]".to_owned()
    } else {
        texts.join("\n")
    };
    (text, images)
}

/// The protocol has no mark for failed calls: the text says it.
fn failed(text: String) -> String {
    if text.to_ascii_lowercase().contains("error") {
        text
    } else {
        format!("Error: {text}")
    }
}

fn part(block: &ContentBlock) -> Option<Json> {
    match block {
        ContentBlock::Text { text, .. } => Some(json!({ "type": "text", "text": text })),
        ContentBlock::Image { source } => {
            let url = match source {
                ImageSource::Base64 { media_type, data } => {
                    format!("data:{media_type};base64,{data}")
                }
                ImageSource::Url { url } => url.clone(),
            };
            Some(json!({ "type": "image_url", "image_url": { "url": url } }))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::model::RequestSettings;

    fn sent(messages: &[(Role, Json)]) -> Json {
        let message = |(role, content): &(Role, Json)| RequestMessage {
            role: *role,
            content: serde_json::from_value(content.clone()).unwrap(),
        };
        let request = ModelRequest {
            settings: RequestSettings {
                model: "glm".into(),
                ..RequestSettings::default()
            },
            system: Some("be brief".into()),
            messages: messages.iter().map(message).collect(),
            tools: Arc::new([ToolDeclaration {
                name: "add".into(),
                description: "adds".into(),
                input_schema: json!({"type": "object"}),
            }]),
        };
        serde_json::from_slice(&body(&request, 100).unwrap()).unwrap()
    }

    #[test]
    fn a_conversation_has_its_counterpart() {
        let body = sent(&[
            (Role::User, json!([{"type": "text", "text": "go"}])),
            (
                Role::Assistant,
                json!([
                    {"type": "thinking", "thinking": "hm", "signature": "s"},
                    {"type": "text", "text": "ok"},
                    {"type": "tool_use", "id": "t1", "name": "add", "input": {"a": 1}},
                ]),
            ),
            (
                Role::User,
                json!([
                    {"type": "tool_result", "tool_use_id": "t1", "content": [
                        {"type": "text", "text": "3"},
                        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}},
                    ]},
                    {"type": "text", "text": "and now?"},
                ]),
            ),
        ]);
        assert_eq!(
            body,
            json!({
                "model": "glm",
                "messages": [
                    {"role": "system", "content": "be brief"},
                    {"role": "user", "content": "go"},
                    {"role": "assistant", "content": "ok", "tool_calls": [
                        {"id": "t1", "type": "function", "function": {"name": "add", "arguments": "{\"a\":1}"}}]},
                    {"role": "tool", "tool_call_id": "t1", "content": "3"},
                    {"role": "user", "content": [
                        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},
                        {"type": "text", "text": "and now?"}]},
                ],
                "tools": [{"type": "function", "function":
                    {"name": "add", "description": "adds", "parameters": {"type": "object"}}}],
                "max_tokens": 100,
                "stream": true,
                "stream_options": {"include_usage": true},
            })
        );
    }

    #[test]
    fn an_answer_of_calls_alone_has_no_text() {
        let body = sent(&[
            (Role::User, json!([{"type": "text", "text": "go"}])),
            (
                Role::Assistant,
                json!([{"type": "tool_use", "id": "t", "name": "add", "input": {}}]),
            ),
        ]);
        assert_eq!(body["messages"][2]["content"], Json::Null);
    }
}
