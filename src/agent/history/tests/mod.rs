//! Histories of whole transcripts, with stores that can do everything and stores that can only load.

mod pages;
mod records;
mod stores;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use serde_json::json;

use super::{HistoryPage, HistoryQuery, clear, history};
use crate::base::clock::{SharedClock, SystemClock, iso_timestamp};
use crate::error::Result;
use crate::protocol::{CallStatus, Json, MessagePart, MessageRecord, OpenCall, Role, StoredEntry};
use crate::store::session::{
    Caps, Head, IndexRow, ListCursor, Loaded, MemoryStore, Placed, Registration, SessionKey,
    SessionRow, SessionStore,
};
use crate::store::state::StateStore;

/// Time of every entry that is not given one: order must not need it.
const NOW: u64 = 1_700_000_000_000;

fn key() -> SessionKey {
    SessionKey::main("p", "c")
}

fn clock() -> SharedClock {
    Arc::new(SystemClock)
}

/// A store that forwards what it can do, fails every other call, and counts.
struct Limited {
    inner: MemoryStore,
    caps: Caps,
    loads: AtomicUsize,
    /// Entries that were found by their messages.
    found: AtomicUsize,
}

impl Limited {
    fn new(caps: Caps) -> Self {
        Self {
            inner: MemoryStore::new(clock()),
            caps,
            loads: AtomicUsize::new(0),
            found: AtomicUsize::new(0),
        }
    }

    fn able(&self, is_able: bool) -> &MemoryStore {
        assert!(is_able, "the store says that it cannot do this");
        &self.inner
    }
}

const LOAD_ONLY: Caps = Caps {
    list: false,
    head: false,
    tail: false,
    by_ids: false,
    index: false,
    delete: false,
    fenced_append: false,
};

/// Every kind of store that a history can come from.
fn stores() -> Vec<Box<dyn SessionStore>> {
    let can_do = |by_ids, index| Caps {
        by_ids,
        index,
        ..LOAD_ONLY
    };
    vec![
        Box::new(MemoryStore::new(clock())),
        Box::new(Limited::new(LOAD_ONLY)),
        Box::new(Limited::new(can_do(false, true))),
        Box::new(Limited::new(can_do(true, false))),
    ]
}

#[async_trait]
impl SessionStore for Limited {
    fn caps(&self) -> Caps {
        self.caps
    }

    async fn append(
        &self,
        key: &SessionKey,
        new: &[StoredEntry],
        epoch: Option<u64>,
    ) -> Result<u64> {
        self.inner.append(key, new, epoch).await
    }

    async fn replace(&self, key: &SessionKey, entry: &StoredEntry) -> Result<bool> {
        self.inner.replace(key, entry).await
    }

    async fn fence(&self, project: &str, session: &str, epoch: u64) -> Result<()> {
        self.inner.fence(project, session, epoch).await
    }

    async fn head(&self, key: &SessionKey) -> Result<Option<Head>> {
        self.able(self.caps.head).head(key).await
    }

    async fn load(&self, key: &SessionKey, after: Option<u64>) -> Result<Option<Loaded>> {
        self.loads.fetch_add(1, Ordering::Relaxed);
        self.inner.load(key, after).await
    }

    async fn tail(&self, key: &SessionKey, count: usize) -> Result<Vec<Placed>> {
        self.able(self.caps.tail).tail(key, count).await
    }

    async fn by_message_ids(&self, key: &SessionKey, ids: &[String]) -> Result<Vec<Placed>> {
        let found = self.able(self.caps.by_ids).by_message_ids(key, ids).await?;
        self.found.fetch_add(found.len(), Ordering::Relaxed);
        Ok(found)
    }

    async fn index(
        &self,
        project: &str,
        session: &str,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<IndexRow>> {
        let store = self.able(self.caps.index);
        store.index(project, session, before, limit).await
    }

    async fn hide_through(&self, project: &str, session: &str, seq: u64) -> Result<()> {
        let store = self.able(self.caps.index);
        store.hide_through(project, session, seq).await
    }

    async fn register(&self, project: &str, session: &str, of: &Registration) -> Result<()> {
        self.inner.register(project, session, of).await
    }

    async fn get(&self, project: &str, session: &str) -> Result<Option<SessionRow>> {
        self.inner.get(project, session).await
    }

    async fn list(
        &self,
        project: &str,
        user: Option<&str>,
        after: Option<&ListCursor>,
        limit: usize,
    ) -> Result<Vec<SessionRow>> {
        self.inner.list(project, user, after, limit).await
    }

    async fn subkeys(&self, project: &str, session: &str) -> Result<Vec<String>> {
        self.inner.subkeys(project, session).await
    }

    async fn delete(&self, key: &SessionKey) -> Result<()> {
        self.inner.delete(key).await
    }

    fn state(&self) -> Option<Arc<dyn StateStore>> {
        None
    }
}

/// An entry with a time and the fields of `extra`.
fn entry(kind: &str, uuid: &str, message: Json, extra: Json) -> Json {
    let mut entry = json!({
        "type": kind, "uuid": uuid, "parentUuid": null, "isSidechain": false,
        "timestamp": iso_timestamp(NOW), "message": message,
    });
    let fields = entry.as_object_mut().unwrap();
    fields.extend(extra.as_object().unwrap().clone());
    entry
}

fn user(uuid: &str, content: impl Into<Json>) -> Json {
    entry(
        "user",
        uuid,
        json!({"role": "user", "content": content.into()}),
        json!({}),
    )
}

/// An entry of an answer.
fn answer(id: &str, uuid: &str, block: Json) -> Json {
    let message = json!({"role": "assistant", "id": id, "content": [block]});
    entry("assistant", uuid, message, json!({}))
}

fn text(text: &str) -> Json {
    json!({"type": "text", "text": text})
}

fn tool_use(id: &str, name: &str) -> Json {
    json!({"type": "tool_use", "id": id, "name": name, "input": {"of": id}})
}

fn tool_result(id: &str, content: impl Into<Json>, is_error: bool) -> Json {
    json!({"type": "tool_result", "tool_use_id": id, "content": content.into(), "is_error": is_error})
}

/// An entry with the result of a call.
fn result(id: &str, content: impl Into<Json>) -> Json {
    user(&format!("r-{id}"), json!([tool_result(id, content, false)]))
}

fn failed(id: &str, content: impl Into<Json>) -> Json {
    user(&format!("r-{id}"), json!([tool_result(id, content, true)]))
}

/// An entry that the older kernel wrote for a call that waits.
fn sentinel(id: &str, marker: &str) -> Json {
    failed(
        id,
        json!({marker: true, "toolUseId": id, "message": "paused"}).to_string(),
    )
}

fn at(mut entry: Json, ms: u64) -> Json {
    entry["timestamp"] = json!(iso_timestamp(ms));
    entry
}

fn with(mut entry: Json, key: &str, value: impl Into<Json>) -> Json {
    entry[key] = value.into();
    entry
}

fn stored(entry: &Json) -> StoredEntry {
    StoredEntry::parse(entry.to_string()).unwrap()
}

async fn append(store: &dyn SessionStore, entries: &[Json]) {
    let entries: Vec<_> = entries.iter().map(stored).collect();
    store.append(&key(), &entries, None).await.unwrap();
}

async fn page(store: &dyn SessionStore, query: &HistoryQuery) -> HistoryPage {
    history(store, &key(), query, &[]).await.unwrap()
}

fn limit(limit: usize) -> HistoryQuery {
    HistoryQuery {
        limit,
        ..HistoryQuery::default()
    }
}

/// All pages of a size, put together, oldest first.
async fn in_pages(store: &dyn SessionStore, size: usize) -> Vec<MessageRecord> {
    let mut query = limit(size);
    let mut pages = Vec::new();
    loop {
        let page = page(store, &query).await;
        assert!(page.records.len() <= size);
        assert!(page.next_cursor.is_none() || page.records.len() == size);
        pages.push(page.records);
        query.cursor = page.next_cursor;
        if query.cursor.is_none() {
            return pages.into_iter().rev().flatten().collect();
        }
    }
}

/// The whole history of a transcript, the same from every store.
async fn history_of(entries: &[Json], open: &[OpenCall]) -> Vec<MessageRecord> {
    let mut histories = Vec::new();
    for store in stores() {
        append(&*store, entries).await;
        let page = history(&*store, &key(), &limit(0), open).await.unwrap();
        assert_eq!(page.next_cursor, None);
        histories.push(page.records);
    }
    assert!(histories.iter().all(|other| *other == histories[0]));
    histories.swap_remove(0)
}

/// A record in one line: the role and its parts.
fn line(record: &MessageRecord) -> String {
    let parts = record.parts.iter().map(|part| match part {
        MessagePart::Text { text } => format!("'{text}'"),
        MessagePart::Thinking { text } => format!("thinks '{text}'"),
        MessagePart::Image { r#ref, .. } => format!("image {}", json!(r#ref)["kind"]),
        MessagePart::ToolCall {
            tool_use_id,
            status,
            ..
        } => {
            format!("{tool_use_id} {}", json!(status).as_str().unwrap())
        }
        MessagePart::ToolResult {
            tool_use_id,
            output,
            ..
        } => format!("{tool_use_id} -> {output}"),
        MessagePart::ToolApprovalRequired { tool_use_id, .. } => {
            format!("{tool_use_id} needs approval")
        }
    });
    let role = match record.role {
        Role::User => "user",
        Role::Assistant => "assistant",
    };
    format!("{role}: {}", parts.collect::<Vec<_>>().join(", "))
}

fn lines(records: &[MessageRecord]) -> Vec<String> {
    records.iter().map(line).collect()
}
