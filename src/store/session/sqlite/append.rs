//! Writes to a transcript, and what every write looks at first.

use rusqlite::{OptionalExtension, Row, params};

use crate::base::crash::crash_point;
use crate::error::Result;
use crate::protocol::StoredEntry;
use crate::store::session::{SessionKey, Summary, fenced_out, fold};
use crate::store::sql::rows::{self, signed, unsigned};
use crate::store::sql::sqlite::{Failure, Work};
use crate::store::sql::statements as sql;

const INSERT_ENTRY: &str = r#"INSERT INTO "{p}session_entries"
    (transcript, seq, uuid, message_id, body) VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING"#;
const INSERT_MESSAGE: &str = r#"INSERT INTO "{p}session_messages"
    (transcript, seq, message_id, role, created_at) VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT DO NOTHING"#;

/// Where a transcript stands.
pub struct Transcript {
    pub id: i64,
    pub last_seq: i64,
    pub entries: i64,
}

impl Transcript {
    fn of_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: row.get(0)?,
            last_seq: row.get(1)?,
            entries: row.get(2)?,
        })
    }

    pub fn find(work: &Work<'_>, key: &SessionKey) -> Result<Option<Self>, Failure> {
        let mut find = work.prepare(sql::FIND_TRANSCRIPT)?;
        let named = params![&*key.project, &*key.session, rows::slot(key)];
        Ok(find.query_row(named, Self::of_row).optional()?)
    }

    fn find_or_make(work: &Work<'_>, key: &SessionKey) -> Result<Self, Failure> {
        if let Some(found) = Self::find(work, key)? {
            return Ok(found);
        }
        let mut make = work.prepare(sql::MAKE_TRANSCRIPT)?;
        let named = params![&*key.project, &*key.session, rows::slot(key)];
        Ok(make.query_row(named, Self::of_row)?)
    }
}

/// The session of a transaction that writes to it.
pub struct Locked {
    fence: i64,
    summary: String,
}

impl Locked {
    pub fn of(work: &Work<'_>, project: &str, session: &str) -> Result<Self, Failure> {
        let mut lock = work.prepare(sql::LOCK_SESSION)?;
        let row = lock.query_row(params![project, session], |row| {
            Ok(Self {
                fence: row.get(0)?,
                summary: row.get(1)?,
            })
        })?;
        Ok(row)
    }

    pub fn admits(&self, epoch: u64) -> Result<(), Failure> {
        if signed(epoch) < self.fence {
            return Err(fenced_out().into());
        }
        Ok(())
    }
}

/// What is appended.
pub struct Append {
    pub key: SessionKey,
    pub entries: Vec<StoredEntry>,
    pub epoch: Option<u64>,
    pub now: u64,
}

impl Append {
    pub fn run(&self, work: &Work<'_>) -> Result<u64, Failure> {
        crash_point!("sqlite.append.begun");
        let locked = Locked::of(work, &self.key.project, &self.key.session)?;
        self.epoch.map_or(Ok(()), |epoch| locked.admits(epoch))?;
        let transcript = Transcript::find_or_make(work, &self.key)?;
        let mut summary = Summary::from_text(&locked.summary);
        let mut seq = transcript.last_seq;
        for entry in &self.entries {
            if self.insert(work, transcript.id, seq + 1, entry)? {
                seq += 1;
                fold(&mut summary, std::slice::from_ref(entry));
            }
        }
        if seq > transcript.last_seq {
            let mut grow = work.prepare(sql::GROW_TRANSCRIPT)?;
            grow.execute(params![seq, seq - transcript.last_seq, transcript.id])?;
            self.touch(work, &summary)?;
        }
        crash_point!("sqlite.append.written");
        Ok(unsigned(seq))
    }

    /// Whether the entry was new.
    fn insert(
        &self,
        work: &Work<'_>,
        transcript: i64,
        seq: i64,
        entry: &StoredEntry,
    ) -> Result<bool, Failure> {
        let message = entry.message.as_ref();
        let id = message.map(|message| &message.id);
        let mut insert = work.prepare(INSERT_ENTRY)?;
        if insert.execute(params![transcript, seq, entry.uuid, id, entry.text()])? == 0 {
            return Ok(false);
        }
        if let Some(message) = message.filter(|_| self.key.subpath.is_none()) {
            let (role, at) = (
                rows::role_word(message.role),
                rows::message_time(entry, self.now),
            );
            let mut insert = work.prepare(INSERT_MESSAGE)?;
            insert.execute(params![transcript, seq, message.id, role, at])?;
        }
        Ok(true)
    }

    fn touch(&self, work: &Work<'_>, summary: &Summary) -> Result<(), Failure> {
        if self.key.subpath.is_none() {
            let mut touch = work.prepare(sql::TOUCH_SESSION)?;
            let (project, session) = (&*self.key.project, &*self.key.session);
            touch.execute(params![
                summary.to_text(),
                signed(self.now),
                project,
                session
            ])?;
        }
        Ok(())
    }
}
