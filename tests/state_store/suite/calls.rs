//! Records of calls that wait for an answer.

use std::sync::Arc;
use std::time::Duration;

use open_agent_kernel::base::clock::SystemClock;
use open_agent_kernel::protocol::{OpenCall, OpenKind};
use open_agent_kernel::store::state::{CallAnswer, CallRecords, SharedStateStore, waiting};
use serde_json::json;
use tokio::task::JoinSet;

const ANSWERS: usize = 20;

fn records(store: &SharedStateStore, conversation: &str) -> CallRecords {
    CallRecords {
        store: store.clone(),
        project: "p".into(),
        conversation: conversation.into(),
        user: "ann".into(),
        timeout: Duration::from_secs(30),
        clock: Arc::new(SystemClock),
        hint: Arc::default(),
    }
}

fn call(id: &str, kind: OpenKind) -> OpenCall {
    OpenCall {
        tool_use_id: id.to_owned(),
        tool_name: "pick".to_owned(),
        input: json!({"city": "Rome"}),
        kind,
    }
}

fn answer(at: usize) -> CallAnswer {
    CallAnswer {
        output: json!({ "at": at }),
        is_error: false,
        is_superseded: false,
    }
}

pub async fn a_call_is_open_then_answered_then_gone(store: SharedStateStore) {
    let (records, others) = (records(&store, "c|%"), records(&store, "d"));
    let project = "p".into();
    for kind in [OpenKind::ClientTool, OpenKind::Question] {
        let call = call("t|%7C", kind);
        records.open(&call, "turn").await.unwrap();
        assert_eq!(records.find_open("t|%7C").await.unwrap(), Some(call));
        assert_eq!(others.find("t|%7C").await.unwrap(), None);
        let open = waiting(store.as_ref(), &project, None).await.unwrap();
        assert_eq!(open.into_iter().collect::<Vec<_>>(), ["c|%"]);
        let found = records.find("t|%7C").await.unwrap().unwrap();
        assert_eq!(found.kind, kind);
        let answered = records.claim(found, answer(1)).await.unwrap().unwrap();
        assert_eq!(records.find_open("t|%7C").await.unwrap(), None);
        let stored = records.find("t|%7C").await.unwrap().unwrap();
        assert_eq!(stored.answer, Some(answer(1)));
        let open = waiting(store.as_ref(), &project, Some("c|%")).await;
        assert!(open.unwrap().is_empty());
        records.remove(&answered).await.unwrap();
        assert_eq!(records.find("t|%7C").await.unwrap(), None);
    }
}

pub async fn of_many_answers_to_a_call_one_wins(store: SharedStateStore) {
    let records = records(&store, "c");
    records
        .open(&call("t", OpenKind::ClientTool), "turn")
        .await
        .unwrap();
    let found = records.find("t").await.unwrap().unwrap();
    let mut answers = JoinSet::new();
    for at in 0..ANSWERS {
        let (records, found) = (records.clone(), found.clone());
        answers.spawn(async move { records.claim(found, answer(at)).await.unwrap() });
    }
    let won: Vec<_> = answers.join_all().await.into_iter().flatten().collect();
    assert_eq!(won.len(), 1);
    let stored = records.find("t").await.unwrap().unwrap();
    assert_eq!(stored.answer, won[0].answer);
}
