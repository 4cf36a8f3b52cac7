//! The journal over stores that fail by chance: what a flush says is true, whatever the store does.
#![allow(clippy::unwrap_used, reason = "a failing helper fails its test")]

#[path = "support/chaos.rs"]
#[allow(dead_code, reason = "scripts of faults are for other tests")]
mod chaos;
#[path = "support/journals.rs"]
mod journals;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use open_agent_kernel::base::clock::SystemClock;
use open_agent_kernel::error::ErrorKind;
use open_agent_kernel::store::session::{MemoryStore, SharedSessionStore};

use chaos::Chaos;
use journals::{entry, journal, stored, unsaved};

/// Shorter than the pauses between attempts, so that both ends of a flush come often.
const TIMEOUT: Duration = Duration::from_millis(800);

/// What came of the flushes of one run.
#[derive(Debug, Default)]
struct Flushes {
    ok: usize,
    failed: usize,
}

/// Pushes entries through a failing store and compares each flush with what is stored.
async fn drive(inner: SharedSessionStore, entries: usize, seed: u64) -> Flushes {
    let chaos = Chaos::seeded(inner.clone(), seed);
    let journal = journal(chaos.clone(), TIMEOUT);
    let mut rng = Rng::with_seed(seed);
    let mut pushed: Vec<String> = Vec::new();
    let mut flushes = Flushes::default();
    while pushed.len() < entries {
        let batch: Vec<String> = (0..rng.usize(1..6))
            .map(|at| format!("e{}", pushed.len() + at))
            .collect();
        journal.push(&batch.iter().map(|uuid| entry(uuid)).collect::<Vec<_>>());
        pushed.extend(batch);
        match rng.u8(..10) {
            0..3 => tokio::time::sleep(Duration::from_millis(rng.u64(..300))).await,
            3 => {
                let result = journal.flush().await;
                let found = stored(&inner).await;
                match result {
                    Ok(()) => {
                        flushes.ok += 1;
                        assert_eq!(found, pushed, "seed {seed}");
                    }
                    Err(error) => {
                        flushes.failed += 1;
                        assert_eq!(error.kind(), ErrorKind::StoreUnavailable);
                        assert_only_missing(&found, &pushed, &unsaved(&error), seed);
                    }
                }
            }
            _ => {}
        }
    }
    chaos.calm_down();
    // A call that hangs since before may still use up the time of one flush.
    if journal.flush().await.is_err() {
        journal.flush().await.unwrap();
    }
    // Appends that are still on their way change nothing.
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(stored(&inner).await, pushed, "seed {seed}");
    flushes
}

/// Nothing but what an error names is missing; what is there is in order, once.
fn assert_only_missing(found: &[String], pushed: &[String], unsaved: &[String], seed: u64) {
    assert!(!unsaved.is_empty(), "seed {seed}");
    let present: HashSet<&String> = found.iter().collect();
    let in_order: Vec<&String> = pushed
        .iter()
        .filter(|uuid| present.contains(uuid))
        .collect();
    assert_eq!(found.iter().collect::<Vec<_>>(), in_order, "seed {seed}");
    let may_miss: HashSet<&String> = unsaved.iter().collect();
    let lost = pushed
        .iter()
        .find(|uuid| !present.contains(uuid) && !may_miss.contains(uuid));
    assert_eq!(lost, None, "seed {seed}");
}

#[tokio::test(start_paused = true)]
async fn a_flush_tells_the_truth_over_memory() {
    let mut all = Flushes::default();
    for seed in 0..8 {
        let store = Arc::new(MemoryStore::new(Arc::new(SystemClock)));
        let flushes = drive(store, 1_000, seed).await;
        all.ok += flushes.ok;
        all.failed += flushes.failed;
    }
    assert!(all.ok > 50 && all.failed > 50, "{all:?}");
}

#[cfg(feature = "sqlite")]
#[tokio::test(start_paused = true)]
async fn a_flush_tells_the_truth_over_sqlite() {
    use open_agent_kernel::store::session::{Durability, StoreSpec, open};

    let folder = tempfile::tempdir().unwrap();
    for seed in 0..2 {
        let spec = StoreSpec::Sqlite {
            path: folder.path().join(format!("{seed}.db")),
            prefix: "oak_".to_owned(),
            durability: Durability::Process,
        };
        let store = open(&spec, Arc::new(SystemClock)).unwrap();
        let flushes = drive(store, 1_000, seed).await;
        assert!(flushes.ok > 5 && flushes.failed > 5, "{flushes:?}");
    }
}
