//! What every driver must do. A case takes a fresh, empty store.

mod append;
mod conformance;
mod history;
mod names;
mod rows;

use std::sync::Arc;

use open_agent_kernel::protocol::StoredEntry;
use open_agent_kernel::store::session::{Placed, SessionKey, SharedSessionStore};
use serde_json::{Value as Json, json};

pub use append::*;
pub use conformance::*;
pub use history::*;
pub use names::*;
pub use rows::*;

/// Makes one test of each case; `$fresh` gives `(store, guard)`.
macro_rules! session_store_suite {
    ($fresh:path) => {
        session_store_suite! { $fresh:
            conformance_01_entries_come_back_as_they_were
            conformance_02_an_unknown_key_is_none
            conformance_03_appends_come_back_in_call_order
            conformance_04_an_empty_append_writes_nothing
            conformance_05_subpaths_are_independent_of_the_main_transcript
            conformance_06_projects_are_independent
            conformance_07_list_gives_the_sessions_of_one_project
            conformance_08_a_session_of_subpaths_only_is_not_listed
            conformance_09_delete_then_load_is_none
            conformance_10_delete_of_the_main_transcript_takes_the_session
            conformance_11_delete_of_a_subpath_takes_only_it
            conformance_12_subkeys_are_those_of_the_session
            conformance_13_subkeys_never_name_the_main_transcript

            a_known_uuid_is_ignored
            a_uuid_twice_in_one_batch_counts_once
            entries_without_uuid_are_always_appended
            a_uuid_is_of_one_transcript
            append_gives_the_newest_sequence
            the_text_comes_back_byte_for_byte
            batches_of_two_writers_stay_whole
            one_batch_sent_twice_at_once_is_stored_once
            replace_keeps_the_place
            replace_of_an_unknown_entry_changes_nothing
            a_fence_refuses_older_epochs
            a_fence_only_rises
            a_fence_is_of_one_session
            a_large_entry_survives
            many_entries_survive

            head_counts_what_is_there
            load_after_a_sequence
            tail_gives_the_newest_oldest_first
            messages_are_found_in_order_of_sequence
            the_index_holds_messages_of_the_main_transcript
            index_pages_of_one_neither_repeat_nor_lose
            a_message_of_many_entries_has_one_row
            hidden_messages_stay_hidden
            hiding_only_rises

            a_registration_is_kept_and_merged
            a_registered_session_without_entries_is_listed
            an_unknown_session_has_no_row
            an_append_makes_the_row_and_its_summary
            updated_at_follows_the_main_transcript
            list_pages_neither_repeat_nor_lose
            list_is_ordered_by_time_then_id
            list_filters_by_user
            delete_takes_row_index_and_registration
            a_deleted_session_starts_anew

            ids_are_compared_byte_for_byte
            parts_of_a_key_do_not_run_together
            subpaths_are_opaque
            ids_of_512_bytes_work
            users_and_titles_hold_any_text
        }
    };
    ($fresh:path: $($case:ident)+) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                let (store, _guard) = $fresh().await;
                crate::suite::$case(store).await;
            }
        )+
    };
}

/// The key that most cases use.
pub fn key() -> SessionKey {
    SessionKey::main("p", "s")
}

pub fn entry(value: Json) -> StoredEntry {
    StoredEntry::parse(value.to_string()).unwrap()
}

/// An entry that has a uuid and is no message.
pub fn noted(uuid: &str, n: u64) -> StoredEntry {
    entry(json!({"type": "note", "uuid": uuid, "n": n}))
}

/// A message of one entry; all of them at the same time.
pub fn message(id: &str, role: &str) -> StoredEntry {
    message_part(&format!("uuid of {id}"), id, role)
}

pub fn message_part(uuid: &str, id: &str, role: &str) -> StoredEntry {
    entry(json!({
        "type": role,
        "uuid": uuid,
        "timestamp": "2026-01-02T03:04:05.678Z",
        "isSidechain": false,
        "message": {"role": role, "id": id, "content": format!("text of {id}")},
    }))
}

fn texts(placed: &[Placed]) -> Vec<Json> {
    let texts = placed.iter().map(|placed| placed.entry.text());
    texts
        .map(|text| serde_json::from_str(text).unwrap())
        .collect()
}

pub fn uuids(placed: &[Placed]) -> Vec<String> {
    let uuids = placed.iter().map(|placed| placed.entry.uuid.clone());
    uuids.map(Option::unwrap_or_default).collect()
}

pub async fn all(store: &SharedSessionStore, key: &SessionKey) -> Vec<Placed> {
    let loaded = store.load(key, None).await.unwrap().unwrap();
    assert_eq!(loaded.damage, None);
    let seqs: Vec<u64> = loaded.entries.iter().map(|placed| placed.seq).collect();
    assert!(seqs.is_sorted_by(|a, b| a < b), "{seqs:?}");
    assert!(seqs.first().is_none_or(|first| *first >= 1));
    loaded.entries
}

async fn add(store: &SharedSessionStore, key: &SessionKey, entries: &[StoredEntry]) -> u64 {
    store.append(key, entries, None).await.unwrap()
}

/// Sessions of a project, page by page.
async fn listed(store: &SharedSessionStore, project: &str) -> Vec<String> {
    let rows = store.list(project, None, None, 1000).await.unwrap();
    rows.into_iter().map(|row| row.session).collect()
}

fn sorted(mut words: Vec<String>) -> Vec<String> {
    words.sort();
    words
}

/// Two tasks that begin at the same time.
async fn at_once<T, A, B>(
    store: SharedSessionStore,
    one: impl FnOnce(SharedSessionStore) -> A,
    two: impl FnOnce(SharedSessionStore) -> B,
) -> (T, T)
where
    T: Send + 'static,
    A: Future<Output = T> + Send + 'static,
    B: Future<Output = T> + Send + 'static,
{
    let start = Arc::new(tokio::sync::Barrier::new(2));
    let (first, second) = (one(store.clone()), two(store));
    let other = start.clone();
    let first = tokio::spawn(async move {
        start.wait().await;
        first.await
    });
    let second = tokio::spawn(async move {
        other.wait().await;
        second.await
    });
    (first.await.unwrap(), second.await.unwrap())
}
