//! The driver `sqlite`.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use open_agent_kernel::base::clock::SystemClock;
use open_agent_kernel::error::ErrorKind;
use open_agent_kernel::protocol::StoredEntry;
use open_agent_kernel::store::session::{
    Durability, SessionKey, SharedSessionStore, StoreSpec, open,
};
use rusqlite::Connection;
use serde_json::json;
use tempfile::TempDir;

fn open_at(path: &Path, prefix: &str) -> open_agent_kernel::error::Result<SharedSessionStore> {
    let spec = StoreSpec::Sqlite {
        path: path.to_owned(),
        prefix: prefix.to_owned(),
        durability: Durability::Process,
    };
    open(&spec, Arc::new(SystemClock))
}

fn store_at(path: &Path) -> SharedSessionStore {
    open_at(path, "oak_").unwrap()
}

/// A store and what must live as long as it.
async fn fresh() -> (SharedSessionStore, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    (store_at(&folder.path().join("oak.db")), folder)
}

session_store_suite!(fresh);

fn entry(uuid: &str) -> StoredEntry {
    let message = json!({"role": "user", "content": uuid});
    let fields = json!({"type": "user", "uuid": uuid, "message": message});
    StoredEntry::parse(fields.to_string()).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eight_writers_of_one_file_lose_nothing() {
    const WRITERS: usize = 8;
    const APPENDS: usize = 200;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("oak.db");
    let key = SessionKey::main("p", "s");
    let writers = (0..WRITERS).map(|writer| {
        let (store, key) = (store_at(&path), key.clone());
        tokio::spawn(async move {
            for append in 0..APPENDS {
                let pair = ["a", "b"].map(|half| entry(&format!("{writer}-{append}-{half}")));
                store.append(&key, &pair, None).await.unwrap();
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
    let loaded = store_at(&path).load(&key, None).await.unwrap().unwrap();
    let uuids: Vec<_> = loaded
        .entries
        .iter()
        .map(|placed| placed.entry.uuid.as_deref().unwrap())
        .collect();
    assert_eq!(uuids.len(), WRITERS * APPENDS * 2);
    // The halves of a pair stand together, and each writer's pairs in its order.
    for writer in 0..WRITERS {
        let of_writer = uuids
            .chunks(2)
            .filter(|pair| pair[0].starts_with(&format!("{writer}-")));
        for (append, pair) in of_writer.enumerate() {
            assert_eq!(
                pair,
                [
                    format!("{writer}-{append}-a"),
                    format!("{writer}-{append}-b")
                ]
            );
        }
    }
    let seqs = loaded.entries.iter().map(|placed| placed.seq);
    assert!(seqs.eq(1..=uuids.len() as u64));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_that_stays_is_a_retryable_error() {
    let (store, folder) = fresh().await;
    let key = SessionKey::main("p", "s");
    store.append(&key, &[entry("1")], None).await.unwrap();
    let other = Connection::open(folder.path().join("oak.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let begun = Instant::now();
    let error = store.append(&key, &[entry("2")], None).await.unwrap_err();
    assert!(begun.elapsed() > Duration::from_secs(2), "nobody waited");
    assert!(
        begun.elapsed() < Duration::from_secs(9),
        "the wait has no end"
    );
    assert_eq!(
        (error.kind(), error.is_retryable()),
        (ErrorKind::Store, true)
    );
    // Readers do not wait.
    assert_eq!(store.head(&key).await.unwrap().unwrap().count, 1);
    other.execute_batch("ROLLBACK").unwrap();
    store.append(&key, &[entry("2")], None).await.unwrap();
    assert_eq!(store.head(&key).await.unwrap().unwrap().count, 2);
}

#[tokio::test]
async fn a_file_of_somebody_else_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("oak.db");
    for bytes in [b"hello".to_vec(), b"no database at all\n".repeat(500)] {
        std::fs::write(&path, &bytes).unwrap();
        let error = store_at(&path)
            .append(&SessionKey::main("p", "s"), &[entry("1")], None)
            .await;
        let error = error.unwrap_err();
        assert_eq!(
            (error.kind(), error.is_retryable()),
            (ErrorKind::Store, false)
        );
        assert!(error.message().contains("session.path"), "{error}");
        assert!(!error.message().contains(path.to_str().unwrap()), "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), bytes);
    }
}

#[tokio::test]
async fn tables_of_somebody_else_and_of_newer_kernels_are_left_alone() {
    for (statements, word) in [
        (
            "CREATE TABLE oak_meta (name, value); INSERT INTO oak_meta VALUES ('schema', '2')",
            "newer",
        ),
        ("CREATE TABLE oak_meta (name, value)", "tablePrefix"),
        ("CREATE TABLE oak_sessions (a)", "refused"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("oak.db");
        Connection::open(&path)
            .unwrap()
            .execute_batch(statements)
            .unwrap();
        let tables = || -> i64 {
            let connection = Connection::open(&path).unwrap();
            let count = "SELECT count(*) FROM sqlite_master";
            connection.query_row(count, [], |row| row.get(0)).unwrap()
        };
        let before = tables();
        let error = store_at(&path).get("p", "s").await.unwrap_err();
        assert_eq!(
            (error.kind(), error.is_retryable()),
            (ErrorKind::Store, false)
        );
        assert!(error.message().contains(word), "{error}");
        assert_eq!(tables(), before);
    }
}

#[tokio::test]
async fn a_damaged_file_is_told() {
    let (store, folder) = fresh().await;
    let key = SessionKey::main("p", "s");
    let entries: Vec<_> = (0..500).map(|number| entry(&number.to_string())).collect();
    store.append(&key, &entries, None).await.unwrap();
    drop(store);
    let path = folder.path().join("oak.db");
    let checkpoint = Connection::open(&path).unwrap();
    checkpoint
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .unwrap();
    drop(checkpoint);
    let mut bytes = std::fs::read(&path).unwrap();
    // All but the pages that hold the names of the tables.
    bytes[16_384..].fill(0xA5);
    std::fs::write(&path, &bytes).unwrap();
    let error = store_at(&path).load(&key, None).await.unwrap_err();
    assert_eq!(
        (error.kind(), error.is_retryable()),
        (ErrorKind::Store, false)
    );
    assert!(error.message().contains("damaged"), "{error}");
}

#[tokio::test]
async fn prefixes_share_a_file_and_must_be_words() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("oak.db");
    let key = SessionKey::main("p", "s");
    let (one, two) = (
        open_at(&path, "a_").unwrap(),
        open_at(&path, "B1_").unwrap(),
    );
    one.append(&key, &[entry("1")], None).await.unwrap();
    assert_eq!(two.head(&key).await.unwrap(), None);
    for prefix in ["", "a-b", "a\"; DROP TABLE x; --"] {
        let error = open_at(&path, prefix).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::InvalidConfig);
        assert!(error.message().contains("session.tablePrefix"), "{error}");
    }
}

#[tokio::test]
async fn nothing_is_opened_before_the_first_call() {
    let (store, folder) = fresh().await;
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    assert_eq!(store.head(&SessionKey::main("p", "s")).await.unwrap(), None);
    assert!(folder.path().join("oak.db").exists());
}

#[tokio::test]
async fn what_was_appended_is_there_in_the_next_process() {
    let (store, folder) = fresh().await;
    let key = SessionKey::main("p", "s");
    store.append(&key, &[entry("1")], None).await.unwrap();
    store.fence("p", "s", 7).await.unwrap();
    drop(store);
    let store = store_at(&folder.path().join("oak.db"));
    let late = store
        .append(&key, &[entry("2")], Some(6))
        .await
        .unwrap_err();
    assert_eq!(late.kind(), ErrorKind::SessionLeaseLost);
    assert_eq!(
        store
            .append(&key, &[entry("1"), entry("2")], Some(7))
            .await
            .unwrap(),
        2
    );
    let row = store.get("p", "s").await.unwrap().unwrap();
    assert_eq!(row.summary.first_prompt(), Some("1"));
}
