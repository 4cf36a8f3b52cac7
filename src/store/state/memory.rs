//! Records in the memory of the process.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;

use super::{
    Atomic, Inserted, StateCaps, StateKey, StateQuery, StateRecord, StateStore, StoreClock, Swapped,
};
use crate::base::clock::SharedClock;
use crate::error::Result;

/// A store that lives as long as the process.
pub struct MemoryState {
    clock: SharedClock,
    records: Mutex<BTreeMap<StateKey, StateRecord>>,
}

impl MemoryState {
    pub fn new(clock: SharedClock) -> Self {
        Self {
            clock,
            records: Mutex::default(),
        }
    }

    fn records(&self) -> MutexGuard<'_, BTreeMap<StateKey, StateRecord>> {
        // The map is whole after every statement.
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl StateStore for MemoryState {
    fn caps(&self) -> StateCaps {
        StateCaps {
            atomic: Atomic::Process,
            clock: StoreClock::Own,
        }
    }

    async fn get(&self, key: &StateKey) -> Result<Option<StateRecord>> {
        Ok(self.records().get(key).cloned())
    }

    async fn insert(&self, record: &StateRecord) -> Result<Inserted> {
        let mut records = self.records();
        if let Some(existing) = records.get(&record.key) {
            return Ok(Inserted::Exists(existing.clone()));
        }
        let version = 1;
        records.insert(
            record.key.clone(),
            StateRecord {
                version,
                ..record.clone()
            },
        );
        Ok(Inserted::Done)
    }

    async fn swap(&self, record: &StateRecord, expected: u64) -> Result<Swapped> {
        let mut records = self.records();
        match records.get_mut(&record.key) {
            Some(stored) if stored.version == expected => {
                let version = expected + 1;
                *stored = StateRecord {
                    version,
                    ..record.clone()
                };
                Ok(Swapped::Done(version))
            }
            other => Ok(Swapped::Conflict(other.cloned())),
        }
    }

    async fn remove(&self, key: &StateKey, expected: Option<u64>) -> Result<Swapped> {
        let mut records = self.records();
        match records.get(key) {
            Some(stored) if expected.is_none_or(|expected| stored.version == expected) => {
                let version = stored.version;
                records.remove(key);
                Ok(Swapped::Done(version))
            }
            other => Ok(Swapped::Conflict(other.cloned())),
        }
    }

    async fn list(&self, query: &StateQuery) -> Result<Vec<StateRecord>> {
        let records = self.records();
        let found = records
            .values()
            .filter(|record| record.key.project == query.project && record.key.kind == query.kind)
            .filter(|record| {
                query.conversation.is_none() || record.conversation == query.conversation
            })
            .filter(|record| {
                query
                    .after
                    .as_ref()
                    .is_none_or(|after| record.key.key > *after)
            });
        Ok(found.take(query.limit).cloned().collect())
    }

    async fn forget(&self, project: &str, conversation: &str) -> Result<()> {
        self.records().retain(|key, record| {
            &*key.project != project || record.conversation.as_deref() != Some(conversation)
        });
        Ok(())
    }

    async fn now(&self) -> Result<u64> {
        Ok(self.clock.now_ms())
    }
}
