//! The conformance behaviours of the Claude Agent SDK's session stores, in their order.

use open_agent_kernel::store::session::{SessionKey, SharedSessionStore};
use serde_json::json;

use super::{add, all, entry, key, listed, sorted, texts};

fn plain(n: u64) -> open_agent_kernel::protocol::StoredEntry {
    entry(json!({"type": "x", "n": n}))
}

pub async fn conformance_01_entries_come_back_as_they_were(store: SharedSessionStore) {
    let values = [
        json!({"type": "x", "nested": {"b": [1, 2.5, null], "a": "ü\u{0}"}}),
        json!({"type": "y"}),
    ];
    let entries: Vec<_> = values.iter().cloned().map(entry).collect();
    add(&store, &key(), &entries).await;
    assert_eq!(texts(&all(&store, &key()).await), values);
}

pub async fn conformance_02_an_unknown_key_is_none(store: SharedSessionStore) {
    assert_eq!(store.load(&key(), None).await.unwrap(), None);
    assert_eq!(store.load(&key(), Some(3)).await.unwrap(), None);
    let sub = key().with_subpath("subagents/agent-1");
    assert_eq!(store.load(&sub, None).await.unwrap(), None);
    assert_eq!(store.head(&sub).await.unwrap(), None);
    assert_eq!(store.head(&key()).await.unwrap(), None);
    assert_eq!(store.tail(&key(), 5).await.unwrap(), vec![]);
    let none = store.by_message_ids(&key(), &["m".into()]).await.unwrap();
    assert_eq!(none, vec![]);
    assert_eq!(store.index("p", "s", None, 5).await.unwrap(), vec![]);
}

pub async fn conformance_03_appends_come_back_in_call_order(store: SharedSessionStore) {
    add(&store, &key(), &[plain(1)]).await;
    add(&store, &key(), &[plain(2), plain(3)]).await;
    add(&store, &key(), &[plain(4)]).await;
    let values: Vec<_> = (1..=4).map(|n| json!({"type": "x", "n": n})).collect();
    assert_eq!(texts(&all(&store, &key()).await), values);
}

pub async fn conformance_04_an_empty_append_writes_nothing(store: SharedSessionStore) {
    assert_eq!(add(&store, &key(), &[]).await, 0);
    assert_eq!(store.load(&key(), None).await.unwrap(), None);
    assert_eq!(store.get("p", "s").await.unwrap(), None);
    let last = add(&store, &key(), &[plain(1)]).await;
    let row = store.get("p", "s").await.unwrap();
    assert_eq!(add(&store, &key(), &[]).await, last);
    assert_eq!(all(&store, &key()).await.len(), 1);
    assert_eq!(store.get("p", "s").await.unwrap(), row);
}

pub async fn conformance_05_subpaths_are_independent_of_the_main_transcript(
    store: SharedSessionStore,
) {
    let sub = key().with_subpath("subagents/x");
    add(&store, &key(), &[plain(1)]).await;
    assert_eq!(store.load(&sub, None).await.unwrap(), None);
    add(&store, &sub, &[plain(2), plain(3)]).await;
    assert_eq!(
        texts(&all(&store, &key()).await),
        [json!({"type": "x", "n": 1})]
    );
    let of_sub = texts(&all(&store, &sub).await);
    assert_eq!(
        of_sub,
        [json!({"type": "x", "n": 2}), json!({"type": "x", "n": 3})]
    );
}

pub async fn conformance_06_projects_are_independent(store: SharedSessionStore) {
    let other = SessionKey::main("q", "s");
    add(&store, &key(), &[plain(1)]).await;
    assert_eq!(store.load(&other, None).await.unwrap(), None);
    add(&store, &other, &[plain(2)]).await;
    assert_eq!(
        texts(&all(&store, &key()).await),
        [json!({"type": "x", "n": 1})]
    );
    assert_eq!(
        texts(&all(&store, &other).await),
        [json!({"type": "x", "n": 2})]
    );
}

pub async fn conformance_07_list_gives_the_sessions_of_one_project(store: SharedSessionStore) {
    for (project, session) in [("p", "a"), ("p", "b"), ("q", "c")] {
        add(&store, &SessionKey::main(project, session), &[plain(1)]).await;
    }
    assert_eq!(sorted(listed(&store, "p").await), ["a", "b"]);
    assert_eq!(listed(&store, "unknown").await, Vec::<String>::new());
    for row in store.list("p", None, None, 10).await.unwrap() {
        assert!(row.updated_at > 1_000_000_000_000, "milliseconds");
        assert!(row.created_at > 1_000_000_000_000, "milliseconds");
    }
}

pub async fn conformance_08_a_session_of_subpaths_only_is_not_listed(store: SharedSessionStore) {
    let sub = key().with_subpath("subagents/x");
    add(&store, &sub, &[plain(1)]).await;
    assert_eq!(listed(&store, "p").await, Vec::<String>::new());
    assert_eq!(store.get("p", "s").await.unwrap(), None);
    assert_eq!(store.load(&key(), None).await.unwrap(), None);
    add(&store, &key(), &[plain(1)]).await;
    assert_eq!(listed(&store, "p").await, ["s"]);
}

pub async fn conformance_09_delete_then_load_is_none(store: SharedSessionStore) {
    add(&store, &key(), &[plain(1)]).await;
    store.delete(&key()).await.unwrap();
    assert_eq!(store.load(&key(), None).await.unwrap(), None);
    store.delete(&key()).await.unwrap();
    store.delete(&SessionKey::main("p", "never")).await.unwrap();
    let sub = SessionKey::main("p", "never").with_subpath("x");
    store.delete(&sub).await.unwrap();
}

pub async fn conformance_10_delete_of_the_main_transcript_takes_the_session(
    store: SharedSessionStore,
) {
    let subs = ["subagents/x", "subagents/y"].map(|sub| key().with_subpath(sub));
    let others = [SessionKey::main("p", "other"), SessionKey::main("q", "s")];
    for key in subs.iter().chain(&others).chain([&key()]) {
        add(&store, key, &[plain(1)]).await;
    }
    store.delete(&key()).await.unwrap();
    for key in subs.iter().chain([&key()]) {
        assert_eq!(store.load(key, None).await.unwrap(), None);
    }
    for key in &others {
        assert_eq!(all(&store, key).await.len(), 1);
    }
    assert_eq!(store.subkeys("p", "s").await.unwrap(), Vec::<String>::new());
    assert_eq!(listed(&store, "p").await, ["other"]);
}

pub async fn conformance_11_delete_of_a_subpath_takes_only_it(store: SharedSessionStore) {
    let [gone, stays] = ["subagents/x", "subagents/y"].map(|sub| key().with_subpath(sub));
    for key in [&key(), &gone, &stays] {
        add(&store, key, &[plain(1)]).await;
    }
    store.delete(&gone).await.unwrap();
    assert_eq!(store.load(&gone, None).await.unwrap(), None);
    assert_eq!(all(&store, &stays).await.len(), 1);
    assert_eq!(all(&store, &key()).await.len(), 1);
    assert_eq!(store.subkeys("p", "s").await.unwrap(), ["subagents/y"]);
}

pub async fn conformance_12_subkeys_are_those_of_the_session(store: SharedSessionStore) {
    for sub in ["subagents/x", "subagents/y"] {
        add(&store, &key().with_subpath(sub), &[plain(1)]).await;
    }
    let others = [SessionKey::main("p", "other"), SessionKey::main("q", "s")];
    for other in others {
        add(&store, &other.with_subpath("subagents/z"), &[plain(1)]).await;
    }
    let subkeys = store.subkeys("p", "s").await.unwrap();
    assert_eq!(sorted(subkeys), ["subagents/x", "subagents/y"]);
}

pub async fn conformance_13_subkeys_never_name_the_main_transcript(store: SharedSessionStore) {
    assert_eq!(
        store.subkeys("p", "never").await.unwrap(),
        Vec::<String>::new()
    );
    add(&store, &key(), &[plain(1)]).await;
    assert_eq!(store.subkeys("p", "s").await.unwrap(), Vec::<String>::new());
    add(&store, &key().with_subpath("x"), &[plain(1)]).await;
    assert_eq!(store.subkeys("p", "s").await.unwrap(), ["x"]);
}
