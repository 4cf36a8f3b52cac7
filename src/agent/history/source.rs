//! Messages of a transcript, from any store that can load one.

use std::collections::HashMap;

use super::clear::{MARKER, has_index};
use super::content::Message;
use crate::base::clock::parse_timestamp;
use crate::error::Result;
use crate::protocol::StoredEntry;
use crate::store::session::{IndexRow, Placed, SessionKey, SessionStore};

/// Where messages come from.
pub(super) struct Source<'a> {
    store: &'a dyn SessionStore,
    key: &'a SessionKey,
    has_index: bool,
    /// The whole transcript, when the store cannot find messages by itself.
    loaded: Option<Transcript>,
}

/// A transcript, with what a store would know of its messages.
#[derive(Default)]
struct Transcript {
    entries: Vec<Placed>,
    by_message: HashMap<String, Vec<usize>>,
    /// Oldest first.
    rows: Vec<IndexRow>,
}

impl<'a> Source<'a> {
    pub async fn new(store: &'a dyn SessionStore, key: &'a SessionKey) -> Result<Self> {
        let has_index = has_index(store, key);
        let finds_messages = has_index && store.caps().by_ids;
        let loaded = if finds_messages {
            None
        } else {
            let loaded = store.load(key, None).await?;
            Some(Transcript::new(loaded.unwrap_or_default().entries))
        };
        Ok(Self {
            store,
            key,
            has_index,
            loaded,
        })
    }

    /// Messages below a sequence, newest first.
    pub async fn rows(&self, before: Option<u64>, limit: usize) -> Result<Vec<IndexRow>> {
        match &self.loaded {
            Some(loaded) if !self.has_index => Ok(loaded.rows(before, limit)),
            _ => {
                let SessionKey {
                    project, session, ..
                } = self.key;
                self.store.index(project, session, before, limit).await
            }
        }
    }

    /// What messages hold, in the order of their rows.
    pub async fn messages(&self, rows: Vec<IndexRow>) -> Result<Vec<Message>> {
        let mut by_id = self.entries(&rows).await?;
        let messages = rows.into_iter().map(|row| {
            let entries = by_id.remove(&row.message_id).unwrap_or_default();
            Message::read(row, &entries)
        });
        Ok(messages.collect())
    }

    /// The entries from a sequence on.
    pub async fn behind(&self, from: u64) -> Result<Vec<Placed>> {
        if let Some(loaded) = &self.loaded {
            return Ok(loaded.behind(from));
        }
        let after = Some(from.saturating_sub(1));
        let loaded = self.store.load(self.key, after).await?;
        Ok(loaded.unwrap_or_default().entries)
    }

    async fn entries(&self, rows: &[IndexRow]) -> Result<HashMap<String, Vec<StoredEntry>>> {
        if let Some(loaded) = &self.loaded {
            return Ok(loaded.entries_of(rows));
        }
        if rows.is_empty() {
            return Ok(HashMap::new());
        }
        let ids: Vec<String> = rows.iter().map(|row| row.message_id.clone()).collect();
        let found = self.store.by_message_ids(self.key, &ids).await?;
        let mut by_id: HashMap<String, Vec<StoredEntry>> = HashMap::with_capacity(rows.len());
        for Placed { entry, .. } in found {
            if let Some(id) = entry.message.as_ref().map(|message| message.id.clone()) {
                by_id.entry(id).or_default().push(entry);
            }
        }
        Ok(by_id)
    }
}

impl Transcript {
    fn new(entries: Vec<Placed>) -> Self {
        let mut transcript = Self::default();
        let mut by_uuid: HashMap<String, usize> = HashMap::new();
        let mut last_ms = 0;
        for placed in entries {
            // An entry that comes again is a correction of the first one, whose place it takes.
            let first = placed
                .entry
                .uuid
                .as_ref()
                .and_then(|uuid| by_uuid.get(uuid));
            if let Some(&first) = first {
                transcript.entries[first].entry = placed.entry;
                continue;
            }
            if let Some(uuid) = &placed.entry.uuid {
                by_uuid.insert(uuid.clone(), transcript.entries.len());
            }
            last_ms = time_of(&placed.entry).unwrap_or(last_ms);
            transcript.push(placed, last_ms);
        }
        transcript
    }

    fn push(&mut self, placed: Placed, created_at: u64) {
        if placed.entry.kind == MARKER {
            self.rows.clear();
        }
        if let Some(message) = &placed.entry.message {
            let positions = self.by_message.entry(message.id.clone()).or_default();
            if positions.is_empty() {
                self.rows.push(IndexRow {
                    seq: placed.seq,
                    message_id: message.id.clone(),
                    role: message.role,
                    created_at,
                });
            }
            positions.push(self.entries.len());
        }
        self.entries.push(placed);
    }

    fn rows(&self, before: Option<u64>, limit: usize) -> Vec<IndexRow> {
        let end = before.map_or(self.rows.len(), |before| {
            self.rows.partition_point(|row| row.seq < before)
        });
        self.rows[..end].iter().rev().take(limit).cloned().collect()
    }

    fn entries_of(&self, rows: &[IndexRow]) -> HashMap<String, Vec<StoredEntry>> {
        let of = |row: &IndexRow| {
            let places = self.by_message.get(&row.message_id).into_iter().flatten();
            let entries = places.map(|&at| self.entries[at].entry.clone()).collect();
            (row.message_id.clone(), entries)
        };
        rows.iter().map(of).collect()
    }

    fn behind(&self, from: u64) -> Vec<Placed> {
        let start = self.entries.partition_point(|placed| placed.seq < from);
        self.entries[start..].to_vec()
    }
}

fn time_of(entry: &StoredEntry) -> Option<u64> {
    entry.timestamp.as_deref().and_then(parse_timestamp)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn transcript(entries: &[Value]) -> Transcript {
        let placed = (1..).zip(entries).map(|(seq, entry)| Placed {
            seq,
            entry: StoredEntry::parse(entry.to_string()).unwrap(),
        });
        Transcript::new(placed.collect())
    }

    fn entry(uuid: &str, message: &str, note: &str) -> Value {
        json!({"type": "assistant", "uuid": uuid, "message": {"id": message}, "note": note})
    }

    fn rows(transcript: &Transcript) -> Vec<(u64, String)> {
        let rows = transcript.rows(None, 10).into_iter();
        rows.map(|row| (row.seq, row.message_id)).collect()
    }

    #[test]
    fn an_entry_that_comes_again_corrects_the_first_in_its_place() {
        let entries = [
            entry("a", "m1", "old"),
            entry("b", "m2", ""),
            entry("a", "m1", "new"),
            entry("c", "m1", ""),
        ];
        let transcript = transcript(&entries);
        assert_eq!(
            rows(&transcript),
            [(2, "m2".to_owned()), (1, "m1".to_owned())]
        );
        let of = transcript.entries_of(&transcript.rows(None, 10));
        let notes: Vec<_> = of["m1"]
            .iter()
            .map(|entry| entry.text().contains("new"))
            .collect();
        assert_eq!(notes, [true, false]);
    }

    #[test]
    fn a_marker_hides_messages_for_ever() {
        let entries = [
            entry("a", "m1", ""),
            json!({"type": MARKER, "uuid": "x"}),
            entry("a", "m1", "corrected"),
            entry("b", "m1", "continued"),
            entry("c", "m2", ""),
        ];
        assert_eq!(rows(&transcript(&entries)), [(5, "m2".to_owned())]);
    }

    #[test]
    fn an_entry_without_a_time_has_that_of_the_one_before() {
        let mut first = entry("a", "m1", "");
        first["timestamp"] = json!("2026-01-02T03:04:05.678Z");
        let transcript = transcript(&[first, entry("b", "m2", "")]);
        let rows = transcript.rows(None, 10);
        assert!(rows.iter().all(|row| row.created_at == 1_767_323_045_678));
    }
}
