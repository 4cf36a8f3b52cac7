//! A session whose folder is open: its transcripts, read as far as they are whole.

use std::sync::{Arc, MutexGuard};

use super::super::{Damage, IndexRow, Loaded, Placed, SessionRow};
use super::content::Content;
use super::document;
use super::files::{Files, Known};
use super::meta::Meta;
use super::side;
use super::transcript::{Tail, Transcript};
use super::{DOCUMENT, ENTRIES, ENTRIES_STEM, LINES, SUB};
use crate::error::{ErrorKind, KernelError, Result};
use crate::store::disk::{Folder, Lock, failed, file_name};

/// An open session. Without the lock it is only looked at.
pub struct Opened<'a> {
    pub files: &'a Files,
    pub folder: Folder,
    pub meta: Meta,
    pub project: &'a str,
    pub session: &'a str,
    known: MutexGuard<'a, Known>,
    lock: Option<Lock>,
}

/// Where a transcript is.
pub struct Spot {
    pub folder: Folder,
    pub name: String,
    /// The name without its ending.
    pub stem: String,
}

impl<'a> Opened<'a> {
    pub fn new(
        files: &'a Files,
        folder: Folder,
        lock: Option<Lock>,
        known: MutexGuard<'a, Known>,
        (project, session): (&'a str, &'a str),
    ) -> Result<Self> {
        let meta = Meta::read(&folder, project, session)?;
        Ok(Self {
            files,
            folder,
            meta,
            project,
            session,
            known,
            lock,
        })
    }

    /// Where a transcript is; none when the folder for it is not there.
    pub fn spot(&self, subpath: Option<&str>) -> Result<Option<Spot>> {
        let Some(subpath) = subpath else {
            return Ok(Some(Spot::main(self.folder.again()?)));
        };
        let folder = self.folder.folder(SUB)?;
        Ok(folder.map(|folder| Spot::sub(folder, subpath)))
    }

    /// Where a transcript is to be.
    pub fn make_spot(&self, subpath: Option<&str>) -> Result<Spot> {
        match subpath {
            None => Ok(Spot::main(self.folder.again()?)),
            Some(subpath) => {
                let folder = self.files.make_in(&self.folder, SUB)?;
                Ok(Spot::sub(folder, subpath))
            }
        }
    }

    /// Reads what is new of a transcript; none when it was never written.
    pub fn transcript(
        &mut self,
        subpath: Option<&Arc<str>>,
    ) -> Result<Option<(Content, &mut Transcript)>> {
        let Some(spot) = self.spot(subpath.map(AsRef::as_ref))? else {
            return Ok(None);
        };
        let Some(content) = content_of(&spot)? else {
            self.known.remove(&subpath.cloned());
            return Ok(None);
        };
        let transcript = self.known.entry(subpath.cloned()).or_default();
        if transcript.refresh(&content)? == Tail::Damaged {
            settle(
                self.files,
                &self.folder,
                &mut self.lock,
                &spot,
                &content,
                transcript,
            )?;
        }
        if transcript.subpath.as_deref() != subpath.map(AsRef::as_ref) && transcript.end > 0 {
            return Err(KernelError::new(
                ErrorKind::SessionIdConflict,
                "the place of the transcript is taken by one whose sub-path differs",
            ));
        }
        let is_empty = transcript.count() == 0 && transcript.damaged == 0;
        if is_empty && transcript.unsettled(&content)?.is_none() {
            return Ok(None);
        }
        Ok(Some((content, transcript)))
    }

    /// What is known of a transcript that was read before.
    pub fn known(&mut self, subpath: Option<&Arc<str>>) -> &mut Transcript {
        self.known.entry(subpath.cloned()).or_default()
    }

    pub fn forget(&mut self) {
        self.known.clear();
    }

    pub fn load(
        &mut self,
        subpath: Option<&Arc<str>>,
        after: Option<u64>,
    ) -> Result<Option<Loaded>> {
        let of_meta = self
            .meta
            .damage()
            .filter(|_| after.is_none() && subpath.is_none());
        let Some((content, transcript)) = self.transcript(subpath)? else {
            let damage = self.report(subpath)?;
            return Ok(damage.map(|damage| Loaded {
                entries: Vec::new(),
                damage: Some(damage),
            }));
        };
        let entries = transcript.after(&content, after)?;
        let mut damages = Vec::new();
        if transcript.damaged > 0 && after.is_none() {
            damages.push(Damage {
                what: "lines of the transcript cannot be read: they were left out".to_owned(),
                lost: transcript.damaged,
            });
        }
        if let Some(unsettled) = transcript.unsettled(&content)? {
            damages.push(Damage {
                what: "the end of the transcript cannot be read: it was left out".to_owned(),
                lost: unsettled,
            });
        }
        damages.extend(of_meta.map(|what| Damage {
            what: what.to_owned(),
            lost: 0,
        }));
        damages.extend(self.report(subpath)?);
        Ok(Some(Loaded {
            entries,
            damage: join(damages),
        }))
    }

    /// Tells once of what was cut off.
    fn report(&mut self, subpath: Option<&Arc<str>>) -> Result<Option<Damage>> {
        let Some(spot) = self.spot(subpath.map(AsRef::as_ref))? else {
            return Ok(None);
        };
        if !side::has_unreported(&spot.folder, &spot.stem)? {
            return Ok(None);
        }
        if self.lock.is_none() {
            self.lock = Files::lock(&self.folder)?;
        }
        side::report(&spot.folder, &spot.stem)
    }

    pub fn tail(&mut self, subpath: Option<&Arc<str>>, count: usize) -> Result<Vec<Placed>> {
        match self.transcript(subpath)? {
            Some((content, transcript)) => transcript.tail(&content, count),
            None => Ok(Vec::new()),
        }
    }

    /// Messages below a sequence, newest first.
    pub fn index(&mut self, before: Option<u64>, limit: usize) -> Result<Vec<IndexRow>> {
        let hidden_through = self.meta.hidden_through();
        let Some((_, transcript)) = self.transcript(None)? else {
            return Ok(Vec::new());
        };
        let index = &transcript.index;
        let end = before.map_or(index.len(), |before| {
            index.partition_point(|row| row.seq < before)
        });
        let rows = index[..end].iter().rev();
        let shown = rows.take_while(|row| row.seq > hidden_through);
        Ok(shown.take(limit).cloned().collect())
    }

    /// The row of the session; none when it was neither registered nor written.
    pub fn row(&mut self) -> Result<Option<SessionRow>> {
        let read = self.transcript(None)?;
        let read = read.map(|(content, transcript)| (transcript.summary.clone(), content));
        if read.is_none() && !self.meta.is_registered() {
            return Ok(None);
        }
        if let Some((_, Content::Memory(..))) = &read
            && let Some(document) =
                document::parse(&self.folder.read(DOCUMENT)?.unwrap_or_default())
        {
            self.meta.adopt(&document.metadata);
        }
        let mut row = self.meta.row(self.session);
        let written = match read {
            Some((summary, content)) => {
                row.summary = summary;
                content.written_ms()?
            }
            None => None,
        };
        complete(&mut row, written);
        Ok(Some(row))
    }

    /// The sub-paths that have a transcript.
    pub fn subkeys(&mut self) -> Result<Vec<String>> {
        let Some(folder) = self.folder.folder(SUB)? else {
            return Ok(Vec::new());
        };
        let mut subkeys = Vec::new();
        for name in folder.names()? {
            if name.ends_with(LINES)
                && let Some(file) = folder.read_file(&name)?
                && let Some(subpath) = super::line::first_subpath(file)
                && Spot::sub(folder.again()?, &subpath).name == name
            {
                subkeys.push(subpath);
            }
        }
        subkeys.sort();
        Ok(subkeys)
    }
}

/// The lines of a transcript; those of a session that only has a document are made from it.
fn content_of(spot: &Spot) -> Result<Option<Content>> {
    if let Some(file) = spot.folder.read_file(&spot.name)? {
        return Ok(Some(Content::File(file)));
    }
    if spot.name != ENTRIES {
        return Ok(None);
    }
    let Some(id) = spot.folder.look(DOCUMENT)? else {
        return Ok(None);
    };
    let text = spot.folder.read(DOCUMENT)?.unwrap_or_default();
    let lines = document::lines_of(&text)?;
    Ok(Some(Content::Memory(lines, id)))
}

impl Spot {
    pub fn main(folder: Folder) -> Self {
        Self {
            folder,
            name: ENTRIES.to_owned(),
            stem: ENTRIES_STEM.to_owned(),
        }
    }

    fn sub(folder: Folder, subpath: &str) -> Self {
        let stem = file_name(subpath);
        Self {
            folder,
            name: format!("{stem}{LINES}"),
            stem,
        }
    }
}

/// Times of a row from those of its transcript.
pub fn complete(row: &mut SessionRow, written: Option<u64>) {
    row.updated_at = row.updated_at.max(written.unwrap_or_default());
    if row.created_at == 0 {
        let created = row
            .summary
            .0
            .get("createdAt")
            .and_then(crate::protocol::Json::as_u64);
        row.created_at = created.unwrap_or(row.updated_at);
    }
}

/// Cuts off an end that is no line, if nobody is writing it just now. Where that is not possible the
/// good part is read all the same.
fn settle(
    files: &Files,
    folder: &Folder,
    lock: &mut Option<Lock>,
    spot: &Spot,
    content: &Content,
    transcript: &mut Transcript,
) -> Result<()> {
    let is_writer = lock.is_some();
    if !is_writer {
        match Files::lock(folder) {
            Ok(taken) => *lock = taken,
            Err(error) if error.kind() == ErrorKind::SessionLocked => return Err(error),
            Err(_) => return Ok(()),
        }
        if transcript.refresh(content)? == Tail::Nothing {
            return Ok(());
        }
    }
    match cut(files, spot, content, transcript) {
        Err(error) if is_writer => Err(error),
        _ => Ok(()),
    }
}

/// Keeps the damaged end beside the transcript and takes it off.
fn cut(files: &Files, spot: &Spot, content: &Content, transcript: &mut Transcript) -> Result<()> {
    let id = content.id()?;
    let Some(file) = spot.folder.change_file(&spot.name)? else {
        return Ok(());
    };
    let damaged = content.bytes(transcript.end, id.length - transcript.end)?;
    side::keep_cut(&spot.folder, &spot.stem, &damaged, files.is_synced())?;
    let changed = file.metadata().and_then(|facts| facts.modified());
    let cut = file
        .set_len(transcript.end)
        .and_then(|()| file.set_modified(changed?));
    cut.map_err(|error| failed("cut a damaged transcript", error))?;
    transcript.skipped += side::count_lines(&damaged);
    transcript.remember(content, content.id()?)
}

fn join(damages: Vec<Damage>) -> Option<Damage> {
    damages.into_iter().reduce(|mut all, one| {
        all.what = format!("{}; {}", all.what, one.what);
        all.lost += one.lost;
        all
    })
}
