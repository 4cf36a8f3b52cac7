//! Server-sent events from bytes.
//!
//! Bytes are buffered until an event is whole and decoded only then, so that a character cut by a
//! chunk border survives. Follows the event-stream format of the HTML standard: LF, CR LF and CR
//! end a line, comments are skipped, `data` lines are joined with LF, a byte order mark is dropped.

use bytes::{Buf, BytesMut};
use memchr::memchr2;

/// Largest event; a longer one is a fault of the other side.
const MAX_EVENT_BYTES: usize = 32 << 20;

/// The event does not end.
#[derive(Debug, PartialEq, Eq)]
pub struct EventTooLarge;

/// Turns chunks of bytes into the `data` texts of events.
#[derive(Debug, Default)]
pub struct SseDecoder {
    buffer: BytesMut,
    /// Bytes at the front of the buffer that hold no line end.
    scanned: usize,
    fields: Fields,
    skip_lf: bool,
}

impl SseDecoder {
    /// Takes a chunk.
    pub fn push(&mut self, chunk: &[u8]) -> Result<(), EventTooLarge> {
        self.buffer.extend_from_slice(chunk);
        if self.buffer.len() + self.fields.data.len() > MAX_EVENT_BYTES + chunk.len() {
            return Err(EventTooLarge);
        }
        Ok(())
    }

    /// The data of the next whole event. Events without data are skipped.
    pub fn next_event(&mut self) -> Option<String> {
        loop {
            let end = self.line_end()?;
            let (line, has_data) = (&self.buffer[..end], self.fields.has_data);
            if line.is_empty() {
                self.consume(end);
                if has_data {
                    return Some(self.fields.take());
                }
            } else {
                self.fields.read(line);
                self.consume(end);
            }
        }
    }

    /// The event that the body broke off in, if its data is whole except for the closing blank line.
    pub fn finish(&mut self) -> Option<String> {
        let rest = std::mem::take(&mut self.buffer);
        self.scanned = 0;
        if !rest.is_empty() {
            self.fields.read(&rest);
        }
        self.fields.has_data.then(|| self.fields.take())
    }

    /// Where the next line ends; none while it is not whole.
    fn line_end(&mut self) -> Option<usize> {
        if self.skip_lf {
            if *self.buffer.first()? == b'\n' {
                self.buffer.advance(1);
            }
            self.skip_lf = false;
        }
        let Some(offset) = memchr2(b'\n', b'\r', &self.buffer[self.scanned..]) else {
            self.scanned = self.buffer.len();
            return None;
        };
        Some(self.scanned + offset)
    }

    /// Drops a line and its end.
    fn consume(&mut self, end: usize) {
        self.skip_lf = self.buffer[end] == b'\r';
        self.buffer.advance(end + 1);
        self.scanned = 0;
    }
}

/// The fields of the event that is being read.
#[derive(Debug, Default)]
struct Fields {
    data: Vec<u8>,
    has_data: bool,
    started: bool,
}

impl Fields {
    fn read(&mut self, line: &[u8]) {
        const BOM: &[u8] = "\u{feff}".as_bytes();
        let first = !std::mem::replace(&mut self.started, true);
        let line = if first {
            line.strip_prefix(BOM).unwrap_or(line)
        } else {
            line
        };
        // Only `data` matters: the payload names its own type.
        let Some(value) = line.strip_prefix(b"data") else {
            return;
        };
        let value = match value {
            [] => value,
            [b':', b' ', rest @ ..] | [b':', rest @ ..] => rest,
            _ => return,
        };
        if self.has_data {
            self.data.push(b'\n');
        }
        self.data.extend_from_slice(value);
        self.has_data = true;
    }

    fn take(&mut self) -> String {
        self.has_data = false;
        text(std::mem::take(&mut self.data))
    }
}

/// Only bytes that are no UTF-8 become U+FFFD.
fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<String> {
        let mut decoder = SseDecoder::default();
        let mut events = Vec::new();
        for chunk in chunks {
            decoder.push(chunk).unwrap();
            events.extend(std::iter::from_fn(|| decoder.next_event()));
        }
        events.extend(decoder.finish());
        events
    }

    const STREAM: &str = "event: a\ndata: {\"text\":\"北京😀\"}\n\n: comment\r\n\r\ndata:two\r\ndata: lines\r\n\r\nid: 1\n\ndata: three\r\rdata\n\n";

    #[test]
    fn every_cut_gives_the_same_events() {
        let bytes = STREAM.as_bytes();
        let whole = decode([bytes]);
        assert_eq!(whole, ["{\"text\":\"北京😀\"}", "two\nlines", "three", ""]);
        for cut in 0..=bytes.len() {
            assert_eq!(
                decode([&bytes[..cut], &bytes[cut..]]),
                whole,
                "cut at {cut}"
            );
        }
        assert_eq!(decode(bytes.chunks(1)), whole);
    }

    #[test]
    fn a_byte_order_mark_is_dropped() {
        assert_eq!(decode(["\u{feff}data: a\n\n".as_bytes()]), ["a"]);
    }

    #[test]
    fn invalid_bytes_become_replacement_characters_alone() {
        assert_eq!(decode([&b"data: a\xffb\n\n"[..]]), ["a\u{fffd}b"]);
    }

    #[test]
    fn an_event_without_its_blank_line_is_given_at_the_end() {
        assert_eq!(decode([&b"data: a\n\ndata: b"[..]]), ["a", "b"]);
    }

    #[test]
    fn other_fields_that_begin_like_data_are_ignored() {
        assert_eq!(decode([&b"database: x\ndata: a\n\n"[..]]), ["a"]);
    }

    #[test]
    fn an_endless_line_is_refused() {
        let mut decoder = SseDecoder::default();
        let chunk = vec![b'x'; 1 << 20];
        let refused = (0..64).any(|_| {
            let full = decoder.push(&chunk).is_err();
            decoder.next_event();
            full
        });
        assert!(refused);
    }
}
