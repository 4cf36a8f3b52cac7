//! Servers in this program.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use serde_json::json;
use tokio::sync::{Mutex, mpsc};

use super::peer::{call, context, eventually, greeting, named, settings, text, text_result};
use crate::base::clock::SystemClock;
use crate::base::http::ProxyRules;
use crate::base::process::Helper;
use crate::error::{ErrorKind, KernelError, Result};
use crate::mcp::{Link, LinkFactory, Pool, Surroundings, Target};
use crate::protocol::Json;

/// A server behind a link; each frame is answered in the order it came.
#[derive(Default)]
struct Server {
    opened: AtomicUsize,
    closed: Arc<AtomicUsize>,
}

struct Ends {
    frames: mpsc::UnboundedSender<Json>,
    answers: Mutex<mpsc::UnboundedReceiver<Json>>,
    closed: Arc<AtomicUsize>,
}

#[async_trait]
impl LinkFactory for Server {
    async fn open(&self) -> Result<Arc<dyn Link>> {
        if self.opened.fetch_add(1, Ordering::SeqCst) > 0 {
            let message = "the server is connected elsewhere";
            return Err(KernelError::new(ErrorKind::McpServer, message));
        }
        let (frames, answers) = mpsc::unbounded_channel();
        Ok(Arc::new(Ends {
            frames,
            answers: Mutex::new(answers),
            closed: self.closed.clone(),
        }))
    }
}

#[async_trait]
impl Link for Ends {
    async fn send(&self, frame: Json) -> Result<()> {
        let result = match frame["method"].as_str() {
            Some("initialize") => greeting(),
            Some("tools/list") => json!({"tools": [named("echo"), named("die")]}),
            Some("tools/call") if frame["params"]["name"] == "die" => {
                self.frames.send(Json::Null).unwrap();
                return Ok(());
            }
            Some("tools/call") => text_result(&frame["params"]["arguments"].to_string()),
            _ => return Ok(()),
        };
        let answer = json!({"jsonrpc": "2.0", "id": frame["id"], "result": result});
        self.frames.send(answer).unwrap();
        Ok(())
    }

    async fn receive(&self) -> Result<Option<Vec<Json>>> {
        let frame = self.answers.lock().await.recv().await;
        Ok(frame
            .filter(|frame| !frame.is_null())
            .map(|frame| vec![frame]))
    }

    async fn close(&self) {
        self.closed.fetch_add(1, Ordering::SeqCst);
    }
}

fn pool(server: Arc<Server>) -> Pool {
    let mut settings = settings("local");
    settings.target = Target::InProcess(server);
    let surroundings = Surroundings {
        helper: Helper::at("/nowhere"),
        env: Vec::new(),
        proxy: ProxyRules::direct(),
    };
    Pool::new(vec![settings], &surroundings, Arc::new(SystemClock))
}

#[tokio::test]
async fn fifty_calls_at_once_share_one_link() {
    let server = Arc::new(Server::default());
    let pool = pool(server.clone());
    pool.prepare(true).await;
    let tool = pool.offering().tools[0].clone();
    let calls = (0..50).map(|n| {
        let tool = tool.clone();
        tokio::spawn(async move {
            tool.call(json!({"n": n}), context("toolu_1"))
                .await
                .unwrap()
        })
    });
    for (n, task) in calls.collect::<Vec<_>>().into_iter().enumerate() {
        assert_eq!(text(&task.await.unwrap()), format!("{{\"n\":{n}}}"));
    }
    assert_eq!(server.opened.load(Ordering::SeqCst), 1);
    pool.close().await;
    assert_eq!(server.closed.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_link_that_ends_fails_its_calls_and_a_server_that_is_taken_is_reported() {
    let server = Arc::new(Server::default());
    let pool = pool(server.clone());
    pool.prepare(true).await;
    let tool = pool.offering().tools[1].clone();
    let output = call(&tool).await;
    assert_eq!(
        text(&output),
        "MCP server \"local\" closed the connection while it ran the tool \"die\""
    );
    eventually(|| server.closed.load(Ordering::SeqCst) == 1).await;
    pool.prepare(true).await;
    let failures = pool.failures();
    assert_eq!(
        failures[0].error.message(),
        "MCP server \"local\" could not be started: the server is connected elsewhere"
    );
    assert!(pool.offering().tools.is_empty());
}
