//! Journals and entries for tests. Included with `#[path]`.

use std::sync::Arc;
use std::time::Duration;

use open_agent_kernel::base::clock::SystemClock;
use open_agent_kernel::engine::{Journal, JournalSettings};
use open_agent_kernel::error::KernelError;
use open_agent_kernel::protocol::Entry;
use open_agent_kernel::store::session::{SessionKey, SharedSessionStore};
use serde_json::json;

pub fn key() -> SessionKey {
    SessionKey::main("p", "s")
}

pub fn settings(store: SharedSessionStore, timeout: Duration) -> JournalSettings {
    JournalSettings {
        store,
        key: key(),
        timeout,
        eager: false,
        lenient: false,
        clock: Arc::new(SystemClock),
    }
}

pub fn journal(store: SharedSessionStore, timeout: Duration) -> Arc<Journal> {
    Journal::new(settings(store, timeout))
}

pub fn entry(uuid: &str) -> Entry {
    let message = json!({"role": "user", "content": uuid});
    let fields = json!({"type": "user", "uuid": uuid, "message": message});
    serde_json::from_value(fields).unwrap()
}

/// What a store has, by uuid, in its order.
pub async fn stored(store: &SharedSessionStore) -> Vec<String> {
    let loaded = store.load(&key(), None).await.unwrap().unwrap_or_default();
    let entries = loaded.entries.into_iter();
    entries.filter_map(|placed| placed.entry.uuid).collect()
}

/// What an error says is not stored.
pub fn unsaved(error: &KernelError) -> Vec<String> {
    serde_json::from_value(error.details()["unsaved"].clone()).unwrap()
}
