//! Helpers around opaque JSON.

use std::io;

use serde_json::Value as Json;

/// The name of a JSON value's type, for messages.
pub fn type_name(value: &Json) -> &'static str {
    match value {
        Json::Null => "null",
        Json::Bool(_) => "a boolean",
        Json::Number(_) => "a number",
        Json::String(_) => "a string",
        Json::Array(_) => "an array",
        Json::Object(_) => "an object",
    }
}

/// A value as the text that a model reads: strings as they are, everything else as JSON.
pub fn to_text(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Whether a value has at most `limit` bytes as JSON. Writes nothing down.
pub fn fits(value: &Json, limit: usize) -> bool {
    serde_json::to_writer(Room(limit), value).is_ok()
}

/// Takes so many bytes.
struct Room(usize);

impl io::Write for Room {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self
            .0
            .checked_sub(bytes.len())
            .ok_or(io::ErrorKind::WriteZero)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The value that the beginning of a JSON text holds so far: open strings, arrays and objects are
/// closed, what is not a whole value yet is left out. `None` when that is no JSON either.
pub fn parse_prefix(text: &str) -> Option<Json> {
    let mut scan = Scan::default();
    for (at, byte) in text.bytes().enumerate() {
        scan.take(at, byte);
    }
    serde_json::from_str(&scan.closed(text)).ok()
}

/// Where a scan of a JSON text stands.
#[derive(Debug, Default)]
struct Scan {
    /// Closing brackets of what is open, innermost last.
    open: Vec<u8>,
    /// Whether the innermost object waits for a key.
    wants_key: bool,
    string: Option<OpenString>,
    /// Length of the longest beginning that closing brackets make whole, and those brackets.
    whole: (usize, Vec<u8>),
}

/// A string that has not ended.
#[derive(Debug)]
struct OpenString {
    is_key: bool,
    escape: Escape,
    /// Where the escape, or the surrogate pair that it belongs to, began.
    escape_start: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Escape {
    None,
    /// After a backslash.
    Begun,
    /// Hex digits that are missing, and the value of those that came.
    Hex {
        missing: u8,
        digits: u16,
    },
    /// After a high surrogate, whose other half must follow.
    NeedsLow,
}

impl Scan {
    fn take(&mut self, at: usize, byte: u8) {
        if let Some(string) = &mut self.string {
            if string.take(at, byte) {
                let is_key = string.is_key;
                self.string = None;
                self.wants_key = false;
                if !is_key {
                    self.mark_whole(at + 1);
                }
            }
            return;
        }
        match byte {
            b'"' => {
                let is_key = self.wants_key && self.open.last() == Some(&b'}');
                self.string = Some(OpenString {
                    is_key,
                    escape: Escape::None,
                    escape_start: at,
                });
            }
            b'{' | b'[' => {
                self.open.push(if byte == b'{' { b'}' } else { b']' });
                self.wants_key = byte == b'{';
                self.mark_whole(at + 1);
            }
            b'}' | b']' => {
                self.open.pop();
                self.wants_key = false;
                self.mark_whole(at + 1);
            }
            b',' => {
                self.mark_whole(at);
                self.wants_key = self.open.last() == Some(&b'}');
            }
            _ => {}
        }
    }

    fn mark_whole(&mut self, end: usize) {
        self.whole = (end, self.open.clone());
    }

    /// The text, closed.
    fn closed(&self, text: &str) -> String {
        let (end, open, quote) = match &self.string {
            Some(string) if !string.is_key => {
                let cut = string.escape != Escape::None;
                (
                    if cut { string.escape_start } else { text.len() },
                    &self.open,
                    "\"",
                )
            }
            _ => (self.whole.0, &self.whole.1, ""),
        };
        let brackets = open.iter().rev().map(|&byte| char::from(byte));
        let mut closed = String::with_capacity(end + open.len() + 1);
        closed.push_str(&text[..end]);
        closed.push_str(quote);
        closed.extend(brackets);
        closed
    }
}

impl OpenString {
    /// Takes a byte; true when it ends the string.
    fn take(&mut self, at: usize, byte: u8) -> bool {
        match self.escape {
            Escape::None if byte == b'"' => return true,
            Escape::None if byte == b'\\' => {
                self.escape = Escape::Begun;
                self.escape_start = at;
            }
            Escape::NeedsLow if byte == b'\\' => self.escape = Escape::Begun,
            Escape::Begun if byte == b'u' => {
                self.escape = Escape::Hex {
                    missing: 4,
                    digits: 0,
                };
            }
            Escape::Hex { missing, digits } => self.escape = hex(missing - 1, digits, byte),
            _ => self.escape = Escape::None,
        }
        false
    }
}

fn hex(missing: u8, digits: u16, byte: u8) -> Escape {
    let digit = char::from(byte)
        .to_digit(16)
        .and_then(|digit| u16::try_from(digit).ok());
    let digits = (digits << 4) | digit.unwrap_or(0);
    let is_high = (0xd800..0xdc00).contains(&digits);
    match missing {
        0 if is_high => Escape::NeedsLow,
        0 => Escape::None,
        _ => Escape::Hex { missing, digits },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_measured_as_json() {
        let value = json!({"a": ["北京", 1.5, null]});
        let length = value.to_string().len();
        assert!(fits(&value, length) && !fits(&value, length - 1));
    }

    #[test]
    fn beginnings_are_closed() {
        for (text, value) in [
            ("{", json!({})),
            ("{\"pa", json!({})),
            ("{\"path\"", json!({})),
            ("{\"path\":", json!({})),
            ("{\"path\": \"a.t", json!({"path": "a.t"})),
            ("{\"path\": \"a\\", json!({"path": "a"})),
            ("{\"path\": \"a\\u53", json!({"path": "a"})),
            ("{\"path\": \"a\\ud83d", json!({"path": "a"})),
            ("{\"path\": \"a\\ud83d\\ude", json!({"path": "a"})),
            ("{\"path\": \"a\\ud83d\\ude00", json!({"path": "a😀"})),
            ("{\"path\": \"a\", ", json!({"path": "a"})),
            ("{\"path\": \"a\", \"n\": 12", json!({"path": "a"})),
            (
                "{\"path\": \"a\", \"n\": 12,",
                json!({"path": "a", "n": 12}),
            ),
            ("{\"list\": [1, {\"b\": tr", json!({"list": [1, {}]})),
            ("{\"list\": [\"x\", \"y", json!({"list": ["x", "y"]})),
            ("{\"a\": {\"b\": \"c\"}", json!({"a": {"b": "c"}})),
        ] {
            assert_eq!(parse_prefix(text), Some(value), "{text}");
        }
    }

    #[test]
    fn every_beginning_of_an_object_is_an_object() {
        let text =
            json!({"a": "x\"y\\z\n北京😀", "b": [1, -2.5e3, true, null, {"c": []}], "d": {}})
                .to_string();
        for end in (1..=text.len()).filter(|&end| text.is_char_boundary(end)) {
            assert!(
                parse_prefix(&text[..end]).is_some_and(|value| value.is_object()),
                "{end}"
            );
        }
        assert_eq!(parse_prefix(&text), serde_json::from_str(&text).ok());
    }

    #[test]
    fn what_is_no_json_gives_nothing() {
        for text in ["", "nonsense", "}", "{]"] {
            assert_eq!(parse_prefix(text), None, "{text}");
        }
    }
}
