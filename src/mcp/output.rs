//! What a call gave, in the form of the kernel.
//!
//! Nothing in a result can make all of it fail: what is not understood becomes a short note.

use std::fmt;

use crate::base::json::fits;
use crate::base::text::excerpt;
use crate::protocol::{ContentBlock, ImageSource, Json, JsonMap};
use crate::tool::{NO_OUTPUT, ToolOutput};

/// Kinds of images that models read.
const IMAGE_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];
/// Longest image, in base64 characters: the limit of the Messages API.
const IMAGE_LENGTH: usize = 5 * 1024 * 1024;
/// Most images of a result.
const MAX_IMAGES: usize = 20;
/// Most elements of a result.
const MAX_BLOCKS: usize = 1_000;
/// Most bytes of structured content that the stream shows.
const STRUCTURED_BYTES: usize = 100_000;
/// Most characters of an address or a name.
const NAME_LENGTH: usize = 500;

/// Reads the result of a call.
pub fn read_result(result: Json) -> ToolOutput {
    let Json::Object(mut fields) = result else {
        return ToolOutput::error(
            "The server answered with something that is no result of a call.",
        );
    };
    let is_error = fields.get("isError") == Some(&Json::Bool(true));
    let structured = fields
        .swap_remove("structuredContent")
        .filter(|value| !value.is_null());
    let mut blocks = match fields.swap_remove("content") {
        Some(Json::Array(content)) => blocks(content),
        Some(Json::String(text)) => vec![ContentBlock::text(text)],
        None | Some(Json::Null) => Vec::new(),
        Some(_) => vec![note("the server sent content that is no list")],
    };
    blocks.retain(|block| !block.is_blank_text());
    let has_text = blocks
        .iter()
        .any(|block| matches!(block, ContentBlock::Text { .. }));
    if let Some(value) = structured.as_ref().filter(|_| !has_text) {
        blocks.push(ContentBlock::text(value.to_string()));
    }
    if blocks.is_empty() {
        blocks.push(ContentBlock::text(NO_OUTPUT));
    }
    ToolOutput {
        blocks,
        structured: structured.filter(|value| fits(value, STRUCTURED_BYTES)),
        is_error,
        cut: None,
    }
}

fn blocks(content: Vec<Json>) -> Vec<ContentBlock> {
    let left_out = content.len().saturating_sub(MAX_BLOCKS);
    let mut images = 0;
    let mut blocks: Vec<_> = content
        .into_iter()
        .take(MAX_BLOCKS)
        .map(|element| {
            let block = block(element);
            if !matches!(block, ContentBlock::Image { .. }) {
                return block;
            }
            images += 1;
            if images > MAX_IMAGES {
                return note(format_args!(
                    "image left out: a result may have {MAX_IMAGES}"
                ));
            }
            block
        })
        .collect();
    if left_out > 0 {
        blocks.push(note(format_args!("{left_out} more elements left out")));
    }
    blocks
}

fn block(element: Json) -> ContentBlock {
    let Json::Object(mut fields) = element else {
        return note("an element that is no content was left out");
    };
    let kind = take_text(&mut fields, "type").unwrap_or_default();
    match kind.as_str() {
        "text" => match take_text(&mut fields, "text") {
            Some(text) => ContentBlock::text(text),
            None => note("a text without text was left out"),
        },
        "image" => binary("image", None, fields, "data"),
        "audio" => binary("audio", None, fields, "data"),
        "resource" => match fields.swap_remove("resource") {
            Some(Json::Object(resource)) => resource_block(resource),
            _ => note("a resource without contents was left out"),
        },
        "resource_link" => link(&mut fields),
        other => {
            let kind = excerpt(other, 80);
            note(format_args!("content of the type \"{kind}\" was left out"))
        }
    }
}

fn resource_block(mut resource: JsonMap) -> ContentBlock {
    let uri = take_text(&mut resource, "uri").unwrap_or_default();
    let uri = excerpt(&uri, NAME_LENGTH);
    match take_text(&mut resource, "text") {
        Some(text) => ContentBlock::text(format!("[resource {uri}]\n{text}")),
        None => binary("resource", Some(&uri), resource, "blob"),
    }
}

fn link(fields: &mut JsonMap) -> ContentBlock {
    let mut text = String::from("[resource link]");
    for key in ["uri", "name", "title", "description", "mimeType"] {
        if let Some(value) = take_text(fields, key).filter(|value| !value.trim().is_empty()) {
            text = format!("{text}\n{key}: {}", excerpt(&value, NAME_LENGTH));
        }
    }
    ContentBlock::text(text)
}

/// Bytes in base64: an image that models read, else a note of what there was.
fn binary(what: &str, uri: Option<&str>, mut fields: JsonMap, key: &str) -> ContentBlock {
    let media_type = take_text(&mut fields, "mimeType").unwrap_or_default();
    let media_type = media_type.trim().to_ascii_lowercase();
    let Some(data) = take_text(&mut fields, key) else {
        return note(format_args!("{what} without data was left out"));
    };
    let is_image = IMAGE_TYPES.contains(&media_type.as_str());
    if is_image && what != "audio" && data.len() <= IMAGE_LENGTH && is_base64(&data) {
        return ContentBlock::Image {
            source: ImageSource::Base64 { media_type, data },
        };
    }
    let why = if is_image && data.len() > IMAGE_LENGTH {
        "it is too large"
    } else if is_image {
        "it is no base64"
    } else {
        "models do not read it"
    };
    let name = uri.map(|uri| format!(" {uri}")).unwrap_or_default();
    let kind = excerpt(&media_type, 80);
    let bytes = data.len() / 4 * 3;
    note(format_args!(
        "{what}{name} of the type \"{kind}\" with about {bytes} bytes was left out: {why}"
    ))
}

fn is_base64(data: &str) -> bool {
    let digits = data.trim_end_matches('=');
    let accepted = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    !digits.is_empty()
        && data.len().is_multiple_of(4)
        && data.len() - digits.len() <= 2
        && digits.bytes().all(accepted)
}

fn note(text: impl fmt::Display) -> ContentBlock {
    ContentBlock::text(format!("[{text}]"))
}

fn take_text(fields: &mut JsonMap, key: &str) -> Option<String> {
    match fields.swap_remove(key)? {
        Json::String(text) => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn texts(result: Json) -> Vec<String> {
        let text = |block| match block {
            ContentBlock::Text { text, .. } => text,
            other => panic!("no text: {other:?}"),
        };
        read_result(result).blocks.into_iter().map(text).collect()
    }

    #[test]
    fn every_kind_of_content_is_shown() {
        let output = read_result(json!({"content": [
            {"type": "text", "text": "hello", "annotations": {"audience": ["user"]}},
            {"type": "image", "data": "aGk=", "mimeType": "image/PNG"},
            {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"},
            {"type": "resource", "resource": {"uri": "file:///a", "text": "A"}},
            {"type": "resource", "resource": {"uri": "file:///b", "blob": "aGk=", "mimeType": "image/png"}},
            {"type": "resource", "resource": {"uri": "file:///c", "blob": "aGkh", "mimeType": "application/zip"}},
            {"type": "resource_link", "uri": "file:///d", "name": "d"},
        ]}));
        let image = ContentBlock::Image {
            source: ImageSource::Base64 {
                media_type: "image/png".into(),
                data: "aGk=".into(),
            },
        };
        let expected = [
            ContentBlock::text("hello"),
            image.clone(),
            ContentBlock::text(
                "[audio of the type \"audio/wav\" with about 3 bytes was left out: models do not read it]",
            ),
            ContentBlock::text("[resource file:///a]\nA"),
            image,
            ContentBlock::text(
                "[resource file:///c of the type \"application/zip\" with about 3 bytes was left out: models do not read it]",
            ),
            ContentBlock::text("[resource link]\nuri: file:///d\nname: d"),
        ];
        assert_eq!(output.blocks, expected);
        assert!(!output.is_error && output.structured.is_none());
    }

    #[test]
    fn what_is_not_understood_is_a_note_beside_the_rest() {
        let content = json!([
            {"type": "hologram", "data": "x"}, 5, null, {"type": "text"}, {"type": "text", "text": 5},
            {"type": "image", "data": 5}, {"type": "resource"}, {"text": "no type"},
            {"type": "image", "data": "not base64!", "mimeType": "image/png"},
            {"type": "text", "text": "the rest"},
        ]);
        let texts = texts(json!({"content": content}));
        assert_eq!(texts.len(), 10);
        assert_eq!(texts[0], "[content of the type \"hologram\" was left out]");
        assert!(texts[8].ends_with("it is no base64]"));
        assert_eq!(texts[9], "the rest");
    }

    #[test]
    fn a_result_without_form_is_an_error() {
        for result in [json!(null), json!([]), json!("x")] {
            assert!(read_result(result).is_error);
        }
        for empty in [
            json!({}),
            json!({"content": []}),
            json!({"content": [{"type": "text", "text": " "}]}),
        ] {
            assert_eq!(texts(empty), [NO_OUTPUT]);
        }
        assert_eq!(
            texts(json!({"content": 5})),
            ["[the server sent content that is no list]"]
        );
        assert!(read_result(json!({"content": [], "isError": true})).is_error);
        assert!(!read_result(json!({"content": [], "isError": "yes"})).is_error);
    }

    #[test]
    fn structured_content_is_for_the_stream_and_read_when_there_is_no_text() {
        let value = json!({"temperature": 21});
        let with_text = read_result(json!({
            "content": [{"type": "text", "text": "21 degrees"}], "structuredContent": value,
        }));
        assert_eq!(with_text.blocks, [ContentBlock::text("21 degrees")]);
        assert_eq!(with_text.structured, Some(value.clone()));
        let without = read_result(json!({"structuredContent": value}));
        assert_eq!(without.blocks, [ContentBlock::text(value.to_string())]);
    }

    #[test]
    fn enormous_results_leave_little_behind() {
        let image =
            json!({"type": "image", "data": "A".repeat(IMAGE_LENGTH + 4), "mimeType": "image/png"});
        assert!(texts(json!({"content": [image]}))[0].ends_with("it is too large]"));
        let small = json!({"type": "image", "data": "aGk=", "mimeType": "image/png"});
        let many = read_result(json!({"content": vec![small; 50]}));
        let is_image = |block: &&ContentBlock| matches!(block, ContentBlock::Image { .. });
        assert_eq!(many.blocks.iter().filter(is_image).count(), MAX_IMAGES);
        let structured = json!({"x": "x".repeat(STRUCTURED_BYTES)});
        let output = read_result(json!({
            "content": [{"type": "text", "text": "short"}], "structuredContent": structured,
        }));
        assert_eq!(output.structured, None);
        let blocks = vec![json!({"type": "text", "text": "a"}); 5_000];
        assert_eq!(texts(json!({"content": blocks})).len(), MAX_BLOCKS + 1);
    }
}
