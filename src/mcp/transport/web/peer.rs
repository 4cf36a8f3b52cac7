//! The other end of the wire, scripted byte by byte, for tests.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::service::TxJsonRpcMessage;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use url::Url;

use crate::base::http::ProxyRules;
use crate::base::retry::Backoff;
use crate::base::secret::Secret;
use crate::protocol::Json;

use super::{Endpoint, Limits};

/// What is sent to the server in every test.
pub const KEY: &str = "Bearer sk-peer-12345";

/// A request as it came.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: String,
    pub path: String,
    /// Names in lower case.
    pub headers: HashMap<String, String>,
    pub body: Json,
}

impl Request {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    /// Method and path, and the method of the message.
    pub fn kind(&self) -> String {
        let kind = format!("{} {}", self.method, self.path);
        match self.body["method"].as_str() {
            Some(method) => format!("{kind} {method}"),
            None => kind,
        }
    }
}

/// What is written as an answer. At its end the connection is closed.
pub enum Step {
    Bytes(Vec<u8>),
    Pause(Duration),
    /// Waits until the other side closes the connection.
    Hang,
    /// Writes the same bytes until the other side closes the connection.
    Flood(Vec<u8>),
}

pub type Reply = Vec<Step>;

/// A server on an ephemeral port.
pub struct Peer {
    pub url: Url,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Peer {
    /// Answers every request with what `script` gives for it.
    pub async fn start(script: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (seen, script) = (requests.clone(), Arc::new(script));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (seen, script) = (seen.clone(), script.clone());
                tokio::spawn(serve(stream, seen, script));
            }
        });
        Self {
            url: Url::parse(&format!("http://127.0.0.1:{port}/mcp?key=in-the-query")).unwrap(),
            requests,
        }
    }

    pub fn origin(&self) -> String {
        self.url.origin().ascii_serialization()
    }

    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    pub fn kinds(&self) -> Vec<String> {
        self.requests().iter().map(Request::kind).collect()
    }

    /// Waits until so many requests came.
    pub async fn wait_for(&self, count: usize) -> Vec<Request> {
        loop {
            let requests = self.requests();
            if requests.len() >= count {
                return requests;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// The client's end.
    pub fn endpoint(&self) -> Endpoint {
        endpoint(&self.url, &ProxyRules::direct())
    }
}

pub fn endpoint(url: &Url, proxy: &ProxyRules) -> Endpoint {
    let headers = [("Authorization".to_owned(), Secret::new(KEY))];
    Endpoint::new(url, &headers, proxy).unwrap()
}

/// Limits that a test can wait for.
pub fn limits() -> Limits {
    Limits {
        stall: Duration::from_millis(300),
        headers: Duration::from_millis(300),
        backoff: Backoff {
            first: Duration::from_millis(1),
            most: Duration::from_millis(1),
            jitter: 0.0,
            asked_most: Duration::from_secs(1),
        },
        attempts: 3,
    }
}

async fn serve(
    mut stream: TcpStream,
    seen: Arc<Mutex<Vec<Request>>>,
    script: Arc<impl Fn(&Request) -> Reply>,
) {
    let Some(request) = read(&mut stream).await else {
        return;
    };
    let reply = script(&request);
    seen.lock().unwrap().push(request);
    for step in reply {
        let written = match step {
            Step::Bytes(bytes) => stream.write_all(&bytes).await,
            Step::Pause(time) => {
                tokio::time::sleep(time).await;
                Ok(())
            }
            Step::Hang => stream.read_to_end(&mut Vec::new()).await.map(drop),
            Step::Flood(bytes) => loop {
                if let Err(error) = stream.write_all(&bytes).await {
                    break Err(error);
                }
            },
        };
        if written.is_err() {
            return;
        }
    }
    let _ = stream.shutdown().await;
}

async fn read(stream: &mut TcpStream) -> Option<Request> {
    let mut bytes = Vec::new();
    let head_end = loop {
        if let Some(at) = memchr::memmem::find(&bytes, b"\r\n\r\n") {
            break at + 4;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(bytes[..head_end].to_vec()).unwrap();
    let mut lines = head.lines();
    let mut words = lines.next()?.split(' ').map(str::to_owned);
    let (method, path) = (words.next()?, words.next()?);
    let headers: HashMap<_, _> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let length = headers
        .get("content-length")
        .map_or(0, |length| length.parse().unwrap());
    while bytes.len() < head_end + length {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
    Some(Request {
        method,
        path: path.replace("?key=in-the-query", ""),
        headers,
        body: serde_json::from_slice(&bytes[head_end..]).unwrap_or(Json::Null),
    })
}

/// The head of an answer whose body ends with the connection.
pub fn head(status: &str, headers: &str) -> Step {
    Step::Bytes(format!("HTTP/1.1 {status}\r\nconnection: close\r\n{headers}\r\n").into_bytes())
}

/// A whole answer. `headers` are lines that end with CR LF.
pub fn plain(status: &str, headers: &str, body: &str) -> Reply {
    let headers = format!("{headers}content-length: {}\r\n", body.len());
    vec![head(status, &headers), Step::Bytes(body.into())]
}

pub fn json_reply(body: &Json) -> Reply {
    plain(
        "200 OK",
        "content-type: application/json\r\n",
        &body.to_string(),
    )
}

/// The head of an event stream and its first bytes; it stays open when `then` hangs.
pub fn events(text: &str, then: Option<Step>) -> Reply {
    let mut reply = vec![
        head("200 OK", "content-type: text/event-stream\r\n"),
        Step::Bytes(text.into()),
    ];
    reply.extend(then);
    reply
}

/// An event with a message.
pub fn event(message: &Json) -> String {
    format!("data: {message}\n\n")
}

/// The answer to a request.
pub fn result(request: &Request, result: Json) -> Json {
    json!({"jsonrpc": "2.0", "id": request.body["id"], "result": result})
}

/// The answer to `initialize`.
pub fn welcome(request: &Request) -> Json {
    let info = json!({"name": "peer", "version": "1"});
    let said = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": info});
    result(request, said)
}

/// A message of the client.
pub fn message(value: Json) -> TxJsonRpcMessage<RoleClient> {
    serde_json::from_value(value).unwrap()
}

pub fn initialize() -> TxJsonRpcMessage<RoleClient> {
    let params = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    });
    message(json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}))
}

pub fn initialized() -> TxJsonRpcMessage<RoleClient> {
    message(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
}

/// A call of a tool.
pub fn call(id: u32) -> TxJsonRpcMessage<RoleClient> {
    let params = json!({"name": "echo", "arguments": {}});
    message(json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}))
}

/// A message of the server as JSON.
pub fn shown(message: Option<super::Incoming>) -> Json {
    serde_json::to_value(message.expect("a message")).unwrap()
}
