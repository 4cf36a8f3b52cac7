//! Streamable HTTP against a server that is scripted byte by byte.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use serde_json::json;

use super::*;
use crate::error::ErrorKind;
use crate::mcp::transport::web::SESSION_ENDED;
use crate::mcp::transport::web::peer::{
    KEY, Peer, Reply, Request, Step, call, endpoint, event, events, head, initialize, initialized,
    json_reply, limits, message, plain, result, shown, welcome,
};

const SESSION: &str = "mcp-session-id: session-1\r\n";

fn transport(peer: &Peer) -> HttpTransport {
    HttpTransport::new(peer.endpoint(), limits())
}

/// What a server of good manners does; `other` decides about everything but the handshake.
async fn server(other: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Peer {
    Peer::start(move |request| match request.kind().as_str() {
        "POST /mcp initialize" => {
            let headers = format!("{SESSION}content-type: application/json\r\n");
            plain("200 OK", &headers, &welcome(request).to_string())
        }
        "POST /mcp notifications/initialized" => plain("202 Accepted", "", ""),
        _ => other(request),
    })
    .await
}

fn not_allowed() -> Reply {
    plain("405 Method Not Allowed", "", "")
}

/// A session after its handshake.
async fn connected(peer: &Peer) -> HttpTransport {
    let mut transport = transport(peer);
    transport.send(initialize()).await.unwrap();
    transport.receive().await.unwrap();
    transport.send(initialized()).await.unwrap();
    // The handshake, and the question for a stream.
    peer.wait_for(3).await;
    transport
}

async fn refusal(reply: impl Fn() -> Reply + Send + Sync + 'static) -> KernelError {
    let peer = Peer::start(move |_| reply()).await;
    let error = transport(&peer).send(call(1)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::McpServer);
    assert!(error.message().contains(&peer.origin()), "{error}");
    for hidden in ["sk-peer", "in-the-query"] {
        assert!(!format!("{error} {error:?}").contains(hidden), "{error:?}");
    }
    error
}

#[tokio::test]
async fn every_request_carries_session_version_and_headers_and_the_end_is_told() {
    let peer = server(|request| match request.method.as_str() {
        "POST" => json_reply(&result(request, json!({"content": []}))),
        "DELETE" => plain("200 OK", "", ""),
        _ => not_allowed(),
    })
    .await;
    let mut transport = connected(&peer).await;
    transport.send(call(1)).await.unwrap();
    assert_eq!(shown(transport.receive().await)["id"], 1);
    transport.close().await.unwrap();
    assert!(transport.receive().await.is_none());

    let requests = peer.requests();
    let mut kinds = peer.kinds();
    kinds.sort();
    assert_eq!(
        kinds,
        [
            "DELETE /mcp",
            "GET /mcp",
            "POST /mcp initialize",
            "POST /mcp notifications/initialized",
            "POST /mcp tools/call",
        ]
    );
    for request in &requests {
        assert_eq!(request.header("authorization"), KEY);
        let first = request.kind().ends_with("initialize");
        let given = if first {
            ("", "")
        } else {
            ("session-1", "2025-06-18")
        };
        let got = (
            request.header("mcp-session-id"),
            request.header("mcp-protocol-version"),
        );
        assert_eq!(got, given, "{}", request.kind());
        if request.method == "POST" {
            assert_eq!(
                request.header("accept"),
                "application/json, text/event-stream"
            );
            assert_eq!(request.header("content-type"), "application/json");
        }
    }
}

#[tokio::test]
async fn a_server_without_sessions_gets_no_goodbye() {
    let peer = Peer::start(|request| match request.kind().as_str() {
        "POST /mcp initialize" => json_reply(&welcome(request)),
        "POST /mcp notifications/initialized" => plain("202 Accepted", "", ""),
        _ => not_allowed(),
    })
    .await;
    let mut transport = connected(&peer).await;
    transport.close().await.unwrap();
    assert_eq!(peer.kinds().len(), 3);
}

#[tokio::test]
async fn an_event_stream_brings_messages_and_the_answer_cut_anywhere() {
    let peer = server(|request| {
        if request.method == "GET" {
            return not_allowed();
        }
        let notice = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
        let answer = result(
            request,
            json!({"content": [{"type": "text", "text": "北京😀"}]}),
        );
        let text = format!(
            ": hello\r\n\r\nevent: ping\ndata: {{}}\n\nevent: message\r\n{}data: no json\n\n{}",
            event(&notice),
            event(&answer)
        );
        let mut reply = events("", None);
        for bytes in text.as_bytes().chunks(9) {
            reply.push(Step::Bytes(bytes.to_vec()));
            reply.push(Step::Pause(Duration::from_millis(1)));
        }
        reply.push(Step::Hang);
        reply
    })
    .await;
    let mut transport = connected(&peer).await;
    transport.send(call(7)).await.unwrap();
    let notice = shown(transport.receive().await);
    assert_eq!(notice["method"], "notifications/tools/list_changed");
    let answer = shown(transport.receive().await);
    assert_eq!(answer["result"]["content"][0]["text"], "北京😀");
}

#[tokio::test]
async fn initialize_may_be_answered_by_a_stream_after_other_messages() {
    let peer = Peer::start(|request| {
        let log = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": 1}});
        let many = event(&log).repeat(100);
        events(&(many + &event(&welcome(request))), Some(Step::Hang))
    })
    .await;
    let mut transport = transport(&peer);
    transport.send(initialize()).await.unwrap();
    assert_eq!(shown(transport.receive().await)["id"], 0);
}

#[tokio::test]
async fn redirects_inside_the_origin_keep_method_body_and_headers() {
    let peer = Peer::start(|request| match request.path.as_str() {
        "/mcp" => plain("307 Temporary Redirect", "location: /moved?x=1\r\n", ""),
        "/moved?x=1" => plain("308 Permanent Redirect", "location: deeper\r\n", ""),
        _ => json_reply(&result(request, json!({}))),
    })
    .await;
    let mut transport = transport(&peer);
    transport.send(call(1)).await.unwrap();
    assert_eq!(shown(transport.receive().await)["id"], 1);
    let last = peer.requests().pop().unwrap();
    assert_eq!(last.kind(), "POST /deeper tools/call");
    assert_eq!(last.header("authorization"), KEY);
}

#[tokio::test]
async fn headers_never_reach_another_origin() {
    for status in [
        "301 Moved",
        "302 Found",
        "303 See Other",
        "307 Temporary",
        "308 Permanent",
    ] {
        let other = Peer::start(|_| plain("200 OK", "", "")).await;
        let target = format!("location: {}/mcp\r\n", other.origin());
        let error = refusal(move || plain(status, &target, "")).await;
        assert!(error.message().contains(&other.origin()), "{error}");
        assert!(error.message().contains("another origin"), "{error}");
        assert!(!error.is_retryable());
        assert!(other.requests().is_empty(), "{status}");
    }
}

#[tokio::test]
async fn redirects_that_lose_the_message_or_never_end_are_refused() {
    let error = refusal(|| plain("302 Found", "location: /there\r\n", "")).await;
    assert!(
        error.message().contains("turns it into GET (HTTP 302)"),
        "{error}"
    );
    let error = refusal(|| plain("307 Temporary", "location: /mcp\r\n", "")).await;
    assert!(
        error.message().contains("redirects more than 5 times"),
        "{error}"
    );
}

#[tokio::test]
async fn statuses_become_errors_with_a_remedy_and_without_the_secret() {
    for (status, code, retryable, words) in [
        ("401 Unauthorized", 401, false, "check headers"),
        ("403 Forbidden", 403, false, "OAuth is not supported"),
        ("404 Not Found", 404, false, "check url"),
        ("405 Method Not Allowed", 405, false, "type: 'sse'"),
        ("429 Too Many Requests", 429, true, "limits the rate"),
        ("500 Oops", 500, true, "answered HTTP 500"),
        ("504 Gateway Timeout", 504, true, "took too long"),
    ] {
        let body = format!(r#"{{"error":{{"message":"no: {KEY} and sk-peer-12345"}}}}"#);
        let headers = "content-type: application/json\r\nretry-after: 7\r\n";
        let error = refusal(move || plain(status, headers, &body)).await;
        assert_eq!(
            (error.status(), error.is_retryable()),
            (Some(code), retryable)
        );
        assert!(error.message().contains(words), "{error}");
        assert!(error.message().contains(": no: *** and ***"), "{error}");
        assert_eq!(error.retry_after_ms(), Some(7_000));
    }
}

#[tokio::test]
async fn what_is_no_answer_of_the_protocol_is_refused() {
    for (reply, words) in [
        (("text/html", "<html>"), "answered with text/html"),
        (("application/json", "{}"), "no JSON-RPC message"),
        (("application/json", "{\"jsonrpc\""), "no JSON-RPC message"),
        (
            (
                "application/json",
                r#"{"jsonrpc":"2.0","id":99,"result":{}}"#,
            ),
            "another request",
        ),
        (("text/event-stream", ": nothing\n\n"), "before its answer"),
        (
            ("text/event-stream", "data: {\"jsonrpc\""),
            "before its answer",
        ),
    ] {
        let (kind, body) = reply;
        let headers = format!("content-type: {kind}\r\n");
        let error = refusal(move || plain("200 OK", &headers, body)).await;
        assert!(error.message().contains(words), "{error}");
    }
}

#[tokio::test]
async fn an_error_of_the_protocol_is_an_answer_whatever_its_status() {
    let peer = Peer::start(|request| {
        let error = json!({"code": -32_602, "message": "bad"});
        let body = json!({"jsonrpc": "2.0", "id": request.body["id"], "error": error});
        let headers = "content-type: application/json\r\n";
        plain("400 Bad Request", headers, &body.to_string())
    })
    .await;
    let mut transport = transport(&peer);
    transport.send(call(3)).await.unwrap();
    assert_eq!(shown(transport.receive().await)["error"]["code"], -32_602);
}

#[tokio::test]
async fn a_session_that_the_server_ended_ends_the_connection() {
    for (status, body, ended) in [
        ("404 Not Found", "", true),
        (
            "400 Bad Request",
            r#"{"error":{"message":"No valid session ID"}}"#,
            true,
        ),
        (
            "400 Bad Request",
            r#"{"error":{"message":"bad arguments"}}"#,
            false,
        ),
    ] {
        let peer = server(move |request| match request.method.as_str() {
            "POST" => plain(status, "content-type: application/json\r\n", body),
            _ => not_allowed(),
        })
        .await;
        let mut transport = connected(&peer).await;
        let error = transport.send(call(1)).await.unwrap_err();
        assert_eq!(
            error.details().contains_key(SESSION_ENDED),
            ended,
            "{error}"
        );
        assert_eq!(error.is_retryable(), ended);
        if ended {
            assert!(error.message().contains("has ended the session"), "{error}");
            assert!(transport.receive().await.is_none());
        }
    }
}

#[tokio::test]
async fn silence_has_limits() {
    let error = refusal(|| {
        let headers = "content-type: application/json\r\ncontent-length: 9\r\n";
        vec![
            head("200 OK", headers),
            Step::Bytes(b"{".to_vec()),
            Step::Hang,
        ]
    })
    .await;
    assert!(
        error.message().ends_with("sent nothing within 300 ms"),
        "{error}"
    );
    let error = refusal(|| events("data: {", Some(Step::Hang))).await;
    assert!(
        error.message().ends_with("sent nothing within 300 ms"),
        "{error}"
    );
    let peer = Peer::start(|_| vec![Step::Hang]).await;
    let error = transport(&peer).send(initialized()).await.unwrap_err();
    assert!(
        error.message().ends_with("sent nothing within 300 ms"),
        "{error}"
    );
}

#[tokio::test]
async fn a_cut_answer_is_an_error_that_may_pass() {
    let error = refusal(|| {
        let headers = "content-type: application/json\r\ncontent-length: 99\r\n";
        vec![
            head("200 OK", headers),
            Step::Bytes(b"{\"jsonrpc\":".to_vec()),
        ]
    })
    .await;
    assert!(
        error.message().starts_with("lost the connection to "),
        "{error}"
    );
    assert!(error.is_retryable());
}

#[tokio::test]
async fn a_message_without_end_is_cut_off() {
    for kind in ["application/json", "text/event-stream"] {
        let headers = format!("content-type: {kind}\r\n");
        let error = refusal(move || {
            let flood = Step::Flood(vec![b'x'; 1 << 20]);
            vec![
                head("200 OK", &headers),
                Step::Bytes(b"data: ".to_vec()),
                flood,
            ]
        })
        .await;
        let words = ["more than 67108864 bytes", "does not end"];
        assert!(
            words.iter().any(|words| error.message().contains(words)),
            "{error}"
        );
        assert!(!error.is_retryable());
    }
}

#[tokio::test]
async fn a_stream_that_breaks_off_goes_on_where_it_was() {
    let opened = Arc::new(AtomicUsize::new(0));
    let count = opened.clone();
    let peer = server(move |request| match request.method.as_str() {
        "POST" => events("id: first\nretry: 200\ndata: \n\n", None),
        _ if request.header("last-event-id").is_empty() => not_allowed(),
        _ => match count.fetch_add(1, Ordering::SeqCst) {
            0 => events(": nothing yet\n\nid: second\n\n", None),
            _ => {
                let answer = json!({"jsonrpc": "2.0", "id": 5, "result": {"content": []}});
                events(&event(&answer), Some(Step::Hang))
            }
        },
    })
    .await;
    let mut transport = connected(&peer).await;
    let start = Instant::now();
    transport.send(call(5)).await.unwrap();
    assert_eq!(shown(transport.receive().await)["id"], 5);
    assert!(
        start.elapsed() >= Duration::from_millis(400),
        "{:?}",
        start.elapsed()
    );
    let ids: Vec<_> = peer.requests()[4..]
        .iter()
        .map(|request| request.header("last-event-id").to_owned())
        .collect();
    assert_eq!(ids, ["first", "second"]);
}

#[tokio::test]
async fn a_stream_that_cannot_be_opened_again_is_given_up() {
    let peer = server(|request| match request.method.as_str() {
        "POST" => events("id: first\ndata: \n\n", None),
        _ if request.header("last-event-id").is_empty() => not_allowed(),
        _ => plain("503 Busy", "", ""),
    })
    .await;
    let mut transport = connected(&peer).await;
    let error = transport.send(call(5)).await.unwrap_err();
    assert_eq!(error.status(), Some(503));
    assert_eq!(
        peer.kinds()
            .iter()
            .filter(|kind| *kind == "GET /mcp")
            .count(),
        4
    );
}

#[tokio::test]
async fn what_the_server_says_on_its_own_is_heard_over_several_streams() {
    let opened = AtomicUsize::new(0);
    let peer = server(move |_| {
        let notice = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
        let text = format!(
            "id: 4{}\n{}",
            opened.fetch_add(1, Ordering::SeqCst),
            event(&notice)
        );
        events(&text, None)
    })
    .await;
    let mut transport = connected(&peer).await;
    for _ in 0..3 {
        let notice = shown(transport.receive().await);
        assert_eq!(notice["method"], "notifications/tools/list_changed");
    }
    let requests = peer.requests();
    let ids: Vec<_> = requests[2..5]
        .iter()
        .map(|request| request.header("last-event-id"))
        .collect();
    assert_eq!(ids, ["", "40", "41"]);
}

#[tokio::test]
async fn an_answer_may_come_on_the_stream_of_the_server() {
    let peer = server(|request| match request.method.as_str() {
        "POST" => vec![Step::Hang],
        _ => {
            let answer = json!({"jsonrpc": "2.0", "id": 9, "result": {"content": []}});
            let mut reply = events("", Some(Step::Pause(Duration::from_millis(100))));
            reply.extend([Step::Bytes(event(&answer).into_bytes()), Step::Hang]);
            reply
        }
    })
    .await;
    let mut transport = connected(&peer).await;
    transport.send(call(9)).await.unwrap();
    assert_eq!(shown(transport.receive().await)["id"], 9);
}

#[tokio::test]
async fn a_cancelled_request_is_let_go_and_the_server_is_told() {
    let peer = server(|request| match request.kind().as_str() {
        "POST /mcp tools/call" => vec![Step::Hang],
        "POST /mcp notifications/cancelled" => plain("202 Accepted", "", ""),
        _ => not_allowed(),
    })
    .await;
    let mut transport = connected(&peer).await;
    let sending = tokio::spawn(transport.send(call(2)));
    peer.wait_for(4).await;
    let params = json!({"requestId": 2, "reason": "enough"});
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
    transport.send(message(cancel)).await.unwrap();
    sending.await.unwrap().unwrap();
    let told = peer.requests().pop().unwrap();
    assert_eq!(told.body["params"]["requestId"], 2);
}

#[tokio::test]
async fn closing_ends_what_is_under_way() {
    let peer = server(|request| match request.method.as_str() {
        "POST" | "GET" => events(": open\n\n", Some(Step::Hang)),
        _ => vec![Step::Hang],
    })
    .await;
    let mut transport = connected(&peer).await;
    let sending = tokio::spawn(transport.send(call(2)));
    peer.wait_for(4).await;
    let closing = tokio::spawn(async move { transport.close().await });
    let error = sending.await.unwrap().unwrap_err();
    assert!(error.message().contains("no longer connected"), "{error}");
    // A server that does not answer the goodbye is left behind.
    peer.wait_for(5).await;
    closing.abort();
}

#[tokio::test]
async fn a_proxy_is_used_and_named() {
    let proxy = Peer::start(|_| plain("407 Proxy Authentication Required", "", "")).await;
    let rules =
        ProxyRules::explicit(&format!("http://user:pw-12345@{}", &proxy.origin()[7..])).unwrap();
    let url = Url::parse("http://mcp.example/mcp").unwrap();
    let mut transport = HttpTransport::new(endpoint(&url, &rules), limits());
    let error = transport.send(call(1)).await.unwrap_err();
    let named = format!("http://mcp.example through the proxy {}", proxy.origin());
    assert!(error.message().starts_with(&named), "{error}");
    assert_eq!(error.status(), Some(407));
    assert!(!error.message().contains("pw-12345"));
    assert_eq!(proxy.requests()[0].path, "http://mcp.example/mcp");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_named() {
    let url = Url::parse("http://127.0.0.1:1/mcp?key=secret-key").unwrap();
    let mut transport = HttpTransport::new(endpoint(&url, &ProxyRules::direct()), limits());
    let error = transport.send(call(1)).await.unwrap_err();
    assert!(
        error
            .message()
            .starts_with("cannot reach http://127.0.0.1:1: "),
        "{error}"
    );
    assert!(error.is_retryable());
    assert!(!format!("{error:?}").contains("secret-key"), "{error:?}");
}

#[test]
fn headers_that_cannot_be_sent_are_refused_by_name() {
    let url = Url::parse("http://127.0.0.1:1/").unwrap();
    for (name, value, words) in [
        ("bad name", "x", "has a name"),
        ("X-Key", "line\nbreak", "has a value"),
        ("Host", "other.example", "cannot be set"),
        ("content-length", "5", "cannot be set"),
    ] {
        let headers = [(name.to_owned(), Secret::new(value))];
        let error = connect(&url, &headers, &ProxyRules::direct())
            .err()
            .unwrap();
        assert_eq!(error.kind(), ErrorKind::InvalidConfig);
        assert!(error.message().contains(&format!("{name:?}")), "{error}");
        assert!(error.message().contains(words), "{error}");
        assert!(
            !error.message().contains(value) || value == "x" || value == "5",
            "{error}"
        );
    }
}
