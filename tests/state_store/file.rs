//! The driver `file`.

use std::sync::Arc;

use open_agent_kernel::base::clock::SystemClock;
use open_agent_kernel::store::state::{FileState, SharedStateStore};
use tempfile::TempDir;

async fn fresh() -> (SharedStateStore, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let store = FileState::new(folder.path(), false, Arc::new(SystemClock));
    (Arc::new(store), folder)
}

state_store_suite!(fresh);
