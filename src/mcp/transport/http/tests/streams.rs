//! Event streams that break off.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rmcp::transport::Transport;
use serde_json::json;

use super::{connected, not_allowed, server};
use crate::mcp::transport::web::peer::{Step, call, event, events, plain, shown};

#[tokio::test]
async fn a_stream_that_breaks_off_goes_on_where_it_was() {
    let count = AtomicUsize::new(0);
    let peer = server(move |request| match request.method.as_str() {
        "POST" => events("id: first\nretry: 200\ndata: \n\n", None),
        _ if request.header("last-event-id").is_empty() => not_allowed(),
        _ if count.fetch_add(1, Ordering::SeqCst) == 0 => {
            events(": nothing yet\n\nid: second\n\n", None)
        }
        _ => {
            let answer = json!({"jsonrpc": "2.0", "id": 5, "result": {"content": []}});
            events(&event(&answer), Some(Step::Hang))
        }
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
async fn a_silent_stream_of_the_server_is_opened_again_but_an_answer_may_take_its_time() {
    let peer = server(|request| {
        if request.method == "GET" {
            return events("id: 8\n\n", Some(Step::Hang));
        }
        let answer = json!({"jsonrpc": "2.0", "id": 3, "result": {"content": []}});
        let mut reply = events(
            ": working\n\n",
            Some(Step::Pause(Duration::from_millis(700))),
        );
        reply.push(Step::Bytes(event(&answer).into_bytes()));
        reply
    })
    .await;
    let mut transport = connected(&peer).await;
    transport.send(call(3)).await.unwrap();
    assert_eq!(shown(transport.receive().await)["id"], 3);
    let requests = peer.requests();
    let streams = requests.iter().filter(|request| request.method == "GET");
    let ids: Vec<_> = streams
        .map(|request| request.header("last-event-id"))
        .collect();
    assert_eq!(ids[..2], ["", "8"]);
}
