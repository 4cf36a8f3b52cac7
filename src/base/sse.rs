//! Server-sent events from bytes.
//!
//! Bytes are buffered until an event is whole and decoded only then, so that a character cut by a
//! chunk border survives. Follows the event-stream format of the HTML standard: LF, CR LF and CR
//! end a line, comments are skipped, `data` lines are joined with LF, a byte order mark is dropped.

use bytes::{Buf, BytesMut};
use memchr::{memchr, memchr2};

/// Largest event unless another limit is set; a longer one is a fault of the other side.
const MAX_EVENT_BYTES: usize = 32 << 20;

/// The event does not end.
#[derive(Debug, PartialEq, Eq)]
pub struct EventTooLarge;

/// An event with all its fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SseEvent {
    /// Its type; empty stands for `message`.
    pub name: String,
    /// None: the event only carries an id or a wait.
    pub data: Option<String>,
    /// Where a stream that broke off goes on.
    pub id: Option<String>,
    /// Milliseconds to wait before the stream is opened again.
    pub retry_ms: Option<u64>,
}

/// Turns chunks of bytes into events.
#[derive(Debug)]
pub struct SseDecoder {
    buffer: BytesMut,
    /// Bytes at the front of the buffer that hold no line end.
    scanned: usize,
    fields: Fields,
    skip_lf: bool,
    most: usize,
}

impl Default for SseDecoder {
    fn default() -> Self {
        Self::with_limit(MAX_EVENT_BYTES)
    }
}

impl SseDecoder {
    /// A decoder that refuses events of more than `most` bytes.
    pub fn with_limit(most: usize) -> Self {
        Self {
            buffer: BytesMut::new(),
            scanned: 0,
            fields: Fields::default(),
            skip_lf: false,
            most,
        }
    }

    /// Takes a chunk.
    pub fn push(&mut self, chunk: &[u8]) -> Result<(), EventTooLarge> {
        self.buffer.extend_from_slice(chunk);
        if self.buffer.len() + self.fields.data.len() > self.most + chunk.len() {
            return Err(EventTooLarge);
        }
        Ok(())
    }

    /// The data of the next whole event. Events without data are skipped.
    pub fn next_event(&mut self) -> Option<String> {
        loop {
            self.read_block()?;
            let has_data = self.fields.has_data;
            let data = self.fields.take();
            if has_data {
                return Some(data);
            }
        }
    }

    /// The next whole event with all its fields. Events without data, id and wait are skipped.
    pub fn next_with_fields(&mut self) -> Option<SseEvent> {
        loop {
            self.read_block()?;
            let event = self.fields.take_all();
            if event.data.is_some() || event.id.is_some() || event.retry_ms.is_some() {
                return Some(event);
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

    /// Reads fields up to the blank line that ends an event; none while it is not whole.
    fn read_block(&mut self) -> Option<()> {
        loop {
            let end = self.line_end()?;
            let is_blank = end == 0;
            if !is_blank {
                self.fields.read(&self.buffer[..end]);
            }
            self.consume(end);
            if is_blank {
                return Some(());
            }
        }
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
    name: Vec<u8>,
    id: Option<Vec<u8>>,
    retry_ms: Option<u64>,
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
        let (name, value) = match memchr(b':', line) {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &line[line.len()..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"data" => self.add_data(value),
            b"event" => {
                self.name.clear();
                self.name.extend_from_slice(value);
            }
            b"id" if !value.contains(&0) => self.id = Some(value.to_vec()),
            b"retry" => self.retry_ms = milliseconds(value).or(self.retry_ms),
            _ => {}
        }
    }

    fn add_data(&mut self, value: &[u8]) {
        if self.has_data {
            self.data.push(b'\n');
        }
        self.data.extend_from_slice(value);
        self.has_data = true;
    }

    /// The data alone.
    fn take(&mut self) -> String {
        self.has_data = false;
        self.name.clear();
        self.id = None;
        self.retry_ms = None;
        text(std::mem::take(&mut self.data))
    }

    fn take_all(&mut self) -> SseEvent {
        let (name, id) = (std::mem::take(&mut self.name), self.id.take());
        let (has_data, retry_ms) = (self.has_data, self.retry_ms);
        let data = self.take();
        SseEvent {
            name: text(name),
            data: has_data.then_some(data),
            id: id.map(text),
            retry_ms,
        }
    }
}

/// Digits alone, as the format wants.
fn milliseconds(value: &[u8]) -> Option<u64> {
    let digits = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    let value = std::str::from_utf8(value).ok()?;
    // What does not fit is longer than anybody waits.
    digits.then(|| value.parse().unwrap_or(u64::MAX))
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
    fn fields_are_read_and_belong_to_their_event_alone() {
        let stream = "event: endpoint\nid: 7\nretry: 500\ndata: a\n\nid: 8\n\nevent: ping\n\nretry: 1x\ndata:b\n\n";
        for size in [1, 7, stream.len()] {
            let mut decoder = SseDecoder::default();
            let mut events = Vec::new();
            for chunk in stream.as_bytes().chunks(size) {
                decoder.push(chunk).unwrap();
                events.extend(std::iter::from_fn(|| decoder.next_with_fields()));
            }
            let [first, second, third] = events.as_slice() else {
                panic!("{events:?}");
            };
            assert_eq!(
                (first.name.as_str(), first.data.as_deref()),
                ("endpoint", Some("a"))
            );
            assert_eq!(
                (first.id.as_deref(), first.retry_ms),
                (Some("7"), Some(500))
            );
            assert_eq!(
                (second.data.as_deref(), second.id.as_deref()),
                (None, Some("8"))
            );
            assert_eq!(
                (third.name.as_str(), third.data.as_deref()),
                ("", Some("b"))
            );
            assert_eq!((third.id.as_deref(), third.retry_ms), (None, None));
        }
    }

    #[test]
    fn an_id_with_a_null_is_ignored_and_a_wait_beyond_measure_is_kept() {
        let mut decoder = SseDecoder::default();
        decoder
            .push(b"id: a\0b\nretry: 99999999999999999999\n\n")
            .unwrap();
        let event = decoder.next_with_fields().unwrap();
        assert_eq!((event.id, event.retry_ms), (None, Some(u64::MAX)));
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
