//! What every driver must do. A case takes a fresh, empty store.

use open_agent_kernel::protocol::StoredEntry;
use open_agent_kernel::store::session::{SessionKey, SharedSessionStore};
use serde_json::{Value as Json, json};

/// Makes one test of each case; `$fresh` gives `(store, guard)`.
macro_rules! session_store_suite {
    ($fresh:path) => {
        session_store_suite! { $fresh:
            appended_entries_come_back_as_they_were
            an_unknown_key_is_none
        }
    };
    ($fresh:path: $($case:ident)+) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                let (store, _guard) = $fresh().await;
                crate::suite::$case(store).await;
            }
        )+
    };
}

fn entry(value: Json) -> StoredEntry {
    StoredEntry::parse(value.to_string()).unwrap()
}

fn texts(loaded: &[open_agent_kernel::store::session::Placed]) -> Vec<Json> {
    let texts = loaded.iter().map(|placed| placed.entry.text());
    texts
        .map(|text| serde_json::from_str(text).unwrap())
        .collect()
}

pub async fn appended_entries_come_back_as_they_were(store: SharedSessionStore) {
    let key = SessionKey::main("p", "s");
    let values = [
        json!({"type": "x", "nested": {"b": [1, 2.5, null], "a": "ü\u{0}"}}),
        json!({"type": "y"}),
    ];
    let entries: Vec<_> = values.iter().cloned().map(entry).collect();
    store.append(&key, &entries, None).await.unwrap();
    let loaded = store.load(&key, None).await.unwrap().unwrap();
    assert_eq!(texts(&loaded.entries), values);
    assert_eq!(loaded.damage, None);
}

pub async fn an_unknown_key_is_none(store: SharedSessionStore) {
    let key = SessionKey::main("p", "s");
    assert_eq!(store.load(&key, None).await.unwrap(), None);
    let sub = key.with_subpath("subagents/agent-1");
    assert_eq!(store.load(&sub, None).await.unwrap(), None);
    assert_eq!(store.head(&sub).await.unwrap(), None);
}
