//! One line of a transcript file.
//!
//! `{"seq":12,"entry":<text>}` holds the text of an entry as it came. A text that has line breaks, or
//! space around it, stands as a string: `{"seq":12,"text":"…"}`. A message without a timestamp has
//! `"at"`, the milliseconds of its append, behind the sequence. A line with a sequence that is already
//! there replaces that entry. The file of a sub-path begins with `{"sub":"<sub-path>"}`.

use std::borrow::Cow;
use std::fs::File;
use std::io::{BufRead, BufReader};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::base::clock::parse_timestamp;
use crate::error::{ErrorKind, KernelError, Result};
use crate::protocol::StoredEntry;

/// What a line says.
#[derive(Debug)]
pub enum Line {
    Entry(EntryLine),
    /// The sub-path that the file is of.
    Sub(String),
}

#[derive(Debug)]
pub struct EntryLine {
    pub seq: u64,
    /// Milliseconds since the epoch.
    pub at: Option<u64>,
    pub entry: StoredEntry,
}

impl EntryLine {
    /// When the message was made.
    pub fn created_at(&self) -> u64 {
        let written = self.entry.timestamp.as_deref().and_then(parse_timestamp);
        written.or(self.at).unwrap_or_default()
    }
}

#[derive(Deserialize)]
struct Stored<'a> {
    seq: Option<u64>,
    at: Option<u64>,
    #[serde(borrow)]
    entry: Option<&'a RawValue>,
    #[serde(borrow)]
    text: Option<Cow<'a, str>>,
    sub: Option<String>,
}

/// A line from its bytes; none when it is damaged or of somebody else.
pub fn parse(bytes: &[u8]) -> Option<Line> {
    // A list would be taken for the members in their order.
    if !bytes.trim_ascii_start().starts_with(b"{") {
        return None;
    }
    let stored: Stored = serde_json::from_slice(bytes).ok()?;
    if let Some(sub) = stored.sub {
        return Some(Line::Sub(sub));
    }
    let text = stored.entry.map(RawValue::get);
    let text = text.or(stored.text.as_deref())?;
    Some(Line::Entry(EntryLine {
        seq: stored.seq.filter(|seq| *seq > 0)?,
        at: stored.at,
        entry: StoredEntry::parse(text).ok()?,
    }))
}

/// Writes the line of an entry behind others.
pub fn write(lines: &mut Vec<u8>, seq: u64, entry: &StoredEntry, now: u64) -> Result<()> {
    let has_time = entry
        .timestamp
        .as_deref()
        .and_then(parse_timestamp)
        .is_some();
    let at = (entry.message.is_some() && !has_time).then(|| format!(",\"at\":{now}"));
    let text = entry.text();
    let is_plain = text.trim_ascii().len() == text.len() && !text.contains(['\n', '\r']);
    let (member, text) = if is_plain {
        ("entry", Cow::Borrowed(text))
    } else {
        ("text", Cow::Owned(json(text)?))
    };
    let at = at.unwrap_or_default();
    lines.extend_from_slice(format!("{{\"seq\":{seq}{at},\"{member}\":").as_bytes());
    lines.extend_from_slice(text.as_bytes());
    lines.extend_from_slice(b"}\n");
    Ok(())
}

/// The sub-path that a file is of, from its first line.
pub fn first_subpath(file: File) -> Option<String> {
    let mut first = Vec::new();
    BufReader::new(file).read_until(b'\n', &mut first).ok()?;
    match parse(&first)? {
        Line::Sub(subpath) => Some(subpath),
        Line::Entry(_) => None,
    }
}

/// Writes the first line of the file of a sub-path.
pub fn write_sub(lines: &mut Vec<u8>, subpath: &str) -> Result<()> {
    lines.extend_from_slice(format!("{{\"sub\":{}}}\n", json(subpath)?).as_bytes());
    Ok(())
}

fn json(value: &(impl Serialize + ?Sized)) -> Result<String> {
    serde_json::to_string(value)
        .map_err(|error| KernelError::new(ErrorKind::SerializeFailed, error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(text: &str) -> EntryLine {
        let entry = StoredEntry::parse(text).unwrap();
        let mut lines = Vec::new();
        write(&mut lines, 7, &entry, 5).unwrap();
        assert_eq!(lines.split(|byte| *byte == b'\n').count(), 2);
        let Some(Line::Entry(line)) = parse(&lines) else {
            panic!("{text}");
        };
        assert_eq!(line.entry, entry);
        line
    }

    #[test]
    fn a_text_comes_back_byte_for_byte() {
        for text in [
            r#"{"type":"x"}"#,
            r#"{ "b": 1.0, "a": 1e2, "n": 12345678901234567890123, "u": "\u00fc\/" }"#,
            "{\n  \"type\": \"x\"\r\n}",
            "  {\"type\":\"x\"} ",
            "{\"t\":\"\u{2028}\u{7f}😀\"}",
        ] {
            assert_eq!((round_trip(text).seq, round_trip(text).at), (7, None));
        }
    }

    #[test]
    fn a_message_without_a_time_has_that_of_the_append() {
        let text = r#"{"type":"user","uuid":"u","message":{"role":"user"}}"#;
        assert_eq!(round_trip(text).created_at(), 5);
    }

    #[test]
    fn what_is_no_line_is_none() {
        for bytes in [
            &b""[..],
            b"{",
            b"[]",
            b"{}",
            b"\xff\xfe",
            b"{\"seq\":0,\"entry\":{}}",
            b"{\"seq\":1}",
            b"{\"seq\":1,\"entry\":[]}",
            b"{\"seq\":1,\"text\":\"{\"}",
            b"{\"type\":\"user\"}",
            b"{\"seq\":1,\"entry\":{}}{\"seq\":2,\"entry\":{}}",
        ] {
            assert!(parse(bytes).is_none(), "{}", String::from_utf8_lossy(bytes));
        }
        let deep = format!("{{\"seq\":1,\"entry\":{}", "[".repeat(1 << 20));
        assert!(parse(deep.as_bytes()).is_none());
    }
}
