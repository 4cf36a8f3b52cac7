//! Session stores that the host program gave: objects with the methods of the Claude Agent SDK.
//!
//! Such a store knows no sequences, leases or message positions: they are derived from what it loads.
//! `functions` names what the store can do, `calls` calls it and judges what came back, `rows` reads
//! descriptions of sessions, which `sessions` lists; `extent` remembers what is stored, so that an
//! append that is repeated stores nothing twice.

mod calls;
mod extent;
mod functions;
mod rows;
mod sessions;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::json;

use self::calls::Calls;
use self::extent::Extents;
use self::functions::Functions;
use crate::agent::history::{MARKER, marker};
use crate::agent::host::Host;
use crate::base::clock::{SharedClock, parse_timestamp};
use crate::error::Result;
use crate::protocol::{Json, StoredEntry};
use crate::store::session::{
    Caps, Head, IndexRow, ListCursor, Loaded, Placed, Registration, SessionKey, SessionRow,
    SessionStore,
};
use crate::store::state::StateStore;

/// Rows of the index that are asked for at once.
const INDEX_PAGE: usize = 1_000;

/// A session store of the host program.
pub struct HostStore {
    calls: Calls,
    functions: Functions,
    extents: Extents,
}

impl HostStore {
    /// A store from the functions that the host program prepared. `path` names the store in messages,
    /// such as `config.session.store`.
    ///
    /// Fails with an `InvalidConfig` error when a method is missing that every store must have.
    pub fn from_fields(
        path: &str,
        value: &Json,
        host: Arc<dyn Host>,
        clock: SharedClock,
    ) -> Result<Self> {
        let functions = functions::read(path, value)?;
        Ok(Self {
            calls: Calls::new(path, host, clock),
            functions,
            extents: Extents::default(),
        })
    }

    /// The transcript as it is stored, without entries that it holds twice, and learns from it.
    async fn read(&self, key: &SessionKey) -> Result<Option<Vec<Placed>>> {
        let extent = self.extents.of(key);
        // While an append is on its way, what is read may be older than what it learns.
        let held = extent.try_lock();
        let entries = self
            .calls
            .entries(self.functions.load, json!({"key": key_json(key)}))
            .await?;
        if let Ok(mut held) = held {
            held.learn(&entries);
        }
        Ok((!entries.is_empty()).then(|| without_repeats(entries)))
    }

    async fn read_all(&self, key: &SessionKey) -> Result<Vec<Placed>> {
        Ok(self.read(key).await?.unwrap_or_default())
    }

    /// Ids of the messages that the index of the store shows; none when it keeps no index.
    async fn shown_messages(
        &self,
        project: &str,
        session: &str,
    ) -> Result<Option<HashSet<String>>> {
        let Some(query) = self.functions.query_messages else {
            return Ok(None);
        };
        let (mut shown, mut before) = (HashSet::new(), None);
        loop {
            let argument = json!({
                "projectKey": project, "conversationId": session,
                "options": options(before),
            });
            let page = self.calls.messages(query, argument).await?;
            let (count, known) = (page.len(), shown.len());
            let oldest = page.iter().map(|(_, created_at)| *created_at).min();
            shown.extend(page.into_iter().map(|(id, _)| id));
            if count < INDEX_PAGE || shown.len() == known {
                return Ok(Some(shown));
            }
            // Others may have been made in the same millisecond.
            before = oldest.map(|oldest| oldest + 1);
        }
    }
}

#[async_trait]
impl SessionStore for HostStore {
    fn caps(&self) -> Caps {
        let functions = &self.functions;
        Caps {
            list: functions.list.is_some() || functions.summaries.is_some(),
            head: false,
            tail: false,
            by_ids: false,
            index: functions.query_messages.is_some() && functions.delete_messages.is_some(),
            delete: functions.delete.is_some(),
            fenced_append: false,
        }
    }

    async fn append(
        &self,
        key: &SessionKey,
        entries: &[StoredEntry],
        _epoch: Option<u64>,
    ) -> Result<u64> {
        let extent = self.extents.of(key);
        let mut extent = extent.lock().await;
        if !extent.is_certain() {
            let argument = json!({"key": key_json(key)});
            extent.learn(&self.calls.entries(self.functions.load, argument).await?);
        }
        let new = extent.new_ones(entries);
        if !new.is_empty() {
            let argument = json!({"key": key_json(key), "entries": self.calls.values(&new)?});
            // Also when this call is dropped: what was stored is not known then.
            extent.doubt();
            self.calls
                .call(self.functions.append, "append", argument)
                .await?;
        }
        extent.add(&new);
        Ok(extent.count())
    }

    async fn replace(&self, key: &SessionKey, entry: &StoredEntry) -> Result<bool> {
        if !self.functions.replaces {
            return Err(self
                .calls
                .refused("append", "cannot replace an entry in this store"));
        }
        let Some(uuid) = &entry.uuid else {
            return Ok(false);
        };
        let stored = self.read_all(key).await?;
        let is_known = |placed: &Placed| placed.entry.uuid.as_ref() == Some(uuid);
        if !stored.iter().any(is_known) {
            return Ok(false);
        }
        let argument = json!({"key": key_json(key), "entries": self.calls.values(std::slice::from_ref(entry))?});
        self.calls
            .call(self.functions.append, "append", argument)
            .await?;
        Ok(true)
    }

    /// Such stores cannot refuse: `caps` says so.
    async fn fence(&self, _project: &str, _session: &str, _epoch: u64) -> Result<()> {
        Ok(())
    }

    async fn head(&self, key: &SessionKey) -> Result<Option<Head>> {
        Ok(self.read(key).await?.map(|entries| Head {
            seq: entries.last().map_or(0, |placed| placed.seq),
            count: entries.len() as u64,
        }))
    }

    async fn load(&self, key: &SessionKey, after: Option<u64>) -> Result<Option<Loaded>> {
        Ok(self.read(key).await?.map(|mut entries| {
            entries.retain(|placed| after.is_none_or(|after| placed.seq > after));
            Loaded {
                entries,
                damage: None,
            }
        }))
    }

    async fn tail(&self, key: &SessionKey, count: usize) -> Result<Vec<Placed>> {
        let mut entries = self.read_all(key).await?;
        Ok(entries.split_off(entries.len().saturating_sub(count)))
    }

    async fn by_message_ids(&self, key: &SessionKey, ids: &[String]) -> Result<Vec<Placed>> {
        let mut entries = self.read_all(key).await?;
        entries.retain(|placed| {
            let message = placed.entry.message.as_ref();
            message.is_some_and(|message| ids.contains(&message.id))
        });
        Ok(entries)
    }

    async fn index(
        &self,
        project: &str,
        session: &str,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<IndexRow>> {
        let shown = self.shown_messages(project, session).await?;
        let entries = self.read_all(&SessionKey::main(project, session)).await?;
        let mut rows = index_rows(&entries);
        let is_marker = |placed: &&Placed| placed.entry.kind == MARKER;
        let cleared = entries
            .iter()
            .rfind(is_marker)
            .map_or(0, |placed| placed.seq);
        rows.retain(|row| {
            row.seq > cleared
                && before.is_none_or(|before| row.seq < before)
                && shown
                    .as_ref()
                    .is_none_or(|ids| ids.contains(&row.message_id))
        });
        rows.reverse();
        rows.truncate(limit);
        Ok(rows)
    }

    /// Empties the index of the store, and marks the transcript: a message that the store takes into its
    /// index again stays hidden.
    async fn hide_through(&self, project: &str, session: &str, _seq: u64) -> Result<()> {
        let Some(delete) = self.functions.delete_messages else {
            return Err(self
                .calls
                .refused("deleteSessionMessages", "does not exist in this store"));
        };
        let key = SessionKey::main(project, session);
        let argument = json!({"key": key_json(&key)});
        self.calls
            .call(delete, "deleteSessionMessages", argument)
            .await?;
        let marker = marker(self.calls.clock())?;
        self.append(&key, &[marker], None).await.map(drop)
    }

    async fn register(
        &self,
        project: &str,
        session: &str,
        registration: &Registration,
    ) -> Result<()> {
        let Some(register) = self.functions.register else {
            return Ok(());
        };
        let mut argument = json!({"projectKey": project, "sessionId": session});
        for (key, value) in [
            ("userId", registration.user.clone().map(Json::from)),
            ("title", registration.title.clone().map(Json::from)),
            ("metadata", registration.metadata.clone()),
        ] {
            if let Some(value) = value {
                argument[key] = value;
            }
        }
        self.calls
            .call(register, "registerSession", argument)
            .await
            .map(drop)
    }

    async fn get(&self, project: &str, session: &str) -> Result<Option<SessionRow>> {
        self.described(project, session).await
    }

    async fn list(
        &self,
        project: &str,
        user: Option<&str>,
        after: Option<&ListCursor>,
        limit: usize,
    ) -> Result<Vec<SessionRow>> {
        self.listed(project, user, after, limit).await
    }

    async fn subkeys(&self, project: &str, session: &str) -> Result<Vec<String>> {
        let Some(subkeys) = self.functions.subkeys else {
            return Ok(Vec::new());
        };
        let argument = json!({"key": key_json(&SessionKey::main(project, session))});
        self.calls.subkeys(subkeys, argument).await
    }

    async fn delete(&self, key: &SessionKey) -> Result<()> {
        self.extents.forget(key);
        let Some(delete) = self.functions.delete else {
            return Ok(());
        };
        let argument = json!({"key": key_json(key)});
        self.calls.call(delete, "delete", argument).await.map(drop)
    }

    fn state(&self) -> Option<Arc<dyn StateStore>> {
        None
    }
}

/// A key as the methods of a store know it.
fn key_json(key: &SessionKey) -> Json {
    let mut value = json!({"projectKey": &*key.project, "sessionId": &*key.session});
    if let Some(subpath) = &key.subpath {
        value["subpath"] = json!(&**subpath);
    }
    value
}

fn options(before: Option<u64>) -> Json {
    match before {
        Some(before) => json!({"limit": INDEX_PAGE, "before": before}),
        None => json!({"limit": INDEX_PAGE}),
    }
}

/// Gives entries their places; of those with one uuid only the first stays.
fn without_repeats(entries: Vec<StoredEntry>) -> Vec<Placed> {
    let mut known = HashSet::new();
    (1..)
        .zip(entries)
        .filter(|(_, entry)| entry.uuid.clone().is_none_or(|uuid| known.insert(uuid)))
        .map(|(seq, entry)| Placed { seq, entry })
        .collect()
}

/// The first entries of the messages, oldest first.
fn index_rows(entries: &[Placed]) -> Vec<IndexRow> {
    let mut known = HashSet::new();
    let of = |placed: &Placed| {
        let message = placed.entry.message.clone()?;
        let timestamp = placed.entry.timestamp.as_deref();
        known.insert(message.id.clone()).then(|| IndexRow {
            seq: placed.seq,
            message_id: message.id,
            role: message.role,
            created_at: timestamp.and_then(parse_timestamp).unwrap_or_default(),
        })
    };
    entries.iter().filter_map(of).collect()
}
