//! Appending: identity, order, wholeness, the fence, sizes.

use open_agent_kernel::error::ErrorKind;
use open_agent_kernel::protocol::StoredEntry;
use open_agent_kernel::store::session::{SessionKey, SharedSessionStore};
use serde_json::json;

use super::{add, all, at_once, entry, key, message, noted, texts, uuids};

pub async fn a_known_uuid_is_ignored(store: SharedSessionStore) {
    add(&store, &key(), &[noted("a", 1), noted("b", 2)]).await;
    let last = add(&store, &key(), &[noted("c", 3)]).await;
    let again = add(&store, &key(), &[noted("b", 9), noted("a", 9)]).await;
    assert_eq!(again, last);
    add(&store, &key(), &[noted("a", 9), noted("d", 4)]).await;
    let entries = all(&store, &key()).await;
    assert_eq!(uuids(&entries), ["a", "b", "c", "d"]);
    assert_eq!(texts(&entries)[0]["n"], 1, "the first one stays");
}

pub async fn a_uuid_twice_in_one_batch_counts_once(store: SharedSessionStore) {
    add(
        &store,
        &key(),
        &[noted("a", 1), noted("b", 2), noted("a", 3)],
    )
    .await;
    let entries = all(&store, &key()).await;
    assert_eq!(uuids(&entries), ["a", "b"]);
    assert_eq!(texts(&entries)[0]["n"], 1);
}

pub async fn entries_without_uuid_are_always_appended(store: SharedSessionStore) {
    let same = entry(json!({"type": "note", "text": "same"}));
    add(&store, &key(), &[same.clone(), same.clone()]).await;
    add(&store, &key(), &[same]).await;
    assert_eq!(all(&store, &key()).await.len(), 3);
}

pub async fn a_uuid_is_of_one_transcript(store: SharedSessionStore) {
    let keys = [
        key(),
        key().with_subpath("x"),
        key().with_subpath("y"),
        SessionKey::main("p", "t"),
        SessionKey::main("q", "s"),
    ];
    for key in &keys {
        add(&store, key, &[noted("a", 1)]).await;
    }
    for key in &keys {
        assert_eq!(uuids(&all(&store, key).await), ["a"]);
    }
}

pub async fn append_gives_the_newest_sequence(store: SharedSessionStore) {
    let first = add(&store, &key(), &[noted("a", 1), noted("b", 2)]).await;
    assert_eq!(all(&store, &key()).await.last().unwrap().seq, first);
    let second = add(&store, &key(), &[noted("c", 3)]).await;
    assert!(second > first);
    assert_eq!(all(&store, &key()).await.last().unwrap().seq, second);
}

pub async fn the_text_comes_back_byte_for_byte(store: SharedSessionStore) {
    let texts = [
        r#"{ "type" : "x",  "b": 1.0, "a": 1e2, "n": 12345678901234567890123, "u": "\u00fc\/" }"#,
        r#"{"type":"x","uuid":"a","dup":1,"dup":2,"":null,"deep":[[[[{}]]]]}"#,
        "{\"type\":\"x\",\"uuid\":\"b\",\"t\":\"\u{2028}\u{7f}😀 é e\u{301}\"}",
    ];
    let entries: Vec<_> = texts
        .iter()
        .map(|text| StoredEntry::parse(*text).unwrap())
        .collect();
    add(&store, &key(), &entries).await;
    let loaded = all(&store, &key()).await;
    for (placed, entry) in loaded.iter().zip(&entries) {
        assert_eq!(placed.entry, *entry);
    }
    assert_eq!(loaded.len(), texts.len());
}

const BATCHES: u64 = 40;
const BATCH: u64 = 5;

async fn write_batches(store: SharedSessionStore, writer: &'static str) -> Vec<u64> {
    let mut lasts = Vec::new();
    for batch in 0..BATCHES {
        let entries: Vec<_> = (0..BATCH)
            .map(|n| noted(&format!("{writer}-{batch}-{n}"), n))
            .collect();
        lasts.push(add(&store, &key(), &entries).await);
    }
    lasts
}

pub async fn batches_of_two_writers_stay_whole(store: SharedSessionStore) {
    let (one, two) = at_once(
        store.clone(),
        |store| write_batches(store, "one"),
        |store| write_batches(store, "two"),
    )
    .await;
    assert!(one.is_sorted_by(|a, b| a < b) && two.is_sorted_by(|a, b| a < b));
    let uuids = uuids(&all(&store, &key()).await);
    assert_eq!(uuids.len() as u64, 2 * BATCHES * BATCH);
    let size = usize::try_from(BATCH).unwrap();
    let mut next = std::collections::HashMap::from([("one", 0), ("two", 0)]);
    for batch in uuids.chunks(size) {
        let writer = batch[0].split('-').next().unwrap();
        let number = next.get_mut(writer).unwrap();
        let expected: Vec<_> = (0..BATCH)
            .map(|n| format!("{writer}-{number}-{n}"))
            .collect();
        assert_eq!(batch, expected);
        *number += 1;
    }
}

pub async fn one_batch_sent_twice_at_once_is_stored_once(store: SharedSessionStore) {
    let batch = || (0..20).map(|n| message(&format!("m{n}"), "user"));
    let send = |store: SharedSessionStore| {
        let entries: Vec<_> = batch().collect();
        async move { add(&store, &key(), &entries).await }
    };
    let (one, two) = at_once(store.clone(), send, send).await;
    assert_eq!(one, two);
    let expected: Vec<_> = batch().map(|entry| entry.uuid.unwrap()).collect();
    assert_eq!(uuids(&all(&store, &key()).await), expected);
    assert_eq!(store.index("p", "s", None, 100).await.unwrap().len(), 20);
}

pub async fn replace_keeps_the_place(store: SharedSessionStore) {
    let sub = key().with_subpath("x");
    for key in [&key(), &sub] {
        let entries = [
            message("a", "user"),
            message("b", "assistant"),
            noted("c", 1),
        ];
        add(&store, key, &entries).await;
        let before = all(&store, key).await;
        let index = store.index("p", "s", None, 10).await.unwrap();
        let uuid = before[1].entry.uuid.clone().unwrap();
        let new = entry(json!({"type": "assistant", "uuid": uuid,
            "timestamp": "2027-01-02T03:04:05.678Z",
            "message": {"role": "assistant", "id": "b", "content": "longer than it was before"}}));
        assert!(store.replace(key, &new).await.unwrap());
        let after = all(&store, key).await;
        assert_eq!(after[1].entry, new);
        assert_eq!(after[1].seq, before[1].seq);
        assert_eq!((&after[0], &after[2]), (&before[0], &before[2]));
        assert_eq!(store.index("p", "s", None, 10).await.unwrap(), index);
        let found = store.by_message_ids(key, &["b".into()]).await.unwrap();
        assert_eq!(found, after[1..2]);
        assert_eq!(store.tail(key, 2).await.unwrap(), after[1..]);
        // The replaced entry is still known by its uuid.
        add(&store, key, &[new, noted("d", 1)]).await;
        assert_eq!(all(&store, key).await.len(), 4);
    }
}

pub async fn replace_of_an_unknown_entry_changes_nothing(store: SharedSessionStore) {
    assert!(!store.replace(&key(), &noted("a", 1)).await.unwrap());
    assert_eq!(store.load(&key(), None).await.unwrap(), None);
    let nameless = entry(json!({"type": "x"}));
    add(&store, &key(), &[noted("a", 1), nameless.clone()]).await;
    let before = all(&store, &key()).await;
    assert!(!store.replace(&key(), &noted("b", 1)).await.unwrap());
    assert!(!store.replace(&key(), &nameless).await.unwrap());
    let sub = key().with_subpath("x");
    assert!(!store.replace(&sub, &noted("a", 2)).await.unwrap());
    assert_eq!(all(&store, &key()).await, before);
}

pub async fn a_fence_refuses_older_epochs(store: SharedSessionStore) {
    let sub = key().with_subpath("x");
    let append = async |key: &SessionKey, uuid: &str, epoch| {
        store.append(key, &[noted(uuid, 1)], epoch).await
    };
    append(&key(), "before", Some(1)).await.unwrap();
    store.fence("p", "s", 5).await.unwrap();
    for key in [&key(), &sub] {
        let refused = append(key, "late", Some(4)).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::SessionLeaseLost);
        append(key, "equal", Some(5)).await.unwrap();
        append(key, "newer", Some(6)).await.unwrap();
        append(key, "none", None).await.unwrap();
    }
    // An append with a newer epoch sets no fence.
    append(&key(), "again", Some(5)).await.unwrap();
    let expected = ["before", "equal", "newer", "none", "again"];
    assert_eq!(uuids(&all(&store, &key()).await), expected);
    assert_eq!(uuids(&all(&store, &sub).await), ["equal", "newer", "none"]);
}

pub async fn a_fence_only_rises(store: SharedSessionStore) {
    store.fence("p", "s", 5).await.unwrap();
    store.fence("p", "s", 5).await.unwrap();
    let refused = store.fence("p", "s", 4).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::SessionLeaseLost);
    store.fence("p", "s", 7).await.unwrap();
    let late = store.append(&key(), &[noted("a", 1)], Some(6)).await;
    assert_eq!(late.unwrap_err().kind(), ErrorKind::SessionLeaseLost);
    assert_eq!(store.load(&key(), None).await.unwrap(), None);
    assert_eq!(store.get("p", "s").await.unwrap(), None);
}

pub async fn a_fence_is_of_one_session(store: SharedSessionStore) {
    store.fence("p", "s", 5).await.unwrap();
    for other in [SessionKey::main("p", "t"), SessionKey::main("q", "s")] {
        let entries = [noted("a", 1)];
        store.append(&other, &entries, Some(1)).await.unwrap();
    }
}

pub async fn a_large_entry_survives(store: SharedSessionStore) {
    let text = "0123456789ü\n".repeat(2 << 20 >> 4) + &"x".repeat(1 << 20);
    assert!(text.len() >= 2 << 20);
    let large = entry(json!({"type": "x", "uuid": "large", "text": text}));
    let entries = [noted("a", 1), large.clone(), noted("b", 2)];
    add(&store, &key(), &entries).await;
    let loaded = all(&store, &key()).await;
    assert_eq!(loaded[1].entry, large);
    assert_eq!(uuids(&loaded), ["a", "large", "b"]);
    assert_eq!(store.tail(&key(), 2).await.unwrap()[0].entry, large);
}

pub async fn many_entries_survive(store: SharedSessionStore) {
    const COUNT: usize = 5_000;
    let ids: Vec<String> = (0..COUNT).map(|n| format!("m{n}")).collect();
    for ids in ids.chunks(500) {
        let entries: Vec<_> = ids.iter().map(|id| message(id, "user")).collect();
        add(&store, &key(), &entries).await;
    }
    let loaded = all(&store, &key()).await;
    assert_eq!(loaded.len(), COUNT);
    for (placed, id) in loaded.iter().zip(&ids) {
        assert_eq!(placed.entry.message.as_ref().unwrap().id, *id);
    }
    let head = store.head(&key()).await.unwrap().unwrap();
    assert_eq!(head.count, COUNT as u64);
    assert_eq!(head.seq, loaded[COUNT - 1].seq);
    let rows = store.index("p", "s", None, COUNT + 1).await.unwrap();
    let newest: Vec<_> = rows.into_iter().map(|row| row.message_id).collect();
    assert!(newest.iter().eq(ids.iter().rev()));
    let found = store.by_message_ids(&key(), &ids).await.unwrap();
    assert_eq!(found.len(), COUNT);
}
