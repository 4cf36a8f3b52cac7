//! Records in files: `<root>/.state/<project>/<kind>/<key>.json`, one file a record.
//!
//! A record appears by a link and changes by a rename, so that readers see whole records and need no
//! lock. Swaps and removals of a project's kind hold its `.lock`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::{
    Atomic, Inserted, StateCaps, StateKey, StateKind, StateQuery, StateRecord, StateStore,
    StoreClock, Swapped,
};
use crate::base::clock::SharedClock;
use crate::error::{ErrorKind, KernelError, Result};
use crate::protocol::Json;
use crate::store::disk::{Folder, Lock, file_name};

const STATE: &str = ".state";
const LOCK: &str = ".lock";
const KINDS: [StateKind; 5] = [
    StateKind::Approval,
    StateKind::ClientTool,
    StateKind::Question,
    StateKind::Grant,
    StateKind::Lease,
];

/// A store of files under one folder, beside those of sessions.
pub struct FileState {
    records: Arc<Records>,
    clock: SharedClock,
}

/// The driver without being async.
struct Records {
    root: PathBuf,
    /// Whether a change is to survive the end of the machine.
    sync: bool,
}

/// A record as its file holds it.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Stored {
    project: String,
    key: String,
    #[serde(default)]
    conversation: Option<String>,
    #[serde(default)]
    user: Option<String>,
    version: u64,
    #[serde(default)]
    expires_at: Option<u64>,
    data: Json,
}

impl FileState {
    /// `sync`: a change survives the end of the machine when the call returns.
    pub fn new(root: &Path, sync: bool, clock: SharedClock) -> Self {
        Self {
            records: Arc::new(Records {
                root: root.to_owned(),
                sync,
            }),
            clock,
        }
    }

    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Records) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let records = self.records.clone();
        let done = tokio::task::spawn_blocking(move || work(&records)).await;
        done.unwrap_or_else(|error| Err(KernelError::new(ErrorKind::Internal, error.to_string())))
    }
}

impl Records {
    fn folder(&self, project: &str, kind: StateKind) -> Result<Option<Folder>> {
        let mut found = Folder::root(&self.root)?;
        for name in [STATE, &file_name(project), kind.as_str()] {
            let Some(folder) = found else {
                return Ok(None);
            };
            found = folder.folder(name)?;
        }
        Ok(found)
    }

    fn make_folder(&self, project: &str, kind: StateKind) -> Result<Folder> {
        let mut folder = Folder::make_root(&self.root)?;
        for name in [STATE, &file_name(project), kind.as_str()] {
            folder = folder.make_folder(name)?;
        }
        Ok(folder)
    }

    fn get(&self, key: &StateKey) -> Result<Option<StateRecord>> {
        match self.folder(&key.project, key.kind)? {
            Some(folder) => read(&folder, key),
            None => Ok(None),
        }
    }

    fn insert(&self, record: &StateRecord) -> Result<Inserted> {
        let folder = self.make_folder(&record.key.project, record.key.kind)?;
        let content = content(record, 1)?;
        loop {
            let temporary = folder.write_temporary(&content, self.sync)?;
            if folder.publish(&temporary, &name_of(&record.key))? {
                if self.sync {
                    folder.sync()?;
                }
                return Ok(Inserted::Done);
            }
            // The one that was there may be gone by now.
            if let Some(existing) = read(&folder, &record.key)? {
                return Ok(Inserted::Exists(existing));
            }
        }
    }

    fn swap(&self, record: &StateRecord, expected: u64) -> Result<Swapped> {
        let key = &record.key;
        let Some(folder) = self.folder(&key.project, key.kind)? else {
            return Ok(Swapped::Conflict(None));
        };
        let _lock = lock(&folder)?;
        let stored = read(&folder, key)?;
        if stored
            .as_ref()
            .is_none_or(|stored| stored.version != expected)
        {
            return Ok(Swapped::Conflict(stored));
        }
        let version = expected + 1;
        folder.write(&name_of(key), &content(record, version)?, self.sync)?;
        Ok(Swapped::Done(version))
    }

    fn remove(&self, key: &StateKey, expected: Option<u64>) -> Result<Swapped> {
        let Some(folder) = self.folder(&key.project, key.kind)? else {
            return Ok(Swapped::Conflict(None));
        };
        let _lock = lock(&folder)?;
        match read(&folder, key)? {
            Some(stored) if expected.is_none_or(|expected| stored.version == expected) => {
                self.take_away(&folder, key)?;
                Ok(Swapped::Done(stored.version))
            }
            other => Ok(Swapped::Conflict(other)),
        }
    }

    fn take_away(&self, folder: &Folder, key: &StateKey) -> Result<()> {
        folder.remove(&name_of(key))?;
        if self.sync { folder.sync() } else { Ok(()) }
    }

    fn list(&self, query: &StateQuery) -> Result<Vec<StateRecord>> {
        let Some(folder) = self.folder(&query.project, query.kind)? else {
            return Ok(Vec::new());
        };
        let mut records = all(&folder, &query.project, query.kind)?;
        records.retain(|record| {
            let is_behind = query
                .after
                .as_ref()
                .is_none_or(|after| record.key.key > *after);
            let is_of = query.conversation.is_none() || record.conversation == query.conversation;
            is_behind && is_of
        });
        records.sort_by(|a, b| a.key.key.cmp(&b.key.key));
        records.truncate(query.limit);
        Ok(records)
    }

    fn forget(&self, project: &str, conversation: &str) -> Result<()> {
        for kind in KINDS {
            let Some(folder) = self.folder(project, kind)? else {
                continue;
            };
            let _lock = lock(&folder)?;
            folder.sweep()?;
            for record in all(&folder, project, kind)? {
                if record.conversation.as_deref() == Some(conversation) {
                    self.take_away(&folder, &record.key)?;
                }
            }
        }
        Ok(())
    }
}

/// Every record of a folder that can be read: one that cannot is nobody's, until it is asked for.
fn all(folder: &Folder, project: &str, kind: StateKind) -> Result<Vec<StateRecord>> {
    let mut records = Vec::new();
    for name in folder.names()? {
        if name.starts_with('.') {
            continue;
        }
        let content = folder.read(&name)?;
        let Some(stored) = content.and_then(|content| parse(&content)) else {
            continue;
        };
        let key = StateKey {
            project: project.into(),
            kind,
            key: stored.key.clone(),
        };
        if name_of(&key) == name && stored.project == project {
            records.push(stored.into_record(key));
        }
    }
    Ok(records)
}

fn read(folder: &Folder, key: &StateKey) -> Result<Option<StateRecord>> {
    let Some(content) = folder.read(&name_of(key))? else {
        return Ok(None);
    };
    let stored = parse(&content).ok_or_else(|| {
        KernelError::new(
            ErrorKind::Store,
            format!(
                "a record of state ({}) cannot be read: it is damaged",
                key.kind.as_str()
            ),
        )
        .with_retryable(false)
    })?;
    if stored.key != key.key || *stored.project != *key.project {
        return Err(KernelError::new(
            ErrorKind::SessionIdConflict,
            "the place of a record of state is taken by one whose key differs",
        ));
    }
    Ok(Some(stored.into_record(key.clone())))
}

fn parse(content: &[u8]) -> Option<Stored> {
    serde_json::from_slice(content).ok()
}

impl Stored {
    fn into_record(self, key: StateKey) -> StateRecord {
        StateRecord {
            key,
            conversation: self.conversation,
            user: self.user,
            version: self.version,
            data: self.data,
            expires_at: self.expires_at,
        }
    }
}

fn content(record: &StateRecord, version: u64) -> Result<Vec<u8>> {
    let stored = Stored {
        project: record.key.project.to_string(),
        key: record.key.key.clone(),
        conversation: record.conversation.clone(),
        user: record.user.clone(),
        version,
        expires_at: record.expires_at,
        data: record.data.clone(),
    };
    serde_json::to_vec(&stored)
        .map_err(|error| KernelError::new(ErrorKind::SerializeFailed, error.to_string()))
}

fn name_of(key: &StateKey) -> String {
    format!("{}.json", file_name(&key.key))
}

/// The lock of a folder; its file is never removed.
fn lock(folder: &Folder) -> Result<Lock> {
    folder.lock(LOCK)?.ok_or_else(|| {
        KernelError::new(
            ErrorKind::SessionLocked,
            "the folder of a record of state was removed meanwhile: try again",
        )
    })
}

#[async_trait]
impl StateStore for FileState {
    fn caps(&self) -> StateCaps {
        StateCaps {
            atomic: Atomic::Host,
            clock: StoreClock::Own,
        }
    }

    async fn get(&self, key: &StateKey) -> Result<Option<StateRecord>> {
        let key = key.clone();
        self.run(move |records| records.get(&key)).await
    }

    async fn insert(&self, record: &StateRecord) -> Result<Inserted> {
        let record = record.clone();
        self.run(move |records| records.insert(&record)).await
    }

    async fn swap(&self, record: &StateRecord, expected: u64) -> Result<Swapped> {
        let record = record.clone();
        self.run(move |records| records.swap(&record, expected))
            .await
    }

    async fn remove(&self, key: &StateKey, expected: Option<u64>) -> Result<Swapped> {
        let key = key.clone();
        self.run(move |records| records.remove(&key, expected))
            .await
    }

    async fn list(&self, query: &StateQuery) -> Result<Vec<StateRecord>> {
        let query = query.clone();
        self.run(move |records| records.list(&query)).await
    }

    async fn forget(&self, project: &str, conversation: &str) -> Result<()> {
        let (project, conversation) = (project.to_owned(), conversation.to_owned());
        self.run(move |records| records.forget(&project, &conversation))
            .await
    }

    async fn now(&self) -> Result<u64> {
        Ok(self.clock.now_ms())
    }
}
