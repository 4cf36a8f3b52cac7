//! What every driver must do. A case takes a fresh, empty store.

mod calls;
mod lists;
mod names;
mod races;
mod records;

use open_agent_kernel::store::state::{
    Inserted, SharedStateStore, StateKey, StateKind, StateQuery, StateRecord,
};
use serde_json::json;

pub use calls::*;
pub use lists::*;
pub use names::*;
pub use races::*;
pub use records::*;

/// Makes one test of each case; `$fresh` gives `(store, guard)`.
macro_rules! state_store_suite {
    ($fresh:path) => {
        state_store_suite! { $fresh:
            an_unknown_record_is_none
            an_insert_needs_a_free_key
            a_swap_needs_the_version
            a_swap_puts_the_whole_record
            a_removal_needs_the_version
            a_removed_record_can_be_inserted_again
            data_comes_back_as_it_was
            kinds_and_projects_are_independent
            keys_are_compared_byte_for_byte
            parts_of_a_key_do_not_run_together
            list_is_in_order_of_the_key
            list_pages_neither_repeat_nor_lose
            list_filters_by_conversation
            forget_takes_every_record_of_the_conversation
            expired_records_stay
            racing_inserts_have_one_winner
            racing_swaps_have_one_winner_per_version
            racing_removals_have_one_winner
            now_is_in_milliseconds_and_moves_on
            a_call_is_open_then_answered_then_gone
            of_many_answers_to_a_call_one_wins
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

const KINDS: [StateKind; 5] = [
    StateKind::Approval,
    StateKind::ClientTool,
    StateKind::Question,
    StateKind::Grant,
    StateKind::Lease,
];

fn key(project: &str, kind: StateKind, key: &str) -> StateKey {
    StateKey {
        project: project.into(),
        kind,
        key: key.into(),
    }
}

fn record(name: &str) -> StateRecord {
    StateRecord {
        key: key("p", StateKind::Approval, name),
        conversation: Some("c".into()),
        user: None,
        version: 0,
        data: json!({"a": [1, "ü"]}),
        expires_at: Some(5),
    }
}

fn with_version(record: &StateRecord, version: u64) -> StateRecord {
    StateRecord {
        version,
        ..record.clone()
    }
}

fn query(project: &str, kind: StateKind) -> StateQuery {
    StateQuery {
        project: project.into(),
        kind,
        conversation: None,
        after: None,
        limit: 1000,
    }
}

async fn put(store: &SharedStateStore, record: &StateRecord) {
    assert_eq!(store.insert(record).await.unwrap(), Inserted::Done);
}

async fn listed(store: &SharedStateStore, query: &StateQuery) -> Vec<String> {
    let records = store.list(query).await.unwrap();
    records.into_iter().map(|record| record.key.key).collect()
}
