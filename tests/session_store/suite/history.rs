//! Reading parts of a transcript, and the index of its messages.

use open_agent_kernel::base::clock::parse_timestamp;
use open_agent_kernel::protocol::Role;
use open_agent_kernel::store::session::{Head, IndexRow, SharedSessionStore};
use serde_json::json;

use super::{add, all, entry, key, message, message_part, noted, uuids};

pub async fn head_counts_what_is_there(store: SharedSessionStore) {
    let sub = key().with_subpath("x");
    for key in [&key(), &sub] {
        add(&store, key, &[noted("a", 1), noted("b", 2)]).await;
        let seq = add(&store, key, &[noted("b", 2), noted("c", 3)]).await;
        let head = store.head(key).await.unwrap();
        assert_eq!(head, Some(Head { seq, count: 3 }));
    }
}

pub async fn load_after_a_sequence(store: SharedSessionStore) {
    let entries: Vec<_> = ["a", "b", "c", "d"].map(|uuid| noted(uuid, 1)).into();
    add(&store, &key(), &entries).await;
    let all = all(&store, &key()).await;
    for (position, placed) in all.iter().enumerate() {
        let loaded = store.load(&key(), Some(placed.seq)).await.unwrap().unwrap();
        assert_eq!(loaded.entries, all[position + 1..]);
        assert_eq!(loaded.damage, None);
    }
    let whole = store.load(&key(), Some(0)).await.unwrap().unwrap();
    assert_eq!(whole.entries, all);
    let beyond = store.load(&key(), Some(u64::from(u32::MAX) << 16)).await;
    assert_eq!(beyond.unwrap().unwrap().entries, vec![]);
}

pub async fn tail_gives_the_newest_oldest_first(store: SharedSessionStore) {
    let sub = key().with_subpath("x");
    for key in [&key(), &sub] {
        let entries: Vec<_> = ["a", "b", "c", "d"].map(|uuid| noted(uuid, 1)).into();
        add(&store, key, &entries).await;
        let all = all(&store, key).await;
        for count in 0..=4 {
            assert_eq!(store.tail(key, count).await.unwrap(), all[4 - count..]);
        }
        assert_eq!(store.tail(key, 100).await.unwrap(), all);
    }
}

pub async fn messages_are_found_in_order_of_sequence(store: SharedSessionStore) {
    let sub = key().with_subpath("x");
    for key in [&key(), &sub] {
        let entries = [
            message("a", "user"),
            message_part("b1", "b", "assistant"),
            noted("n", 1),
            message_part("b2", "b", "assistant"),
            message("c", "user"),
        ];
        add(&store, key, &entries).await;
        let ids = ["c", "b", "unknown", "c"].map(str::to_owned);
        let found = store.by_message_ids(key, &ids).await.unwrap();
        let all = all(&store, key).await;
        let expected = [all[1].clone(), all[3].clone(), all[4].clone()];
        assert_eq!(found, expected);
        assert_eq!(store.by_message_ids(key, &[]).await.unwrap(), vec![]);
    }
}

pub async fn the_index_holds_messages_of_the_main_transcript(store: SharedSessionStore) {
    let sub = key().with_subpath("x");
    add(&store, &sub, &[message("of sub", "user")]).await;
    assert_eq!(store.index("p", "s", None, 10).await.unwrap(), vec![]);
    let side = json!({"type": "user", "uuid": "side", "isSidechain": true,
        "message": {"role": "user", "id": "side", "content": "x"}});
    let unnamed = json!({"type": "user", "uuid": "unnamed",
        "message": {"role": "user", "content": "x"}});
    let entries = [
        noted("n", 1),
        message("a", "user"),
        entry(side),
        message("b", "assistant"),
        entry(unnamed),
    ];
    add(&store, &key(), &entries).await;
    let all = all(&store, &key()).await;
    let rows = store.index("p", "s", None, 10).await.unwrap();
    let short = |row: &IndexRow| (row.seq, row.message_id.clone(), row.role);
    let expected = [
        (all[4].seq, "unnamed".to_owned(), Role::User),
        (all[3].seq, "b".to_owned(), Role::Assistant),
        (all[1].seq, "a".to_owned(), Role::User),
    ];
    assert_eq!(rows.iter().map(short).collect::<Vec<_>>(), expected);
    let written = parse_timestamp("2026-01-02T03:04:05.678Z").unwrap();
    assert_eq!(rows[2].created_at, written, "the entry's own time");
    assert!(
        rows[0].created_at > written,
        "without one: that of the append"
    );
}

pub async fn index_pages_of_one_neither_repeat_nor_lose(store: SharedSessionStore) {
    let ids: Vec<String> = (0..15).map(|n| format!("m{n}")).collect();
    let entries: Vec<_> = ids.iter().map(|id| message(id, "user")).collect();
    for entries in entries.chunks(4) {
        add(&store, &key(), entries).await;
    }
    let (mut before, mut found) = (None, Vec::new());
    loop {
        let page = store.index("p", "s", before, 1).await.unwrap();
        assert!(page.len() <= 1);
        let Some(row) = page.into_iter().next() else {
            break;
        };
        before = Some(row.seq);
        found.push(row.message_id);
    }
    found.reverse();
    assert_eq!(found, ids);
    assert_eq!(store.index("p", "s", None, 0).await.unwrap(), vec![]);
    assert_eq!(store.index("p", "s", Some(1), 5).await.unwrap(), vec![]);
}

pub async fn a_message_of_many_entries_has_one_row(store: SharedSessionStore) {
    let parts = [
        message_part("a1", "a", "assistant"),
        message("b", "user"),
        message_part("a2", "a", "assistant"),
    ];
    add(&store, &key(), &parts).await;
    add(&store, &key(), &[message_part("a3", "a", "assistant")]).await;
    let all = all(&store, &key()).await;
    let rows = store.index("p", "s", None, 10).await.unwrap();
    let rows: Vec<_> = rows.iter().map(|row| (row.seq, &*row.message_id)).collect();
    assert_eq!(rows, [(all[1].seq, "b"), (all[0].seq, "a")]);
    let found = store.by_message_ids(&key(), &["a".into()]).await.unwrap();
    assert_eq!(uuids(&found), ["a1", "a2", "a3"]);
}

async fn shown(store: &SharedSessionStore) -> Vec<String> {
    let rows = store.index("p", "s", None, 10).await.unwrap();
    rows.into_iter().map(|row| row.message_id).collect()
}

pub async fn hidden_messages_stay_hidden(store: SharedSessionStore) {
    let entries = ["a", "b", "c", "d"].map(|id| message(id, "user"));
    add(&store, &key(), &entries).await;
    let all_before = all(&store, &key()).await;
    store
        .hide_through("p", "s", all_before[1].seq)
        .await
        .unwrap();
    assert_eq!(shown(&store).await, ["d", "c"]);
    // Neither a late replacement, nor a repeated append, nor a late part brings one back.
    assert!(store.replace(&key(), &entries[0]).await.unwrap());
    add(&store, &key(), &entries[..2]).await;
    add(&store, &key(), &[message_part("late", "b", "user")]).await;
    assert_eq!(shown(&store).await, ["d", "c"]);
    add(&store, &key(), &[message("e", "user")]).await;
    assert_eq!(shown(&store).await, ["e", "d", "c"]);
    let older = store.index("p", "s", Some(all_before[2].seq), 10).await;
    assert_eq!(older.unwrap(), vec![]);
    // The transcript stays.
    assert_eq!(all(&store, &key()).await[..4], all_before);
    let found = store.by_message_ids(&key(), &["a".into()]).await.unwrap();
    assert_eq!(found, all_before[..1]);
}

pub async fn hiding_only_rises(store: SharedSessionStore) {
    let entries = ["a", "b", "c"].map(|id| message(id, "user"));
    add(&store, &key(), &entries).await;
    let all = all(&store, &key()).await;
    store.hide_through("p", "s", all[1].seq).await.unwrap();
    store.hide_through("p", "s", all[0].seq).await.unwrap();
    store.hide_through("p", "s", 0).await.unwrap();
    assert_eq!(shown(&store).await, ["c"]);
    store.hide_through("p", "s", all[2].seq).await.unwrap();
    assert_eq!(shown(&store).await, Vec::<String>::new());
    store.hide_through("p", "never", 3).await.unwrap();
    assert_eq!(store.get("p", "never").await.unwrap(), None);
}
