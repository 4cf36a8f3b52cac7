//! The journal over stores whose faults are chosen.
#![allow(clippy::unwrap_used, reason = "a failing helper fails its test")]

#[path = "support/chaos.rs"]
#[allow(dead_code, reason = "chance is for other tests")]
mod chaos;
#[path = "support/journals.rs"]
mod journals;

use std::sync::Arc;
use std::time::Duration;

use open_agent_kernel::base::clock::SystemClock;
use open_agent_kernel::engine::{Journal, JournalSettings};
use open_agent_kernel::error::ErrorKind;
use open_agent_kernel::protocol::StoredEntry;
use open_agent_kernel::store::session::{MemoryStore, SharedSessionStore};
use tokio::time::{Instant, sleep};

use chaos::{Chaos, Fault};
use journals::{entry, journal, key, settings, stored, unsaved};

const TIMEOUT: Duration = Duration::from_secs(10);
const A_WHILE: Duration = Duration::from_millis(50);
const REFUSED: Fault = Fault::Refused(ErrorKind::Store);

fn memory() -> SharedSessionStore {
    Arc::new(MemoryStore::new(Arc::new(SystemClock)))
}

/// A journal over a memory store with faults, and both stores.
fn over(faults: &[Fault]) -> (Arc<Journal>, Arc<Chaos>, SharedSessionStore) {
    let inner = memory();
    let chaos = Chaos::scripted(inner.clone(), faults);
    (journal(chaos.clone(), TIMEOUT), chaos, inner)
}

fn push(journal: &Arc<Journal>, uuids: &[&str]) {
    journal.push(&uuids.iter().map(|uuid| entry(uuid)).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn entries_that_were_not_stored_keep_their_order() {
    let (journal, chaos, inner) = over(&[REFUSED; 4]);
    push(&journal, &["a", "b"]);
    let error = journal.flush().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StoreUnavailable);
    assert_eq!(unsaved(&error), ["a", "b"]);
    assert_eq!(chaos.appends(), [2; 4], "one attempt and three repeats");
    assert!(journal.has_unstored());
    push(&journal, &["c"]);
    journal.flush().await.unwrap();
    assert!(!journal.has_unstored());
    assert_eq!(stored(&inner).await, ["a", "b", "c"]);
}

#[tokio::test(start_paused = true)]
async fn what_arrived_although_an_error_was_told_is_stored_once() {
    let (journal, _, inner) = over(&[Fault::Misreported, Fault::Late(TIMEOUT), Fault::Doubled]);
    push(&journal, &["a", "b"]);
    journal.flush().await.unwrap();
    push(&journal, &["c"]);
    journal.flush().await.unwrap();
    sleep(TIMEOUT * 2).await;
    assert_eq!(stored(&inner).await, ["a", "b", "c"]);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_hangs_is_waited_for_as_long_as_the_settings_say() {
    let (journal, _, inner) = over(&[Fault::Hanging]);
    push(&journal, &["a"]);
    let start = Instant::now();
    let error = journal.flush().await.unwrap_err();
    assert_eq!(start.elapsed().as_millis(), TIMEOUT.as_millis());
    assert_eq!(error.kind(), ErrorKind::StoreUnavailable);
    assert_eq!(unsaved(&error), ["a"]);
    journal.flush().await.unwrap();
    assert_eq!(stored(&inner).await, ["a"]);
}

#[tokio::test(start_paused = true)]
async fn an_error_that_will_not_pass_is_not_repeated() {
    let (journal, chaos, _) = over(&[Fault::Refused(ErrorKind::InvalidArgument)]);
    push(&journal, &["a"]);
    let error = journal.flush().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StoreUnavailable);
    assert_eq!(error.details()["cause"], "E_INVALID_ARGUMENT");
    assert_eq!(chaos.appends(), [1]);
}

#[tokio::test(start_paused = true)]
async fn a_late_writer_is_refused_once_and_forgets_its_entries() {
    let (journal, chaos, inner) = over(&[]);
    journal.set_epoch(Some(1));
    inner.fence("p", "s", 2).await.unwrap();
    push(&journal, &["a", "b"]);
    let error = journal.flush().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SessionLeaseLost);
    assert_eq!(chaos.appends(), [2]);
    assert!(!journal.has_unstored());
    // The same session object, with the next lease.
    journal.set_epoch(Some(3));
    push(&journal, &["c"]);
    journal.flush().await.unwrap();
    assert_eq!(stored(&inner).await, ["c"]);
}

#[tokio::test(start_paused = true)]
async fn an_append_that_was_given_up_does_not_take_new_entries_with_it() {
    for fault in [
        Fault::Delayed(A_WHILE),
        Fault::Late(A_WHILE),
        Fault::Hanging,
    ] {
        let (journal, _, inner) = over(&[fault]);
        push(&journal, &["a"]);
        sleep(A_WHILE / 2).await;
        journal.abandon();
        push(&journal, &["b"]);
        journal.flush().await.unwrap();
        sleep(TIMEOUT * 2).await;
        assert!(stored(&inner).await.contains(&"b".to_owned()), "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_given_up_is_not_offered_with_the_next_lease() {
    let (journal, _, inner) = over(&[REFUSED]);
    journal.set_epoch(Some(1));
    push(&journal, &["a"]);
    sleep(A_WHILE).await;
    journal.abandon();
    inner.fence("p", "s", 2).await.unwrap();
    journal.set_epoch(Some(2));
    push(&journal, &["b"]);
    journal.flush().await.unwrap();
    sleep(TIMEOUT * 2).await;
    assert_eq!(stored(&inner).await, ["b"]);
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_entries_that_are_given_up_learns_it() {
    let (journal, _, _) = over(&[Fault::Hanging]);
    push(&journal, &["a"]);
    let waiting = tokio::spawn({
        let journal = journal.clone();
        async move { journal.flush().await }
    });
    sleep(A_WHILE).await;
    journal.abandon();
    let error = waiting.await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SessionLeaseLost);
}

#[tokio::test(start_paused = true)]
async fn what_others_wrote_is_told_from_what_arrived_late() {
    let (journal, _, inner) = over(&[Fault::Calm, Fault::Misreported, REFUSED, REFUSED, REFUSED]);
    journal.assume_new();
    push(&journal, &["a"]);
    journal.flush().await.unwrap();
    push(&journal, &["b"]);
    journal.flush().await.unwrap_err();
    assert_eq!(stored(&inner).await, ["a", "b"]);
    assert!(!journal.is_outrun().await.unwrap());
    let foreign = StoredEntry::of(&entry("x")).unwrap();
    inner.append(&key(), &[foreign], None).await.unwrap();
    assert!(journal.is_outrun().await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn entries_that_come_during_an_append_go_together_into_the_next() {
    let (journal, chaos, inner) = over(&[Fault::Delayed(A_WHILE)]);
    push(&journal, &["a"]);
    sleep(A_WHILE / 2).await;
    push(&journal, &["b", "c"]);
    push(&journal, &["d"]);
    journal.flush().await.unwrap();
    assert_eq!(chaos.appends(), [1, 3]);
    assert_eq!(stored(&inner).await, ["a", "b", "c", "d"]);
}

#[tokio::test(start_paused = true)]
async fn an_eager_journal_makes_one_append_an_entry() {
    let inner = memory();
    let chaos = Chaos::scripted(inner.clone(), &[Fault::Delayed(A_WHILE)]);
    let journal = Journal::new(JournalSettings {
        eager: true,
        ..settings(chaos.clone(), TIMEOUT)
    });
    push(&journal, &["a", "b"]);
    push(&journal, &["c"]);
    journal.flush().await.unwrap();
    assert_eq!(chaos.appends(), [1; 3]);
    assert_eq!(stored(&inner).await, ["a", "b", "c"]);
}
