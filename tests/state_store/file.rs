//! The driver `file`.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use open_agent_kernel::base::clock::SystemClock;
use open_agent_kernel::error::ErrorKind;
use open_agent_kernel::store::state::{
    Atomic, FileState, Inserted, SharedStateStore, StateKey, StateKind, StateQuery, StateRecord,
    StoreClock,
};
use serde_json::json;
use tempfile::TempDir;

use crate::race;

fn open(root: &str) -> SharedStateStore {
    let clock = Arc::new(SystemClock);
    Arc::new(FileState::new(Path::new(root), false, clock))
}

fn place() -> (String, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    (folder.path().to_str().unwrap().to_owned(), folder)
}

async fn fresh() -> (SharedStateStore, TempDir) {
    let (root, folder) = place();
    (open(&root), folder)
}

state_store_suite!(fresh);

mod fsync {
    use super::*;

    async fn fresh_fsync() -> (SharedStateStore, TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let store = FileState::new(folder.path(), true, Arc::new(SystemClock));
        (Arc::new(store), folder)
    }

    state_store_suite!(fresh_fsync);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_eight_processes_wins_each_swap() {
    race::run(
        "file::one_of_eight_processes_wins_each_swap",
        async || place(),
        open,
    )
    .await;
}

fn record(key: &str) -> StateRecord {
    StateRecord {
        key: StateKey {
            project: "p".into(),
            kind: StateKind::Approval,
            key: key.to_owned(),
        },
        conversation: Some("c".into()),
        user: None,
        version: 0,
        data: json!({"a": 1}),
        expires_at: None,
    }
}

fn file_of(root: &str, name: &str) -> PathBuf {
    let folder = Path::new(root).join(".state").join("p").join("approval");
    folder.join(format!("{name}.json"))
}

async fn listed(store: &SharedStateStore) -> Vec<String> {
    let query = StateQuery {
        project: "p".into(),
        kind: StateKind::Approval,
        conversation: None,
        after: None,
        limit: 10,
    };
    let records = store.list(&query).await.unwrap();
    records.into_iter().map(|record| record.key.key).collect()
}

#[tokio::test]
async fn the_store_is_one_for_the_processes_of_a_machine() {
    let (store, _guard) = fresh().await;
    assert_eq!(store.caps().atomic, Atomic::Host);
    assert_eq!(store.caps().clock, StoreClock::Own);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_record_is_an_error_and_is_not_overwritten() {
    for garbage in [
        "",
        "{\"version\":1",
        "[]",
        "{\"version\":\"1\",\"data\":{}}",
        "\0\0",
    ] {
        let (root, _guard) = place();
        let store = open(&root);
        for name in ["a", "b"] {
            assert_eq!(store.insert(&record(name)).await.unwrap(), Inserted::Done);
        }
        let path = file_of(&root, "a");
        fs::write(&path, garbage).unwrap();
        let key = record("a").key;
        let errors = [
            store.get(&key).await.map(|_| ()).unwrap_err(),
            store.insert(&record("a")).await.map(|_| ()).unwrap_err(),
            store.swap(&record("a"), 1).await.map(|_| ()).unwrap_err(),
            store.remove(&key, None).await.map(|_| ()).unwrap_err(),
        ];
        for error in errors {
            assert_eq!(error.kind(), ErrorKind::Store);
            assert!(!error.message().contains('/'), "{error}");
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), garbage);
        assert_eq!(listed(&store).await, ["b"], "the others are there");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_killed_writer_left_is_not_a_record() {
    let (root, _guard) = place();
    let store = open(&root);
    store.insert(&record("a")).await.unwrap();
    let left = file_of(&root, "a").with_file_name(".tmp-left");
    fs::write(&left, "{\"vers").unwrap();
    assert_eq!(listed(&store).await, ["a"]);
    store.forget("p", "c").await.unwrap();
    assert_eq!(listed(&store).await, Vec::<String>::new());
    assert!(left.exists(), "it may be of a writer that lives");
    let long_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(4000);
    fs::File::options()
        .write(true)
        .open(&left)
        .unwrap()
        .set_modified(long_ago)
        .unwrap();
    store.forget("p", "c").await.unwrap();
    assert!(!left.exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_are_of_this_user_alone_and_links_are_refused() {
    let (root, _guard) = place();
    let store = open(&root);
    store.insert(&record("a")).await.unwrap();
    store.swap(&record("a"), 1).await.unwrap();
    let path = file_of(&root, "a");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o600);
    for folder in path.ancestors().skip(1).take(3) {
        assert_eq!(mode(folder), 0o700, "{}", folder.display());
    }
    let target = Path::new(&root).join("target");
    fs::rename(&path, &target).unwrap();
    symlink(&target, &path).unwrap();
    let before = fs::read(&target).unwrap();
    let refused = store.get(&record("a").key).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::UnsafeFile);
    let refused = store.swap(&record("a"), 2).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::UnsafeFile);
    assert_eq!(fs::read(&target).unwrap(), before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_place_that_another_key_has_is_refused() {
    let (root, _guard) = place();
    let store = open(&root);
    store.insert(&record("a")).await.unwrap();
    fs::rename(file_of(&root, "a"), file_of(&root, "b")).unwrap();
    let refused = store.get(&record("b").key).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::SessionIdConflict);
    assert_eq!(listed(&store).await, Vec::<String>::new());
}
