//! The driver `pgsql`. Without PostgreSQL on the machine its tests say so and pass.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use open_agent_kernel::base::clock::SystemClock;
use open_agent_kernel::store::session::{PgsqlStore, SessionStore};
use open_agent_kernel::store::state::{Atomic, MemoryState, SharedStateStore, StoreClock};

use crate::{postgres, race};

fn store_at(url: &str, prefix: &str) -> SharedStateStore {
    let store = PgsqlStore::new(url, prefix, Arc::new(SystemClock));
    store.unwrap().state().unwrap()
}

/// A store and what must live as long as it. A case of the suite cannot be skipped: without a server
/// it runs against memory.
async fn fresh() -> (SharedStateStore, ()) {
    let Some(server) = postgres::shared() else {
        return (Arc::new(MemoryState::new(Arc::new(SystemClock))), ());
    };
    (store_at(&server.url(), &postgres::prefix()), ())
}

state_store_suite!(fresh);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_eight_processes_wins_each_swap() {
    if !race::is_racer() && postgres::shared().is_none() {
        return;
    }
    let test = "pgsql::one_of_eight_processes_wins_each_swap";
    let place = async || {
        let url = postgres::shared().unwrap().url();
        (format!("{url} {}", postgres::prefix()), ())
    };
    let open = |place: &str| {
        let (url, prefix) = place.split_once(' ').unwrap();
        store_at(url, prefix)
    };
    race::run(test, place, open).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_clock_is_that_of_the_server() {
    let Some(server) = postgres::shared() else {
        return;
    };
    let store = store_at(&server.url(), &postgres::prefix());
    assert_eq!(store.caps().clock, StoreClock::Server);
    assert_eq!(store.caps().atomic, Atomic::Global);
    let now = Duration::from_millis(store.now().await.unwrap());
    let here = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    assert!(here.abs_diff(now) < Duration::from_secs(30));
    let again = Duration::from_millis(store.now().await.unwrap());
    assert!(again >= now);
}
