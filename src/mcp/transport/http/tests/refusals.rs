//! Redirects, statuses, silence and floods: what is refused, in words.

use serde_json::json;

use super::super::*;
use super::{refusal, transport};
use crate::error::ErrorKind;
use crate::mcp::transport::web::peer::{
    KEY, Peer, Step, call, endpoint, head, initialized, json_reply, limits, plain, result, shown,
};

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
async fn fc_h4_a_proxy_is_used_and_named() {
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
