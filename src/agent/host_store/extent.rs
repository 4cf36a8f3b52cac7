//! What is known to be stored, by transcript.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex as StdMutex, PoisonError};

use tokio::sync::Mutex;

use crate::protocol::{Json, StoredEntry};
use crate::store::session::SessionKey;

/// Transcripts that are remembered; those in use do not count.
const KEPT: usize = 256;

/// The extents of the transcripts that were used lately.
#[derive(Default)]
pub struct Extents(StdMutex<HashMap<SessionKey, Arc<Mutex<Extent>>>>);

impl Extents {
    /// The extent of a transcript. Whoever appends holds its lock until the append has settled.
    pub fn of(&self, key: &SessionKey) -> Arc<Mutex<Extent>> {
        let mut extents = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if extents.len() > KEPT {
            extents.retain(|_, extent| Arc::strong_count(extent) > 1);
        }
        extents.entry(key.clone()).or_default().clone()
    }

    /// Forgets a transcript; with a main one those of its session.
    pub fn forget(&self, key: &SessionKey) {
        let mut extents = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        extents.retain(|known, _| {
            let is_same = known.project == key.project && known.session == key.session;
            !(is_same && (key.subpath.is_none() || known.subpath == key.subpath))
        });
    }
}

/// What is stored of one transcript.
#[derive(Default)]
pub struct Extent {
    knowledge: Knowledge,
    count: u64,
    uuids: HashSet<String>,
    /// Entries without uuid that failed appends left in the store, until one succeeds: they are not
    /// appended again.
    landed: Vec<Json>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Knowledge {
    /// Never read.
    #[default]
    Nothing,
    /// An append failed, or has not settled: what it was to store may be there or not.
    Doubtful,
    Certain,
}

impl Extent {
    pub fn is_certain(&self) -> bool {
        self.knowledge == Knowledge::Certain
    }

    /// Place of the newest entry.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Takes over what was read.
    pub fn learn(&mut self, entries: &[StoredEntry]) {
        if self.knowledge == Knowledge::Doubtful {
            let known = usize::try_from(self.count).unwrap_or(usize::MAX);
            let behind = entries.iter().skip(known);
            let nameless = behind.filter(|entry| entry.uuid.is_none());
            self.landed.extend(nameless.filter_map(value));
        }
        self.count = entries.len() as u64;
        self.uuids = entries
            .iter()
            .filter_map(|entry| entry.uuid.clone())
            .collect();
        self.knowledge = Knowledge::Certain;
    }

    /// Those entries that are not stored yet, each uuid once.
    pub fn new_ones(&self, entries: &[StoredEntry]) -> Vec<StoredEntry> {
        let mut landed = self.landed.clone();
        let mut taken = HashSet::new();
        let is_new = |entry: &&StoredEntry| match &entry.uuid {
            Some(uuid) => !self.uuids.contains(uuid) && taken.insert(uuid.clone()),
            None => !take(&mut landed, entry),
        };
        entries.iter().filter(is_new).cloned().collect()
    }

    /// An append begins.
    pub fn doubt(&mut self) {
        self.knowledge = Knowledge::Doubtful;
    }

    /// The append of these has succeeded.
    pub fn add(&mut self, entries: &[StoredEntry]) {
        self.count += entries.len() as u64;
        let uuids = entries.iter().filter_map(|entry| entry.uuid.clone());
        self.uuids.extend(uuids);
        self.landed.clear();
        self.knowledge = Knowledge::Certain;
    }
}

fn take(landed: &mut Vec<Json>, entry: &StoredEntry) -> bool {
    if landed.is_empty() {
        return false;
    }
    let value = value(entry);
    let found = landed.iter().position(|one| Some(one) == value.as_ref());
    found.map(|at| landed.swap_remove(at)).is_some()
}

fn value(entry: &StoredEntry) -> Option<Json> {
    serde_json::from_str(entry.text()).ok()
}
