//! Links over a program that behaves in every way.

use std::collections::VecDeque;
use std::sync::Mutex as StdMutex;

use tokio::sync::Notify;

use super::*;

const PATH: &str = "config.mcpServers.weather.instance";
const NAMES: [&str; 4] = ["open", "send", "receive", "close"];

/// What a function does.
#[derive(Clone)]
enum Act {
    Throw,
    Hang,
}

/// Calls that were made: name and argument; calls that were dropped before they settled.
#[derive(Default)]
struct Program {
    acts: StdMutex<Vec<(&'static str, Act)>>,
    batches: StdMutex<VecDeque<Json>>,
    more: Notify,
    calls: StdMutex<Vec<(&'static str, Json)>>,
    stopped: Arc<StdMutex<Vec<&'static str>>>,
}

struct Stopped(Option<&'static str>, Arc<StdMutex<Vec<&'static str>>>);

impl Drop for Stopped {
    fn drop(&mut self) {
        self.1.lock().unwrap().extend(self.0);
    }
}

impl Program {
    fn with(acts: &[(&'static str, Act)]) -> Arc<Self> {
        let program = Self::default();
        *program.acts.lock().unwrap() = acts.to_vec();
        Arc::new(program)
    }

    fn say(&self, batch: Json) {
        self.batches.lock().unwrap().push_back(batch);
        self.more.notify_one();
    }

    fn count(&self, name: &str) -> usize {
        let calls = self.calls.lock().unwrap();
        calls.iter().filter(|(called, _)| *called == name).count()
    }

    fn factory(self: &Arc<Self>) -> Arc<dyn LinkFactory> {
        let mut value = json!({});
        for (index, name) in NAMES.iter().enumerate() {
            value[*name] =
                json!({"\0oak": {"type": "function", "what": "a function", "index": index}});
        }
        let host: Arc<dyn Host> = self.clone();
        link_factory(PATH, &value, &host).unwrap()
    }

    async fn batch(&self) -> Json {
        loop {
            let next = self.batches.lock().unwrap().pop_front();
            match next {
                Some(batch) => return batch,
                None => self.more.notified().await,
            }
        }
    }
}

#[async_trait]
impl Host for Program {
    async fn call(
        &self,
        function: FunctionId,
        argument: Json,
        _cancel: CancellationToken,
    ) -> Result<Json, HostFailure> {
        let name = NAMES[function.0 as usize];
        self.calls.lock().unwrap().push((name, argument));
        let acts = self.acts.lock().unwrap().clone();
        let act = acts.into_iter().find(|(of, _)| *of == name);
        let mut guard = Stopped(Some(name), self.stopped.clone());
        let reply = match act {
            Some((_, Act::Throw)) => Err(HostFailure {
                message: "no luck".to_owned(),
                thrown: Some(7),
                ..HostFailure::default()
            }),
            Some((_, Act::Hang)) => std::future::pending().await,
            None if name == "receive" => Ok(self.batch().await),
            None => Ok(Json::Null),
        };
        guard.0 = None;
        reply
    }

    fn notify(&self, function: FunctionId, argument: Json) {
        let name = NAMES[function.0 as usize];
        self.calls.lock().unwrap().push((name, argument));
    }
}

async fn opened(program: &Arc<Program>) -> Arc<dyn Link> {
    program.factory().open().await.unwrap()
}

#[tokio::test]
async fn what_is_no_server_is_refused_with_its_place() {
    let host: Arc<dyn Host> = Program::with(&[]);
    for value in [json!({}), json!({"open": 1}), json!(5), Json::Null] {
        let error = link_factory(PATH, &value, &host).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::InvalidConfig);
        let wanted = format!("{PATH} must be an MCP server object");
        assert!(error.message().starts_with(&wanted), "{error}");
    }
}

#[tokio::test]
async fn frames_pass_both_ways_and_the_end_is_told() {
    let program = Program::with(&[]);
    let link = opened(&program).await;
    link.send(json!({"id": 1})).await.unwrap();
    assert_eq!(
        program.calls.lock().unwrap()[1],
        ("send", json!({"link": 0, "frame": {"id": 1}}))
    );
    program.say(json!(["{\"id\":1}", "{\"id\":2}"]));
    let frames = link.receive().await.unwrap().unwrap();
    assert_eq!(frames, [json!({"id": 1}), json!({"id": 2})]);
    program.say(Json::Null);
    assert!(link.receive().await.unwrap().is_none());
}

#[tokio::test]
async fn links_of_one_server_have_numbers_of_their_own() {
    let program = Program::with(&[]);
    let factory = program.factory();
    let _links = [factory.open().await.unwrap(), factory.open().await.unwrap()];
    let calls = program.calls.lock().unwrap().clone();
    assert_eq!(
        calls,
        [("open", json!({"link": 0})), ("open", json!({"link": 1}))]
    );
}

#[tokio::test(start_paused = true)]
async fn a_dropped_receive_loses_no_frame() {
    let program = Program::with(&[]);
    let link = opened(&program).await;
    let short = tokio::time::timeout(Duration::from_secs(1), link.receive());
    assert!(short.await.is_err());
    program.say(json!(["{\"id\":1}"]));
    assert_eq!(link.receive().await.unwrap().unwrap(), [json!({"id": 1})]);
    assert_eq!(program.count("receive"), 1);
}

#[tokio::test]
async fn replies_that_are_no_frames_are_errors_that_name_the_server() {
    let program = Program::with(&[]);
    let link = opened(&program).await;
    for batch in [json!({}), json!(5), json!([5]), json!([["x"]])] {
        program.say(batch);
        let error = link.receive().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::McpServer);
        assert!(error.message().starts_with(PATH), "{error}");
    }
}

#[tokio::test]
async fn an_answer_that_is_too_deep_is_the_failure_of_its_request() {
    let program = Program::with(&[]);
    let link = opened(&program).await;
    let deep = "[".repeat(5_000) + &"]".repeat(5_000);
    program.say(json!([
        format!("{{\"result\":{deep},\"id\":3}}"),
        format!("{{\"method\":\"m\",\"params\":{deep}}}"),
        format!("{{\"method\":\"m\",\"id\":4,\"params\":{deep}}}"),
        "no json",
        "{\"id\":4}",
    ]));
    let frames = link.receive().await.unwrap().unwrap();
    assert_eq!(frames.len(), 2);
    assert_eq!(frames[0]["id"], 3);
    assert_eq!(frames[0]["error"]["code"], INTERNAL_ERROR);
    assert_eq!(frames[1], json!({"id": 4}));
}

#[tokio::test]
async fn a_server_that_refuses_says_why_and_the_link_is_closed() {
    let program = Program::with(&[("open", Act::Throw)]);
    let error = program.factory().open().await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::McpServer);
    assert_eq!(
        error.message(),
        format!("{PATH} failed to connect: no luck")
    );
    assert_eq!(error.thrown(), Some(7));
    assert_eq!(program.count("close"), 1);
}

#[tokio::test(start_paused = true)]
async fn hanging_calls_end_at_their_limits_and_are_stopped() {
    let program = Program::with(&[("send", Act::Hang), ("close", Act::Hang)]);
    let link = opened(&program).await;
    let error = link.send(json!({})).await.unwrap_err();
    assert!(error.message().contains("within 60 s"), "{error}");
    link.close().await;
    assert_eq!(*program.stopped.lock().unwrap(), ["send", "close"]);

    let program = Program::with(&[("open", Act::Hang)]);
    let error = program.factory().open().await.err().unwrap();
    assert!(error.message().contains("connect within 60 s"), "{error}");
    assert_eq!(*program.stopped.lock().unwrap(), ["open"]);
    assert_eq!(program.count("close"), 1);
}

#[tokio::test]
async fn a_link_is_closed_once_or_when_it_is_dropped() {
    let program = Program::with(&[]);
    let link = opened(&program).await;
    link.close().await;
    link.close().await;
    drop(link);
    assert_eq!(program.count("close"), 1);

    let program = Program::with(&[]);
    drop(opened(&program).await);
    assert_eq!(program.count("close"), 1);
}

#[tokio::test(start_paused = true)]
async fn dropping_a_link_stops_its_receive() {
    let program = Program::with(&[]);
    let link = opened(&program).await;
    let short = tokio::time::timeout(Duration::from_secs(1), link.receive());
    assert!(short.await.is_err());
    drop(link);
    assert_eq!(*program.stopped.lock().unwrap(), ["receive"]);
}
