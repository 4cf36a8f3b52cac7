//! Messages, their answers and what goes with every request.

use std::time::Duration;

use serde_json::json;

use super::super::*;
use super::{connected, not_allowed, server, transport};
use crate::mcp::transport::web::peer::{
    KEY, Peer, Step, call, event, events, initialize, json_reply, message, plain, result, shown,
    welcome,
};

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
async fn an_answer_may_come_on_the_stream_of_the_server() {
    let peer = server(|request| {
        if request.method == "POST" {
            return vec![Step::Hang];
        }
        let answer = json!({"jsonrpc": "2.0", "id": 9, "result": {"content": []}});
        let mut reply = events("", Some(Step::Pause(Duration::from_millis(100))));
        reply.extend([Step::Bytes(event(&answer).into_bytes()), Step::Hang]);
        reply
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
