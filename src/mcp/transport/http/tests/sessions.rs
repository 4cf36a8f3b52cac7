//! Sessions that the server ends.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rmcp::transport::Transport;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{connected, not_allowed, server};
use crate::base::clock::SystemClock;
use crate::base::http::ProxyRules;
use crate::base::process::Helper;
use crate::mcp::transport::web::SESSION_ENDED;
use crate::mcp::transport::web::peer::{Peer, call, json_reply, plain, result, welcome};
use crate::mcp::{Pool, ServerSettings, Surroundings, Target};
use crate::tool::{Progress, SessionRef, ToolContext};

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
async fn a_call_that_the_server_forgot_the_session_of_is_made_again() {
    let sessions = AtomicUsize::new(0);
    let peer = Peer::start(move |request| match request.kind().as_str() {
        "POST /mcp initialize" => {
            let number = sessions.fetch_add(1, Ordering::SeqCst);
            let headers = format!("mcp-session-id: {number}\r\ncontent-type: application/json\r\n");
            plain("200 OK", &headers, &welcome(request).to_string())
        }
        "POST /mcp notifications/initialized" => plain("202 Accepted", "", ""),
        "POST /mcp tools/list" => {
            let tool = json!({"name": "work", "inputSchema": {"type": "object"}});
            json_reply(&result(request, json!({"tools": [tool]})))
        }
        "POST /mcp tools/call" if request.header("mcp-session-id") == "1" => {
            let content = json!([{"type": "text", "text": "worked"}]);
            json_reply(&result(request, json!({"content": content})))
        }
        "POST /mcp tools/call" => plain("404 Not Found", "", ""),
        _ => not_allowed(),
    })
    .await;
    let pool = pool_of(&peer);
    pool.prepare(true).await;
    let tool = pool.offering().tools[0].clone();
    let output = tool.call(json!({}), context()).await.unwrap();
    assert_eq!(output.to_json(), "worked");
    pool.close().await;
    let requests = peer.requests();
    let calls = requests
        .iter()
        .filter(|request| request.kind().ends_with("tools/call"));
    let sessions: Vec<_> = calls
        .map(|request| request.header("mcp-session-id"))
        .collect();
    assert_eq!(sessions, ["0", "1"]);
}

fn pool_of(peer: &Peer) -> Pool {
    let settings = ServerSettings {
        name: "s".into(),
        target: Target::Http {
            url: peer.url.clone(),
            headers: Vec::new(),
        },
        timeout: Duration::from_secs(30),
        handshake: Duration::from_secs(30),
        always_load: true,
        trusted: false,
        policies: HashMap::new(),
        idle: None,
    };
    let surroundings = Surroundings {
        helper: Helper::at("not-started"),
        env: Vec::new(),
        proxy: ProxyRules::direct(),
    };
    Pool::new(vec![settings], &surroundings, Arc::new(SystemClock))
}

fn context() -> ToolContext {
    ToolContext {
        tool_use_id: "toolu_1".into(),
        turn_id: "turn".into(),
        session: SessionRef {
            conversation_id: "c".into(),
            user_id: "u".into(),
            env_id: "e".into(),
        },
        cancel: CancellationToken::new(),
        idempotency_key: "c:toolu_1".to_owned(),
        progress: Progress::default(),
    }
}
