//! The folders of sessions: found, made, locked, and what is remembered of them.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::super::Durability;
use super::opened::Opened;
use super::transcript::Transcript;
use super::{DOCUMENT, ENTRIES};
use crate::base::clock::SharedClock;
use crate::error::{ErrorKind, KernelError, Result};
use crate::store::disk::{FileId, Folder, Lock, file_name};

pub const LOCK: &str = ".lock";
/// Sessions that are remembered at most, unless more are in use.
const REMEMBERED: usize = 256;
/// How often a session that others keep deleting is looked for again.
const ATTEMPTS: usize = 32;

/// Transcripts of a session by sub-path.
pub type Known = HashMap<Option<Arc<str>>, Transcript>;

/// Everything that the driver does, without being async.
pub struct Files {
    pub root: PathBuf,
    pub durability: Durability,
    pub clock: SharedClock,
    /// Largest transcript that the operations with string ids read, in bytes.
    pub max_bytes: u64,
    slots: Mutex<Slots>,
}

#[derive(Default)]
struct Slots {
    by_session: HashMap<(String, String), (Arc<Slot>, u64)>,
    uses: u64,
}

/// What is remembered of a session.
#[derive(Default)]
pub struct Slot {
    known: Mutex<Known>,
    /// How far files were written.
    written: Mutex<Reached>,
    /// How far files were synced. Held while a file is.
    synced: Mutex<Reached>,
}

/// Files by sub-path, as they were.
type Reached = HashMap<Option<Arc<str>>, FileId>;

impl Slot {
    fn known(&self) -> MutexGuard<'_, Known> {
        // A transcript that a panic left half-read is read again.
        self.known.lock().unwrap_or_else(|poisoned| {
            let mut known = poisoned.into_inner();
            known.clear();
            known
        })
    }
}

impl Slot {
    /// Remembers how far a file was written.
    pub fn note_written(&self, subpath: Option<Arc<str>>, id: FileId) {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        let before = written.entry(subpath).or_insert(id);
        if !before.is_same_file(&id) || before.length < id.length {
            *before = id;
        }
    }

    /// How far a file was written.
    pub fn written(&self, subpath: Option<&Arc<str>>) -> Option<FileId> {
        let written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        written.get(&subpath.cloned()).copied()
    }

    pub fn synced(&self) -> MutexGuard<'_, Reached> {
        self.synced.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Files {
    pub fn new(root: PathBuf, durability: Durability, clock: SharedClock, max_bytes: u64) -> Self {
        Self {
            root,
            durability,
            clock,
            max_bytes,
            slots: Mutex::default(),
        }
    }

    pub fn is_synced(&self) -> bool {
        self.durability == Durability::Fsync
    }

    pub fn slot(&self, project: &str, session: &str) -> Arc<Slot> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        slots.uses += 1;
        let now = slots.uses;
        let id = (project.to_owned(), session.to_owned());
        let (slot, used) = slots.by_session.entry(id).or_default();
        *used = now;
        let slot = slot.clone();
        slots.forget_oldest();
        slot
    }

    /// Looks at a session; the default of `T` when it has no folder.
    pub fn look<T: Default>(
        &self,
        project: &str,
        session: &str,
        look: impl FnOnce(&mut Opened) -> Result<T>,
    ) -> Result<T> {
        let slot = self.slot(project, session);
        let known = slot.known();
        let Some(folder) = self.find(project, session)? else {
            return Ok(T::default());
        };
        look(&mut Opened::new(
            self,
            folder,
            None,
            known,
            (project, session),
        )?)
    }

    /// Changes a session under its lock, and makes it when there is none.
    pub fn change<T>(
        &self,
        project: &str,
        session: &str,
        change: impl FnOnce(&mut Opened) -> Result<T>,
    ) -> Result<T> {
        let slot = self.slot(project, session);
        let known = slot.known();
        for _ in 0..ATTEMPTS {
            let folder = match self.find(project, session)? {
                Some(folder) => folder,
                None => self.make(project, session)?,
            };
            if let Some(lock) = folder.lock(LOCK)? {
                let of = (project, session);
                return change(&mut Opened::new(self, folder, Some(lock), known, of)?);
            }
        }
        Err(KernelError::new(
            ErrorKind::SessionLocked,
            "the session is being deleted by another process: try again",
        ))
    }

    /// Changes a session under its lock; the default of `T` when there is none.
    pub fn change_existing<T: Default>(
        &self,
        project: &str,
        session: &str,
        change: impl FnOnce(&mut Opened) -> Result<T>,
    ) -> Result<T> {
        let slot = self.slot(project, session);
        let known = slot.known();
        while let Some(folder) = self.find(project, session)? {
            if let Some(lock) = folder.lock(LOCK)? {
                let of = (project, session);
                return change(&mut Opened::new(self, folder, Some(lock), known, of)?);
            }
        }
        Ok(T::default())
    }

    /// The lock of a folder that is open.
    pub fn lock(folder: &Folder) -> Result<Option<Lock>> {
        folder.lock(LOCK)
    }

    /// The folder of a session. A session that was written under its id alone is found by a key too.
    fn find(&self, project: &str, session: &str) -> Result<Option<Folder>> {
        let Some(root) = Folder::root(&self.root)? else {
            return Ok(None);
        };
        let name = file_name(session);
        if !project.is_empty() {
            let of_project = root.folder(&file_name(project))?;
            let found = of_project.map(|of_project| of_project.folder(&name));
            if let Some(found) = found.transpose()?.flatten() {
                return Ok(Some(found));
            }
        }
        let Some(alone) = root.folder(&name)? else {
            return Ok(None);
        };
        let is_used = project.is_empty() || has_transcript(&alone)?;
        Ok(is_used.then_some(alone))
    }

    fn make(&self, project: &str, session: &str) -> Result<Folder> {
        let mut folder = Folder::make_root(&self.root)?;
        if !project.is_empty() {
            folder = self.make_in(&folder, &file_name(project))?;
        }
        self.make_in(&folder, &file_name(session))
    }

    /// A folder in another one, made when there is none.
    pub fn make_in(&self, parent: &Folder, name: &str) -> Result<Folder> {
        if let Some(folder) = parent.folder(name)? {
            return Ok(folder);
        }
        let folder = parent.make_folder(name)?;
        if self.is_synced() {
            parent.sync()?;
        }
        Ok(folder)
    }

    /// The folders of a project's sessions, with the names of the folders.
    pub fn all(&self, project: &str) -> Result<Vec<(String, Folder)>> {
        let Some(mut parent) = Folder::root(&self.root)? else {
            return Ok(Vec::new());
        };
        if !project.is_empty() {
            let Some(of_project) = parent.folder(&file_name(project))? else {
                return Ok(Vec::new());
            };
            parent = of_project;
        }
        let mut found = Vec::new();
        for name in parent.names()? {
            // What is no folder of ours is no session.
            if !name.starts_with('.')
                && name != super::SUB
                && let Ok(Some(folder)) = parent.folder(&name)
            {
                found.push((name, folder));
            }
        }
        Ok(found)
    }

    /// Removes the folder of a session that holds nothing any more.
    pub fn remove_folder(&self, project: &str, session: &str) -> Result<()> {
        let Some(root) = Folder::root(&self.root)? else {
            return Ok(());
        };
        let name = file_name(session);
        if project.is_empty() {
            return root.remove_folder(&name);
        }
        let of_project = file_name(project);
        match root.folder(&of_project)? {
            Some(folder) => {
                folder.remove_folder(&name)?;
                root.remove_folder(&of_project)
            }
            None => root.remove_folder(&name),
        }
    }
}

impl Slots {
    fn forget_oldest(&mut self) {
        if self.by_session.len() <= REMEMBERED {
            return;
        }
        let unused = self
            .by_session
            .iter()
            .filter(|(_, (slot, _))| Arc::strong_count(slot) == 1);
        let oldest = unused
            .min_by_key(|(_, (_, used))| *used)
            .map(|(id, _)| id.clone());
        if let Some(oldest) = oldest {
            self.by_session.remove(&oldest);
        }
    }
}

fn has_transcript(folder: &Folder) -> Result<bool> {
    Ok(folder.look(ENTRIES)?.is_some() || folder.look(DOCUMENT)?.is_some())
}
