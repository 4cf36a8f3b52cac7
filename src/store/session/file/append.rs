//! Writing to a transcript: whole lines at its end, under the lock of the session.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use super::content::Content;
use super::files::Slot;
use super::opened::{Opened, Spot};
use super::transcript::Transcript;
use super::{document, fence, line};
use crate::base::crash::crash_point;
use crate::base::telemetry;
use crate::error::Result;
use crate::protocol::StoredEntry;
use crate::store::disk::{FileId, failed};

/// What a write did, and what has to be synced for it to last.
pub struct Written {
    /// Sequence of the newest entry.
    pub last: u64,
    pending: Option<Pending>,
}

struct Pending {
    subpath: Option<Arc<str>>,
    file: File,
    /// The file as it was when the lock was held.
    id: FileId,
}

impl Opened<'_> {
    /// Appends entries that the transcript does not have.
    pub fn append(
        &mut self,
        subpath: Option<&Arc<str>>,
        entries: &[StoredEntry],
        epoch: Option<u64>,
    ) -> Result<Written> {
        fence::check(&self.folder, epoch)?;
        if subpath.is_none() {
            self.convert()?;
        }
        self.transcript(subpath)?;
        let now = self.files.clock.now_ms();
        let lines = new_lines(self.known(subpath), subpath, entries, now)?;
        if !lines.is_empty() {
            self.prepare_meta(subpath.is_none(), now)?;
        }
        let pending = self.write_lines(subpath, &lines, Some(now))?;
        if subpath.is_none() {
            self.keep_summary();
        }
        let last = self.known(subpath).last_seq;
        Ok(Written { last, pending })
    }

    /// Puts an entry in the place of the one with its uuid; none when there is none.
    pub fn replace(
        &mut self,
        subpath: Option<&Arc<str>>,
        entry: &StoredEntry,
    ) -> Result<Option<Written>> {
        let Some((_, transcript)) = self.transcript(subpath)? else {
            return Ok(None);
        };
        let seq = entry
            .uuid
            .as_deref()
            .and_then(|uuid| transcript.seq_of(uuid));
        let (Some(seq), last) = (seq, transcript.last_seq) else {
            return Ok(None);
        };
        if subpath.is_none() {
            self.convert()?;
            self.transcript(subpath)?;
        }
        let mut lines = first_bytes(self.known(subpath));
        line::write(&mut lines, seq, entry, self.files.clock.now_ms())?;
        let pending = self.write_lines(subpath, &lines, None)?;
        Ok(Some(Written { last, pending }))
    }

    /// Makes the lines of a session that only has a document; the document stays.
    pub fn convert(&mut self) -> Result<()> {
        let spot = Spot::main(self.folder.again()?);
        if spot.folder.look(&spot.name)?.is_some() {
            return Ok(());
        }
        let Some(text) = self.folder.read(super::DOCUMENT)? else {
            return Ok(());
        };
        let Some(document) = document::parse(&text) else {
            return Ok(());
        };
        let lines = document::lines(&document)?;
        self.meta.adopt(&document.metadata);
        self.prepare_meta(true, self.files.clock.now_ms())?;
        self.folder
            .write(&spot.name, &lines, self.files.is_synced())
    }

    /// Before the first line: a folder whose name is a digest tells its id nowhere else.
    pub fn prepare_meta(&mut self, is_main: bool, now: u64) -> Result<()> {
        let is_new = !self.meta.exists();
        let is_undated = is_main && self.meta.created_at().is_none();
        if is_new {
            self.meta.name(self.project, self.session);
        }
        if is_undated {
            self.meta.create(now);
        }
        if is_new || is_undated {
            self.meta.write(&self.folder, self.files.is_synced())?;
        }
        Ok(())
    }

    /// Writes lines to the end of a transcript. `stamp` becomes the time of its last change.
    fn write_lines(
        &mut self,
        subpath: Option<&Arc<str>>,
        lines: &[u8],
        stamp: Option<u64>,
    ) -> Result<Option<Pending>> {
        let spot = self.make_spot(subpath.map(AsRef::as_ref))?;
        let sync = self.files.is_synced();
        if lines.is_empty() && !sync {
            return Ok(None);
        }
        let file = spot.folder.append_file(&spot.name)?;
        if !lines.is_empty() {
            let is_new = self.known(subpath).end == 0;
            write_or_cut(&file, lines, self.known(subpath).end, stamp)?;
            crash_point!("file.append.written");
            self.known(subpath).take_written(lines);
            if is_new && sync {
                spot.folder.sync()?;
            }
        }
        let content = Content::File(file);
        let id = content.id()?;
        self.known(subpath).remember(&content, id)?;
        let Content::File(file) = content else {
            return Ok(None);
        };
        let subpath = subpath.cloned();
        Ok(sync.then_some(Pending { subpath, file, id }))
    }

    /// Writes the summary when entries changed it. The entries are stored by now: a failure makes no
    /// difference to them, and the next append tries again.
    fn keep_summary(&mut self) {
        let summary = self.known(None).summary.clone();
        if summary == self.meta.summary() || !self.meta.exists() {
            return;
        }
        self.meta.set_summary(&summary);
        if let Err(error) = self.meta.write(&self.folder, self.files.is_synced()) {
            tracing::warn!(target: telemetry::SESSION, code = error.code(), "summary was not written");
        }
    }
}

impl Slot {
    /// Waits until a write survives the end of the machine, where that is asked for. Writers that wait
    /// at the same time share one sync.
    pub fn finish(&self, written: Written) -> Result<u64> {
        if let Some(Pending { subpath, file, id }) = written.pending {
            self.note_written(subpath.clone(), id);
            let mut synced = self.synced();
            let is_synced = synced
                .get(&subpath)
                .is_some_and(|synced| synced.is_same_file(&id) && synced.length >= id.length);
            if !is_synced {
                let reached = self.written(subpath.as_ref()).unwrap_or(id);
                let done = file.sync_data();
                done.map_err(|error| failed("sync a transcript", error))?;
                synced.insert(subpath, reached);
            }
            drop(synced);
            crash_point!("file.append.synced");
        }
        Ok(written.last)
    }
}

/// What must stand in front of the next line.
fn first_bytes(transcript: &Transcript) -> Vec<u8> {
    if transcript.is_unended() {
        b"\n".to_vec()
    } else {
        Vec::new()
    }
}

/// The lines of those entries that a transcript does not have.
fn new_lines(
    transcript: &Transcript,
    subpath: Option<&Arc<str>>,
    entries: &[StoredEntry],
    now: u64,
) -> Result<Vec<u8>> {
    let mut lines = first_bytes(transcript);
    if let Some(subpath) = subpath
        && transcript.end == 0
    {
        line::write_sub(&mut lines, subpath)?;
    }
    let begin = lines.len();
    let mut seq = transcript.last_seq + transcript.skipped;
    let mut uuids = HashSet::new();
    for entry in entries {
        let uuid = entry.uuid.as_deref();
        if uuid.is_some_and(|uuid| transcript.has(uuid) || !uuids.insert(uuid)) {
            continue;
        }
        seq += 1;
        line::write(&mut lines, seq, entry, now)?;
    }
    if lines.len() == begin {
        lines.clear();
    }
    Ok(lines)
}

/// Writes at the end of a file, or leaves it as long as it was.
fn write_or_cut(file: &File, lines: &[u8], end: u64, stamp: Option<u64>) -> Result<()> {
    let changed = match stamp {
        Some(ms) => Ok(UNIX_EPOCH + Duration::from_millis(ms)),
        None => file.metadata().and_then(|facts| facts.modified()),
    };
    let written = write_whole(file, lines).and_then(|()| file.set_modified(changed?));
    if let Err(error) = written {
        let cut = file.set_len(end);
        tracing::warn!(target: telemetry::SESSION, is_cut = cut.is_ok(), "an append failed");
        return Err(failed("write to a transcript", error));
    }
    Ok(())
}

fn write_whole(mut file: &File, lines: &[u8]) -> io::Result<()> {
    crash_point!("file.append.begun");
    #[cfg(feature = "crash-points")]
    let lines = {
        let (begin, rest) = lines.split_at(lines.len() / 2);
        file.write_all(begin)?;
        crash_point!("file.append.torn");
        rest
    };
    file.write_all(lines)
}
