//! What is remembered of a transcript file, so that neither an append nor a look reads it again.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::super::{IndexRow, Placed, Summary, fold};
use super::content::Content;
use super::line::{self, EntryLine, Line};
use super::side;
use crate::error::{ErrorKind, KernelError, Result};
use crate::protocol::StoredEntry;
use crate::store::disk::{FileId, failed};

/// Longest piece that is read at once, in bytes, unless one line is longer.
const PIECE: u64 = 4 << 20;
/// Bytes at the end of the known part by which it is recognised.
const MARK: u64 = 128;

/// A transcript as far as its file was read.
#[derive(Default)]
pub struct Transcript {
    file: FileId,
    mark: Vec<u8>,
    /// Where the last good line ends.
    pub end: u64,
    pub last_seq: u64,
    /// Damaged lines with good ones behind them.
    pub damaged: u64,
    /// Sequences that damaged lines may have had.
    pub skipped: u64,
    places: Vec<Place>,
    by_uuid: HashMap<String, usize>,
    by_message: HashMap<String, Vec<usize>>,
    pub index: Vec<IndexRow>,
    pub summary: Summary,
    /// The first line of the file of a sub-path.
    pub subpath: Option<String>,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    seq: u64,
    offset: u64,
    length: u64,
}

/// What stands behind the last good line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tail {
    Nothing,
    /// Something that is no line.
    Damaged,
}

impl Transcript {
    /// Reads what is new in the file, or all of it when it is another file.
    pub fn refresh(&mut self, content: &Content) -> Result<Tail> {
        let now = content.id()?;
        if now == self.file && self.end == now.length {
            return Ok(Tail::Nothing);
        }
        if !self.is_continued_by(content, &now)? {
            *self = Self::default();
        }
        let tail = self.scan(content)?;
        self.remember(content, now)?;
        Ok(tail)
    }

    /// Whether the known part is still the beginning of the file.
    fn is_continued_by(&self, content: &Content, now: &FileId) -> Result<bool> {
        let is_longer = now.length > self.file.length || self.end < self.file.length;
        let could_be = now.is_same_file(&self.file) && is_longer && now.length >= self.end;
        Ok(could_be
            && content.bytes(self.end - self.mark_length(), self.mark_length())? == self.mark)
    }

    fn mark_length(&self) -> u64 {
        self.end.min(MARK)
    }

    /// Takes the file as it is now for known up to its end.
    pub fn remember(&mut self, content: &Content, now: FileId) -> Result<()> {
        self.file = now;
        self.mark = content.bytes(self.end - self.mark_length(), self.mark_length())?;
        Ok(())
    }

    fn scan(&mut self, content: &Content) -> Result<Tail> {
        let mut lines = content.lines(self.end)?;
        let (mut offset, mut damaged, mut bytes) = (self.end, 0, Vec::new());
        loop {
            bytes.clear();
            let read = lines.read_until(b'\n', &mut bytes);
            let length = read.map_err(|error| failed("read a transcript", error))? as u64;
            if length == 0 {
                return Ok(if damaged > 0 {
                    Tail::Damaged
                } else {
                    Tail::Nothing
                });
            }
            let is_blank = bytes.trim_ascii().is_empty();
            let mut take = || Some(self.take(line::parse(&bytes)?, offset, length));
            if is_blank || take() == Some(true) {
                self.damaged += std::mem::take(&mut damaged);
                self.end = offset + length;
            } else {
                damaged += 1;
            }
            offset += length;
        }
    }

    /// Takes a line in; false when it does not belong where it stands.
    fn take(&mut self, line: Line, offset: u64, length: u64) -> bool {
        match line {
            Line::Sub(subpath) => {
                let is_first = offset == 0;
                self.subpath = self.subpath.take().or(Some(subpath));
                is_first
            }
            Line::Entry(line) if line.seq > self.last_seq => {
                self.push(&line, offset, length);
                fold(&mut self.summary, std::slice::from_ref(&line.entry));
                true
            }
            Line::Entry(line) => self.put_again(&line, offset, length),
        }
    }

    fn push(&mut self, line: &EntryLine, offset: u64, length: u64) {
        let position = self.places.len();
        self.last_seq = line.seq;
        self.skipped = 0;
        self.places.push(Place {
            seq: line.seq,
            offset,
            length,
        });
        if let Some(uuid) = &line.entry.uuid {
            self.by_uuid.entry(uuid.clone()).or_insert(position);
        }
        let Some(message) = &line.entry.message else {
            return;
        };
        let of_message = self.by_message.entry(message.id.clone()).or_default();
        if of_message.is_empty() {
            self.index.push(IndexRow {
                seq: line.seq,
                message_id: message.id.clone(),
                role: message.role,
                created_at: line.created_at(),
            });
        }
        of_message.push(position);
    }

    /// A line with the sequence of an earlier one stands in its place.
    fn put_again(&mut self, line: &EntryLine, offset: u64, length: u64) -> bool {
        let found = self
            .places
            .binary_search_by_key(&line.seq, |place| place.seq);
        let Ok(position) = found else {
            return false;
        };
        let place = &mut self.places[position];
        (place.offset, place.length) = (offset, length);
        true
    }

    /// Takes in lines that were just written behind the known part.
    pub fn take_written(&mut self, lines: &[u8]) {
        for bytes in lines.split_inclusive(|byte| *byte == b'\n') {
            let length = bytes.len() as u64;
            if let Some(line) = line::parse(bytes) {
                self.take(line, self.end, length);
            }
            self.end += length;
        }
    }

    /// Whether the last line is whole but was not ended.
    pub fn is_unended(&self) -> bool {
        self.mark.last().is_some_and(|last| *last != b'\n')
    }

    /// Leaves out sequences up to one that was given before.
    pub fn skip_to(&mut self, seq: u64) {
        self.skipped = self.skipped.max(seq.saturating_sub(self.last_seq));
    }

    /// The number of damaged lines behind the known part; none when there are none.
    pub fn unsettled(&self, content: &Content) -> Result<Option<u64>> {
        let length = self.file.length.saturating_sub(self.end);
        if length == 0 {
            return Ok(None);
        }
        let lines = side::count_lines(&content.bytes(self.end, length)?);
        Ok((lines > 0).then_some(lines))
    }

    pub fn count(&self) -> u64 {
        self.places.len() as u64
    }

    pub fn has(&self, uuid: &str) -> bool {
        self.by_uuid.contains_key(uuid)
    }

    /// The sequence of the entry with a uuid.
    pub fn seq_of(&self, uuid: &str) -> Option<u64> {
        self.by_uuid
            .get(uuid)
            .map(|position| self.places[*position].seq)
    }

    /// Entries behind a sequence, or all.
    pub fn after(&self, content: &Content, after: Option<u64>) -> Result<Vec<Placed>> {
        let start = after.map_or(0, |after| {
            self.places.partition_point(|place| place.seq <= after)
        });
        read(content, &self.places[start..])
    }

    pub fn tail(&self, content: &Content, count: usize) -> Result<Vec<Placed>> {
        read(
            content,
            &self.places[self.places.len().saturating_sub(count)..],
        )
    }

    pub fn of_messages(&self, content: &Content, ids: &[String]) -> Result<Vec<Placed>> {
        let wanted: HashSet<&String> = ids.iter().collect();
        let positions: BTreeSet<usize> = wanted
            .into_iter()
            .filter_map(|id| self.by_message.get(id))
            .flatten()
            .copied()
            .collect();
        let places: Vec<_> = positions.into_iter().map(|at| self.places[at]).collect();
        read(content, &places)
    }
}

/// Reads entries; neighbours in one piece.
fn read(content: &Content, places: &[Place]) -> Result<Vec<Placed>> {
    let mut found = Vec::with_capacity(places.len());
    let mut rest = places;
    while let Some(first) = rest.first() {
        let mut end = first.offset + first.length;
        let mut count = 1;
        while let Some(next) = rest.get(count)
            && next.offset == end
            && end - first.offset < PIECE
        {
            end += next.length;
            count += 1;
        }
        let piece = content.bytes(first.offset, end - first.offset)?;
        let (now, later) = rest.split_at(count);
        for place in now {
            let entry = entry_in(&piece, place.offset - first.offset, place.length)?;
            found.push(Placed {
                seq: place.seq,
                entry,
            });
        }
        rest = later;
    }
    Ok(found)
}

fn entry_in(piece: &[u8], start: u64, length: u64) -> Result<StoredEntry> {
    let bound = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
    let bytes = piece.get(bound(start)..bound(start + length));
    match bytes.and_then(line::parse) {
        Some(Line::Entry(line)) => Ok(line.entry),
        _ => Err(KernelError::new(
            ErrorKind::Store,
            "the transcript was changed by somebody else while it was read: try again",
        )),
    }
}
