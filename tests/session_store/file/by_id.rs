//! Whole sessions by a string id.

use std::fs;

use open_agent_kernel::error::{ErrorKind, KernelError};
use open_agent_kernel::protocol::{Json, JsonMap};
use open_agent_kernel::store::session::{
    Documents, Durability, FileStore, ForkOptions, ListOptions, LoadOptions, SessionKey,
    SessionStore,
};
use serde_json::json;

use super::documents::{documents, hand_made, path_of, read_as_stranger};
use super::open;
use crate::suite::{key, message, message_part};

fn fields(value: Json) -> JsonMap {
    value.as_object().unwrap().clone()
}

fn somewhere() -> JsonMap {
    fields(json!({"cwd": "/work", "model": "m-1"}))
}

fn messages(count: usize) -> Vec<Json> {
    let role = |n| if n % 2 == 0 { "user" } else { "assistant" };
    (0..count)
        .map(|n| json!({"role": role(n), "content": format!("text {n}"), "id": format!("id-{n}")}))
        .collect()
}

async fn loaded(store: &Documents, id: &str) -> Json {
    let found = store.load(id, LoadOptions::default()).await.unwrap();
    found.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn save_and_load_give_back_what_was_given() {
    let root = tempfile::tempdir().unwrap();
    let store = documents(root.path());
    assert_eq!(store.load("s", LoadOptions::default()).await.unwrap(), None);
    let mut given = messages(4);
    given.push(json!({"role": "user", "content": [{"type": "image", "z": {"b": 1, "a": [null]}}]}));
    given.push(json!({"role": "system", "content": "x", "extra": true}));
    store.save("s", given.clone(), somewhere()).await.unwrap();
    let first = loaded(&store, "s").await;
    assert_eq!(first["messages"], json!(given));
    let metadata = &first["metadata"];
    assert_eq!(metadata["id"], "s");
    assert_eq!(
        (&metadata["cwd"], &metadata["model"]),
        (&json!("/work"), &json!("m-1"))
    );
    assert_eq!(metadata["messageCount"], 6);
    for absent in ["summary", "tag", "gitBranch", "parentSessionId"] {
        assert_eq!(metadata.get(absent), None);
    }
    let size = fs::metadata(path_of(root.path(), "s")).unwrap().len();
    assert_eq!(metadata["fileSize"], size);
    // Fewer, other and more messages, by another object.
    let store = documents(root.path());
    for given in [
        messages(2),
        vec![json!({"role": "user", "content": "new"})],
        vec![],
        messages(7),
    ] {
        store.save("s", given.clone(), somewhere()).await.unwrap();
        for store in [&store, &documents(root.path())] {
            assert_eq!(loaded(store, "s").await["messages"], json!(given));
        }
        let (metadata, _) = read_as_stranger(&path_of(root.path(), "s"));
        assert_eq!(metadata["messageCount"], given.len());
        assert_eq!(metadata["createdAt"], first["metadata"]["createdAt"]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metadata_is_merged() {
    let root = tempfile::tempdir().unwrap();
    let store = documents(root.path());
    let all = json!({"cwd": "/a", "model": "m", "summary": "S", "tag": "T", "firstPrompt": "F",
        "gitBranch": "G", "custom": {"x": 1}});
    store.save("s", messages(2), fields(all)).await.unwrap();
    store.save("s", messages(3), somewhere()).await.unwrap();
    let metadata = loaded(&store, "s").await["metadata"].clone();
    for (key, value) in [
        ("summary", "S"),
        ("tag", "T"),
        ("firstPrompt", "F"),
        ("gitBranch", "G"),
    ] {
        assert_eq!(metadata[key], value);
    }
    assert_eq!(
        (&metadata["cwd"], &metadata["custom"]["x"]),
        (&json!("/work"), &json!(1))
    );
    let cleared = json!({"cwd": "", "model": "", "summary": null, "tag": null, "gitBranch": null});
    store.save("s", messages(3), fields(cleared)).await.unwrap();
    let metadata = loaded(&store, "s").await["metadata"].clone();
    for key in ["summary", "tag", "gitBranch"] {
        assert_eq!(metadata.get(key), None, "{key}");
    }
    assert_eq!(metadata["firstPrompt"], "F");
    assert_eq!(metadata["model"], "");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_are_cut_as_the_document_says() {
    let root = tempfile::tempdir().unwrap();
    let store = documents(root.path());
    store.save("s", messages(10), somewhere()).await.unwrap();
    let page = async |limit, offset, tail| {
        let options = LoadOptions {
            limit,
            offset,
            tail,
        };
        let found = store.load("s", options).await.unwrap().unwrap();
        assert_eq!(found["metadata"]["messageCount"], 10, "of all");
        let ids = found["messages"].as_array().unwrap().iter();
        ids.map(|message| message["id"].as_str().unwrap()[3..].parse().unwrap())
            .collect::<Vec<usize>>()
    };
    let all: Vec<usize> = (0..10).collect();
    assert_eq!(page(Some(3), None, None).await, [7, 8, 9]);
    assert_eq!(page(Some(3), Some(0), None).await, [0, 1, 2]);
    assert_eq!(page(Some(3), Some(4), None).await, [4, 5, 6]);
    assert_eq!(page(None, Some(8), None).await, [8, 9]);
    assert_eq!(page(None, Some(10), None).await, Vec::<usize>::new());
    assert_eq!(page(Some(2), Some(99), None).await, Vec::<usize>::new());
    assert_eq!(page(None, None, Some(2)).await, [8, 9]);
    assert_eq!(page(None, Some(9), Some(2)).await, [9]);
    for nothing in [Some(0), Some(-5), None] {
        assert_eq!(page(nothing, nothing, nothing).await, all);
    }
    let both = LoadOptions {
        limit: Some(1),
        tail: Some(1),
        offset: None,
    };
    let refused = store.load("s", both).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn list_shows_metadata_newest_first() {
    let root = tempfile::tempdir().unwrap();
    let store = documents(root.path());
    assert_eq!(
        store.list(ListOptions::default()).await.unwrap(),
        Vec::<Json>::new()
    );
    for id in ["a", "wt-x", "B", "c"] {
        store.save(id, messages(2), somewhere()).await.unwrap();
    }
    tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    store.append("a", messages(3)).await.unwrap();
    fs::write(root.path().join("stray"), b"x").unwrap();
    fs::create_dir(root.path().join("empty")).unwrap();
    let ids = async |limit, include_worktrees| {
        let options = ListOptions {
            limit,
            include_worktrees,
        };
        let found = store.list(options).await.unwrap();
        found
            .into_iter()
            .map(|metadata| metadata["id"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(ids(Some(1), false).await, ["a"]);
    let mut all = ids(None, false).await;
    all.sort();
    assert_eq!(all, ["B", "a", "c"]);
    assert_eq!(ids(Some(0), true).await.len(), 4);
    for metadata in store.list(ListOptions::default()).await.unwrap() {
        let id = metadata["id"].as_str().unwrap();
        assert_eq!(metadata, loaded(&store, id).await["metadata"]);
    }
    // A session of another project, and one without a document.
    let plain = open(root.path());
    plain
        .append(&key(), &[message("m", "user")], None)
        .await
        .unwrap();
    let alone = SessionKey::main("", "engine");
    plain
        .append(&alone, &[message("m", "user")], None)
        .await
        .unwrap();
    assert_eq!(ids(Some(1), false).await, ["engine"]);
    assert_eq!(ids(None, false).await.len(), 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forks_are_copies() {
    let root = tempfile::tempdir().unwrap();
    let store = documents(root.path());
    assert_eq!(store.fork("s", ForkOptions::default()).await.unwrap(), None);
    let all = json!({"cwd": "/a", "model": "m", "summary": "S", "tag": "T", "gitBranch": "G"});
    store.save("s", messages(6), fields(all)).await.unwrap();
    let before = loaded(&store, "s").await;
    let copy = store
        .fork("s", ForkOptions::default())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(copy.len(), 36);
    let forked = loaded(&store, &copy).await;
    assert_eq!(forked["messages"], before["messages"]);
    let metadata = &forked["metadata"];
    assert_eq!(metadata["summary"], "Forked from session s");
    assert_eq!(metadata["parentSessionId"], "s");
    assert_eq!(
        (&metadata["cwd"], &metadata["gitBranch"]),
        (&json!("/a"), &json!("G"))
    );
    assert_eq!(metadata.get("tag"), None);
    assert_eq!(loaded(&store, "s").await, before, "the source is untouched");
    let to = async |options: ForkOptions| store.fork("s", options).await;
    let count = async |id: &str| {
        loaded(&store, id).await["messages"]
            .as_array()
            .unwrap()
            .len()
    };
    let named = |id: &str| ForkOptions {
        new_session_id: Some(id.to_owned()),
        ..ForkOptions::default()
    };
    for keep in [0_u8, 4, 6] {
        let options = ForkOptions {
            up_to_message_index: Some(keep.into()),
            ..ForkOptions::default()
        };
        let id = to(options).await.unwrap().unwrap();
        assert_eq!(count(&id).await, usize::from(keep));
    }
    let options = ForkOptions {
        up_to_message_id: Some("id-2".into()),
        ..named("t")
    };
    assert_eq!(to(options).await.unwrap().as_deref(), Some("t"));
    assert_eq!(count("t").await, 3);
    let kind = |result: Result<Option<String>, KernelError>| {
        let error = result.unwrap_err();
        (error.kind(), error.message().to_owned())
    };
    assert_eq!(kind(to(named("t")).await).0, ErrorKind::SessionExists);
    let overwrite = |id| ForkOptions {
        overwrite: true,
        ..named(id)
    };
    assert_eq!(kind(to(overwrite("s")).await).0, ErrorKind::SessionExists);
    to(overwrite("t")).await.unwrap();
    assert_eq!(count("t").await, 6);
    let index = |index| ForkOptions {
        up_to_message_index: Some(index),
        ..ForkOptions::default()
    };
    let (of, message) = kind(to(index(-1)).await);
    assert_eq!(
        (of, &*message),
        (
            ErrorKind::InvalidArgument,
            "upToMessageIndex -1 is negative"
        )
    );
    let (of, message) = kind(to(index(7)).await);
    assert_eq!(of, ErrorKind::InvalidArgument);
    assert_eq!(message, "upToMessageIndex 7 out of range (0..6)");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rename_tag_append_exists_and_delete() {
    let root = tempfile::tempdir().unwrap();
    let store = documents(root.path());
    store.rename("s", "x").await.unwrap();
    store.tag("s", Some("x")).await.unwrap();
    assert!(!store.exists("s").await.unwrap());
    assert!(!store.delete("s").await.unwrap());
    assert_eq!(store.append("s", messages(2)).await.unwrap(), 2);
    assert!(store.exists("s").await.unwrap());
    assert_eq!(
        store.append("s", messages(1)).await.unwrap(),
        3,
        "the same once more"
    );
    let before = loaded(&store, "s").await;
    store.rename("s", "Named").await.unwrap();
    store.tag("s", Some("tagged")).await.unwrap();
    let after = loaded(&store, "s").await;
    assert_eq!(after["messages"], before["messages"]);
    assert_eq!(
        after["metadata"]["createdAt"],
        before["metadata"]["createdAt"]
    );
    assert_eq!(after["metadata"]["summary"], "Named");
    assert_eq!(after["metadata"]["tag"], "tagged");
    let row = open(root.path()).get("", "s").await.unwrap().unwrap();
    assert_eq!(
        (row.shown_title(), row.summary.tag()),
        (Some("Named"), Some("tagged"))
    );
    store.tag("s", None).await.unwrap();
    assert_eq!(loaded(&store, "s").await["metadata"].get("tag"), None);
    assert!(store.delete("s").await.unwrap());
    assert!(!root.path().join("s").exists());
    assert!(!store.exists("s").await.unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn string_ids_are_checked() {
    let root = tempfile::tempdir().unwrap();
    let store = documents(root.path());
    let long = "a".repeat(513);
    for (id, message) in [
        ("", "Session ID must not be empty"),
        ("a/b", "Session ID contains invalid character: '/'"),
        ("../../x", "Session ID contains invalid character: '/'"),
        ("a\\b", "Session ID contains invalid character: '\\'"),
        ("a..b", "Session ID contains invalid character: '..'"),
        (".", "Session ID contains invalid character: '.'"),
        (".hidden", "Session ID contains invalid character: '.'"),
        (
            "a\u{0}b",
            "Session ID contains invalid character: a control character",
        ),
        (&long, "Session ID is longer than 512 bytes"),
    ] {
        let refused = store.load(id, LoadOptions::default()).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidSessionId);
        assert_eq!(refused.message(), message);
        assert!(store.save(id, vec![], JsonMap::new()).await.is_err());
        assert!(store.delete(id).await.is_err());
        let target = ForkOptions {
            new_session_id: Some(id.to_owned()),
            ..ForkOptions::default()
        };
        assert!(store.fork("s", target).await.is_err());
    }
    assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
    for id in ["Ünï çode", "a:b", "*", "sub", &"é".repeat(256)] {
        store.save(id, messages(1), somewhere()).await.unwrap();
        assert_eq!(loaded(&store, id).await["metadata"]["id"], id);
    }
    assert_eq!(store.list(ListOptions::default()).await.unwrap().len(), 5);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transcript_above_the_limit_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let clock = std::sync::Arc::new(open_agent_kernel::base::clock::SystemClock);
    let durability = Durability::Process;
    let small = FileStore::with_max_bytes(root.path().to_owned(), durability, clock, 1000);
    documents(root.path())
        .save("s", messages(50), somewhere())
        .await
        .unwrap();
    let refused = small
        .documents()
        .load("s", LoadOptions::default())
        .await
        .unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::SessionTooLarge);
    hand_made(&root.path().join("t"));
    assert!(
        small
            .documents()
            .load("t", LoadOptions::default())
            .await
            .is_ok()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_saves_and_forks_lose_nothing() {
    let root = tempfile::tempdir().unwrap();
    let store = documents(root.path());
    store
        .save("source", messages(20), somewhere())
        .await
        .unwrap();
    let mut tasks = Vec::new();
    for n in 0..20 {
        let (store, id) = (store.clone(), format!("s{n}"));
        tasks.push(tokio::spawn(async move {
            store.save(&id, messages(n), somewhere()).await.unwrap();
            store
                .fork("source", ForkOptions::default())
                .await
                .unwrap()
                .unwrap();
            store.append("shared", messages(1)).await.unwrap();
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    for n in 0..20 {
        let found = loaded(&store, &format!("s{n}")).await;
        assert_eq!(found["messages"], json!(messages(n)));
    }
    let all = store.list(ListOptions::default()).await.unwrap();
    assert_eq!(all.len(), 20 + 20 + 2);
    assert_eq!(
        loaded(&store, "shared").await["messages"]
            .as_array()
            .unwrap()
            .len(),
        20
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parts_of_an_answer_are_one_message_with_the_uuid_of_the_first() {
    let root = tempfile::tempdir().unwrap();
    let store = open(root.path());
    let key = SessionKey::main("", "s");
    let entries = [
        message("q", "user"),
        message_part("a1", "a", "assistant"),
        message_part("a2", "a", "assistant"),
    ];
    store.append(&key, &entries, None).await.unwrap();
    let found = loaded(&store.documents(), "s").await;
    let all = found["messages"].as_array().unwrap();
    assert_eq!(all.len(), 2);
    assert_eq!(
        (&all[1]["uuid"], all[1]["content"].as_array().unwrap().len()),
        (&json!("a1"), 2)
    );
    assert_eq!(all[1].get("oak"), None);
    // Saved as they were loaded, with one more, the entries stay.
    let mut more = all.clone();
    more.push(json!({"role": "user", "content": "more"}));
    store
        .documents()
        .save("s", more, somewhere())
        .await
        .unwrap();
    let loaded = store.load(&key, None).await.unwrap().unwrap();
    assert_eq!(loaded.entries.len(), 4);
    assert_eq!(loaded.entries[1].entry, entries[1]);
}
