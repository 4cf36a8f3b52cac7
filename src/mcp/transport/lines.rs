//! Splitting a stream of bytes into lines, with a limit on what one line may take in memory.

use bytes::{Buf, BytesMut};

/// Longest line that is kept.
pub const LONGEST: usize = 64 * 1024 * 1024;
/// Bytes kept of each end of a longer one.
const ENDS: usize = 4 * 1024;
/// Room for one read.
const READ: usize = 64 * 1024;
/// A buffer that held more is let go.
const LARGE: usize = 1024 * 1024;

/// Lines as they become complete.
#[derive(Debug)]
pub struct Lines {
    buffer: BytesMut,
    /// How much of the buffer is known to have no line end.
    searched: usize,
    skipping: Option<Skipped>,
    longest: usize,
}

/// A line without its end.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    Whole(BytesMut),
    Skipped(Skipped),
}

/// What is left of a line that was too long.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    pub head: Vec<u8>,
    pub tail: Vec<u8>,
    pub length: usize,
}

impl Lines {
    pub fn new(longest: usize) -> Self {
        Self {
            buffer: BytesMut::new(),
            searched: 0,
            skipping: None,
            longest,
        }
    }

    /// Where to read to.
    pub fn room(&mut self) -> &mut BytesMut {
        self.buffer.reserve(READ);
        &mut self.buffer
    }

    /// The next complete line.
    pub fn next(&mut self) -> Option<Line> {
        if self.skipping.is_some() {
            return self.skip();
        }
        let Some(at) = memchr::memchr(b'\n', &self.buffer[self.searched..]) else {
            self.searched = self.buffer.len();
            if self.searched > self.longest {
                self.skipping = Some(Skipped::default());
                self.skip();
                self.buffer = BytesMut::new();
            }
            return None;
        };
        let line = self.buffer.split_to(self.searched + at);
        self.buffer.advance(1);
        self.searched = 0;
        if line.len() > LARGE {
            // Otherwise what follows would hold on to all of it.
            self.buffer = BytesMut::from(&self.buffer[..]);
        }
        Some(Line::Whole(line))
    }

    /// What follows the last line end, once nothing more comes.
    pub fn rest(&mut self) -> Option<Line> {
        if let Some(skipped) = self.skipping.take() {
            return Some(Line::Skipped(skipped));
        }
        let rest = self.buffer.split();
        self.searched = 0;
        (!rest.is_empty()).then_some(Line::Whole(rest))
    }

    fn skip(&mut self) -> Option<Line> {
        let end = memchr::memchr(b'\n', &self.buffer);
        let skipped = self.skipping.get_or_insert_default();
        skipped.take(&self.buffer[..end.unwrap_or(self.buffer.len())]);
        self.searched = 0;
        match end {
            None => {
                self.buffer.clear();
                None
            }
            Some(at) => {
                self.buffer.advance(at + 1);
                self.skipping.take().map(Line::Skipped)
            }
        }
    }
}

impl Skipped {
    fn take(&mut self, bytes: &[u8]) {
        self.length += bytes.len();
        let missing = ENDS.saturating_sub(self.head.len()).min(bytes.len());
        self.head.extend_from_slice(&bytes[..missing]);
        self.tail
            .extend_from_slice(&bytes[bytes.len().saturating_sub(ENDS)..]);
        let excess = self.tail.len().saturating_sub(ENDS);
        self.tail.drain(..excess);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feed(lines: &mut Lines, bytes: &[u8]) -> Vec<Line> {
        lines.room().extend_from_slice(bytes);
        std::iter::from_fn(|| lines.next()).collect()
    }

    fn whole(text: &str) -> Line {
        Line::Whole(BytesMut::from(text))
    }

    #[test]
    fn lines_are_put_together_from_pieces() {
        let mut lines = Lines::new(100);
        assert_eq!(feed(&mut lines, b"ab"), []);
        assert_eq!(
            feed(&mut lines, b"c\n\nd\ne"),
            [whole("abc"), whole(""), whole("d")]
        );
        assert_eq!(lines.rest(), Some(whole("e")));
        assert_eq!(lines.rest(), None);
    }

    #[test]
    fn a_line_that_is_too_long_leaves_only_its_ends() {
        let mut lines = Lines::new(10_000);
        let mut found = Vec::new();
        found.extend(feed(&mut lines, b"first\nhead"));
        for _ in 0..1_000 {
            found.extend(feed(&mut lines, &[b'x'; 1_000]));
            assert!(lines.buffer.len() <= 12_000);
        }
        found.extend(feed(&mut lines, b"tail\nnext\n"));
        let Ok([first, Line::Skipped(skipped), next]) = <[Line; 3]>::try_from(found) else {
            panic!("three lines, the second skipped");
        };
        assert_eq!((first, next), (whole("first"), whole("next")));
        assert!(skipped.head.starts_with(b"headxxx") && skipped.head.len() == ENDS);
        assert!(skipped.tail.ends_with(b"xxxtail") && skipped.tail.len() == ENDS);
        assert_eq!(skipped.length, 1_000_008);
    }
}
