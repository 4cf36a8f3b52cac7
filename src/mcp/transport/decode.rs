//! JSON-RPC messages as servers really write them.
//!
//! Results stay opaque: whoever asked reads what can be read. A message that cannot be read at all
//! still fails the call that it answers, so that nobody waits for it.

use std::borrow::Cow;

use rmcp::RoleClient;
use rmcp::model::{
    CustomRequest, CustomResult, ErrorCode, ErrorData, JsonRpcMessage, NumberOrString, PingRequest,
    ProgressNotification, ProgressNotificationParam, ServerNotification, ServerRequest,
    ServerResult, ToolListChangedNotification,
};
use rmcp::service::RxJsonRpcMessage;
use serde::Deserialize;

use super::lines::Skipped;
use crate::protocol::{Json, JsonMap};

/// A message of a server.
pub type Incoming = RxJsonRpcMessage<RoleClient>;

/// Messages of a batch that are read.
const MAX_BATCH: usize = 1_000;

/// What a line holds.
#[derive(Debug)]
pub enum Content {
    /// None when it is a notification that means nothing here.
    Messages(Vec<Incoming>),
    /// Not the protocol: a log line, a banner.
    Noise,
}

/// Reads a line.
pub fn read_line(line: &[u8]) -> Content {
    let line = line.trim_ascii();
    if !matches!(line.first(), Some(b'{' | b'[')) {
        return Content::Noise;
    }
    let parsed = serde_json::from_slice(line).or_else(|_| {
        let text = String::from_utf8_lossy(line);
        serde_json::from_str::<Json>(&with_whole_characters(&text))
    });
    match parsed {
        Ok(value @ (Json::Object(_) | Json::Array(_))) => Content::Messages(messages(value)),
        Ok(_) => Content::Noise,
        Err(error) => match shallow_id(line) {
            Some(id) => Content::Messages(vec![unreadable(id, &error.to_string())]),
            None => Content::Noise,
        },
    }
}

/// The failure of the call that a line answers which was too long to keep.
pub fn too_long(line: &Skipped) -> Option<Incoming> {
    let id = id_in_head(&line.head).or_else(|| id_in_tail(&line.tail))?;
    let size = line.length / (1024 * 1024);
    Some(unreadable(id, &format!("it has {size} MiB")))
}

/// The messages that a value holds: one, or those of a batch.
pub fn messages(value: Json) -> Vec<Incoming> {
    match value {
        Json::Array(batch) => batch
            .into_iter()
            .take(MAX_BATCH)
            .filter_map(|value| match value {
                Json::Object(fields) => message(fields),
                _ => None,
            })
            .collect(),
        Json::Object(fields) => message(fields).into_iter().collect(),
        _ => Vec::new(),
    }
}

fn message(mut fields: JsonMap) -> Option<Incoming> {
    let id = fields.get("id").and_then(read_id);
    let method = fields.get("method").and_then(Json::as_str);
    if let Some(method) = method {
        let method = method.to_owned();
        let params = fields.swap_remove("params");
        return match id {
            Some(id) => Some(JsonRpcMessage::request(request(method, params), id)),
            None => notification(&method, params).map(JsonRpcMessage::notification),
        };
    }
    if let Some(error) = fields.swap_remove("error") {
        return Some(JsonRpcMessage::error(failure(&error), id));
    }
    let result = ServerResult::CustomResult(CustomResult(fields.swap_remove("result")?));
    Some(JsonRpcMessage::response(result, id?))
}

/// Only a ping gets more than a refusal.
fn request(method: String, params: Option<Json>) -> ServerRequest {
    if method == "ping" {
        return ServerRequest::PingRequest(PingRequest::default());
    }
    ServerRequest::CustomRequest(CustomRequest::new(method, params))
}

fn notification(method: &str, params: Option<Json>) -> Option<ServerNotification> {
    match method {
        "notifications/progress" => {
            let params: ProgressNotificationParam = serde_json::from_value(params?).ok()?;
            Some(ProgressNotification::new(params).into())
        }
        "notifications/tools/list_changed" => Some(ToolListChangedNotification::default().into()),
        _ => None,
    }
}

fn failure(error: &Json) -> ErrorData {
    let code = error.get("code").and_then(Json::as_i64);
    let code = code.and_then(|code| i32::try_from(code).ok());
    let message = match error.get("message") {
        Some(Json::String(message)) => message.clone(),
        _ => "the server gave no reason".to_owned(),
    };
    ErrorData::new(
        code.map_or(ErrorCode::INTERNAL_ERROR, ErrorCode),
        message,
        error.get("data").cloned(),
    )
}

/// An answer that stands for one that cannot be read.
fn unreadable(id: NumberOrString, why: &str) -> Incoming {
    let message = format!("its answer cannot be read: {why}");
    JsonRpcMessage::error(
        ErrorData::new(ErrorCode::PARSE_ERROR, message, None),
        Some(id),
    )
}

fn read_id(value: &Json) -> Option<NumberOrString> {
    match value {
        Json::String(text) => Some(NumberOrString::String(text.as_str().into())),
        Json::Number(number) => {
            let whole = number.as_f64().filter(|number| number.fract() == 0.0);
            #[expect(clippy::cast_possible_truncation, reason = "ids are counted from zero")]
            let whole = whole.map(|number| number as i64);
            number.as_i64().or(whole).map(NumberOrString::Number)
        }
        _ => None,
    }
}

/// The id of a message whose other parts may be nested too deeply, or hold what is no text.
fn shallow_id(line: &[u8]) -> Option<NumberOrString> {
    #[derive(Deserialize)]
    struct Head {
        id: Json,
    }
    let head: Head = serde_json::from_slice(line).ok()?;
    read_id(&head.id)
}

/// The id in the beginning of an object, as one of its own fields.
fn id_in_head(head: &[u8]) -> Option<NumberOrString> {
    let (mut depth, mut at) = (0_usize, 0);
    while let Some(&byte) = head.get(at) {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => {
                let end = string_end(head, at)?;
                if depth == 1 && &head[at..end] == b"\"id\"" {
                    let value = head[end..].trim_ascii_start().strip_prefix(b":");
                    if let Some(value) = value {
                        return first_value(value);
                    }
                }
                at = end;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// The id at the end of an object: its last field, or the last but the version.
fn id_in_tail(tail: &[u8]) -> Option<NumberOrString> {
    let body = tail.trim_ascii_end().strip_suffix(b"}")?;
    let at = memchr::memmem::rfind(body, b"\"id\"")?;
    let value = body[at + 4..].trim_ascii_start().strip_prefix(b":")?;
    let value = std::str::from_utf8(value).ok()?;
    let rest: Json = serde_json::from_str(&format!("{{\"id\":{value}}}")).ok()?;
    let is_own = rest
        .as_object()?
        .keys()
        .all(|key| matches!(key.as_str(), "id" | "jsonrpc"));
    is_own.then(|| read_id(&rest["id"])).flatten()
}

/// Where a string that begins at `start` ends.
fn string_end(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    loop {
        match bytes.get(at)? {
            b'\\' => at += 2,
            b'"' => return Some(at + 1),
            _ => at += 1,
        }
    }
}

fn first_value(bytes: &[u8]) -> Option<NumberOrString> {
    let mut values = serde_json::Deserializer::from_slice(bytes).into_iter::<Json>();
    values.next()?.ok().as_ref().and_then(read_id)
}

/// The text with escapes of half characters replaced: a JavaScript server that cuts texts writes them,
/// and most parsers refuse them.
fn with_whole_characters(text: &str) -> Cow<'_, str> {
    if !text.contains("\\u") {
        return Cow::Borrowed(text);
    }
    let mut whole = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        whole.push_str(&rest[..at]);
        rest = &rest[at..];
        let length = match (escape(rest), rest.get(6..).and_then(escape)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 12,
            (Some(0xd800..=0xdfff), _) => {
                whole.push('\u{fffd}');
                rest = &rest[6..];
                continue;
            }
            // The backslash and what it escapes.
            _ => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
        };
        whole.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    whole.push_str(rest);
    Cow::Owned(whole)
}

/// The code unit of an escape at the beginning of a text.
fn escape(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    u32::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn one(line: &str) -> Incoming {
        match read_line(line.as_bytes()) {
            Content::Messages(mut messages) if messages.len() == 1 => messages.remove(0),
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn what_is_not_the_protocol_is_noise() {
        for line in [
            "",
            "  ",
            "Server listening",
            "42",
            "[info] started",
            "{not json",
            "null",
        ] {
            assert!(
                matches!(read_line(line.as_bytes()), Content::Noise),
                "{line}"
            );
        }
        for line in [
            "[]",
            "{}",
            r#"{"jsonrpc":"2.0","method":"notifications/x"}"#,
        ] {
            let content = read_line(line.as_bytes());
            assert!(matches!(content, Content::Messages(messages) if messages.is_empty()));
        }
    }

    #[test]
    fn results_stay_as_they_are() {
        let (result, id) = one(r#"{"id":7.0,"result":{"content":[{"type":"hologram"}],"x":1}}"#)
            .into_response()
            .unwrap();
        assert_eq!(id, NumberOrString::Number(7));
        let ServerResult::CustomResult(result) = result else {
            panic!("typed");
        };
        assert_eq!(result.0, json!({"content": [{"type": "hologram"}], "x": 1}));
    }

    #[test]
    fn a_batch_is_its_messages() {
        let line = r#"[{"id":1,"result":{}},5,{"id":2,"error":{"code":-1,"message":"no"}}]"#;
        let Content::Messages(messages) = read_line(line.as_bytes()) else {
            panic!("noise");
        };
        assert_eq!(messages.len(), 2);
    }

    #[test]
    fn errors_without_code_or_message_are_errors() {
        for error in ["{}", "null", "\"no\"", r#"{"code":"x","message":5}"#] {
            let message = one(&format!(r#"{{"id":1,"error":{error}}}"#));
            let (error, id) = message.into_error().unwrap();
            assert_eq!(error.code, ErrorCode::INTERNAL_ERROR);
            assert_eq!(id, Some(NumberOrString::Number(1)));
        }
    }

    #[test]
    fn an_answer_that_is_nested_too_deeply_fails_its_call() {
        let nested = "[".repeat(5_000) + &"]".repeat(5_000);
        let message = one(&format!(r#"{{"result":{nested},"id":"a"}}"#));
        let (error, id) = message.into_error().unwrap();
        assert!(error.message.contains("cannot be read"));
        assert_eq!(id, Some(NumberOrString::String("a".into())));
    }

    #[test]
    fn half_characters_are_replaced() {
        let line = r#"{"id":1,"result":"\ud83d\ude00 \ud83d \\ud83d \ude00"}"#;
        let (result, _) = one(line).into_response().unwrap();
        let ServerResult::CustomResult(result) = result else {
            panic!("typed");
        };
        assert_eq!(result.0, json!("😀 \u{fffd} \\ud83d \u{fffd}"));
    }

    #[test]
    fn the_call_that_a_long_line_answers_is_found() {
        let long = "x".repeat(10_000);
        let id = |line: String| {
            let bytes = line.as_bytes();
            let skipped = Skipped {
                head: bytes[..4_000].to_vec(),
                tail: bytes[bytes.len() - 4_000..].to_vec(),
                length: bytes.len(),
            };
            too_long(&skipped).and_then(|message| message.into_error()?.1)
        };
        let number = Some(NumberOrString::Number(7));
        let text = Some(NumberOrString::String("a\"b".into()));
        assert_eq!(id(format!(r#"{{"id" : 7,"result":"{long}"}}"#)), number);
        assert_eq!(
            id(format!(
                r#"{{"jsonrpc":"2.0","id":"a\"b","result":"{long}"}}"#
            )),
            text
        );
        assert_eq!(
            id(format!(r#"{{"result":{{"id":1,"t":"{long}"}},"id":7}}"#)),
            number
        );
        assert_eq!(
            id(format!(r#"{{"result":"{long}","id":7, "jsonrpc":"2.0"}} "#)),
            number
        );
        assert_eq!(id(format!(r#"{{"result":{{"t":"{long}","id":7}}}}"#)), None);
        assert_eq!(
            id(format!(r#"{{"method":"\"id\":5","params":"{long}"}}"#)),
            None
        );
    }
}
