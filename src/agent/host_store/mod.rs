//! Session stores that the host program gave: objects with the methods of the Claude Agent SDK.
//!
//! Such a store knows no sequences, leases or message positions: they are derived from what it loads.
//! `calls` makes the calls and judges what came back, `rows` reads descriptions of sessions, `extent`
//! remembers what is stored, so that an append that is repeated stores nothing twice.

mod calls;
mod extent;
mod rows;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::json;

use self::calls::Calls;
use self::extent::Extents;
use crate::agent::config::Fields;
use crate::agent::history::{MARKER, marker};
use crate::agent::host::{FunctionId, Host};
use crate::base::clock::{SharedClock, parse_timestamp};
use crate::error::{KernelError, Result};
use crate::protocol::{Json, StoredEntry};
use crate::store::session::{
    Caps, Head, IndexRow, ListCursor, Loaded, Placed, Registration, SessionKey, SessionRow,
    SessionStore, Summary, fold,
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

/// The functions of the store, each of which takes one argument.
#[derive(Clone, Copy, Debug)]
struct Functions {
    append: FunctionId,
    load: FunctionId,
    list: Option<FunctionId>,
    summaries: Option<FunctionId>,
    delete: Option<FunctionId>,
    subkeys: Option<FunctionId>,
    register: Option<FunctionId>,
    get: Option<FunctionId>,
    query_messages: Option<FunctionId>,
    delete_messages: Option<FunctionId>,
    /// Whether an append of an entry with a known uuid puts it in the place of the older.
    replaces: bool,
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
        let functions = functions(path, value)?;
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

    /// Rows of all sessions of a project, in the order of the store, with their summaries.
    async fn all_rows(&self, project: &str) -> Result<Vec<SessionRow>> {
        let argument = || json!({"projectKey": project});
        let summaries = match self.functions.summaries {
            Some(summaries) => self.calls.summaries(summaries, argument()).await?,
            None => Vec::new(),
        };
        let Some(list) = self.functions.list else {
            return Ok(summaries);
        };
        let mut rows = self.calls.sessions(list, argument()).await?;
        for row in &mut rows {
            if let Some(found) = summaries.iter().find(|known| known.session == row.session) {
                row.summary = found.summary.clone();
                row.created_at = row.created_at.min(found.created_at);
            }
        }
        Ok(rows)
    }

    /// A session that the store cannot describe, from its transcript.
    async fn row_of_transcript(&self, project: &str, session: &str) -> Result<Option<SessionRow>> {
        let Some(entries) = self.read(&SessionKey::main(project, session)).await? else {
            return Ok(None);
        };
        let mut summary = Summary::default();
        let entries: Vec<StoredEntry> = entries.into_iter().map(|placed| placed.entry).collect();
        fold(&mut summary, &entries);
        let mut times = entries
            .iter()
            .filter_map(|entry| parse_timestamp(entry.timestamp.as_deref()?));
        let created_at = times.next().unwrap_or_else(|| self.calls.now_ms());
        Ok(Some(SessionRow {
            session: session.to_owned(),
            summary,
            created_at,
            updated_at: times.max().unwrap_or(created_at).max(created_at),
            ..SessionRow::default()
        }))
    }

    /// Whether a session belongs to a user; asks for it when the list did not say.
    async fn belongs_to(&self, project: &str, row: &mut SessionRow, user: &str) -> Result<bool> {
        if let (None, Some(get)) = (&row.user, self.functions.get) {
            let known = self.calls.session(get, project, &row.session).await?;
            row.user = known.and_then(|known| known.user);
        }
        Ok(row.user.as_deref() == Some(user))
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
        if !self.caps().list && self.functions.get.is_none() {
            return self.row_of_transcript(project, session).await;
        }
        let listed = || async {
            let rows = self.all_rows(project).await?;
            Ok::<_, KernelError>(rows.into_iter().find(|row| row.session == session))
        };
        let Some(get) = self.functions.get else {
            return listed().await;
        };
        let Some(mut row) = self.calls.session(get, project, session).await? else {
            return Ok(None);
        };
        if self.functions.summaries.is_some()
            && let Some(known) = listed().await?
        {
            row.summary = known.summary;
        }
        Ok(Some(row))
    }

    async fn list(
        &self,
        project: &str,
        user: Option<&str>,
        after: Option<&ListCursor>,
        limit: usize,
    ) -> Result<Vec<SessionRow>> {
        let mut rows = self.all_rows(project).await?;
        rows.sort_unstable_by(|a, b| (b.updated_at, &b.session).cmp(&(a.updated_at, &a.session)));
        rows.dedup_by(|a, b| a.session == b.session);
        rows.retain(|row| {
            after.is_none_or(|after| {
                (row.updated_at, &row.session) < (after.updated_at, &after.session)
            })
        });
        let mut found = Vec::new();
        for mut row in rows {
            if found.len() == limit {
                break;
            }
            let is_wanted = match user {
                Some(user) => self.belongs_to(project, &mut row, user).await?,
                None => true,
            };
            if is_wanted {
                found.push(row);
            }
        }
        Ok(found)
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

fn functions(path: &str, value: &Json) -> Result<Functions> {
    let fields = Fields::of(path, value)?;
    let needed = |name: &'static str| {
        fields.function(name)?.ok_or_else(|| {
            KernelError::invalid(format!(
                "{path} has no method {name}: a session store has append and load, or save and load"
            ))
        })
    };
    let has_save = fields.get("save").is_some();
    let load = || needed("load");
    // A store that has `save` alone is told what it lacks, not what it need not have.
    let (append, load) = if has_save {
        let load = load()?;
        (needed("append")?, load)
    } else {
        (needed("append")?, load()?)
    };
    Ok(Functions {
        append,
        load,
        list: fields.function("listSessions")?,
        summaries: fields.function("listSessionSummaries")?,
        delete: fields.function("delete")?,
        subkeys: fields.function("listSubkeys")?,
        register: fields.function("registerSession")?,
        get: fields.function("getSession")?,
        query_messages: fields.function("querySessionMessages")?,
        delete_messages: fields.function("deleteSessionMessages")?,
        replaces: fields.boolean("replaces")?.unwrap_or(false),
    })
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
