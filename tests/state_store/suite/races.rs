//! Several writers at once, and the clock.

use std::collections::BTreeMap;
use std::sync::Arc;

use open_agent_kernel::store::state::{Inserted, SharedStateStore, StateRecord, Swapped};
use serde_json::json;

use super::{put, record, with_version};

const RACERS: usize = 4;

/// Runs racers that begin at the same time.
async fn race<T, F>(store: &SharedStateStore, run: impl Fn(SharedStateStore, usize) -> F) -> Vec<T>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let start = Arc::new(tokio::sync::Barrier::new(RACERS));
    let racers: Vec<_> = (0..RACERS)
        .map(|racer| {
            let (start, work) = (start.clone(), run(store.clone(), racer));
            tokio::spawn(async move {
                start.wait().await;
                work.await
            })
        })
        .collect();
    let mut results = Vec::new();
    for racer in racers {
        results.push(racer.await.unwrap());
    }
    results
}

pub async fn racing_inserts_have_one_winner(store: SharedStateStore) {
    for round in 0..20 {
        let name = format!("k{round}");
        let of_racer = |racer: usize| StateRecord {
            data: json!(racer),
            ..record(&name)
        };
        let results = race(&store, |store, racer| {
            let mine = of_racer(racer);
            async move { store.insert(&mine).await.unwrap() }
        })
        .await;
        let winners: Vec<_> = (0..RACERS)
            .filter(|racer| results[*racer] == Inserted::Done)
            .collect();
        assert_eq!(winners.len(), 1, "{results:?}");
        let stored = with_version(&of_racer(winners[0]), 1);
        assert_eq!(store.get(&stored.key).await.unwrap(), Some(stored.clone()));
        for loser in (0..RACERS).filter(|racer| *racer != winners[0]) {
            assert_eq!(results[loser], Inserted::Exists(stored.clone()));
        }
    }
}

pub async fn racing_swaps_have_one_winner_per_version(store: SharedStateStore) {
    const WINS: usize = 25;
    put(&store, &record("k")).await;
    let won = race(&store, |store, racer| async move {
        let mine = StateRecord {
            data: json!(racer),
            ..record("k")
        };
        let (mut version, mut won) = (1, Vec::new());
        while won.len() < WINS {
            match store.swap(&mine, version).await.unwrap() {
                Swapped::Done(now) => {
                    assert_eq!(now, version + 1);
                    won.push(now);
                    version = now;
                }
                Swapped::Conflict(Some(found)) => {
                    assert_ne!(found.version, version);
                    version = found.version;
                }
                Swapped::Conflict(None) => panic!("the record is gone"),
            }
        }
        won
    })
    .await;
    let mut winners = BTreeMap::new();
    for (racer, versions) in won.into_iter().enumerate() {
        for version in versions {
            assert_eq!(winners.insert(version, racer), None, "two winners");
        }
    }
    let last = (RACERS * WINS + 1) as u64;
    assert!(winners.keys().copied().eq(2..=last));
    let found = store.get(&record("k").key).await.unwrap().unwrap();
    assert_eq!((found.version, found.data), (last, json!(winners[&last])));
}

pub async fn racing_removals_have_one_winner(store: SharedStateStore) {
    for round in 0..20 {
        let first = record(&format!("k{round}"));
        put(&store, &first).await;
        let results = race(&store, |store, racer| {
            let key = first.key.clone();
            let expected = (racer % 2 == 0).then_some(1);
            async move { store.remove(&key, expected).await.unwrap() }
        })
        .await;
        let count = |result| results.iter().filter(|one| **one == result).count();
        assert_eq!(count(Swapped::Done(1)), 1);
        assert_eq!(count(Swapped::Conflict(None)), RACERS - 1);
    }
}

pub async fn now_is_in_milliseconds_and_moves_on(store: SharedStateStore) {
    let first = store.now().await.unwrap();
    assert!(first > 1_000_000_000_000);
    tokio::time::sleep(std::time::Duration::from_millis(30)).await;
    let second = store.now().await.unwrap();
    assert!((20..10_000).contains(&(second - first)));
}
