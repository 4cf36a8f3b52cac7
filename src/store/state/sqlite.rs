//! Records in the SQLite file of a session store.

use std::sync::Arc;

use async_trait::async_trait;
use rusqlite::{OptionalExtension, Row, params};

use super::{
    Atomic, Inserted, StateCaps, StateKey, StateQuery, StateRecord, StateStore, StoreClock, Swapped,
};
use crate::base::clock::SharedClock;
use crate::error::Result;
use crate::store::sql::rows::{self, StateColumns, signed, unsigned};
use crate::store::sql::sqlite::{Failure, SqliteDatabase, Work};
use crate::store::sql::statements as sql;

/// Records in a file, shared by the processes of one machine.
pub struct SqliteState {
    database: Arc<SqliteDatabase>,
    clock: SharedClock,
}

impl SqliteState {
    pub fn new(database: Arc<SqliteDatabase>, clock: SharedClock) -> Self {
        Self { database, clock }
    }
}

fn columns(row: &Row<'_>) -> rusqlite::Result<StateColumns> {
    Ok(StateColumns {
        name: row.get(0)?,
        conversation: row.get(1)?,
        user: row.get(2)?,
        version: row.get(3)?,
        data: row.get(4)?,
        expires_at: row.get(5)?,
    })
}

fn find(work: &Work<'_>, key: &StateKey) -> Result<Option<StateRecord>, Failure> {
    let mut get = work.prepare(sql::GET_STATE)?;
    let named = params![&*key.project, key.kind.as_str(), key.key];
    let found = get.query_row(named, columns).optional()?;
    Ok(found.map(|columns| columns.record(key)))
}

fn insert(work: &Work<'_>, record: &StateRecord) -> Result<Inserted, Failure> {
    // First: the transaction holds the write lock, nobody comes between.
    if let Some(existing) = find(work, &record.key)? {
        return Ok(Inserted::Exists(existing));
    }
    let key = &record.key;
    work.prepare(sql::INSERT_STATE)?.execute(params![
        &*key.project,
        key.kind.as_str(),
        key.key,
        record.conversation,
        record.user,
        record.data.to_string(),
        record.expires_at.map(signed),
    ])?;
    Ok(Inserted::Done)
}

fn swap(work: &Work<'_>, record: &StateRecord, expected: u64) -> Result<Swapped, Failure> {
    let key = &record.key;
    let changed = work.prepare(sql::SWAP_STATE)?.execute(params![
        record.conversation,
        record.user,
        record.data.to_string(),
        record.expires_at.map(signed),
        &*key.project,
        key.kind.as_str(),
        key.key,
        signed(expected),
    ])?;
    if changed > 0 {
        return Ok(Swapped::Done(expected + 1));
    }
    Ok(Swapped::Conflict(find(work, key)?))
}

fn remove(work: &Work<'_>, key: &StateKey, expected: Option<u64>) -> Result<Swapped, Failure> {
    let mut remove = work.prepare(sql::REMOVE_STATE)?;
    let named = params![
        &*key.project,
        key.kind.as_str(),
        key.key,
        expected.map(signed)
    ];
    let had = remove.query_row(named, |row| row.get(0)).optional()?;
    match had {
        Some(version) => Ok(Swapped::Done(unsigned(version))),
        None => Ok(Swapped::Conflict(find(work, key)?)),
    }
}

fn list(work: &Work<'_>, query: &StateQuery) -> Result<Vec<StateRecord>, Failure> {
    let (project, kind) = (&*query.project, query.kind.as_str());
    let (least, limit) = (rows::least_name(query), rows::limit(query.limit));
    let of = StateKey {
        project: query.project.clone(),
        kind: query.kind,
        key: String::new(),
    };
    let record = |row: &Row<'_>| Ok(columns(row)?.record(&of));
    let found: rusqlite::Result<Vec<_>> = match &query.conversation {
        Some(conversation) => work
            .prepare(sql::LIST_STATE_OF_CONVERSATION)?
            .query_map(params![project, kind, least, conversation, limit], record)?
            .collect(),
        None => work
            .prepare(sql::LIST_STATE)?
            .query_map(params![project, kind, least, limit], record)?
            .collect(),
    };
    Ok(found?)
}

#[async_trait]
impl StateStore for SqliteState {
    fn caps(&self) -> StateCaps {
        StateCaps {
            atomic: Atomic::Host,
            clock: StoreClock::Own,
        }
    }

    async fn get(&self, key: &StateKey) -> Result<Option<StateRecord>> {
        let key = key.clone();
        self.database.read(move |work| find(work, &key)).await
    }

    async fn insert(&self, record: &StateRecord) -> Result<Inserted> {
        let record = record.clone();
        self.database.write(move |work| insert(work, &record)).await
    }

    async fn swap(&self, record: &StateRecord, expected: u64) -> Result<Swapped> {
        let record = record.clone();
        let swap = move |work: &Work<'_>| swap(work, &record, expected);
        self.database.write(swap).await
    }

    async fn remove(&self, key: &StateKey, expected: Option<u64>) -> Result<Swapped> {
        let key = key.clone();
        let remove = move |work: &Work<'_>| remove(work, &key, expected);
        self.database.write(remove).await
    }

    async fn list(&self, query: &StateQuery) -> Result<Vec<StateRecord>> {
        let query = query.clone();
        self.database.read(move |work| list(work, &query)).await
    }

    async fn forget(&self, project: &str, conversation: &str) -> Result<()> {
        let (project, conversation) = (project.to_owned(), conversation.to_owned());
        let forget = move |work: &Work<'_>| {
            let mut forget = work.prepare(sql::FORGET_STATE)?;
            forget.execute([&project, &conversation])?;
            Ok(())
        };
        self.database.write(forget).await
    }

    async fn now(&self) -> Result<u64> {
        Ok(self.clock.now_ms())
    }
}
