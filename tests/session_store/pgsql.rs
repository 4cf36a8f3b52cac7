//! The driver `pgsql`. Without PostgreSQL on the machine its tests say so and pass.

use std::sync::Arc;
use std::time::{Duration, Instant};

use open_agent_kernel::base::clock::SystemClock;
use open_agent_kernel::error::{ErrorKind, KernelError};
use open_agent_kernel::protocol::StoredEntry;
use open_agent_kernel::store::session::{
    MemoryStore, SessionKey, SharedSessionStore, StoreSpec, open,
};
use serde_json::json;
use tokio_postgres::NoTls;

use crate::postgres::{self, Server};

fn store_at(url: &str, prefix: &str) -> SharedSessionStore {
    let spec = StoreSpec::Pgsql {
        url: url.to_owned(),
        prefix: prefix.to_owned(),
    };
    open(&spec, Arc::new(SystemClock)).unwrap()
}

/// A store and what must live as long as it. A case of the suite cannot be skipped: without a server
/// it runs against memory.
async fn fresh() -> (SharedSessionStore, ()) {
    let Some(server) = postgres::shared() else {
        return (Arc::new(MemoryStore::new(Arc::new(SystemClock))), ());
    };
    (store_at(&server.url(), &postgres::prefix()), ())
}

session_store_suite!(fresh);

fn entry(uuid: &str) -> StoredEntry {
    let message = json!({"role": "user", "content": uuid});
    let fields = json!({"type": "user", "uuid": uuid, "message": message});
    StoredEntry::parse(fields.to_string()).unwrap()
}

async fn client(server: &Server) -> tokio_postgres::Client {
    let (client, connection) = tokio_postgres::connect(&server.url(), NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

fn assert_retryable(error: &KernelError) {
    assert_eq!(
        (error.kind(), error.is_retryable()),
        (ErrorKind::Store, true),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writers_of_one_session_lose_nothing() {
    const WRITERS: usize = 4;
    const APPENDS: usize = 50;
    let Some(server) = postgres::shared() else {
        return;
    };
    let prefix = postgres::prefix();
    let key = SessionKey::main("p", "s");
    let writers = (0..WRITERS).map(|writer| {
        // The tables are made by all of them at once.
        let (store, key) = (store_at(&server.url(), &prefix), key.clone());
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
    let store = store_at(&server.url(), &prefix);
    let loaded = store.load(&key, None).await.unwrap().unwrap();
    assert_eq!(loaded.entries.len(), WRITERS * APPENDS * 2);
    for pair in loaded.entries.chunks(2) {
        let [a, b] = [0, 1].map(|half| pair[half].entry.uuid.as_deref().unwrap());
        assert_eq!(a.strip_suffix("-a"), b.strip_suffix("-b"));
    }
    let seqs = loaded.entries.iter().map(|placed| placed.seq);
    assert!(seqs.eq(1..=(WRITERS * APPENDS * 2) as u64));
    assert_eq!(
        store.index("p", "s", None, 1_000).await.unwrap().len(),
        WRITERS * APPENDS * 2
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_of_one_store_share_its_connections() {
    let Some(server) = postgres::shared() else {
        return;
    };
    let prefix = postgres::prefix();
    let store = store_at(&server.url(), &prefix);
    let calls = (0..40).map(|number| {
        let store = store.clone();
        let key = SessionKey::main("p", &number.to_string());
        tokio::spawn(async move { store.append(&key, &[entry("1")], None).await.unwrap() })
    });
    for call in calls.collect::<Vec<_>>() {
        call.await.unwrap();
    }
    assert_eq!(store.list("p", None, None, 100).await.unwrap().len(), 40);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restarted_server_is_used_by_the_next_call() {
    let Some(mut server) = Server::start() else {
        return;
    };
    let store = store_at(&server.url(), "oak_");
    let key = SessionKey::main("p", "s");
    store.append(&key, &[entry("1")], None).await.unwrap();
    server.restart();
    assert_eq!(store.append(&key, &[entry("2")], None).await.unwrap(), 2);
    server.restart();
    assert_eq!(store.head(&key).await.unwrap().unwrap().count, 2);
    let url = server.url();
    drop(server);
    assert_retryable(&store.head(&key).await.unwrap_err());
    let other = store_at(&url.replace("postgres@", "postgres:hunter2@"), "oak_");
    let error = other.head(&key).await.unwrap_err();
    assert_retryable(&error);
    assert!(!format!("{error:?} {error}").contains("hunter2"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_never_answers_is_given_up() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let mut open = Vec::new();
        while let Ok((socket, _)) = listener.accept().await {
            open.push(socket);
        }
    });
    let store = store_at(&format!("postgres://u:hunter2@127.0.0.1:{port}/d"), "oak_");
    let begun = Instant::now();
    let error = store.head(&SessionKey::main("p", "s")).await.unwrap_err();
    assert!(
        begun.elapsed() < Duration::from_secs(9),
        "{:?}",
        begun.elapsed()
    );
    assert_retryable(&error);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_that_stays_is_a_retryable_error() {
    let Some(server) = postgres::shared() else {
        return;
    };
    let prefix = postgres::prefix();
    let store = store_at(&server.url(), &prefix);
    let key = SessionKey::main("p", "s");
    store.append(&key, &[entry("1")], None).await.unwrap();
    let other = client(server).await;
    let lock = format!("BEGIN; SELECT * FROM {prefix}sessions FOR UPDATE");
    other.batch_execute(&lock).await.unwrap();
    let begun = Instant::now();
    assert_retryable(&store.append(&key, &[entry("2")], None).await.unwrap_err());
    assert!(
        begun.elapsed() < Duration::from_secs(9),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(store.head(&key).await.unwrap().unwrap().count, 1);
    other.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(store.append(&key, &[entry("2")], None).await.unwrap(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_abandoned_call_leaves_nothing_open() {
    let Some(server) = postgres::shared() else {
        return;
    };
    let prefix = postgres::prefix();
    let store = store_at(&server.url(), &prefix);
    let key = SessionKey::main("p", "s");
    store.append(&key, &[entry("1")], None).await.unwrap();
    for step in 0..40 {
        let batch = [entry(&format!("{step}-a")), entry(&format!("{step}-b"))];
        let call = store.append(&key, &batch, None);
        let _ = tokio::time::timeout(Duration::from_micros(step * 100), call).await;
    }
    // All connections are usable, nobody holds the lock, and no batch stayed by half.
    for _ in 0..10 {
        store.fence("p", "s", 1).await.unwrap();
    }
    let loaded = store.load(&key, None).await.unwrap().unwrap();
    assert_eq!(loaded.entries.len() % 2, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_of_somebody_else_and_of_newer_kernels_are_left_alone() {
    let Some(server) = postgres::shared() else {
        return;
    };
    let other = client(server).await;
    for (statements, word) in [
        (
            "CREATE TABLE {p}meta (name text, value text); INSERT INTO {p}meta VALUES ('schema', '2')",
            "newer",
        ),
        (
            "CREATE TABLE {p}meta (name text, value text)",
            "tablePrefix",
        ),
        ("CREATE TABLE {p}sessions (a text)", "already exists"),
    ] {
        let prefix = postgres::prefix();
        other
            .batch_execute(&statements.replace("{p}", &prefix))
            .await
            .unwrap();
        let error = store_at(&server.url(), &prefix)
            .get("p", "s")
            .await
            .unwrap_err();
        assert_eq!(
            (error.kind(), error.is_retryable()),
            (ErrorKind::Store, false)
        );
        assert!(error.message().contains(word), "{error}");
        let count = "SELECT count(*) FROM pg_tables WHERE starts_with(tablename, $1)";
        let tables: i64 = other.query_one(count, &[&prefix]).await.unwrap().get(0);
        assert_eq!(tables, 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_with_nul_are_names() {
    let (store, ()) = fresh().await;
    let key = SessionKey::main("p\0", "s\0\u{1}").with_subpath("\0x");
    let odd = json!({"type": "user", "uuid": "u\0", "message": {"id": "m\0", "content": "\0"}});
    let odd = StoredEntry::parse(odd.to_string()).unwrap();
    store
        .append(&key, std::slice::from_ref(&odd), None)
        .await
        .unwrap();
    assert_eq!(
        store
            .append(&key, std::slice::from_ref(&odd), None)
            .await
            .unwrap(),
        1
    );
    let found = store
        .by_message_ids(&key, &["m\0".to_owned()])
        .await
        .unwrap();
    assert_eq!(found[0].entry, odd);
    assert_eq!(store.subkeys("p\0", "s\0\u{1}").await.unwrap(), ["\0x"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transcript_of_many_pages_is_loaded_whole() {
    let (store, ()) = fresh().await;
    let key = SessionKey::main("p", "s");
    let entries: Vec<_> = (0..1_203)
        .map(|number| entry(&number.to_string()))
        .collect();
    assert_eq!(store.append(&key, &entries, None).await.unwrap(), 1_203);
    let loaded = store.load(&key, Some(3)).await.unwrap().unwrap();
    let found = loaded.entries.iter().map(|placed| &placed.entry);
    assert!(found.eq(&entries[3..]));
}

#[test]
fn a_description_hides_its_url() {
    let spec = StoreSpec::Pgsql {
        url: "postgres://u:hunter2@h/d".into(),
        prefix: "oak_".into(),
    };
    assert!(!format!("{spec:?}").contains("hunter2"));
}
