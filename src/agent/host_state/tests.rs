//! The adapter against a program that misbehaves.

use std::sync::Mutex as StdMutex;

use super::*;
use crate::agent::host::HostFailure;
use crate::base::clock::SystemClock;

/// A program with a map in the place of a database.
#[derive(Default)]
struct Program {
    records: StdMutex<BTreeMap<String, Json>>,
    hangs: StdMutex<bool>,
}

#[async_trait]
impl Host for Program {
    async fn call(
        &self,
        function: FunctionId,
        argument: Json,
        _cancel: CancellationToken,
    ) -> Result<Json, HostFailure> {
        // Others may come in between.
        tokio::task::yield_now().await;
        if *self.hangs.lock().unwrap() {
            std::future::pending::<()>().await;
        }
        let id = format!("{}/{}", argument["conversationId"], argument["toolUseId"]);
        let mut records = self.records.lock().unwrap();
        Ok(match function.0 {
            0 => {
                records.insert(id, argument);
                Json::Null
            }
            1 => records.get(&id).cloned().unwrap_or_default(),
            _ => records.remove(&id).map(|_| Json::Null).unwrap_or_default(),
        })
    }

    fn notify(&self, _function: FunctionId, _argument: Json) {}
}

fn mark(index: u32) -> Json {
    json!({"\0oak": {"type": "function", "what": "a function", "index": index}})
}

fn store(program: &Arc<Program>) -> HostState {
    let value = json!({"put": mark(0), "get": mark(1), "delete": mark(2)});
    HostState::from_fields("store", &value, program.clone(), Arc::new(SystemClock)).unwrap()
}

fn record(project: &str, kind: StateKind, key: &str, data: Json) -> StateRecord {
    let project = project.into();
    let key = key.to_owned();
    StateRecord {
        key: StateKey { project, kind, key },
        conversation: Some("c|1".to_owned()),
        user: Some("ann".to_owned()),
        version: 7,
        data,
        expires_at: Some(9),
    }
}

fn approval(data: Json) -> StateRecord {
    record("p", StateKind::Approval, "c%7C1|t", data)
}

#[tokio::test]
async fn changes_need_the_version() {
    let program = Arc::new(Program::default());
    let store = store(&program);
    let (first, second) = (approval(json!({"toolName": "x"})), approval(json!([2])));
    assert_eq!(store.insert(&first).await.unwrap(), Inserted::Done);
    let stored = StateRecord {
        version: 1,
        ..first.clone()
    };
    assert_eq!(store.get(&first.key).await.unwrap().as_ref(), Some(&stored));
    let kept = program
        .records
        .lock()
        .unwrap()
        .values()
        .next()
        .cloned()
        .unwrap();
    assert_eq!(kept["toolName"], "x");
    assert_eq!(
        (&kept["conversationId"], &kept["toolUseId"]),
        (&json!("c|1"), &json!("t"))
    );
    assert_eq!(
        store.insert(&second).await.unwrap(),
        Inserted::Exists(stored.clone())
    );
    assert_eq!(
        store.swap(&second, 2).await.unwrap(),
        Swapped::Conflict(Some(stored))
    );
    assert_eq!(store.swap(&second, 1).await.unwrap(), Swapped::Done(2));
    assert_eq!(
        store.get(&first.key).await.unwrap().unwrap().data,
        json!([2])
    );
    assert!(matches!(
        store.remove(&first.key, Some(1)).await.unwrap(),
        Swapped::Conflict(Some(_))
    ));
    assert_eq!(
        store.remove(&first.key, None).await.unwrap(),
        Swapped::Done(2)
    );
    assert_eq!(
        store.remove(&first.key, None).await.unwrap(),
        Swapped::Conflict(None)
    );
}

#[tokio::test]
async fn of_racing_changes_one_wins() {
    let store = store(&Arc::new(Program::default()));
    let (a, b) = (approval(json!(1)), approval(json!(2)));
    let inserted = tokio::join!(store.insert(&a), store.insert(&b));
    assert_eq!(inserted.0.unwrap(), Inserted::Done);
    assert!(matches!(inserted.1.unwrap(), Inserted::Exists(_)));
    let swapped = tokio::join!(store.swap(&a, 1), store.swap(&b, 1));
    assert_eq!(swapped.0.unwrap(), Swapped::Done(2));
    assert!(matches!(swapped.1.unwrap(), Swapped::Conflict(Some(_))));
}

#[tokio::test]
async fn lists_know_what_this_process_wrote_and_nothing_of_another_project_is_touched() {
    let program = Arc::new(Program::default());
    let store = store(&program);
    let one = approval(json!(1));
    let two = record("p", StateKind::ClientTool, "c%7C1|u", json!(2));
    for record in [&one, &two] {
        store.insert(record).await.unwrap();
    }
    let query = |kind| StateQuery {
        project: "p".into(),
        kind,
        conversation: Some("c|1".to_owned()),
        after: None,
        limit: 10,
    };
    let listed = store.list(&query(StateKind::ClientTool)).await.unwrap();
    assert_eq!(
        listed.iter().map(|record| &record.data).collect::<Vec<_>>(),
        [&json!(2)]
    );
    let other_kind = record("p", StateKind::Question, "c%7C1|u", json!(2));
    assert_eq!(store.get(&other_kind.key).await.unwrap(), None);
    let foreign = record("q", StateKind::Approval, "c%7C1|t", json!(3));
    let error = store.insert(&foreign).await.unwrap_err();
    assert_eq!(
        error.message(),
        "store.get gave the record of another project"
    );
    store.forget("p", "c|1").await.unwrap();
    assert!(program.records.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn records_of_older_kernels_are_read_and_a_hanging_store_is_an_error() {
    let program = Arc::new(Program::default());
    let older = json!({"conversationId": "c|1", "toolUseId": "t", "toolName": "x"});
    program
        .records
        .lock()
        .unwrap()
        .insert("\"c|1\"/\"t\"".to_owned(), older.clone());
    let store = store(&program);
    let found = store.get(&approval(json!(1)).key).await.unwrap().unwrap();
    assert_eq!((found.version, found.data), (1, older));
    *program.hangs.lock().unwrap() = true;
    let error = store.get(&found.key).await.unwrap_err();
    assert_eq!(
        (error.kind(), error.is_retryable()),
        (ErrorKind::Store, true)
    );
    assert!(error.message().starts_with("store.get did not settle"));
}

#[test]
fn a_missing_method_is_named() {
    let value = json!({"put": mark(0), "get": mark(1)});
    let program = Arc::new(Program::default());
    let made = HostState::from_fields(
        "config.permissions.store",
        &value,
        program,
        Arc::new(SystemClock),
    );
    let error = made.err().unwrap();
    assert!(
        error
            .message()
            .starts_with("config.permissions.store has no method delete")
    );
}
