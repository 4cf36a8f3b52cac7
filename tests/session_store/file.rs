//! The driver `file`.

mod by_id;
mod child;
mod damage;
mod documents;
mod forgetful;
mod processes;
mod safety;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use open_agent_kernel::base::clock::SystemClock;
use open_agent_kernel::store::session::{Durability, FileStore, SharedSessionStore};
use tempfile::TempDir;

fn open(root: &Path) -> FileStore {
    FileStore::new(root.to_owned(), Durability::Process, Arc::new(SystemClock))
}

/// The folder of the session that most cases use.
fn folder_of(root: &Path) -> PathBuf {
    root.join("p").join("s")
}

fn entries_of(root: &Path) -> PathBuf {
    folder_of(root).join("entries.jsonl")
}

async fn fresh() -> (SharedSessionStore, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    (Arc::new(open(folder.path())), folder)
}

mod process {
    use super::fresh;
    session_store_suite!(fresh);
}

mod fsync {
    use super::*;

    async fn fresh_fsync() -> (SharedSessionStore, TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().to_owned();
        let store = FileStore::new(root, Durability::Fsync, Arc::new(SystemClock));
        (Arc::new(store), folder)
    }

    session_store_suite!(fresh_fsync);
}
