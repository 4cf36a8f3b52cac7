//! The driver `memory`.

use std::sync::Arc;

use open_agent_kernel::base::clock::SystemClock;
use open_agent_kernel::store::state::{MemoryState, SharedStateStore};

/// A store and what must live as long as it.
async fn fresh() -> (SharedStateStore, ()) {
    (Arc::new(MemoryState::new(Arc::new(SystemClock))), ())
}

state_store_suite!(fresh);
