//! Transcripts in files: a folder a session, whole lines at the end of a file.
//!
//! `<root>/<project>/<session>/`, without a project `<root>/<session>/`. In it `entries.jsonl`,
//! `sub/<sub-path>.jsonl`, `meta.json`, the document `transcript.json`, and what was damaged and set
//! aside. Several processes may use one folder: writers hold `.lock`, readers see whole lines. An
//! append is one write; a process that is killed in it leaves a beginning of its entries, which the
//! next one cuts back to the last whole line.

#![expect(
    clippy::redundant_closure_for_method_calls,
    reason = "the methods alone are not general enough in their lifetimes"
)]

mod append;
mod content;
mod delete;
mod document;
mod facade;
mod fence;
mod files;
mod line;
mod list;
mod meta;
mod opened;
mod side;
mod transcript;
mod whole;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;

pub use facade::{Documents, ForkOptions, ListOptions, LoadOptions};

use self::files::Files;
use super::{
    Caps, Durability, Head, IndexRow, ListCursor, Loaded, Placed, Registration, SessionKey,
    SessionRow, SessionStore,
};
use crate::base::clock::SharedClock;
use crate::error::{ErrorKind, KernelError, Result};
use crate::protocol::StoredEntry;
use crate::store::state::{FileState, StateStore};

/// Entries of a main transcript.
const ENTRIES: &str = "entries.jsonl";
const ENTRIES_STEM: &str = "entries";
const DOCUMENT: &str = "transcript.json";
/// The folder of the other transcripts.
const SUB: &str = "sub";
/// Ending of the names of transcripts.
const LINES: &str = ".jsonl";
/// Largest transcript that the operations with string ids read, unless another is set: 64 MiB.
const MAX_BYTES: u64 = 64 << 20;

/// A store of files under one folder.
pub struct FileStore {
    files: Arc<Files>,
    state: Arc<FileState>,
}

/// Where sessions are kept when nothing else is said.
pub fn default_root(home: &Path) -> PathBuf {
    home.join(".open-agent-sdk").join("sessions")
}

impl FileStore {
    pub fn new(root: PathBuf, durability: Durability, clock: SharedClock) -> Self {
        Self::with_max_bytes(root, durability, clock, MAX_BYTES)
    }

    /// A store whose operations with string ids refuse transcripts above a number of bytes.
    pub fn with_max_bytes(
        root: PathBuf,
        durability: Durability,
        clock: SharedClock,
        max_bytes: u64,
    ) -> Self {
        let state = FileState::new(&root, durability == Durability::Fsync, clock.clone());
        Self {
            state: Arc::new(state),
            files: Arc::new(Files::new(root, durability, clock, max_bytes)),
        }
    }

    /// The operations on whole sessions by a string id.
    pub fn documents(&self) -> Documents {
        Documents::new(self.files.clone())
    }

    /// Writes the document of a session from its entries; nothing when there is no such session.
    pub async fn fold(&self, key: &SessionKey) -> Result<()> {
        let key = key.clone();
        self.run(move |files| {
            files.change_existing(&key.project, &key.session, |session| session.fold())
        })
        .await
    }

    /// Runs what waits for the file system where that holds nobody up.
    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Files) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let files = self.files.clone();
        let done = tokio::task::spawn_blocking(move || work(&files)).await;
        done.unwrap_or_else(|error| Err(KernelError::new(ErrorKind::Internal, error.to_string())))
    }
}

#[async_trait]
impl SessionStore for FileStore {
    fn caps(&self) -> Caps {
        Caps::ALL
    }

    async fn finish(&self, key: &SessionKey) -> Result<()> {
        self.fold(key).await
    }

    async fn append(
        &self,
        key: &SessionKey,
        entries: &[StoredEntry],
        epoch: Option<u64>,
    ) -> Result<u64> {
        if entries.is_empty() {
            return Ok(self.head(key).await?.unwrap_or_default().seq);
        }
        let (key, entries) = (key.clone(), entries.to_vec());
        self.run(move |files| {
            let slot = files.slot(&key.project, &key.session);
            let written = files.change(&key.project, &key.session, |session| {
                session.append(key.subpath.as_ref(), &entries, epoch)
            })?;
            slot.finish(written)
        })
        .await
    }

    async fn replace(&self, key: &SessionKey, entry: &StoredEntry) -> Result<bool> {
        let (key, entry) = (key.clone(), entry.clone());
        self.run(move |files| {
            let slot = files.slot(&key.project, &key.session);
            let written = files.change_existing(&key.project, &key.session, |session| {
                session.replace(key.subpath.as_ref(), &entry)
            })?;
            let was_there = written.is_some();
            written.map(|written| slot.finish(written)).transpose()?;
            Ok(was_there)
        })
        .await
    }

    async fn fence(&self, project: &str, session: &str, epoch: u64) -> Result<()> {
        let (project, session) = (project.to_owned(), session.to_owned());
        self.run(move |files| {
            files.change(&project, &session, |session| {
                session.prepare_meta(false, 0)?;
                fence::set(&session.folder, epoch, files.is_synced())
            })
        })
        .await
    }

    async fn head(&self, key: &SessionKey) -> Result<Option<Head>> {
        let key = key.clone();
        self.run(move |files| {
            files.look(&key.project, &key.session, |session| {
                let found = session.transcript(key.subpath.as_ref())?;
                Ok(found.map(|(_, transcript)| Head {
                    seq: transcript.last_seq,
                    count: transcript.count(),
                }))
            })
        })
        .await
    }

    async fn load(&self, key: &SessionKey, after: Option<u64>) -> Result<Option<Loaded>> {
        let key = key.clone();
        self.run(move |files| {
            files.look(&key.project, &key.session, |session| {
                session.load(key.subpath.as_ref(), after)
            })
        })
        .await
    }

    async fn tail(&self, key: &SessionKey, count: usize) -> Result<Vec<Placed>> {
        let key = key.clone();
        self.run(move |files| {
            files.look(&key.project, &key.session, |session| {
                session.tail(key.subpath.as_ref(), count)
            })
        })
        .await
    }

    async fn by_message_ids(&self, key: &SessionKey, ids: &[String]) -> Result<Vec<Placed>> {
        let (key, ids) = (key.clone(), ids.to_vec());
        self.run(move |files| {
            files.look(&key.project, &key.session, |session| {
                match session.transcript(key.subpath.as_ref())? {
                    Some((content, transcript)) => transcript.of_messages(&content, &ids),
                    None => Ok(Vec::new()),
                }
            })
        })
        .await
    }

    async fn index(
        &self,
        project: &str,
        session: &str,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<IndexRow>> {
        let (project, session) = (project.to_owned(), session.to_owned());
        self.run(move |files| {
            files.look(&project, &session, |session| session.index(before, limit))
        })
        .await
    }

    async fn hide_through(&self, project: &str, session: &str, seq: u64) -> Result<()> {
        let (project, session) = (project.to_owned(), session.to_owned());
        self.run(move |files| {
            files.change(&project, &session, |session| {
                session.meta.name(session.project, session.session);
                session.meta.hide_through(seq);
                session.meta.write(&session.folder, files.is_synced())
            })
        })
        .await
    }

    async fn register(
        &self,
        project: &str,
        session: &str,
        registration: &Registration,
    ) -> Result<()> {
        let (project, session) = (project.to_owned(), session.to_owned());
        let registration = registration.clone();
        self.run(move |files| {
            files.change(&project, &session, |session| {
                session.convert()?;
                session.meta.name(session.project, session.session);
                session.meta.register(&registration, files.clock.now_ms());
                session.meta.write(&session.folder, files.is_synced())
            })
        })
        .await
    }

    async fn get(&self, project: &str, session: &str) -> Result<Option<SessionRow>> {
        let (project, session) = (project.to_owned(), session.to_owned());
        self.run(move |files| files.look(&project, &session, |session| session.row()))
            .await
    }

    async fn list(
        &self,
        project: &str,
        user: Option<&str>,
        after: Option<&ListCursor>,
        limit: usize,
    ) -> Result<Vec<SessionRow>> {
        let (project, user, after) = (project.to_owned(), user.map(str::to_owned), after.cloned());
        self.run(move |files| list::list(files, &project, user.as_deref(), after.as_ref(), limit))
            .await
    }

    async fn subkeys(&self, project: &str, session: &str) -> Result<Vec<String>> {
        let (project, session) = (project.to_owned(), session.to_owned());
        self.run(move |files| files.look(&project, &session, |session| session.subkeys()))
            .await
    }

    async fn delete(&self, key: &SessionKey) -> Result<()> {
        let key = key.clone();
        self.run(move |files| delete::delete(files, &key)).await
    }

    fn state(&self) -> Option<Arc<dyn StateStore>> {
        Some(self.state.clone())
    }
}
