//! Small records that several processes change: leases, approvals, results of client tools, grants.
//!
//! Every change is a compare-and-set on the version of a record. Drivers keep `data` opaque; typed
//! views of it have files of their own. Every driver passes the suite in `tests/state_store`.

mod calls;
mod file;
mod lease;
mod memory;
#[cfg(feature = "pgsql")]
mod pgsql;
#[cfg(feature = "sqlite")]
mod sqlite;

use std::sync::Arc;

use async_trait::async_trait;

pub use calls::{CallAnswer, CallRecord, CallRecords, waiting};
pub use file::FileState;
pub use lease::{Lease, LeaseKey, LeaseTimes, Owner};
pub use memory::MemoryState;
#[cfg(feature = "pgsql")]
pub use pgsql::PgsqlState;
#[cfg(feature = "sqlite")]
pub use sqlite::SqliteState;

use crate::error::Result;
use crate::protocol::Json;

pub type SharedStateStore = Arc<dyn StateStore>;

/// What a record is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum StateKind {
    Approval,
    ClientTool,
    Question,
    Grant,
    Lease,
}

impl StateKind {
    /// The word that stores keep.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Approval => "approval",
            Self::ClientTool => "client_tool",
            Self::Question => "question",
            Self::Grant => "grant",
            Self::Lease => "lease",
        }
    }
}

/// Names one record. Parts are compared byte for byte.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StateKey {
    pub project: Arc<str>,
    pub kind: StateKind,
    pub key: String,
}

/// A record.
#[derive(Clone, Debug, PartialEq)]
pub struct StateRecord {
    pub key: StateKey,
    pub conversation: Option<String>,
    pub user: Option<String>,
    /// 1 after [`StateStore::insert`], one more after each [`StateStore::swap`]; what a caller puts
    /// here does not matter.
    pub version: u64,
    pub data: Json,
    /// Milliseconds since the epoch, by the clock of the store. Records do not vanish then: whoever
    /// reads them judges.
    pub expires_at: Option<u64>,
}

/// What became of an insert.
#[derive(Clone, Debug, PartialEq)]
pub enum Inserted {
    Done,
    Exists(StateRecord),
}

/// What became of a swap or a removal.
#[derive(Clone, Debug, PartialEq)]
pub enum Swapped {
    /// The version that the record has now (of a removal: had).
    Done(u64),
    /// The record as it is; none when there is none.
    Conflict(Option<StateRecord>),
}

/// How far compare-and-set holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Atomic {
    /// Within this process.
    Process,
    /// Between the processes of one machine.
    Host,
    /// Between machines.
    Global,
}

/// Whose clock [`StateStore::now`] reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreClock {
    /// That of this machine.
    Own,
    /// One for all clients.
    Server,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateCaps {
    pub atomic: Atomic,
    pub clock: StoreClock,
}

/// Which records to list.
#[derive(Clone, Debug)]
pub struct StateQuery {
    pub project: Arc<str>,
    pub kind: StateKind,
    pub conversation: Option<String>,
    /// Only keys above this one.
    pub after: Option<String>,
    pub limit: usize,
}

/// Keeps records.
#[async_trait]
pub trait StateStore: Send + Sync {
    fn caps(&self) -> StateCaps;

    async fn get(&self, key: &StateKey) -> Result<Option<StateRecord>>;

    /// Stores a record with version 1, unless there is one with its key.
    async fn insert(&self, record: &StateRecord) -> Result<Inserted>;

    /// Puts a record in the place of the one that has the expected version.
    async fn swap(&self, record: &StateRecord, expected: u64) -> Result<Swapped>;

    /// Removes a record, with `expected` only one of that version.
    async fn remove(&self, key: &StateKey, expected: Option<u64>) -> Result<Swapped>;

    /// Records in order of their key, byte for byte.
    async fn list(&self, query: &StateQuery) -> Result<Vec<StateRecord>>;

    /// Removes every record of a conversation, of whatever kind.
    async fn forget(&self, project: &str, conversation: &str) -> Result<()>;

    /// Milliseconds since the epoch, by the clock that judges expiry.
    async fn now(&self) -> Result<u64>;
}
