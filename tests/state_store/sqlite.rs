//! The driver `sqlite`.

use std::path::Path;
use std::sync::Arc;

use open_agent_kernel::base::clock::SystemClock;
use open_agent_kernel::store::session::{Durability, SessionStore, SqliteStore};
use open_agent_kernel::store::state::SharedStateStore;
use tempfile::TempDir;

use crate::race;

fn store_at(path: &str) -> SharedStateStore {
    let clock = Arc::new(SystemClock);
    let store = SqliteStore::new(Path::new(path), "oak_", Durability::Process, clock);
    store.unwrap().state().unwrap()
}

fn place() -> (String, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("oak.db");
    (path.to_str().unwrap().to_owned(), folder)
}

/// A store and what must live as long as it.
async fn fresh() -> (SharedStateStore, TempDir) {
    let (path, folder) = place();
    (store_at(&path), folder)
}

state_store_suite!(fresh);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_eight_processes_wins_each_swap() {
    race::run(
        "sqlite::one_of_eight_processes_wins_each_swap",
        async || place(),
        store_at,
    )
    .await;
}
