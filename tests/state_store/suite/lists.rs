//! Lists, conversations, expiry.

use open_agent_kernel::store::state::{
    Inserted, SharedStateStore, StateKind, StateQuery, StateRecord,
};

use super::{KINDS, key, listed, put, query, record, with_version};

pub async fn list_is_in_order_of_the_key(store: SharedStateStore) {
    let unsorted = [
        "b", "B", "a", "ä", "a/", "a0", "aa", "Z", "z", "\u{200b}", "~", "10", "9",
    ];
    for name in unsorted {
        put(&store, &record(name)).await;
    }
    let mut expected = unsorted.map(str::to_owned);
    expected.sort();
    let whole = listed(&store, &query("p", StateKind::Approval)).await;
    assert_eq!(whole, expected);
    for (position, name) in expected.iter().enumerate() {
        let behind = StateQuery {
            after: Some(name.clone()),
            ..query("p", StateKind::Approval)
        };
        assert_eq!(listed(&store, &behind).await, expected[position + 1..]);
    }
}

pub async fn list_pages_neither_repeat_nor_lose(store: SharedStateStore) {
    let expected: Vec<_> = (0..23).map(|n| format!("k{n:02}")).collect();
    for name in expected.iter().rev() {
        put(&store, &record(name)).await;
    }
    for limit in [1, 5] {
        let mut page = StateQuery {
            limit,
            ..query("p", StateKind::Approval)
        };
        let mut found = Vec::new();
        loop {
            let names = listed(&store, &page).await;
            assert!(names.len() <= limit);
            let Some(last) = names.last() else {
                break;
            };
            page.after = Some(last.clone());
            found.extend(names);
        }
        assert_eq!(found, expected);
    }
    let nothing = StateQuery {
        limit: 0,
        ..query("p", StateKind::Approval)
    };
    assert_eq!(listed(&store, &nothing).await, Vec::<String>::new());
}

/// Records of two conversations and of none, in every kind.
async fn put_conversations(store: &SharedStateStore) {
    for kind in KINDS {
        for (name, conversation) in [
            ("1", Some("c")),
            ("2", Some("d")),
            ("3", None),
            ("4", Some("c")),
        ] {
            for project in ["p", "q"] {
                let one = StateRecord {
                    key: key(project, kind, name),
                    conversation: conversation.map(str::to_owned),
                    ..record(name)
                };
                put(store, &one).await;
            }
        }
    }
}

pub async fn list_filters_by_conversation(store: SharedStateStore) {
    put_conversations(&store).await;
    let mut of_c = StateQuery {
        conversation: Some("c".into()),
        ..query("p", StateKind::Grant)
    };
    assert_eq!(listed(&store, &of_c).await, ["1", "4"]);
    of_c.limit = 1;
    assert_eq!(listed(&store, &of_c).await, ["1"]);
    of_c.after = Some("1".into());
    assert_eq!(listed(&store, &of_c).await, ["4"], "the filter comes first");
    of_c.conversation = Some("C".into());
    assert_eq!(listed(&store, &of_c).await, Vec::<String>::new());
    let whatever = listed(&store, &query("p", StateKind::Grant)).await;
    assert_eq!(whatever, ["1", "2", "3", "4"]);
}

pub async fn forget_takes_every_record_of_the_conversation(store: SharedStateStore) {
    put_conversations(&store).await;
    store.forget("p", "c").await.unwrap();
    store.forget("p", "unknown").await.unwrap();
    for kind in KINDS {
        assert_eq!(listed(&store, &query("p", kind)).await, ["2", "3"]);
        let other = listed(&store, &query("q", kind)).await;
        assert_eq!(other, ["1", "2", "3", "4"]);
    }
}

pub async fn expired_records_stay(store: SharedStateStore) {
    let old = StateRecord {
        expires_at: Some(1),
        ..record("k")
    };
    put(&store, &old).await;
    let stored = with_version(&old, 1);
    assert_eq!(store.get(&old.key).await.unwrap(), Some(stored.clone()));
    let listed = store.list(&query("p", StateKind::Approval)).await.unwrap();
    assert_eq!(listed, [stored]);
    assert!(matches!(
        store.insert(&old).await.unwrap(),
        Inserted::Exists(_)
    ));
}
