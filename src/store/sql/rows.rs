//! From what a store is given to columns, and back.

use crate::base::clock::parse_timestamp;
use crate::protocol::{Role, StoredEntry};
use crate::store::session::{
    Damage, IndexRow, ListCursor, Loaded, Placed, SessionKey, SessionRow, Summary,
};
use crate::store::state::{StateKey, StateQuery, StateRecord};

/// A number as databases keep it. What is larger than they can hold becomes the largest.
pub fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A number that was stored by [`signed`].
pub fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// A number of rows.
pub fn limit(rows: usize) -> i64 {
    i64::try_from(rows).unwrap_or(i64::MAX)
}

/// The place of a transcript in its session: empty for the main one, else `/` and the sub-path, so
/// that an empty sub-path is another place.
pub fn slot(key: &SessionKey) -> String {
    key.subpath
        .as_ref()
        .map_or_else(String::new, |subpath| format!("/{subpath}"))
}

/// The sub-path of a place.
pub fn subpath(slot: &str) -> String {
    slot.strip_prefix('/').unwrap_or(slot).to_owned()
}

/// The place behind which a list of sessions goes on: above all of them without a cursor.
pub fn list_start(after: Option<&ListCursor>) -> (i64, &str) {
    after.map_or((i64::MAX, ""), |after| {
        (signed(after.updated_at), &after.session)
    })
}

/// The least name that a list of records may hold.
pub fn least_name(query: &StateQuery) -> String {
    // In order of bytes nothing lies between a name and the same with U+0000 behind it.
    query
        .after
        .as_ref()
        .map_or_else(String::new, |after| format!("{after}\0"))
}

/// The word for a role.
pub const fn role_word(role: Role) -> &'static str {
    match role {
        Role::User => "user",
        Role::Assistant => "assistant",
    }
}

/// When the message of an entry was made; `now` if the entry does not say.
pub fn message_time(entry: &StoredEntry, now: u64) -> i64 {
    let at = entry.timestamp.as_deref().and_then(parse_timestamp);
    signed(at.unwrap_or(now))
}

/// The columns of an index row.
pub fn index_row(seq: i64, message_id: String, role: &str, created_at: i64) -> IndexRow {
    IndexRow {
        seq: unsigned(seq),
        message_id,
        role: if role == role_word(Role::User) {
            Role::User
        } else {
            Role::Assistant
        },
        created_at: unsigned(created_at),
    }
}

/// Entries from their sequences and texts. Texts that are no entries are left out and told.
pub fn loaded(rows: Vec<(i64, String)>) -> Loaded {
    let (count, mut entries) = (rows.len(), Vec::with_capacity(rows.len()));
    for (seq, body) in rows {
        if let Ok(entry) = StoredEntry::parse(body) {
            let seq = unsigned(seq);
            entries.push(Placed { seq, entry });
        }
    }
    let lost = (count - entries.len()) as u64;
    let damage = (lost > 0).then(|| Damage {
        what: "entries of the database are not JSON objects".to_owned(),
        lost,
    });
    Loaded { entries, damage }
}

/// The columns of a session.
#[derive(Debug)]
pub struct SessionColumns {
    pub session: String,
    pub user: Option<String>,
    pub title: Option<String>,
    pub metadata: Option<String>,
    pub parent: Option<String>,
    pub summary: String,
    pub created_at: i64,
    pub updated_at: i64,
}

impl From<SessionColumns> for SessionRow {
    fn from(columns: SessionColumns) -> Self {
        let metadata = columns.metadata.as_deref();
        Self {
            metadata: metadata.and_then(|text| serde_json::from_str(text).ok()),
            session: columns.session,
            user: columns.user,
            title: columns.title,
            parent: columns.parent,
            summary: Summary::from_text(&columns.summary),
            created_at: unsigned(columns.created_at),
            updated_at: unsigned(columns.updated_at),
        }
    }
}

/// The columns of a record beside project and kind.
#[derive(Debug)]
pub struct StateColumns {
    pub name: String,
    pub conversation: Option<String>,
    pub user: Option<String>,
    pub version: i64,
    pub data: String,
    pub expires_at: Option<i64>,
}

impl StateColumns {
    /// The record. Data that is not JSON becomes null: whoever reads it judges.
    pub fn record(self, of: &StateKey) -> StateRecord {
        StateRecord {
            key: StateKey {
                key: self.name,
                ..of.clone()
            },
            conversation: self.conversation,
            user: self.user,
            version: unsigned(self.version),
            data: serde_json::from_str(&self.data).unwrap_or_default(),
            expires_at: self.expires_at.map(unsigned),
        }
    }
}
