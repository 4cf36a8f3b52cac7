//! What every driver must do. A case takes a fresh, empty store.

use open_agent_kernel::store::state::{
    Inserted, SharedStateStore, StateKey, StateKind, StateRecord, Swapped,
};
use serde_json::json;

/// Makes one test of each case; `$fresh` gives `(store, guard)`.
macro_rules! state_store_suite {
    ($fresh:path) => {
        state_store_suite! { $fresh:
            a_swap_needs_the_version
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

fn record(key: &str) -> StateRecord {
    StateRecord {
        key: StateKey {
            project: "p".into(),
            kind: StateKind::Approval,
            key: key.into(),
        },
        conversation: Some("c".into()),
        user: None,
        version: 0,
        data: json!({"a": [1, "ü"]}),
        expires_at: Some(5),
    }
}

pub async fn a_swap_needs_the_version(store: SharedStateStore) {
    let first = record("k");
    assert_eq!(store.insert(&first).await.unwrap(), Inserted::Done);
    let stored = StateRecord {
        version: 1,
        ..first.clone()
    };
    let again = store.insert(&first).await.unwrap();
    assert_eq!(again, Inserted::Exists(stored.clone()));
    let late = store.swap(&first, 2).await.unwrap();
    assert_eq!(late, Swapped::Conflict(Some(stored)));
    assert_eq!(store.swap(&first, 1).await.unwrap(), Swapped::Done(2));
    let key = first.key.clone();
    assert_eq!(store.remove(&key, Some(2)).await.unwrap(), Swapped::Done(2));
    assert_eq!(store.get(&key).await.unwrap(), None);
}
