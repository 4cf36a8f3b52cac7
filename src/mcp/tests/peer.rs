//! The other end of the wire: a server that a test scripts.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, duplex};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::base::clock::SystemClock;
use crate::base::process::ExitStatus;
use crate::error::Result;
use crate::mcp::connection::{Connection, Opening};
use crate::mcp::transport::{Dial, Process, Streams, stdio_over};
use crate::mcp::{Offering, Pool, Program, ServerSettings, Target};
use crate::protocol::Json;
use crate::tool::{Progress, SessionRef, Tool, ToolContext, ToolOutput};

/// Room in each pipe.
const PIPE: usize = 64 * 1024;

/// What a server of a test does with a connection.
pub type Script = Arc<dyn Fn(Peer) -> BoxFuture<'static, ()> + Send + Sync>;

/// A server's end of a connection.
pub struct Peer {
    input: BufReader<DuplexStream>,
    pub output: DuplexStream,
    pub stderr: DuplexStream,
    exit: watch::Sender<Option<ExitStatus>>,
    /// How many connections there were before.
    pub start: usize,
}

impl Peer {
    /// The next message; none when the input was closed.
    pub async fn next(&mut self) -> Option<Json> {
        let mut line = String::new();
        let length = self.input.read_line(&mut line).await.ok()?;
        (length > 0).then(|| serde_json::from_str(&line).unwrap())
    }

    /// The next request or notification of a method; others are passed over.
    pub async fn expect(&mut self, method: &str) -> Json {
        loop {
            let message = self.next().await.expect("a message");
            if message["method"] == method {
                return message;
            }
        }
    }

    pub async fn write(&mut self, text: &str) {
        // The client may be gone: that is what some tests are about.
        let _ = self.output.write_all(text.as_bytes()).await;
    }

    pub async fn send(&mut self, message: Json) {
        self.write(&format!("{message}\n")).await;
    }

    pub async fn answer(&mut self, request: &Json, result: Json) {
        self.send(json!({"jsonrpc": "2.0", "id": request["id"], "result": result}))
            .await;
    }

    /// The handshake and the list of tools.
    pub async fn offer(&mut self, tools: Json) {
        let request = self.expect("initialize").await;
        self.answer(&request, greeting()).await;
        self.list(tools).await;
    }

    pub async fn list(&mut self, tools: Json) {
        let request = self.expect("tools/list").await;
        self.answer(&request, json!({"tools": tools})).await;
    }

    /// Ends the process.
    pub fn exit(self, status: ExitStatus) {
        self.exit.send_replace(Some(status));
    }

    /// Answers every call with its own tool name and input until the input is closed.
    pub async fn echo(mut self) {
        while let Some(message) = self.next().await {
            if message["method"] == "tools/call" {
                let text = message["params"].to_string();
                self.answer(&message, text_result(&text)).await;
            }
        }
        self.exit(ExitStatus::Code(0));
    }
}

pub fn greeting() -> Json {
    json!({"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "peer"}})
}

pub fn text_result(text: &str) -> Json {
    json!({"content": [{"type": "text", "text": text}]})
}

pub fn named(name: &str) -> Json {
    json!({"name": name, "inputSchema": {"type": "object"}})
}

/// A pool whose servers are scripts.
pub struct Rig {
    pub pool: Pool,
    /// Connections that were begun.
    pub starts: Arc<AtomicUsize>,
    /// Processes that were ended from our side.
    pub ended: Arc<AtomicUsize>,
}

struct Scripted {
    script: Script,
    starts: Arc<AtomicUsize>,
    ended: Arc<AtomicUsize>,
}

#[async_trait]
impl Dial for Scripted {
    async fn dial(&self, opening: Opening) -> Result<Connection> {
        let (stdin, input) = duplex(PIPE);
        let (output, stdout) = duplex(PIPE);
        let (theirs, stderr) = duplex(PIPE);
        let exit = watch::Sender::new(None);
        let process = TestProcess {
            exit: exit.clone(),
            ended: self.ended.clone(),
        };
        let peer = Peer {
            input: BufReader::new(input),
            output,
            stderr: theirs,
            exit,
            start: self.starts.fetch_add(1, Ordering::SeqCst),
        };
        tokio::spawn((self.script)(peer));
        let streams = Streams {
            stdin,
            stdout,
            stderr,
        };
        Ok(stdio_over(opening, streams, Box::new(process)))
    }
}

struct TestProcess {
    exit: watch::Sender<Option<ExitStatus>>,
    ended: Arc<AtomicUsize>,
}

#[async_trait]
impl Process for TestProcess {
    async fn wait(&self) -> ExitStatus {
        let mut exit = self.exit.subscribe();
        let status = exit.wait_for(Option::is_some).await.map(|status| *status);
        status.ok().flatten().unwrap_or(ExitStatus::Unknown)
    }

    async fn end(self: Box<Self>) {
        self.ended.fetch_add(1, Ordering::SeqCst);
    }
}

pub fn settings(name: &str) -> ServerSettings {
    ServerSettings {
        name: name.into(),
        target: Target::Stdio(Program {
            command: "scripted".into(),
            args: Vec::new(),
            env: Vec::new(),
            cwd: None,
        }),
        timeout: Duration::from_mins(1),
        handshake: Duration::from_secs(30),
        always_load: false,
        trusted: false,
        policies: HashMap::new(),
        idle: None,
    }
}

/// A pool of one server.
pub fn rig<F>(settings: ServerSettings, script: impl Fn(Peer) -> F + Send + Sync + 'static) -> Rig
where
    F: Future<Output = ()> + Send + 'static,
{
    let script: Script = Arc::new(move |peer| script(peer).boxed());
    rig_of(vec![(settings, script)])
}

/// A pool of several servers.
pub fn rig_of(servers: Vec<(ServerSettings, Script)>) -> Rig {
    let starts = Arc::new(AtomicUsize::new(0));
    let ended = Arc::new(AtomicUsize::new(0));
    let scripts: HashMap<_, _> = servers
        .iter()
        .map(|(settings, script)| (settings.name.clone(), script.clone()))
        .collect();
    let dial = |settings: &ServerSettings| -> Box<dyn Dial> {
        Box::new(Scripted {
            script: scripts[&settings.name].clone(),
            starts: starts.clone(),
            ended: ended.clone(),
        })
    };
    let settings = servers.iter().map(|(settings, _)| settings.clone());
    let pool = Pool::with(settings.collect(), dial, Arc::new(SystemClock));
    Rig {
        pool,
        starts,
        ended,
    }
}

impl Rig {
    /// What the first request of a run offers.
    pub async fn offer(&self) -> Arc<Offering> {
        self.pool.prepare(true).await;
        self.pool.offering()
    }

    /// The names that the first request of a run offers.
    pub async fn names(&self) -> Vec<String> {
        let offering = self.offer().await;
        names(&offering)
    }

    /// A tool of the first request of a run.
    pub async fn tool(&self, name: &str) -> Arc<dyn Tool> {
        let offering = self.offer().await;
        let found = offering
            .tools
            .iter()
            .find(|tool| &*tool.spec().name == name);
        found
            .unwrap_or_else(|| panic!("{name} is not in {:?}", names(&offering)))
            .clone()
    }

    /// The messages of the servers that cannot be used.
    pub fn failures(&self) -> Vec<String> {
        let failures = self.pool.failures().into_iter();
        failures
            .map(|failure| failure.error.message().to_owned())
            .collect()
    }
}

pub fn names(offering: &Offering) -> Vec<String> {
    let names = offering
        .tools
        .iter()
        .map(|tool| tool.spec().name.to_string());
    names.collect()
}

pub fn context(id: &str) -> ToolContext {
    ToolContext {
        tool_use_id: id.into(),
        turn_id: "turn".into(),
        session: SessionRef {
            conversation_id: "c".into(),
            user_id: "u".into(),
            env_id: "e".into(),
        },
        cancel: CancellationToken::new(),
        idempotency_key: format!("c:{id}"),
        progress: Progress::default(),
    }
}

/// Calls a tool without input.
pub async fn call(tool: &Arc<dyn Tool>) -> ToolOutput {
    tool.call(json!({}), context("toolu_1")).await.unwrap()
}

/// The text of an output.
pub fn text(output: &ToolOutput) -> String {
    match output.to_json() {
        Json::String(text) => text,
        other => other.to_string(),
    }
}

/// Waits until something is so.
pub async fn eventually(is_so: impl Fn() -> bool) {
    while !is_so() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
