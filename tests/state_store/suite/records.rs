//! Single records.

use open_agent_kernel::store::state::{
    Inserted, SharedStateStore, StateKind, StateQuery, StateRecord, Swapped,
};
use serde_json::json;

use super::{KINDS, key, listed, put, query, record, with_version};

pub async fn an_unknown_record_is_none(store: SharedStateStore) {
    let first = record("k");
    assert_eq!(store.get(&first.key).await.unwrap(), None);
    let swap = store.swap(&first, 1).await.unwrap();
    assert_eq!(swap, Swapped::Conflict(None));
    for expected in [None, Some(1)] {
        let gone = store.remove(&first.key, expected).await.unwrap();
        assert_eq!(gone, Swapped::Conflict(None));
    }
    assert_eq!(store.get(&first.key).await.unwrap(), None);
    let nothing = listed(&store, &query("p", StateKind::Approval)).await;
    assert_eq!(nothing, Vec::<String>::new());
    store.forget("p", "c").await.unwrap();
}

pub async fn an_insert_needs_a_free_key(store: SharedStateStore) {
    let first = with_version(&record("k"), 77);
    put(&store, &first).await;
    let stored = with_version(&first, 1);
    assert_eq!(store.get(&first.key).await.unwrap(), Some(stored.clone()));
    let other = StateRecord {
        data: json!("other"),
        ..first
    };
    let again = store.insert(&other).await.unwrap();
    assert_eq!(again, Inserted::Exists(stored.clone()));
    assert_eq!(store.get(&other.key).await.unwrap(), Some(stored));
}

pub async fn a_swap_needs_the_version(store: SharedStateStore) {
    let first = record("k");
    put(&store, &first).await;
    let stored = with_version(&first, 1);
    for wrong in [0, 2, u64::MAX >> 1] {
        let late = store.swap(&first, wrong).await.unwrap();
        assert_eq!(late, Swapped::Conflict(Some(stored.clone())));
    }
    for version in 1..5 {
        // What stands in the record does not matter.
        let new = with_version(&first, 99);
        let done = store.swap(&new, version).await.unwrap();
        assert_eq!(done, Swapped::Done(version + 1));
    }
    let stored = with_version(&first, 5);
    assert_eq!(store.get(&first.key).await.unwrap(), Some(stored.clone()));
    let late = store.swap(&first, 4).await.unwrap();
    assert_eq!(late, Swapped::Conflict(Some(stored)));
}

pub async fn a_swap_puts_the_whole_record(store: SharedStateStore) {
    put(&store, &record("k")).await;
    let new = StateRecord {
        conversation: None,
        user: Some("u".into()),
        data: json!([]),
        expires_at: None,
        ..record("k")
    };
    assert_eq!(store.swap(&new, 1).await.unwrap(), Swapped::Done(2));
    let stored = with_version(&new, 2);
    assert_eq!(store.get(&new.key).await.unwrap(), Some(stored));
    let of_conversation = StateQuery {
        conversation: Some("c".into()),
        ..query("p", StateKind::Approval)
    };
    let none = listed(&store, &of_conversation).await;
    assert_eq!(none, Vec::<String>::new());
}

pub async fn a_removal_needs_the_version(store: SharedStateStore) {
    let first = record("k");
    put(&store, &first).await;
    let stored = with_version(&first, 1);
    let late = store.remove(&first.key, Some(2)).await.unwrap();
    assert_eq!(late, Swapped::Conflict(Some(stored)));
    assert_eq!(store.swap(&first, 1).await.unwrap(), Swapped::Done(2));
    let done = store.remove(&first.key, Some(2)).await.unwrap();
    assert_eq!(done, Swapped::Done(2));
    assert_eq!(store.get(&first.key).await.unwrap(), None);
    let again = store.remove(&first.key, Some(2)).await.unwrap();
    assert_eq!(again, Swapped::Conflict(None));
    put(&store, &first).await;
    let whatever = store.remove(&first.key, None).await.unwrap();
    assert_eq!(whatever, Swapped::Done(1));
}

pub async fn a_removed_record_can_be_inserted_again(store: SharedStateStore) {
    let first = record("k");
    put(&store, &first).await;
    assert_eq!(store.swap(&first, 1).await.unwrap(), Swapped::Done(2));
    store.remove(&first.key, None).await.unwrap();
    put(&store, &first).await;
    let stored = with_version(&first, 1);
    assert_eq!(store.get(&first.key).await.unwrap(), Some(stored));
}

pub async fn data_comes_back_as_it_was(store: SharedStateStore) {
    let values = [
        json!(null),
        json!(false),
        json!(9_007_199_254_740_993_u64),
        json!(-1.5),
        json!("\u{0}\u{1f}\"\\\u{2028}😀é e\u{301}"),
        json!([]),
        json!({}),
        json!({"": {"a.b": [[null, {"$c": 1}]], "ü": "x".repeat(300_000)}}),
    ];
    for (n, data) in values.into_iter().enumerate() {
        let first = StateRecord {
            data,
            user: Some("ü|'\"%".into()),
            conversation: Some("a/b|'\"%".into()),
            expires_at: Some(1_900_000_000_123),
            ..record(&format!("k{n}"))
        };
        put(&store, &first).await;
        let stored = with_version(&first, 1);
        assert_eq!(store.get(&first.key).await.unwrap(), Some(stored.clone()));
        let after = n.checked_sub(1).map(|before| format!("k{before}"));
        let page = StateQuery {
            after,
            limit: 1,
            ..query("p", StateKind::Approval)
        };
        assert_eq!(store.list(&page).await.unwrap(), [stored]);
    }
}

pub async fn kinds_and_projects_are_independent(store: SharedStateStore) {
    let of = |project: &str, kind: StateKind| StateRecord {
        key: key(project, kind, "k"),
        data: json!([project, kind.as_str()]),
        ..record("k")
    };
    for project in ["p", "q"] {
        for kind in KINDS {
            put(&store, &of(project, kind)).await;
        }
    }
    for project in ["p", "q"] {
        for kind in KINDS {
            let stored = with_version(&of(project, kind), 1);
            assert_eq!(store.get(&stored.key).await.unwrap(), Some(stored.clone()));
            let listed = store.list(&query(project, kind)).await.unwrap();
            assert_eq!(listed, [stored]);
        }
    }
    let gone = key("p", StateKind::Lease, "k");
    store.remove(&gone, None).await.unwrap();
    for project in ["p", "q"] {
        for kind in KINDS {
            let one = key(project, kind, "k");
            let is_there = store.get(&one).await.unwrap().is_some();
            assert_eq!(is_there, one != gone);
        }
    }
}
