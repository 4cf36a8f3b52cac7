//! Records in the PostgreSQL database of a session store.

use std::sync::Arc;

use async_trait::async_trait;
use tokio_postgres::Row;

use super::{
    Atomic, Inserted, StateCaps, StateKey, StateQuery, StateRecord, StateStore, StoreClock, Swapped,
};
use crate::error::{ErrorKind, KernelError, Result};
use crate::store::sql::pgsql::{PgsqlDatabase, Transaction, Value, encoded, plain};
use crate::store::sql::rows::{self, StateColumns, signed, unsigned};
use crate::store::sql::statements as sql;

const NOW: &str = "SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint";
/// How often an insert looks again for a record that was there and is gone.
const INSERT_ATTEMPTS: usize = 5;

/// Records in a database, shared by machines.
pub struct PgsqlState {
    database: Arc<PgsqlDatabase>,
}

impl PgsqlState {
    pub fn new(database: Arc<PgsqlDatabase>) -> Self {
        Self { database }
    }
}

fn record(row: &Row, of: &StateKey) -> StateRecord {
    let text = |column: usize| row.get::<_, Option<String>>(column).map(plain);
    let columns = StateColumns {
        name: plain(row.get(0)),
        conversation: text(1),
        user: text(2),
        version: row.get(3),
        data: row.get(4),
        expires_at: row.get(5),
    };
    columns.record(of)
}

async fn find(work: &mut Transaction<'_>, key: &StateKey) -> Result<Option<StateRecord>> {
    let values: [Value<'_>; 3] = [
        &encoded(&key.project),
        &key.kind.as_str(),
        &encoded(&key.key),
    ];
    let row = work.first(sql::GET_STATE, &values).await?;
    Ok(row.map(|row| record(&row, key)))
}

async fn insert(work: &mut Transaction<'_>, new: &StateRecord) -> Result<Inserted> {
    let (conversation, user) = (
        new.conversation.as_deref().map(encoded),
        new.user.as_deref().map(encoded),
    );
    let values: [Value<'_>; 7] = [
        &encoded(&new.key.project),
        &new.key.kind.as_str(),
        &encoded(&new.key.key),
        &conversation,
        &user,
        &new.data.to_string(),
        &new.expires_at.map(signed),
    ];
    for _ in 0..INSERT_ATTEMPTS {
        if work.execute(sql::INSERT_STATE, &values).await? > 0 {
            return Ok(Inserted::Done);
        }
        if let Some(existing) = find(work, &new.key).await? {
            return Ok(Inserted::Exists(existing));
        }
    }
    let what = "session.url: a record comes and goes too fast to be read";
    Err(KernelError::new(ErrorKind::Store, what))
}

async fn swap(work: &mut Transaction<'_>, new: &StateRecord, expected: u64) -> Result<Swapped> {
    let (conversation, user) = (
        new.conversation.as_deref().map(encoded),
        new.user.as_deref().map(encoded),
    );
    let values: [Value<'_>; 8] = [
        &conversation,
        &user,
        &new.data.to_string(),
        &new.expires_at.map(signed),
        &encoded(&new.key.project),
        &new.key.kind.as_str(),
        &encoded(&new.key.key),
        &signed(expected),
    ];
    if work.execute(sql::SWAP_STATE, &values).await? > 0 {
        return Ok(Swapped::Done(expected + 1));
    }
    Ok(Swapped::Conflict(find(work, &new.key).await?))
}

async fn remove(
    work: &mut Transaction<'_>,
    key: &StateKey,
    expected: Option<u64>,
) -> Result<Swapped> {
    let values: [Value<'_>; 4] = [
        &encoded(&key.project),
        &key.kind.as_str(),
        &encoded(&key.key),
        &expected.map(signed),
    ];
    match work.first(sql::REMOVE_STATE, &values).await? {
        Some(row) => Ok(Swapped::Done(unsigned(row.get(0)))),
        None => Ok(Swapped::Conflict(find(work, key).await?)),
    }
}

async fn list(work: &mut Transaction<'_>, query: &StateQuery) -> Result<Vec<Row>> {
    let least = rows::least_name(query);
    let (project, kind) = (encoded(&query.project), query.kind.as_str());
    let (least, limit) = (encoded(&least), rows::limit(query.limit));
    if let Some(conversation) = query.conversation.as_deref().map(encoded) {
        let values: [Value<'_>; 5] = [&project, &kind, &least, &conversation, &limit];
        work.query(sql::LIST_STATE_OF_CONVERSATION, &values).await
    } else {
        let values: [Value<'_>; 4] = [&project, &kind, &least, &limit];
        work.query(sql::LIST_STATE, &values).await
    }
}

#[async_trait]
impl StateStore for PgsqlState {
    fn caps(&self) -> StateCaps {
        StateCaps {
            atomic: Atomic::Global,
            clock: StoreClock::Server,
        }
    }

    async fn get(&self, key: &StateKey) -> Result<Option<StateRecord>> {
        let mut work = self.database.begin().await?;
        let found = find(&mut work, key).await?;
        work.commit().await?;
        Ok(found)
    }

    async fn insert(&self, record: &StateRecord) -> Result<Inserted> {
        let mut work = self.database.begin().await?;
        let inserted = insert(&mut work, record).await?;
        work.commit().await?;
        Ok(inserted)
    }

    async fn swap(&self, record: &StateRecord, expected: u64) -> Result<Swapped> {
        let mut work = self.database.begin().await?;
        let swapped = swap(&mut work, record, expected).await?;
        work.commit().await?;
        Ok(swapped)
    }

    async fn remove(&self, key: &StateKey, expected: Option<u64>) -> Result<Swapped> {
        let mut work = self.database.begin().await?;
        let removed = remove(&mut work, key, expected).await?;
        work.commit().await?;
        Ok(removed)
    }

    async fn list(&self, query: &StateQuery) -> Result<Vec<StateRecord>> {
        let of = StateKey {
            project: query.project.clone(),
            kind: query.kind,
            key: String::new(),
        };
        let mut work = self.database.begin().await?;
        let found = list(&mut work, query).await?;
        work.commit().await?;
        Ok(found.iter().map(|row| record(row, &of)).collect())
    }

    async fn forget(&self, project: &str, conversation: &str) -> Result<()> {
        let mut work = self.database.begin().await?;
        let values: [Value<'_>; 2] = [&encoded(project), &encoded(conversation)];
        work.execute(sql::FORGET_STATE, &values).await?;
        work.commit().await
    }

    async fn now(&self) -> Result<u64> {
        let mut work = self.database.begin().await?;
        let row = work.first(NOW, &[]).await?;
        work.commit().await?;
        Ok(row.map_or(0, |row| unsigned(row.get(0))))
    }
}
