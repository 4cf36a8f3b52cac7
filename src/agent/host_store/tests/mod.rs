//! The adapter against a program that misbehaves.

mod program;

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use self::program::{Act, NAMES, Program, mark};
use super::*;
use crate::base::clock::SystemClock;
use crate::error::ErrorKind;

fn key() -> SessionKey {
    SessionKey::main("p", "s")
}

fn entry(value: Json) -> StoredEntry {
    StoredEntry::parse(value.to_string()).unwrap()
}

fn message(uuid: &str) -> Json {
    json!({"type": "user", "uuid": uuid, "message": {"role": "user", "content": uuid}})
}

fn note(text: &str) -> Json {
    json!({"type": "last-prompt", "lastPrompt": text})
}

fn seqs(entries: &[Placed]) -> Vec<u64> {
    entries.iter().map(|placed| placed.seq).collect()
}

#[test]
fn what_lacks_a_method_is_refused_by_its_name() {
    let host = Program::with(&[]);
    for (value, text) in [
        (json!(7), "config.session.store must be an object, not 7"),
        (json!({}), "config.session.store has no method append"),
        (json!({"append": mark("append")}), "has no method load"),
        (json!({"load": mark("load")}), "has no method append"),
        (json!({"save": mark("append")}), "has no method load"),
        (
            json!({"append": 1, "load": mark("load")}),
            "config.session.store.append must be",
        ),
    ] {
        let made = HostStore::from_fields(
            "config.session.store",
            &value,
            host.clone(),
            Arc::new(SystemClock),
        );
        let error = made.err().unwrap();
        assert_eq!(error.kind(), ErrorKind::InvalidConfig);
        assert!(
            error.message().contains(text),
            "{value}: {}",
            error.message()
        );
    }
}

#[tokio::test]
async fn abilities_follow_from_the_methods() {
    let bare = Program::appending().store().caps();
    assert!(!bare.list && !bare.delete && !bare.index && !bare.fenced_append);
    let full = Program::with(&NAMES.map(|name| (name, Act::Give(Json::Null)))).store();
    assert!(full.caps().list && full.caps().delete && full.caps().index);
    assert!(!full.caps().head && !full.caps().tail && !full.caps().by_ids);
}

#[tokio::test]
async fn places_are_those_of_what_is_loaded() {
    let program = Program::appending();
    let store = program.store();
    assert_eq!(store.load(&key(), None).await.unwrap(), None);
    assert_eq!(store.head(&key()).await.unwrap(), None);
    let first = [entry(message("a")), entry(note("x"))];
    assert_eq!(store.append(&key(), &first, None).await.unwrap(), 2);
    assert_eq!(
        store
            .append(&key(), &[entry(message("b"))], None)
            .await
            .unwrap(),
        3
    );
    assert_eq!(store.append(&key(), &[], None).await.unwrap(), 3);
    let loaded = store.load(&key(), Some(1)).await.unwrap().unwrap();
    assert_eq!(seqs(&loaded.entries), [2, 3]);
    assert_eq!(
        store.head(&key()).await.unwrap(),
        Some(Head { seq: 3, count: 3 })
    );
    assert_eq!(seqs(&store.tail(&key(), 2).await.unwrap()), [2, 3]);
    let by_id = store
        .by_message_ids(&key(), &["b".to_owned()])
        .await
        .unwrap();
    assert_eq!(seqs(&by_id), [3]);
    let rows = store.index("p", "s", Some(3), 10).await.unwrap();
    assert_eq!(rows.iter().map(|row| row.seq).collect::<Vec<_>>(), [1]);
    // An append that goes well is not followed by a reading.
    assert_eq!(program.calls_of("append").len(), 2);
    assert_eq!(
        program.calls_of("append")[0]["key"],
        json!({"projectKey": "p", "sessionId": "s"})
    );
}

#[tokio::test]
async fn a_known_uuid_is_not_sent_again_even_by_another_process() {
    let program = Program::appending();
    let both = [
        entry(message("a")),
        entry(message("a")),
        entry(message("b")),
    ];
    program.store().append(&key(), &both, None).await.unwrap();
    let other = program.store();
    let more = [
        entry(message("b")),
        entry(message("c")),
        entry(note("x")),
        entry(note("x")),
    ];
    assert_eq!(other.append(&key(), &more, None).await.unwrap(), 5);
    let expected = [
        message("a"),
        message("b"),
        message("c"),
        note("x"),
        note("x"),
    ];
    assert_eq!(program.stored(), expected);
}

#[tokio::test(start_paused = true)]
async fn what_a_failed_append_stored_is_left_out_of_the_next() {
    for failing in [Act::StoreAndThrow, Act::StoreAndHang] {
        let program = Program::appending();
        let store = program.store();
        store
            .append(&key(), &[entry(note("x"))], None)
            .await
            .unwrap();
        program.set("append", failing.clone());
        let batch = [entry(message("a")), entry(note("x")), entry(note("y"))];
        for _ in 0..2 {
            program.set("append", failing.clone());
            // The second time there is nothing left to send.
            let result = store.append(&key(), &batch, None).await;
            if let Err(error) = result {
                assert_eq!(error.kind(), ErrorKind::Store);
                assert!(error.is_retryable());
            }
        }
        program.set("append", Act::Store);
        assert_eq!(store.append(&key(), &batch[..2], None).await.unwrap(), 5);
        let expected = [note("x"), message("a"), note("x"), note("y"), note("x")];
        assert_eq!(program.stored(), expected);
    }
}

#[tokio::test]
async fn nothing_is_lost_when_a_failed_append_stored_nothing() {
    let program = Program::appending();
    let store = program.store();
    program.set("append", Act::Throw("down"));
    let batch = [entry(message("a")), entry(note("x"))];
    let error = store.append(&key(), &batch, None).await.unwrap_err();
    assert_eq!(error.message(), "session.store.append failed: down");
    program.set("append", Act::Store);
    assert_eq!(store.append(&key(), &batch, None).await.unwrap(), 2);
    assert_eq!(program.stored(), [message("a"), note("x")]);
}

#[tokio::test]
async fn an_entry_that_is_stored_twice_is_loaded_once() {
    let program = Program::appending();
    let twice = [
        message("a"),
        message("b"),
        message("a"),
        note("x"),
        note("x"),
    ];
    program.stored.lock().unwrap().extend(twice);
    let loaded = program.store().load(&key(), None).await.unwrap().unwrap();
    assert_eq!(seqs(&loaded.entries), [1, 2, 4, 5]);
}

#[tokio::test(start_paused = true)]
async fn hostile_answers_are_errors_that_name_the_method() {
    let program = Program::with(&NAMES.map(|name| (name, Act::Hang)));
    let store = program.store();
    let entries = [entry(message("a"))];
    for (act, text) in [
        (Act::Hang, "session.store.load did not settle within 60 s"),
        (Act::Throw("no"), "session.store.load failed: no"),
        (
            Act::Give(json!("text")),
            "session.store.load must give an array of entries or null, not a string",
        ),
        (
            Act::Give(json!({"0": {}})),
            "session.store.load must give an array of entries",
        ),
        (
            Act::Give(json!([{}, 7])),
            "session.store.load must give an array of objects, not a number",
        ),
        (
            Act::Give(json!([null])),
            "session.store.load must give an array of objects, not null",
        ),
        (
            Act::Give(json!([[]])),
            "session.store.load must give an array of objects",
        ),
    ] {
        program.set("load", act);
        let loading = store.load(&key(), None).await.unwrap_err();
        let appending = store.append(&key(), &entries, None).await.unwrap_err();
        for error in [loading, appending] {
            assert_eq!(
                (error.kind(), error.is_retryable()),
                (ErrorKind::Store, true)
            );
            assert!(error.message().starts_with(text), "{}", error.message());
        }
    }
    assert!(program.calls_of("append").is_empty());
    for (name, act) in [
        ("listSessions", Act::Give(json!({}))),
        ("listSessions", Act::Give(json!([{"sessionId": "s"}]))),
        (
            "listSessions",
            Act::Give(json!([{"sessionId": "s", "mtime": "now"}])),
        ),
        ("listSessions", Act::Give(json!([{"mtime": 1}, null]))),
        ("listSessions", Act::Hang),
        ("listSessionSummaries", Act::Give(json!(true))),
    ] {
        program.set("listSessionSummaries", Act::Give(json!([])));
        program.set(name, act);
        let error = store.list("p", None, None, 10).await.unwrap_err();
        assert!(
            error
                .message()
                .starts_with(&format!("session.store.{name} ")),
            "{error}"
        );
    }
    program.set("listSubkeys", Act::Give(json!(["a", 1])));
    assert!(store.subkeys("p", "s").await.is_err());
    program.set("getSession", Act::Give(json!("s")));
    assert!(store.get("p", "s").await.is_err());
    program.set("querySessionMessages", Act::Give(json!([{"messageId": 1}])));
    assert!(store.index("p", "s", None, 10).await.is_err());
    for failing in [
        store.delete(&key()).await,
        store.hide_through("p", "s", 1).await,
    ] {
        assert!(failing.unwrap_err().message().contains("did not settle"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_takes_too_long_or_is_dropped_is_told_to_stop() {
    let program = Program::with(&[("append", Act::Hang), ("load", Act::Hang)]);
    let store = program.store();
    let key = key();
    store.load(&key, None).await.unwrap_err();
    let short = tokio::time::timeout(Duration::from_secs(1), store.load(&key, None));
    short.await.unwrap_err();
    let tokens = program.cancelled.lock().unwrap();
    assert_eq!(tokens.len(), 2);
    assert!(tokens.iter().all(CancellationToken::is_cancelled));
}

#[tokio::test]
async fn sessions_are_sorted_filtered_and_paged() {
    let row =
        |id: &str, mtime: u64, user: &str| json!({"sessionId": id, "mtime": mtime, "userId": user});
    let program = Program::appending();
    program.set(
        "listSessions",
        Act::Give(
            json!([row("a", 1, "ann"), row("b", 3, "bob"), row("c", 3, "ann"),
            {"sessionId": "d", "mtime": 2.5}]),
        ),
    );
    program.set(
        "listSessionSummaries",
        Act::Give(
            json!([{"sessionId": "c", "mtime": 3, "data": {"customTitle": "C", "createdAt": 1}}]),
        ),
    );
    program.set("getSession", Act::Give(row("d", 2, "ann")));
    let store = program.store();
    let ids = |rows: &[SessionRow]| {
        rows.iter()
            .map(|row| row.session.clone())
            .collect::<Vec<_>>()
    };
    let all = store.list("p", None, None, 10).await.unwrap();
    assert_eq!(ids(&all), ["c", "b", "d", "a"]);
    assert_eq!((all[0].shown_title(), all[0].created_at), (Some("C"), 1));
    let after = ListCursor {
        updated_at: 3,
        session: "b".to_owned(),
    };
    assert_eq!(
        ids(&store.list("p", None, Some(&after), 1).await.unwrap()),
        ["d"]
    );
    assert_eq!(
        ids(&store.list("p", Some("ann"), None, 10).await.unwrap()),
        ["c", "d", "a"]
    );
    assert_eq!(
        store.get("p", "d").await.unwrap().unwrap().user.as_deref(),
        Some("ann")
    );
}

#[tokio::test]
async fn a_store_that_cannot_list_describes_a_session_from_its_transcript() {
    let program = Program::appending();
    let store = program.store();
    assert_eq!(store.list("p", None, None, 10).await.unwrap(), []);
    assert_eq!(store.get("p", "s").await.unwrap(), None);
    let mut prompt = message("hello");
    prompt["timestamp"] = json!("2026-01-02T03:04:05.678Z");
    store.append(&key(), &[entry(prompt)], None).await.unwrap();
    let row = store.get("p", "s").await.unwrap().unwrap();
    assert_eq!(row.summary.first_prompt(), Some("hello"));
    assert_eq!(
        (row.created_at, row.updated_at),
        (1_767_323_045_678, 1_767_323_045_678)
    );
    assert_eq!(store.delete(&key()).await.unwrap(), ());
    assert_eq!(store.subkeys("p", "s").await.unwrap(), Vec::<String>::new());
    store
        .register("p", "s", &Registration::default())
        .await
        .unwrap();
    let error = store
        .replace(&key(), &entry(message("hello")))
        .await
        .unwrap_err();
    assert!(!error.is_retryable());
}

#[tokio::test]
async fn the_index_of_a_driver_says_which_messages_are_shown() {
    let program = Program::appending();
    let page = |ids: std::ops::Range<u64>| {
        let row = |n: u64| json!({"messageId": format!("m{n}"), "createdAt": n});
        Act::Give(Json::from(ids.map(row).collect::<Vec<_>>()))
    };
    program.set("querySessionMessages", page(1..3));
    program.set("deleteSessionMessages", Act::Give(Json::Null));
    let entries: Vec<_> = (0..4).map(|n| entry(message(&format!("m{n}")))).collect();
    let store = program.store();
    store.append(&key(), &entries, None).await.unwrap();
    let rows = store.index("p", "s", None, 10).await.unwrap();
    let ids: Vec<_> = rows.iter().map(|row| row.message_id.as_str()).collect();
    assert_eq!(ids, ["m2", "m1"]);
    // A page that is full is followed by the next, which here brings nothing new.
    program.set("querySessionMessages", page(0..1_000));
    assert_eq!(store.index("p", "s", None, 10).await.unwrap().len(), 4);
    let asked = program.calls_of("querySessionMessages");
    assert_eq!(asked[1]["options"], json!({"limit": 1_000}));
    assert_eq!(asked[2]["options"], json!({"limit": 1_000, "before": 1}));
    store.hide_through("p", "s", 4).await.unwrap();
    assert_eq!(program.calls_of("deleteSessionMessages").len(), 1);
}

#[tokio::test]
async fn a_store_that_replaces_gets_the_changed_entry() {
    let program = Program::appending();
    let value = json!({"append": mark("append"), "load": mark("load"), "replaces": true});
    let store =
        HostStore::from_fields("x", &value, program.clone(), Arc::new(SystemClock)).unwrap();
    assert!(!store.replace(&key(), &entry(message("a"))).await.unwrap());
    store
        .append(&key(), &[entry(message("a"))], None)
        .await
        .unwrap();
    assert!(store.replace(&key(), &entry(message("a"))).await.unwrap());
    assert_eq!(program.calls_of("append").len(), 2);
}
