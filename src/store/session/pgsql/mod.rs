//! Transcripts in a PostgreSQL database.

mod append;

use std::sync::Arc;

use async_trait::async_trait;
use tokio_postgres::Row;

use super::{
    Caps, Head, IndexRow, ListCursor, Loaded, Placed, Registration, SessionKey, SessionRow,
    SessionStore,
};
use crate::base::clock::SharedClock;
use crate::error::Result;
use crate::protocol::StoredEntry;
use crate::store::sql::pgsql::{PgsqlDatabase, Transaction, Value, encoded, plain};
use crate::store::sql::rows::{self, SessionColumns, signed, unsigned};
use crate::store::sql::statements as sql;
use crate::store::state::{PgsqlState, StateStore};
use append::{Locked, Transcript};

/// Entries that one statement loads, so that a long transcript does not meet the limit of its time.
const PAGE: i64 = 500;
const BY_MESSAGES: &str = r#"SELECT seq, body FROM "{p}session_entries"
    WHERE transcript = $1 AND message_id = ANY($2) ORDER BY seq"#;

/// A store in a database, shared by machines.
pub struct PgsqlStore {
    database: Arc<PgsqlDatabase>,
    clock: SharedClock,
    state: Arc<PgsqlState>,
}

impl PgsqlStore {
    /// A store in the database of a url; nothing is connected yet. Fails with
    /// [`ErrorKind::InvalidConfig`](crate::error::ErrorKind::InvalidConfig) when the url is none or asks for TLS, or the prefix is no word.
    pub fn new(url: &str, prefix: &str, clock: SharedClock) -> Result<Self> {
        let database = Arc::new(PgsqlDatabase::new(url, prefix, clock.clone())?);
        Ok(Self {
            state: Arc::new(PgsqlState::new(database.clone())),
            database,
            clock,
        })
    }
}

/// Sequences and texts, in the order of the statement.
async fn texts(
    work: &mut Transaction<'_>,
    template: &str,
    values: &[Value<'_>],
) -> Result<Vec<(i64, String)>> {
    let found = work.query(template, values).await?;
    Ok(found.iter().map(|row| (row.get(0), row.get(1))).collect())
}

fn session_row(row: &Row) -> SessionRow {
    let text = |column: usize| row.get::<_, Option<String>>(column).map(plain);
    let columns = SessionColumns {
        session: plain(row.get(0)),
        user: text(1),
        title: text(2),
        metadata: row.get(3),
        parent: text(4),
        summary: row.get(5),
        created_at: row.get(6),
        updated_at: row.get(7),
    };
    columns.into()
}

#[async_trait]
impl SessionStore for PgsqlStore {
    fn caps(&self) -> Caps {
        Caps::ALL
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
        append::append(&self.database, key, entries, epoch, self.clock.now_ms()).await
    }

    async fn replace(&self, key: &SessionKey, entry: &StoredEntry) -> Result<bool> {
        let Some(uuid) = entry.uuid.as_deref().map(encoded) else {
            return Ok(false);
        };
        let mut work = self.database.begin().await?;
        let mut changed = 0;
        if let Some(found) = Transcript::find(&mut work, key).await? {
            let values: [Value<'_>; 3] = [&entry.text(), &found.id, &uuid];
            changed = work.execute(sql::REPLACE_ENTRY, &values).await?;
        }
        work.commit().await?;
        Ok(changed > 0)
    }

    async fn fence(&self, project: &str, session: &str, epoch: u64) -> Result<()> {
        let mut work = self.database.begin().await?;
        Locked::of(&mut work, project, session)
            .await?
            .admits(epoch)?;
        let values: [Value<'_>; 3] = [&signed(epoch), &encoded(project), &encoded(session)];
        work.execute(sql::SET_FENCE, &values).await?;
        work.commit().await
    }

    async fn head(&self, key: &SessionKey) -> Result<Option<Head>> {
        let mut work = self.database.begin().await?;
        let found = Transcript::find(&mut work, key).await?;
        work.commit().await?;
        Ok(found.map(|found| Head {
            seq: unsigned(found.last_seq),
            count: unsigned(found.entries),
        }))
    }

    async fn load(&self, key: &SessionKey, after: Option<u64>) -> Result<Option<Loaded>> {
        let mut after = signed(after.unwrap_or(0));
        let mut all = Vec::new();
        loop {
            let mut work = self.database.begin().await?;
            let Some(found) = Transcript::find(&mut work, key).await? else {
                work.commit().await?;
                return Ok(None);
            };
            let page = texts(&mut work, sql::LOAD, &[&found.id, &after, &PAGE]).await?;
            work.commit().await?;
            let is_last = rows::limit(page.len()) < PAGE;
            after = page.last().map_or(after, |(seq, _)| *seq);
            all.extend(page);
            if is_last {
                return Ok(Some(rows::loaded(all)));
            }
        }
    }

    async fn tail(&self, key: &SessionKey, count: usize) -> Result<Vec<Placed>> {
        let mut work = self.database.begin().await?;
        let mut found = Vec::new();
        if let Some(transcript) = Transcript::find(&mut work, key).await? {
            let values: [Value<'_>; 2] = [&transcript.id, &rows::limit(count)];
            found = texts(&mut work, sql::TAIL, &values).await?;
        }
        work.commit().await?;
        found.reverse();
        Ok(rows::loaded(found).entries)
    }

    async fn by_message_ids(&self, key: &SessionKey, ids: &[String]) -> Result<Vec<Placed>> {
        let ids: Vec<_> = ids.iter().map(|id| encoded(id)).collect();
        let mut work = self.database.begin().await?;
        let mut found = Vec::new();
        if let Some(transcript) = Transcript::find(&mut work, key).await? {
            found = texts(&mut work, BY_MESSAGES, &[&transcript.id, &ids]).await?;
        }
        work.commit().await?;
        Ok(rows::loaded(found).entries)
    }

    async fn index(
        &self,
        project: &str,
        session: &str,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<IndexRow>> {
        let (before, limit) = (before.map_or(i64::MAX, signed), rows::limit(limit));
        let values: [Value<'_>; 4] = [&encoded(project), &encoded(session), &before, &limit];
        let mut work = self.database.begin().await?;
        let found = work.query(sql::INDEX, &values).await?;
        work.commit().await?;
        let row =
            |row: &Row| rows::index_row(row.get(0), plain(row.get(1)), row.get(2), row.get(3));
        Ok(found.iter().map(row).collect())
    }

    async fn hide_through(&self, project: &str, session: &str, seq: u64) -> Result<()> {
        let mut work = self.database.begin().await?;
        Locked::of(&mut work, project, session).await?;
        let values: [Value<'_>; 3] = [&signed(seq), &encoded(project), &encoded(session)];
        work.execute(sql::HIDE_THROUGH, &values).await?;
        work.commit().await
    }

    async fn register(
        &self,
        project: &str,
        session: &str,
        registration: &Registration,
    ) -> Result<()> {
        let now = signed(self.clock.now_ms());
        let user = registration.user.as_deref().map(encoded);
        let title = registration.title.as_deref().map(encoded);
        let metadata = registration.metadata.as_ref().map(ToString::to_string);
        let parent = registration.parent.as_deref().map(encoded);
        let mut work = self.database.begin().await?;
        Locked::of(&mut work, project, session).await?;
        let (project, session) = (encoded(project), encoded(session));
        let values: [Value<'_>; 7] = [&user, &title, &metadata, &parent, &now, &project, &session];
        work.execute(sql::REGISTER, &values).await?;
        work.commit().await
    }

    async fn get(&self, project: &str, session: &str) -> Result<Option<SessionRow>> {
        let mut work = self.database.begin().await?;
        let values: [Value<'_>; 2] = [&encoded(project), &encoded(session)];
        let found = work.first(sql::GET_SESSION, &values).await?;
        work.commit().await?;
        Ok(found.as_ref().map(session_row))
    }

    async fn list(
        &self,
        project: &str,
        user: Option<&str>,
        after: Option<&ListCursor>,
        limit: usize,
    ) -> Result<Vec<SessionRow>> {
        let (time, session) = rows::list_start(after);
        let (project, session, limit) = (encoded(project), encoded(session), rows::limit(limit));
        let mut work = self.database.begin().await?;
        let found = if let Some(user) = user.map(encoded) {
            let values: [Value<'_>; 5] = [&project, &user, &time, &session, &limit];
            work.query(sql::LIST_SESSIONS_OF_USER, &values).await?
        } else {
            let values: [Value<'_>; 4] = [&project, &time, &session, &limit];
            work.query(sql::LIST_SESSIONS, &values).await?
        };
        work.commit().await?;
        Ok(found.iter().map(session_row).collect())
    }

    async fn subkeys(&self, project: &str, session: &str) -> Result<Vec<String>> {
        let mut work = self.database.begin().await?;
        let values: [Value<'_>; 2] = [&encoded(project), &encoded(session)];
        let found = work.query(sql::SUBKEYS, &values).await?;
        work.commit().await?;
        let slots = found.iter().map(|row| plain(row.get(0)));
        Ok(slots.map(|slot| rows::subpath(&slot)).collect())
    }

    async fn delete(&self, key: &SessionKey) -> Result<()> {
        let (project, session) = (encoded(&key.project), encoded(&key.session));
        let named: [Value<'_>; 2] = [&project, &session];
        let mut work = self.database.begin().await?;
        // First the row that writers lock, so that no append comes between.
        let transcripts: Vec<i64> = if key.subpath.is_none() {
            work.execute(sql::DELETE_SESSION, &named).await?;
            let found = work.query(sql::TRANSCRIPTS_OF, &named).await?;
            found.iter().map(|row| row.get(0)).collect()
        } else {
            work.execute(sql::LOCK_EXISTING, &named).await?;
            let found = Transcript::find(&mut work, key).await?;
            found.into_iter().map(|found| found.id).collect()
        };
        for id in transcripts {
            for template in [
                sql::DELETE_TRANSCRIPT,
                sql::DELETE_ENTRIES,
                sql::DELETE_MESSAGES,
            ] {
                work.execute(template, &[&id]).await?;
            }
        }
        work.commit().await
    }

    fn state(&self) -> Option<Arc<dyn StateStore>> {
        Some(self.state.clone())
    }
}
