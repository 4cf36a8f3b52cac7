//! Writes to a transcript, and what every write looks at first.

use std::collections::HashSet;

use crate::base::crash::crash_point;
use crate::error::{ErrorKind, KernelError, Result};
use crate::protocol::StoredEntry;
use crate::store::session::{SessionKey, Summary, fenced_out, fold};
use crate::store::sql::pgsql::{PgsqlDatabase, Transaction, Value, encoded, plain};
use crate::store::sql::rows::{self, signed, unsigned};
use crate::store::sql::statements as sql;

const KNOWN_UUIDS: &str = r#"SELECT uuid FROM "{p}session_entries"
    WHERE transcript = $1 AND uuid = ANY($2)"#;
const INSERT_ENTRIES: &str = r#"INSERT INTO "{p}session_entries"
        (transcript, seq, uuid, message_id, body)
    SELECT $1::bigint, new.* FROM unnest($2::bigint[], $3::text[], $4::text[], $5::text[]) AS new"#;
const INSERT_MESSAGES: &str = r#"INSERT INTO "{p}session_messages"
        (transcript, seq, message_id, role, created_at)
    SELECT $1::bigint, new.* FROM unnest($2::bigint[], $3::text[], $4::text[], $5::bigint[]) AS new
    ON CONFLICT DO NOTHING"#;

/// Appends entries, all or none, and gives the sequence of the newest of the transcript.
pub async fn append(
    database: &PgsqlDatabase,
    key: &SessionKey,
    entries: &[StoredEntry],
    epoch: Option<u64>,
    now: u64,
) -> Result<u64> {
    let mut work = database.begin().await?;
    crash_point!("pgsql.append.begun");
    let locked = Locked::of(&mut work, &key.project, &key.session).await?;
    epoch.map_or(Ok(()), |epoch| locked.admits(epoch))?;
    let transcript = Transcript::find_or_make(&mut work, key).await?;
    let new = new_entries(&mut work, transcript.id, entries).await?;
    let (count, last) = (
        new.len() as u64,
        transcript.last_seq + rows::limit(new.len()),
    );
    if count > 0 {
        insert_entries(&mut work, &transcript, &new).await?;
        let values: [Value<'_>; 3] = [&last, &signed(count), &transcript.id];
        work.execute(sql::GROW_TRANSCRIPT, &values).await?;
        if key.subpath.is_none() {
            insert_messages(&mut work, &transcript, &new, now).await?;
            touch(&mut work, key, &locked.summary, &new, now).await?;
        }
    }
    crash_point!("pgsql.append.written");
    work.commit().await?;
    crash_point!("pgsql.append.committed");
    Ok(unsigned(last))
}

/// Where a transcript stands.
pub struct Transcript {
    pub id: i64,
    pub last_seq: i64,
    pub entries: i64,
}

impl Transcript {
    pub async fn find(work: &mut Transaction<'_>, key: &SessionKey) -> Result<Option<Self>> {
        Self::by(work, sql::FIND_TRANSCRIPT, key).await
    }

    async fn find_or_make(work: &mut Transaction<'_>, key: &SessionKey) -> Result<Self> {
        if let Some(found) = Self::find(work, key).await? {
            return Ok(found);
        }
        Self::by(work, sql::MAKE_TRANSCRIPT, key)
            .await?
            .ok_or_else(no_row)
    }

    async fn by(
        work: &mut Transaction<'_>,
        template: &str,
        key: &SessionKey,
    ) -> Result<Option<Self>> {
        let slot = rows::slot(key);
        let (project, session, slot) =
            (encoded(&key.project), encoded(&key.session), encoded(&slot));
        let row = work.first(template, &[&project, &session, &slot]).await?;
        Ok(row.map(|row| Self {
            id: row.get(0),
            last_seq: row.get(1),
            entries: row.get(2),
        }))
    }
}

/// The session of a transaction that writes to it.
pub struct Locked {
    fence: i64,
    summary: String,
}

impl Locked {
    pub async fn of(work: &mut Transaction<'_>, project: &str, session: &str) -> Result<Self> {
        let (project, session) = (encoded(project), encoded(session));
        let row = work.first(sql::LOCK_SESSION, &[&project, &session]).await?;
        let row = row.ok_or_else(no_row)?;
        Ok(Self {
            fence: row.get(0),
            summary: row.get(1),
        })
    }

    pub fn admits(&self, epoch: u64) -> Result<()> {
        if signed(epoch) < self.fence {
            return Err(fenced_out());
        }
        Ok(())
    }
}

/// A statement with `RETURNING` that changed nothing.
fn no_row() -> KernelError {
    KernelError::new(ErrorKind::Store, "session.url: a written row is not there")
}

/// The entries that a transcript does not have, each once.
async fn new_entries<'a>(
    work: &mut Transaction<'_>,
    transcript: i64,
    entries: &'a [StoredEntry],
) -> Result<Vec<&'a StoredEntry>> {
    let uuids = entries.iter().filter_map(|entry| entry.uuid.as_deref());
    let uuids: Vec<_> = uuids.map(encoded).collect();
    let found = work.query(KNOWN_UUIDS, &[&transcript, &uuids]).await?;
    let mut known: HashSet<String> = found.iter().map(|row| plain(row.get(0))).collect();
    let is_new = |entry: &&StoredEntry| {
        let uuid = entry.uuid.clone();
        uuid.is_none_or(|uuid| known.insert(uuid))
    };
    Ok(entries.iter().filter(is_new).collect())
}

async fn insert_entries(
    work: &mut Transaction<'_>,
    transcript: &Transcript,
    new: &[&StoredEntry],
) -> Result<()> {
    let seqs: Vec<i64> = (transcript.last_seq + 1..).take(new.len()).collect();
    let uuids: Vec<_> = new
        .iter()
        .map(|entry| entry.uuid.as_deref().map(encoded))
        .collect();
    let messages = new.iter().map(|entry| entry.message.as_ref());
    let messages: Vec<_> = messages
        .map(|found| found.map(|message| encoded(&message.id)))
        .collect();
    let bodies: Vec<&str> = new.iter().map(|entry| entry.text()).collect();
    let values: [Value<'_>; 5] = [&transcript.id, &seqs, &uuids, &messages, &bodies];
    work.execute(INSERT_ENTRIES, &values).await?;
    Ok(())
}

async fn insert_messages(
    work: &mut Transaction<'_>,
    transcript: &Transcript,
    new: &[&StoredEntry],
    now: u64,
) -> Result<()> {
    let (mut seqs, mut ids, mut roles, mut times) = (vec![], vec![], vec![], vec![]);
    for (seq, entry) in (transcript.last_seq + 1..).zip(new) {
        if let Some(message) = &entry.message {
            seqs.push(seq);
            ids.push(encoded(&message.id));
            roles.push(rows::role_word(message.role));
            times.push(rows::message_time(entry, now));
        }
    }
    let values: [Value<'_>; 5] = [&transcript.id, &seqs, &ids, &roles, &times];
    work.execute(INSERT_MESSAGES, &values).await?;
    Ok(())
}

/// Takes the new entries of a main transcript into the row of its session.
async fn touch(
    work: &mut Transaction<'_>,
    key: &SessionKey,
    summary: &str,
    new: &[&StoredEntry],
    now: u64,
) -> Result<()> {
    let mut summary = Summary::from_text(summary);
    for entry in new {
        fold(&mut summary, std::slice::from_ref(*entry));
    }
    let (summary, now) = (summary.to_text(), signed(now));
    let (project, session) = (encoded(&key.project), encoded(&key.session));
    let values: [Value<'_>; 4] = [&summary, &now, &project, &session];
    work.execute(sql::TOUCH_SESSION, &values).await?;
    Ok(())
}
