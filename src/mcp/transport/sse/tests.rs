//! The older transport against a server that is scripted byte by byte.

use std::time::Duration;

use serde_json::json;

use super::*;
use crate::error::ErrorKind;
use crate::mcp::transport::web::peer::{
    KEY, Peer, Reply, Request, Step, call, event, events, head, initialize, limits, plain, shown,
    welcome,
};

async fn open(peer: &Peer) -> Result<SseTransport> {
    SseTransport::open(peer.endpoint(), limits()).await
}

/// A server whose stream goes on as `rest` says after it named the address of messages.
async fn server(address: &'static str, rest: impl Fn() -> Reply + Send + Sync + 'static) -> Peer {
    Peer::start(move |request| match request.method.as_str() {
        "GET" => {
            let mut reply = events(&format!("event: endpoint\r\ndata: {address}\r\n\r\n"), None);
            reply.extend(rest());
            reply
        }
        _ => plain("202 Accepted", "", "Accepted"),
    })
    .await
}

async fn refusal(reply: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> KernelError {
    let peer = Peer::start(reply).await;
    let error = open(&peer).await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::McpServer);
    assert!(error.message().starts_with(&peer.origin()), "{error}");
    for hidden in ["sk-peer", "in-the-query"] {
        assert!(!format!("{error} {error:?}").contains(hidden), "{error:?}");
    }
    error
}

fn answer(id: u32, text: &str) -> String {
    let content = json!([{"type": "text", "text": text}]);
    event(&json!({"jsonrpc": "2.0", "id": id, "result": {"content": content}}))
}

#[tokio::test]
async fn messages_are_posted_to_the_address_and_come_back_on_the_stream() {
    let peer = server("/messages?sessionId=1", || {
        let request = Request {
            method: String::new(),
            path: String::new(),
            headers: std::collections::HashMap::new(),
            body: json!({"id": 0}),
        };
        vec![
            Step::Bytes(b": ping\n\nevent: ping\ndata: 1\n\ndata: no json\n\n".to_vec()),
            Step::Bytes(event(&welcome(&request)).into_bytes()),
            Step::Hang,
        ]
    })
    .await;
    let mut transport = open(&peer).await.unwrap();
    transport.send(initialize()).await.unwrap();
    assert_eq!(shown(transport.receive().await)["id"], 0);
    let requests = peer.requests();
    assert_eq!(requests[0].header("accept"), "text/event-stream");
    assert_eq!(requests[1].kind(), "POST /messages?sessionId=1 initialize");
    assert_eq!(requests[1].header("content-type"), "application/json");
    assert!(
        requests
            .iter()
            .all(|request| request.header("authorization") == KEY)
    );
    transport.close().await.unwrap();
    assert!(transport.receive().await.is_none());
    assert!(transport.send(call(1)).await.is_err());
}

#[tokio::test]
async fn characters_and_lines_may_be_cut_anywhere() {
    for end in ["\n", "\r\n", "\r"] {
        let text = answer(1, "北京😀").replace('\n', end);
        let peer = server("messages", move || {
            let chunks = text.as_bytes().chunks(1);
            let steps = chunks.flat_map(|byte| {
                [
                    Step::Bytes(byte.to_vec()),
                    Step::Pause(Duration::from_micros(200)),
                ]
            });
            steps.chain([Step::Hang]).collect()
        })
        .await;
        let mut transport = open(&peer).await.unwrap();
        let got = shown(transport.receive().await);
        assert_eq!(got["result"]["content"][0]["text"], "北京😀");
        transport.send(call(1)).await.unwrap();
        assert_eq!(peer.requests()[1].kind(), "POST /messages tools/call");
    }
}

#[tokio::test]
async fn an_absolute_address_of_the_same_origin_is_used() {
    let peer = Peer::start(|request| match request.method.as_str() {
        "GET" => {
            let address = format!("http://{}/in/full", request.header("host"));
            events(
                &format!("event: endpoint\ndata: {address}\n\n"),
                Some(Step::Hang),
            )
        }
        _ => plain("200 OK", "", ""),
    })
    .await;
    let mut transport = open(&peer).await.unwrap();
    transport.send(call(1)).await.unwrap();
    assert_eq!(peer.requests()[1].path, "/in/full");
}

#[tokio::test]
async fn an_address_of_another_origin_is_refused_at_the_start_and_later() {
    let other = Peer::start(|_| plain("202 Accepted", "", "")).await;
    let there = other.origin();
    let address = format!("event: endpoint\ndata: {there}/messages\n\n");
    let later = address.clone();
    let error = refusal(move |_| events(&address, Some(Step::Hang))).await;
    assert!(
        error
            .message()
            .contains(&format!("another origin, {there}")),
        "{error}"
    );
    assert!(!error.is_retryable());
    for odd in [
        "//evil.example/x",
        "https://127.0.0.1/x",
        "file:///etc/passwd",
        "data:,x",
    ] {
        let text = format!("event: endpoint\ndata: {odd}\n\n");
        let error = refusal(move |_| events(&text, Some(Step::Hang))).await;
        assert!(error.message().contains("another origin"), "{error}");
    }

    let peer = server("/messages", move || {
        vec![Step::Bytes(later.clone().into_bytes()), Step::Hang]
    })
    .await;
    let mut transport = open(&peer).await.unwrap();
    assert!(transport.receive().await.is_none());
    let error = transport.send(call(1)).await.unwrap_err();
    assert!(error.message().contains("another origin"), "{error}");
    assert!(other.requests().is_empty());
}

#[tokio::test]
async fn redirects_stay_at_the_origin() {
    let other = Peer::start(|_| plain("200 OK", "", "")).await;
    let target = format!("location: {}/sse\r\n", other.origin());
    let error = refusal(move |_| plain("302 Found", &target, "")).await;
    assert!(error.message().contains("another origin"), "{error}");

    let target = format!("location: {}/messages\r\n", other.origin());
    let peer = Peer::start(move |request| match request.kind().as_str() {
        "GET /mcp" => plain("302 Found", "location: /stream\r\n", ""),
        "GET /stream" => events("event: endpoint\ndata: /m\n\n", Some(Step::Hang)),
        _ => plain("307 Temporary Redirect", &target, ""),
    })
    .await;
    let mut transport = open(&peer).await.unwrap();
    let error = transport.send(call(1)).await.unwrap_err();
    assert!(error.message().contains("another origin"), "{error}");
    assert!(other.requests().is_empty());
}

#[tokio::test]
async fn the_end_of_the_stream_is_the_end_of_the_connection() {
    let peer = server("/m", || vec![Step::Bytes(answer(1, "last").into_bytes())]).await;
    let mut transport = open(&peer).await.unwrap();
    assert_eq!(shown(transport.receive().await)["id"], 1);
    assert!(transport.receive().await.is_none());
    let error = transport.send(call(2)).await.unwrap_err();
    assert!(error.is_retryable(), "{error}");
}

#[tokio::test]
async fn what_is_no_stream_is_refused_with_a_remedy() {
    for (status, words) in [
        ("401 Unauthorized", "check headers"),
        ("403 Forbidden", "check headers"),
        ("404 Not Found", "check url"),
        ("405 Method Not Allowed", "type: 'http'"),
        ("500 Oops", "HTTP 500"),
    ] {
        let error = refusal(move |_| plain(status, "", &format!("refused {KEY}"))).await;
        assert!(error.message().contains(words), "{error}");
        assert!(error.message().contains("refused ***"), "{error}");
        assert_eq!(error.status(), status[..3].parse().ok());
    }
    let error = refusal(|_| plain("200 OK", "content-type: text/html\r\n", "<html>")).await;
    assert!(error.message().contains("no event stream"), "{error}");
    let error = refusal(|_| events("data: 1\n\n", None)).await;
    assert!(
        error.message().contains("before it named the address"),
        "{error}"
    );
}

#[tokio::test]
async fn silence_at_the_start_has_a_limit() {
    let error = refusal(|_| vec![Step::Hang]).await;
    assert!(
        error.message().ends_with("sent nothing within 300 ms"),
        "{error}"
    );
    let error = refusal(|_| events(": wait\n\n", Some(Step::Hang))).await;
    assert!(
        error.message().ends_with("sent nothing within 300 ms"),
        "{error}"
    );
    let error = refusal(|_| vec![head("500 Oops", "content-length: 9\r\n")]).await;
    assert_eq!(error.status(), Some(500));
}

#[tokio::test]
async fn a_message_that_is_not_taken_is_an_error_of_its_own() {
    for (reply, words) in [
        (("404 Not Found", ""), "HTTP 404"),
        (
            ("400 Bad Request", "Could not find session"),
            "Could not find session",
        ),
    ] {
        let (status, body) = reply;
        let peer = Peer::start(move |request| match request.method.as_str() {
            "GET" => events("event: endpoint\ndata: /m\n\n", Some(Step::Hang)),
            _ => plain(status, "", body),
        })
        .await;
        let mut transport = open(&peer).await.unwrap();
        let error = transport.send(call(1)).await.unwrap_err();
        assert!(error.message().contains(words), "{error}");
    }
    let peer = Peer::start(|request| match request.method.as_str() {
        "GET" => events("event: endpoint\ndata: /m\n\n", Some(Step::Hang)),
        _ => vec![Step::Hang],
    })
    .await;
    let mut transport = open(&peer).await.unwrap();
    let error = transport.send(call(1)).await.unwrap_err();
    assert!(
        error.message().ends_with("sent nothing within 300 ms"),
        "{error}"
    );
}

#[tokio::test]
async fn an_event_without_end_ends_the_connection() {
    let peer = server("/m", || vec![Step::Flood(vec![b'x'; 1 << 20])]).await;
    let mut transport = open(&peer).await.unwrap();
    assert!(transport.receive().await.is_none());
    let error = transport.send(call(1)).await.unwrap_err();
    assert!(error.message().contains("does not end"), "{error}");
}
