//! Transcripts of sessions: one trait, one file a driver.
//!
//! A driver keeps entries as the text they came in and finds them by sequence, uuid and message. It
//! knows nothing of what a conversation is; every driver passes the suite in `tests/session_store`.

mod file;
mod memory;
mod open;
#[cfg(feature = "pgsql")]
mod pgsql;
#[cfg(feature = "sqlite")]
mod sqlite;
mod summary;

use std::sync::Arc;

use async_trait::async_trait;

pub use file::{Documents, FileStore, ForkOptions, ListOptions, LoadOptions, default_root};
pub use memory::MemoryStore;
pub use open::{Durability, StoreSpec, open};
#[cfg(feature = "pgsql")]
pub use pgsql::PgsqlStore;
#[cfg(feature = "sqlite")]
pub use sqlite::SqliteStore;
pub use summary::{Summary, fold};

use crate::error::{ErrorKind, KernelError, Result};
use crate::protocol::{Json, Role, StoredEntry};
use crate::store::state::StateStore;

/// A session store, shared by the sessions of an agent.
pub type SharedSessionStore = Arc<dyn SessionStore>;

/// A store that was opened before the agent that uses it.
#[derive(Clone)]
pub struct OpenStore {
    pub store: SharedSessionStore,
    /// The project of its sessions, unless the agent names another one.
    pub project: Option<Arc<str>>,
}

/// Names one transcript. Parts are compared byte for byte.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionKey {
    pub project: Arc<str>,
    pub session: Arc<str>,
    /// Of a sub-agent; none for the main transcript. Opaque.
    pub subpath: Option<Arc<str>>,
}

impl SessionKey {
    /// The main transcript of a session.
    pub fn main(project: &str, session: &str) -> Self {
        Self {
            project: project.into(),
            session: session.into(),
            subpath: None,
        }
    }

    #[must_use]
    pub fn with_subpath(mut self, subpath: &str) -> Self {
        self.subpath = Some(subpath.into());
        self
    }
}

/// What a store can do by itself. What it cannot is derived from [`SessionStore::load`].
#[expect(clippy::struct_excessive_bools, reason = "independent abilities")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caps {
    /// [`SessionStore::list`] and [`SessionStore::get`] know the sessions.
    pub list: bool,
    pub head: bool,
    pub tail: bool,
    pub by_ids: bool,
    /// [`SessionStore::index`] and [`SessionStore::hide_through`].
    pub index: bool,
    pub delete: bool,
    /// Appends with an epoch older than that of the last [`SessionStore::fence`] are refused.
    pub fenced_append: bool,
}

impl Caps {
    pub const ALL: Self = Self {
        list: true,
        head: true,
        tail: true,
        by_ids: true,
        index: true,
        delete: true,
        fenced_append: true,
    };
}

/// Where a transcript ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// Sequence of the newest entry; 0 when there is none.
    pub seq: u64,
    /// Number of entries.
    pub count: u64,
}

/// An entry and its place. Sequences rise within a transcript, from 1, not always by one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    pub seq: u64,
    pub entry: StoredEntry,
}

/// A part of a store that could not be read. What is in front of it was loaded, nothing of it was
/// overwritten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// What is wrong, for people; names no path.
    pub what: String,
    /// Entries that were lost, as far as that can be known.
    pub lost: u64,
}

/// A transcript, or its end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loaded {
    /// Oldest first.
    pub entries: Vec<Placed>,
    pub damage: Option<Damage>,
}

/// A message in the index of a session's history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexRow {
    /// Sequence of the first entry of the message.
    pub seq: u64,
    pub message_id: String,
    pub role: Role,
    /// Milliseconds since the epoch.
    pub created_at: u64,
}

/// What is known of a session beside its entries.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionRow {
    pub session: String,
    pub user: Option<String>,
    /// As registered; a title that was given later stands in `summary`.
    pub title: Option<String>,
    pub metadata: Option<Json>,
    /// The session that this one was forked from.
    pub parent: Option<String>,
    /// Folded from the entries of the main transcript.
    pub summary: Summary,
    /// Milliseconds since the epoch.
    pub created_at: u64,
    /// Milliseconds since the epoch of the last append to the main transcript, or of the registration.
    pub updated_at: u64,
}

impl SessionRow {
    /// The title to show: the one given last.
    pub fn shown_title(&self) -> Option<&str> {
        self.summary.custom_title().or(self.title.as_deref())
    }
}

/// What [`SessionStore::register`] stores; what is missing keeps its stored value.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Registration {
    pub user: Option<String>,
    pub title: Option<String>,
    pub metadata: Option<Json>,
    pub parent: Option<String>,
}

/// The place after which [`SessionStore::list`] goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListCursor {
    pub updated_at: u64,
    pub session: String,
}

/// Keeps the transcripts of sessions.
///
/// A failed call is an error of one of the kinds `Store*`; whether it may succeed later is
/// `is_retryable`. Every method may be called at any time, also for keys that were never written.
#[async_trait]
pub trait SessionStore: Send + Sync {
    fn caps(&self) -> Caps;

    /// Appends entries in order, all of them or none, and gives the sequence of the newest entry of
    /// the transcript. An entry whose uuid the transcript has is ignored. A main transcript gets its
    /// session row, summary and index rows in the same step. With an `epoch` older than the fence the
    /// call fails with [`ErrorKind::SessionLeaseLost`]. No entries: nothing is written.
    async fn append(
        &self,
        key: &SessionKey,
        entries: &[StoredEntry],
        epoch: Option<u64>,
    ) -> Result<u64>;

    /// Puts an entry in the place of the one with its uuid; whether there was one. Place and index
    /// stay.
    async fn replace(&self, key: &SessionKey, entry: &StoredEntry) -> Result<bool>;

    /// Refuses appends with an older epoch from now on. Fails with
    /// [`ErrorKind::SessionLeaseLost`] when a newer one was set.
    async fn fence(&self, project: &str, session: &str, epoch: u64) -> Result<()>;

    /// Where the transcript ends; none when it was never written.
    async fn head(&self, key: &SessionKey) -> Result<Option<Head>>;

    /// The entries behind `after`, or all; none when the transcript was never written.
    async fn load(&self, key: &SessionKey, after: Option<u64>) -> Result<Option<Loaded>>;

    /// The newest `count` entries, oldest first.
    async fn tail(&self, key: &SessionKey, count: usize) -> Result<Vec<Placed>>;

    /// The entries of messages, in order of sequence.
    async fn by_message_ids(&self, key: &SessionKey, ids: &[String]) -> Result<Vec<Placed>>;

    /// Messages of the main transcript with a sequence below `before`, newest first, without hidden
    /// ones.
    async fn index(
        &self,
        project: &str,
        session: &str,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<IndexRow>>;

    /// Hides the messages up to a sequence from the index, for ever. The transcript stays.
    async fn hide_through(&self, project: &str, session: &str, seq: u64) -> Result<()>;

    /// Stores what is known of a session, which may have no entries yet.
    async fn register(
        &self,
        project: &str,
        session: &str,
        registration: &Registration,
    ) -> Result<()>;

    async fn get(&self, project: &str, session: &str) -> Result<Option<SessionRow>>;

    /// Sessions by `updated_at`, newest first; at the same time by id, highest first.
    async fn list(
        &self,
        project: &str,
        user: Option<&str>,
        after: Option<&ListCursor>,
        limit: usize,
    ) -> Result<Vec<SessionRow>>;

    /// The sub-paths of a session.
    async fn subkeys(&self, project: &str, session: &str) -> Result<Vec<String>>;

    /// Deletes a transcript; a main one with everything that belongs to the session. Deleting what
    /// does not exist succeeds.
    async fn delete(&self, key: &SessionKey) -> Result<()>;

    /// Says that this process has finished with a session for now: a driver may write what other
    /// readers look for.
    async fn finish(&self, _key: &SessionKey) -> Result<()> {
        Ok(())
    }

    /// The store of state records beside this one, if it has one.
    fn state(&self) -> Option<Arc<dyn StateStore>>;
}

/// The refusal of a writer whose lease has passed to another.
pub fn fenced_out() -> KernelError {
    KernelError::new(
        ErrorKind::SessionLeaseLost,
        "the session is now in use by another process: this run was ended and its late write refused",
    )
}
