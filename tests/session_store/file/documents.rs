//! Sessions as documents that other programs write and read.

use std::fs;
use std::path::Path;

use open_agent_kernel::protocol::Json;
use open_agent_kernel::store::session::{
    Documents, ListOptions, LoadOptions, SessionKey, SessionStore,
};
use serde_json::json;

use super::{entries_of, folder_of, open};
use crate::suite::{entry, key, message, noted, uuids};

pub fn documents(root: &Path) -> Documents {
    open(root).documents()
}

pub fn path_of(root: &Path, id: &str) -> std::path::PathBuf {
    root.join(id).join("transcript.json")
}

/// Reads a document as a program would that knows nothing but its description.
pub fn read_as_stranger(path: &Path) -> (Json, Vec<(String, String)>) {
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
pub fn hand_made(folder: &Path) -> Vec<Json> {
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
