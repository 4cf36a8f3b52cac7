//! The driver `memory`.

use std::sync::Arc;

use open_agent_kernel::base::clock::SystemClock;
use open_agent_kernel::store::session::{MemoryStore, SharedSessionStore};

/// A store and what must live as long as it.
async fn fresh() -> (SharedSessionStore, ()) {
    (Arc::new(MemoryStore::new(Arc::new(SystemClock))), ())
}

session_store_suite!(fresh);
