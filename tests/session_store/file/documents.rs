//! Sessions as whole documents: by string id, and as other programs write and read them.

use std::fs;
use std::path::Path;

use open_agent_kernel::error::{ErrorKind, KernelError};
use open_agent_kernel::protocol::{Json, JsonMap};
use open_agent_kernel::store::session::{
    Documents, Durability, FileStore, ForkOptions, ListOptions, LoadOptions, SessionKey,
    SessionStore,
};
use serde_json::json;

use super::{entries_of, folder_of, open};
use crate::suite::{entry, key, message, message_part, noted, uuids};

fn documents(root: &Path) -> Documents {
    open(root).documents()
}

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

fn path_of(root: &Path, id: &str) -> std::path::PathBuf {
    root.join(id).join("transcript.json")
}

/// Reads a document as a program would that knows nothing but its description.
fn read_as_stranger(path: &Path) -> (Json, Vec<(String, String)>) {
    let text = fs::read_to_string(path).unwrap();
    let document: Json = serde_json::from_str(&text).unwrap();
    let members: Vec<_> = document.as_object().unwrap().keys().cloned().collect();
    assert_eq!(
        members,
        ["messages", "metadata"].map(str::to_owned).to_vec()
    );
    assert!(text.starts_with("{\n  \"messages\": ["), "{text}");
    let metadata = document["metadata"].clone();
    let keys: Vec<_> = metadata.as_object().unwrap().keys().collect();
    assert!(keys.is_sorted(), "{keys:?}");
    for key in ["id", "cwd", "model"] {
        assert!(metadata[key].is_string(), "{key}");
    }
    for key in ["createdAt", "updatedAt"] {
        let time = metadata[key].as_str().unwrap();
        assert_eq!(
            (time.len(), &time[19..20], &time[23..]),
            (24, ".", "Z"),
            "{time}"
        );
    }
    let messages = document["messages"].as_array().unwrap();
    assert_eq!(metadata["messageCount"], messages.len());
    let mut told = Vec::new();
    for message in messages {
        let role = message["role"].as_str().unwrap().to_owned();
        assert!(matches!(role.as_str(), "user" | "assistant"));
        let text = match &message["content"] {
            Json::String(text) => text.clone(),
            blocks => {
                let blocks = blocks.as_array().unwrap().iter();
                blocks
                    .map(|block| block["text"].as_str().unwrap())
                    .collect()
            }
        };
        told.push((role, text));
    }
    (metadata, told)
}

fn told(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    let pairs = pairs.iter();
    pairs
        .map(|(role, text)| ((*role).to_owned(), (*text).to_owned()))
        .collect()
}

/// A folder with nothing but a document, as another program wrote it.
fn hand_made(folder: &Path) -> Vec<Json> {
    let messages = vec![
        json!({"role": "user", "content": "hello", "uuid": "u-1"}),
        json!({"role": "assistant", "id": "msg_1", "content": [
            {"type": "text", "text": "hi"},
            {"type": "tool_use", "id": "t1", "name": "add", "input": {"b": 1, "a": 2}}]}),
        json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "t1", "content": "3"}]}),
    ];
    fs::create_dir_all(folder).unwrap();
    let document = json!({
        "messages": messages,
        "metadata": {"id": "s", "cwd": "", "model": "m", "createdAt": "2026-01-02T03:04:05Z",
            "updatedAt": "2026-01-03T03:04:05.678Z", "messageCount": 3, "summary": "Sums",
            "tag": "math", "fromElsewhere": [1]},
    });
    fs::write(folder.join("transcript.json"), document.to_string()).unwrap();
    messages
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_document_alone_is_a_session_and_is_converted_by_the_first_write() {
    let root = tempfile::tempdir().unwrap();
    let written = hand_made(&root.path().join("s"));
    let before = fs::read(path_of(root.path(), "s")).unwrap();
    // A key finds it too, as an older version wrote it.
    for key in [SessionKey::main("", "s"), SessionKey::main("p", "s")] {
        let store = open(root.path());
        let row = store.get(&key.project, "s").await.unwrap().unwrap();
        assert_eq!(row.shown_title(), Some("Sums"));
        assert_eq!(row.created_at, 1_767_323_045_000);
        let loaded = store.load(&key, None).await.unwrap().unwrap();
        assert_eq!((loaded.entries.len(), &loaded.damage), (3, &None));
        assert_eq!(uuids(&loaded.entries)[..2], ["u-1", "msg_1"]);
        let mut parent = Json::Null;
        for (placed, message) in loaded.entries.iter().zip(&written) {
            let entry: Json = serde_json::from_str(placed.entry.text()).unwrap();
            assert_eq!(entry["message"], *message);
            assert_eq!(entry["parentUuid"], parent);
            assert_eq!(entry["type"], message["role"]);
            assert_eq!(entry["timestamp"], "2026-01-02T03:04:05Z");
            parent = entry["uuid"].clone();
        }
        assert_eq!(
            store
                .index(&key.project, "s", None, 10)
                .await
                .unwrap()
                .len(),
            3
        );
        assert_eq!(store.tail(&key, 1).await.unwrap(), loaded.entries[2..]);
    }
    assert!(
        !root.path().join("s/entries.jsonl").exists(),
        "looking writes nothing"
    );
    let store = open(root.path());
    let first = store
        .load(&SessionKey::main("p", "s"), None)
        .await
        .unwrap()
        .unwrap();
    let key = SessionKey::main("p", "s");
    store
        .append(&key, &[message("new", "user")], None)
        .await
        .unwrap();
    assert!(root.path().join("s/entries.jsonl").exists());
    assert_eq!(
        fs::read(path_of(root.path(), "s")).unwrap(),
        before,
        "the document stays"
    );
    let loaded = open(root.path()).load(&key, None).await.unwrap().unwrap();
    assert_eq!(loaded.entries[..3], first.entries);
    assert_eq!(loaded.entries.len(), 4);
    // Folded, it is a document again, with what the other program put there.
    store.fold(&key).await.unwrap();
    let document: Json =
        serde_json::from_slice(&fs::read(path_of(root.path(), "s")).unwrap()).unwrap();
    assert_eq!(document["metadata"]["fromElsewhere"][0], 1);
    assert_eq!(document["metadata"]["summary"], "Sums");
    assert_eq!(document["metadata"]["tag"], "math");
    assert_eq!(
        document["metadata"]["createdAt"],
        "2026-01-02T03:04:05.000Z"
    );
    assert_eq!(document["messages"].as_array().unwrap()[..3], written);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folded_session_is_read_by_strangers_and_by_us() {
    let root = tempfile::tempdir().unwrap();
    let store = open(root.path());
    let part = |uuid: &str, text: &str| {
        entry(
            json!({"type": "assistant", "uuid": uuid, "parentUuid": "uuid of q",
            "timestamp": "2026-01-02T03:04:06.000Z", "isSidechain": false, "cwd": "/w",
            "message": {"role": "assistant", "id": "a", "model": "m-2",
                "content": [{"type": "text", "text": text}]}}),
        )
    };
    let side = json!({"type": "user", "uuid": "side", "isSidechain": true,
        "message": {"role": "user", "content": "not told"}});
    let entries = [
        message("q", "user"),
        part("a1", "one, "),
        noted("n", 1),
        part("a2", "two"),
        entry(side),
        entry(json!({"type": "custom-title", "customTitle": "Titled"})),
    ];
    store.append(&key(), &entries, None).await.unwrap();
    store.fold(&key()).await.unwrap();
    let path = folder_of(root.path()).join("transcript.json");
    let (metadata, found) = read_as_stranger(&path);
    assert_eq!(
        found,
        told(&[("user", "text of q"), ("assistant", "one, two")])
    );
    assert_eq!(metadata["id"], "s");
    assert_eq!(metadata["model"], "m-2");
    assert_eq!(metadata["summary"], "Titled");
    assert_eq!(metadata["firstPrompt"], "text of q");
    // Without the entries the document still is the conversation, with what they held beside it.
    fs::remove_file(entries_of(root.path())).unwrap();
    let loaded = open(root.path()).load(&key(), None).await.unwrap().unwrap();
    assert_eq!(uuids(&loaded.entries), ["uuid of q", "a1"]);
    let second: Json = serde_json::from_str(loaded.entries[1].entry.text()).unwrap();
    assert_eq!(second["parentUuid"], "uuid of q");
    assert_eq!(second["timestamp"], "2026-01-02T03:04:06.000Z");
    assert_eq!(second["cwd"], "/w");
    assert_eq!(second["message"]["content"][1]["text"], "two");
    assert_eq!(second["message"].get("oak"), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_document_is_reported_and_kept() {
    let root = tempfile::tempdir().unwrap();
    let path = path_of(root.path(), "s");
    for text in [
        "{\"metadata\": {",
        "[]",
        "{\"metadata\": {}, \"messages\": {}}",
        "\u{0}",
    ] {
        let _ = fs::remove_dir_all(root.path().join("s"));
        fs::create_dir_all(root.path().join("s")).unwrap();
        fs::write(&path, text).unwrap();
        let store = open(root.path());
        let key = SessionKey::main("", "s");
        let loaded = store.load(&key, None).await.unwrap().unwrap();
        assert_eq!(loaded.entries, vec![]);
        assert_eq!(loaded.damage.unwrap().lost, 1);
        let none = store.documents().load("s", LoadOptions::default()).await;
        assert_eq!(none.unwrap(), None);
        let all = store
            .documents()
            .list(ListOptions::default())
            .await
            .unwrap();
        assert_eq!(all, Vec::<Json>::new());
        store
            .append(&key, &[message("a", "user")], None)
            .await
            .unwrap();
        store.fold(&key).await.unwrap();
        read_as_stranger(&path);
        let kept = fs::read_to_string(path.with_file_name("transcript.damaged-1")).unwrap();
        assert_eq!(kept, text);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn incomplete_metadata_is_no_document_of_a_string_id() {
    for missing in [
        "id",
        "cwd",
        "model",
        "createdAt",
        "updatedAt",
        "messageCount",
    ] {
        let root = tempfile::tempdir().unwrap();
        hand_made(&root.path().join("s"));
        let path = path_of(root.path(), "s");
        let mut document: Json = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        document["metadata"]
            .as_object_mut()
            .unwrap()
            .shift_remove(missing);
        fs::write(&path, document.to_string()).unwrap();
        let found = documents(root.path())
            .load("s", LoadOptions::default())
            .await;
        assert_eq!(found.unwrap(), None, "{missing}");
    }
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
