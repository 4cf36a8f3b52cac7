//! The life of a record, with a store that fails in between.

use std::sync::Mutex;

use async_trait::async_trait;

use super::super::{MemoryState, StateCaps};
use super::*;
use crate::base::clock::SystemClock;

/// What a store does wrong at its next change.
#[derive(Clone, Copy, PartialEq)]
enum Fault {
    /// The change does not happen.
    Refused,
    /// It happens and an error is told.
    Misreported,
    /// It never ends.
    Hanging,
}

/// A store in memory with faults.
struct Faulty {
    inner: MemoryState,
    faults: Mutex<Vec<Fault>>,
}

impl Faulty {
    async fn change<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        let fault = self.faults.lock().unwrap().pop();
        let failed = || Err(KernelError::new(ErrorKind::Store, "a fault"));
        match fault {
            None => work.await,
            Some(Fault::Refused) => failed(),
            Some(Fault::Misreported) => {
                work.await?;
                failed()
            }
            Some(Fault::Hanging) => std::future::pending().await,
        }
    }
}

#[async_trait]
impl StateStore for Faulty {
    fn caps(&self) -> StateCaps {
        self.inner.caps()
    }

    async fn get(&self, key: &StateKey) -> Result<Option<StateRecord>> {
        self.inner.get(key).await
    }

    async fn insert(&self, record: &StateRecord) -> Result<Inserted> {
        self.change(self.inner.insert(record)).await
    }

    async fn swap(&self, record: &StateRecord, expected: u64) -> Result<Swapped> {
        self.change(self.inner.swap(record, expected)).await
    }

    async fn remove(&self, key: &StateKey, expected: Option<u64>) -> Result<Swapped> {
        self.change(self.inner.remove(key, expected)).await
    }

    async fn list(&self, query: &StateQuery) -> Result<Vec<StateRecord>> {
        self.inner.list(query).await
    }

    async fn forget(&self, project: &str, conversation: &str) -> Result<()> {
        self.inner.forget(project, conversation).await
    }

    async fn now(&self) -> Result<u64> {
        self.inner.now().await
    }
}

fn records(faults: &[Fault]) -> CallRecords {
    let clock: SharedClock = Arc::new(SystemClock);
    let store = Faulty {
        inner: MemoryState::new(clock.clone()),
        faults: Mutex::new(faults.to_vec()),
    };
    CallRecords {
        store: Arc::new(store),
        project: "p".into(),
        conversation: "c|1%".into(),
        user: "ann".into(),
        timeout: Duration::from_secs(10),
        clock,
        hint: Arc::default(),
    }
}

fn call(kind: OpenKind) -> OpenCall {
    OpenCall {
        tool_use_id: "t|1".into(),
        tool_name: "pick".into(),
        input: json!({"a": 1}),
        kind,
    }
}

fn answer(text: &str) -> CallAnswer {
    CallAnswer {
        output: text.into(),
        is_error: false,
        is_superseded: false,
    }
}

#[tokio::test]
async fn a_record_is_open_then_answered_then_gone() {
    let records = records(&[]);
    records
        .open(&call(OpenKind::ClientTool), "turn")
        .await
        .unwrap();
    let found = records.find("t|1").await.unwrap().unwrap();
    assert_eq!(found.stored.key.key, "c%7C1%25|t%7C1");
    assert_eq!(
        (found.kind, found.answer.clone()),
        (OpenKind::ClientTool, None)
    );
    assert_eq!(found.turn_id.as_deref(), Some("turn"));
    for field in [
        "conversationId",
        "toolUseId",
        "toolName",
        "toolInput",
        "createdAt",
    ] {
        assert!(!found.stored.data[field].is_null(), "{field}");
    }
    let project: Arc<str> = "p".into();
    let open = waiting(records.store.as_ref(), &project, None)
        .await
        .unwrap();
    assert_eq!(open, HashSet::from(["c|1%".to_owned()]));
    let Some(won) = records.claim(found.clone(), answer("yes")).await.unwrap() else {
        panic!("nobody else answered")
    };
    assert_eq!(won.answer, Some(answer("yes")));
    assert_eq!(records.claim(found, answer("no")).await.unwrap(), None);
    assert_eq!(records.find("t|1").await.unwrap(), Some(won.clone()));
    assert!(
        waiting(records.store.as_ref(), &project, Some("c|1%"))
            .await
            .unwrap()
            .is_empty()
    );
    records.remove(&won).await.unwrap();
    assert_eq!(records.find("t|1").await.unwrap(), None);
    assert!(records.all().await.unwrap().is_empty());
}

#[tokio::test]
async fn of_fifty_answers_one_wins() {
    let records = records(&[]);
    records
        .open(&call(OpenKind::Question), "turn")
        .await
        .unwrap();
    let found = records.find("t|1").await.unwrap().unwrap();
    let answers = (0..50).map(|at| records.claim(found.clone(), answer(&at.to_string())));
    let claimed = futures_util::future::join_all(answers).await;
    let won = claimed
        .iter()
        .filter(|claimed| matches!(claimed, Ok(Some(_))));
    assert_eq!(won.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_a_store_fails_is_tried_again_and_done_once() {
    for fault in [Fault::Refused, Fault::Misreported] {
        let records = records(&[fault; 2]);
        records
            .open(&call(OpenKind::ClientTool), "turn")
            .await
            .unwrap();
        let found = records.find("t|1").await.unwrap().unwrap();
        let claimed = records.claim(found, answer("yes")).await.unwrap();
        assert!(claimed.is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_was_misreported_is_recognised() {
    // Faults are taken from the end: the insert works.
    let records = records(&[Fault::Misreported, Fault::Misreported]);
    records
        .open(&call(OpenKind::ClientTool), "turn")
        .await
        .unwrap();
    let found = records.find("t|1").await.unwrap().unwrap();
    let claimed = records.claim(found.clone(), answer("yes")).await.unwrap();
    assert!(claimed.is_some());
    assert_eq!(records.claim(found, answer("no")).await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_hangs_or_never_works_is_unavailable() {
    for faults in [vec![Fault::Hanging], vec![Fault::Refused; 4]] {
        let records = records(&faults);
        let error = records
            .open(&call(OpenKind::ClientTool), "turn")
            .await
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StoreUnavailable);
        assert_eq!(error.details()["cause"], "E_STORE");
    }
}

#[tokio::test]
async fn a_record_that_nobody_knows_is_replaced() {
    let records = records(&[]);
    records
        .open(&call(OpenKind::ClientTool), "turn 1")
        .await
        .unwrap();
    records
        .open(&call(OpenKind::ClientTool), "turn 2")
        .await
        .unwrap();
    let found = records.find("t|1").await.unwrap().unwrap();
    assert_eq!(found.turn_id.as_deref(), Some("turn 2"));
}
