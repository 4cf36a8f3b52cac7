//! Eight processes that race for the same compare-and-sets.
//!
//! The test binary runs itself: a child runs the same test, which sees by an environment variable that
//! it is a child. Processes meet in the store itself.

use std::collections::BTreeMap;
use std::time::Duration;

use open_agent_kernel::store::state::{
    Inserted, SharedStateStore, StateKey, StateKind, StateQuery, StateRecord, Swapped,
};
use serde_json::{Value as Json, json};
use tokio::process::{Child, Command};

const RACERS: usize = 8;
const ROUNDS: u64 = 1_000;
/// Longest race on a slow machine.
const LONGEST: Duration = Duration::from_mins(4);
const PAUSE: Duration = Duration::from_millis(20);
/// Where a child finds the store, and its number.
const PLACE: &str = "OAK_TEST_RACE_PLACE";
const NUMBER: &str = "OAK_TEST_RACE_NUMBER";

/// Whether this process is a racer, so that a test need not prepare a place.
pub fn is_racer() -> bool {
    std::env::var_os(PLACE).is_some()
}

/// Races, or is a racer. `test` is the path of the calling test below its crate; `place` makes a
/// place for a store, with what must live as long as it; `open` opens a store at a place.
pub async fn run<Guard>(
    test: &str,
    place: impl AsyncFnOnce() -> (String, Guard),
    open: impl Fn(&str) -> SharedStateStore,
) {
    if is_racer() {
        let place = std::env::var(PLACE).unwrap();
        let number = std::env::var(NUMBER).unwrap();
        return be_a_racer(open(&place), &number).await;
    }
    let (place, _guard) = place().await;
    let racers = (0..RACERS)
        .map(|number| spawn(test, &place, number))
        .collect();
    tokio::time::timeout(LONGEST, watch(open(&place), racers))
        .await
        .unwrap();
}

fn spawn(test: &str, place: &str, number: usize) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]);
    command.env(PLACE, place).env(NUMBER, number.to_string());
    command.stdout(std::process::Stdio::null());
    command.kill_on_drop(true).spawn().unwrap()
}

fn record(kind: StateKind, key: &str, data: Json) -> StateRecord {
    StateRecord {
        key: StateKey {
            project: "race".into(),
            kind,
            key: key.to_owned(),
        },
        conversation: None,
        user: None,
        version: 0,
        data,
        expires_at: None,
    }
}

/// The record that is raced for.
fn prize(winner: &str) -> StateRecord {
    record(StateKind::Lease, "prize", json!(winner))
}

async fn be_a_racer(store: SharedStateStore, number: &str) {
    let ready = record(StateKind::Question, number, Json::Null);
    assert_eq!(store.insert(&ready).await.unwrap(), Inserted::Done);
    let mine = prize(number);
    let mut version = loop {
        match store.get(&mine.key).await.unwrap() {
            Some(found) => break found.version,
            None => tokio::time::sleep(PAUSE).await,
        }
    };
    let (mut won, mut lost) = (Vec::new(), 0);
    while version <= ROUNDS {
        match store.swap(&mine, version).await.unwrap() {
            Swapped::Done(new) => {
                assert_eq!(new, version + 1);
                won.push(version);
                version = new;
            }
            Swapped::Conflict(found) => {
                lost += 1;
                let found = found.unwrap().version;
                assert!(found > version, "a conflict without a reason");
                version = found;
            }
        }
    }
    let result = record(StateKind::Grant, number, json!({"won": won, "lost": lost}));
    assert_eq!(store.insert(&result).await.unwrap(), Inserted::Done);
}

async fn watch(store: SharedStateStore, racers: Vec<Child>) {
    let all = |kind| StateQuery {
        project: "race".into(),
        kind,
        conversation: None,
        after: None,
        limit: 2 * RACERS,
    };
    while store.list(&all(StateKind::Question)).await.unwrap().len() < RACERS {
        tokio::time::sleep(PAUSE).await;
    }
    assert_eq!(
        store.insert(&prize("nobody")).await.unwrap(),
        Inserted::Done
    );
    for mut racer in racers {
        assert!(racer.wait().await.unwrap().success());
    }
    let results = store.list(&all(StateKind::Grant)).await.unwrap();
    assert_eq!(results.len(), RACERS);
    let mut winners = BTreeMap::new();
    let mut lost = 0;
    for result in &results {
        lost += result.data["lost"].as_u64().unwrap();
        for round in result.data["won"].as_array().unwrap() {
            let earlier = winners.insert(round.as_u64().unwrap(), &result.key.key);
            assert_eq!(earlier, None, "two winners of round {round}");
        }
    }
    assert!(
        winners.keys().copied().eq(1..=ROUNDS),
        "a round without a winner"
    );
    assert!(lost > 0, "nobody raced");
    let prize = store.get(&prize("").key).await.unwrap().unwrap();
    assert_eq!(prize.version, ROUNDS + 1);
    assert_eq!(
        prize.data.as_str(),
        winners.get(&ROUNDS).map(|last| last.as_str())
    );
}
