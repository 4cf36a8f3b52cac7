//! Transcripts in one SQLite file.

mod append;

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use rusqlite::params;

use super::{
    Caps, Durability, Head, IndexRow, ListCursor, Loaded, Placed, Registration, SessionKey,
    SessionRow, SessionStore,
};
use crate::base::clock::SharedClock;
use crate::base::crash::crash_point;
use crate::error::Result;
use crate::protocol::StoredEntry;
use crate::store::sql::rows::{self, SessionColumns, signed, unsigned};
use crate::store::sql::sqlite::{Failure, SqliteDatabase, Work};
use crate::store::sql::statements as sql;
use crate::store::state::{SqliteState, StateStore};
use append::{Append, Locked, Transcript};

const BY_MESSAGE: &str = r#"SELECT seq, body FROM "{p}session_entries"
    WHERE transcript = $1 AND message_id = $2 ORDER BY seq"#;

/// A store in a file, shared by the processes of one machine.
pub struct SqliteStore {
    database: Arc<SqliteDatabase>,
    clock: SharedClock,
    state: Arc<SqliteState>,
}

impl SqliteStore {
    /// A store at a path; nothing is opened yet. Fails with
    /// [`ErrorKind::InvalidConfig`](crate::error::ErrorKind::InvalidConfig) when the path is empty or
    /// the prefix is no word.
    pub fn new(
        path: &Path,
        prefix: &str,
        durability: Durability,
        clock: SharedClock,
    ) -> Result<Self> {
        let database = Arc::new(SqliteDatabase::new(path, prefix, durability)?);
        Ok(Self {
            state: Arc::new(SqliteState::new(database.clone(), clock.clone())),
            database,
            clock,
        })
    }
}

/// Sequences and texts, in the order of the statement.
fn texts(
    work: &Work<'_>,
    template: &str,
    values: impl rusqlite::Params,
) -> Result<Vec<(i64, String)>, Failure> {
    let mut statement = work.prepare(template)?;
    let found = statement.query_map(values, |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(found.collect::<Result<_, _>>()?)
}

fn sessions(
    work: &Work<'_>,
    template: &str,
    values: impl rusqlite::Params,
) -> Result<Vec<SessionRow>, Failure> {
    let mut statement = work.prepare(template)?;
    let found = statement.query_map(values, |row| {
        Ok(SessionColumns {
            session: row.get(0)?,
            user: row.get(1)?,
            title: row.get(2)?,
            metadata: row.get(3)?,
            parent: row.get(4)?,
            summary: row.get(5)?,
            created_at: row.get(6)?,
            updated_at: row.get(7)?,
        })
    })?;
    Ok(found
        .map(|columns| columns.map(SessionRow::from))
        .collect::<Result<_, _>>()?)
}

fn delete(work: &Work<'_>, key: &SessionKey) -> Result<(), Failure> {
    let named = params![&*key.project, &*key.session];
    let transcripts: Vec<i64> = if key.subpath.is_none() {
        work.prepare(sql::DELETE_SESSION)?.execute(named)?;
        let mut of = work.prepare(sql::TRANSCRIPTS_OF)?;
        let found = of.query_map(named, |row| row.get(0))?;
        found.collect::<Result<_, _>>()?
    } else {
        let found = Transcript::find(work, key)?;
        found.into_iter().map(|found| found.id).collect()
    };
    for id in transcripts {
        for template in [
            sql::DELETE_TRANSCRIPT,
            sql::DELETE_ENTRIES,
            sql::DELETE_MESSAGES,
        ] {
            work.prepare(template)?.execute([id])?;
        }
    }
    Ok(())
}

#[async_trait]
impl SessionStore for SqliteStore {
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
        let append = Append {
            key: key.clone(),
            entries: entries.to_vec(),
            epoch,
            now: self.clock.now_ms(),
        };
        let last = self.database.write(move |work| append.run(work)).await?;
        crash_point!("sqlite.append.committed");
        Ok(last)
    }

    async fn replace(&self, key: &SessionKey, entry: &StoredEntry) -> Result<bool> {
        let (key, entry) = (key.clone(), entry.clone());
        let replace = move |work: &Work<'_>| {
            let found = Transcript::find(work, &key)?;
            let Some((found, uuid)) = found.zip(entry.uuid.as_ref()) else {
                return Ok(false);
            };
            let mut replace = work.prepare(sql::REPLACE_ENTRY)?;
            Ok(replace.execute(params![entry.text(), found.id, uuid])? > 0)
        };
        self.database.write(replace).await
    }

    async fn fence(&self, project: &str, session: &str, epoch: u64) -> Result<()> {
        let (project, session) = (project.to_owned(), session.to_owned());
        let fence = move |work: &Work<'_>| {
            Locked::of(work, &project, &session)?.admits(epoch)?;
            let mut set = work.prepare(sql::SET_FENCE)?;
            set.execute(params![signed(epoch), project, session])?;
            Ok(())
        };
        self.database.write(fence).await
    }

    async fn head(&self, key: &SessionKey) -> Result<Option<Head>> {
        let key = key.clone();
        let head = move |work: &Work<'_>| {
            Ok(Transcript::find(work, &key)?.map(|found| Head {
                seq: unsigned(found.last_seq),
                count: unsigned(found.entries),
            }))
        };
        self.database.read(head).await
    }

    async fn load(&self, key: &SessionKey, after: Option<u64>) -> Result<Option<Loaded>> {
        let key = key.clone();
        let load = move |work: &Work<'_>| {
            let Some(found) = Transcript::find(work, &key)? else {
                return Ok(None);
            };
            let after = signed(after.unwrap_or(0));
            let found = texts(work, sql::LOAD, params![found.id, after, i64::MAX])?;
            Ok(Some(rows::loaded(found)))
        };
        self.database.read(load).await
    }

    async fn tail(&self, key: &SessionKey, count: usize) -> Result<Vec<Placed>> {
        let key = key.clone();
        let tail = move |work: &Work<'_>| {
            let Some(found) = Transcript::find(work, &key)? else {
                return Ok(Vec::new());
            };
            let mut found = texts(work, sql::TAIL, params![found.id, rows::limit(count)])?;
            found.reverse();
            Ok(rows::loaded(found).entries)
        };
        self.database.read(tail).await
    }

    async fn by_message_ids(&self, key: &SessionKey, ids: &[String]) -> Result<Vec<Placed>> {
        let (key, mut ids) = (key.clone(), ids.to_vec());
        ids.sort_unstable();
        ids.dedup();
        let find = move |work: &Work<'_>| {
            let Some(transcript) = Transcript::find(work, &key)? else {
                return Ok(Vec::new());
            };
            let mut found = Vec::new();
            for id in &ids {
                found.extend(texts(work, BY_MESSAGE, params![transcript.id, id])?);
            }
            found.sort_unstable_by_key(|(seq, _)| *seq);
            Ok(rows::loaded(found).entries)
        };
        self.database.read(find).await
    }

    async fn index(
        &self,
        project: &str,
        session: &str,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<IndexRow>> {
        let (project, session) = (project.to_owned(), session.to_owned());
        let page = move |work: &Work<'_>| {
            let mut page = work.prepare(sql::INDEX)?;
            let before = before.map_or(i64::MAX, signed);
            let range = params![project, session, before, rows::limit(limit)];
            let found = page.query_map(range, |row| {
                let role: String = row.get(2)?;
                Ok(rows::index_row(
                    row.get(0)?,
                    row.get(1)?,
                    &role,
                    row.get(3)?,
                ))
            })?;
            Ok(found.collect::<Result<_, _>>()?)
        };
        self.database.read(page).await
    }

    async fn hide_through(&self, project: &str, session: &str, seq: u64) -> Result<()> {
        let (project, session) = (project.to_owned(), session.to_owned());
        let hide = move |work: &Work<'_>| {
            Locked::of(work, &project, &session)?;
            let mut hide = work.prepare(sql::HIDE_THROUGH)?;
            hide.execute(params![signed(seq), project, session])?;
            Ok(())
        };
        self.database.write(hide).await
    }

    async fn register(
        &self,
        project: &str,
        session: &str,
        registration: &Registration,
    ) -> Result<()> {
        let (project, session) = (project.to_owned(), session.to_owned());
        let (new, now) = (registration.clone(), signed(self.clock.now_ms()));
        let register = move |work: &Work<'_>| {
            Locked::of(work, &project, &session)?;
            let metadata = new.metadata.as_ref().map(ToString::to_string);
            let values = params![
                new.user, new.title, metadata, new.parent, now, project, session
            ];
            work.prepare(sql::REGISTER)?.execute(values)?;
            Ok(())
        };
        self.database.write(register).await
    }

    async fn get(&self, project: &str, session: &str) -> Result<Option<SessionRow>> {
        let (project, session) = (project.to_owned(), session.to_owned());
        let get = move |work: &Work<'_>| {
            Ok(sessions(work, sql::GET_SESSION, [&project, &session])?.pop())
        };
        self.database.read(get).await
    }

    async fn list(
        &self,
        project: &str,
        user: Option<&str>,
        after: Option<&ListCursor>,
        limit: usize,
    ) -> Result<Vec<SessionRow>> {
        let (project, user) = (project.to_owned(), user.map(str::to_owned));
        let (after, limit) = (after.cloned(), rows::limit(limit));
        let list = move |work: &Work<'_>| {
            let (time, session) = rows::list_start(after.as_ref());
            if let Some(user) = &user {
                let range = params![project, user, time, session, limit];
                sessions(work, sql::LIST_SESSIONS_OF_USER, range)
            } else {
                sessions(
                    work,
                    sql::LIST_SESSIONS,
                    params![project, time, session, limit],
                )
            }
        };
        self.database.read(list).await
    }

    async fn subkeys(&self, project: &str, session: &str) -> Result<Vec<String>> {
        let (project, session) = (project.to_owned(), session.to_owned());
        let list = move |work: &Work<'_>| {
            let mut list = work.prepare(sql::SUBKEYS)?;
            let found = list.query_map([&project, &session], |row| {
                Ok(rows::subpath(&row.get::<_, String>(0)?))
            })?;
            Ok(found.collect::<Result<_, _>>()?)
        };
        self.database.read(list).await
    }

    async fn delete(&self, key: &SessionKey) -> Result<()> {
        let key = key.clone();
        self.database.write(move |work| delete(work, &key)).await
    }

    fn state(&self) -> Option<Arc<dyn StateStore>> {
        Some(self.state.clone())
    }
}
