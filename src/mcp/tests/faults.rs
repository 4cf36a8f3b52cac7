//! Servers that misbehave.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::time::Instant;

use super::peer::{
    Peer, Script, call, greeting, named, names, rig, rig_of, settings, text, text_result,
};
use crate::base::process::ExitStatus;

#[tokio::test]
async fn fc_f1_floods_of_stderr_hold_nothing_up() {
    let rig = rig(settings("loud"), |mut peer: Peer| async move {
        let request = peer.expect("initialize").await;
        peer.answer(&request, greeting()).await;
        let request = peer.expect("tools/list").await;
        peer.stderr
            .write_all(&vec![b'x'; 1024 * 1024])
            .await
            .unwrap();
        peer.answer(&request, json!({"tools": [named("a")]})).await;
        while let Some(request) = peer.next().await {
            peer.stderr
                .write_all(&vec![b'y'; 256 * 1024])
                .await
                .unwrap();
            peer.answer(&request, text_result("done")).await;
        }
    });
    let tool = rig.tool("mcp__loud__a").await;
    for _ in 0..10 {
        assert_eq!(text(&call(&tool).await), "done");
    }
}

#[tokio::test(start_paused = true)]
async fn fc_f2_a_server_that_dies_in_a_call_fails_it_at_once_and_is_started_again() {
    let rig = rig(settings("frail"), |mut peer: Peer| async move {
        peer.offer(json!([named("a")])).await;
        let status = match peer.start {
            0 => ExitStatus::Code(1),
            1 => ExitStatus::Signal(9),
            _ => return peer.echo().await,
        };
        peer.expect("tools/call").await;
        let _ = peer.stderr.write_all(b"panic: out of cheese\n").await;
        peer.exit(status);
    });
    let tool = rig.tool("mcp__frail__a").await;
    let start = Instant::now();
    let first = call(&tool).await;
    assert!(first.is_error);
    assert_eq!(
        text(&first),
        "MCP server \"frail\" exited with code 1 while it ran the tool \"a\". It wrote last:\n\
         panic: out of cheese"
    );
    let second = call(&tool).await;
    assert!(text(&second).starts_with("MCP server \"frail\" was ended by signal 9 while"));
    assert_eq!(rig.starts.load(Ordering::SeqCst), 2);
    assert!(
        start.elapsed() < Duration::from_millis(100),
        "{:?}",
        start.elapsed()
    );
    // It died twice without being of use: the next calls fail fast, until the wait is over.
    let third = call(&tool).await;
    assert!(
        text(&third).contains("the tool \"a\" was not called"),
        "{}",
        text(&third)
    );
    assert_eq!(rig.starts.load(Ordering::SeqCst), 2);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!call(&tool).await.is_error);
    assert_eq!(rig.starts.load(Ordering::SeqCst), 3);
    assert_eq!(rig.ended.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn fc_f3_a_server_that_never_answers_costs_its_tools_only() {
    let hangs: Script = Arc::new(|mut peer| {
        Box::pin(async move {
            peer.write("Welcome to the server!\n").await;
            while peer.next().await.is_some() {}
        })
    });
    let works: Script = Arc::new(|mut peer| {
        Box::pin(async move {
            peer.write("starting up\n[info] listening\n{\n").await;
            peer.offer(json!([named("a")])).await;
            peer.echo().await;
        })
    });
    let rig = rig_of(vec![(settings("hangs"), hangs), (settings("works"), works)]);
    let start = Instant::now();
    assert_eq!(rig.names().await, ["mcp__works__a"]);
    assert_eq!(start.elapsed(), Duration::from_secs(5));
    assert!(rig.failures().is_empty());
    // Later requests of the run do not wait.
    rig.pool.prepare(false).await;
    assert_eq!(start.elapsed(), Duration::from_secs(5));
    tokio::time::sleep(Duration::from_secs(26)).await;
    assert_eq!(
        rig.failures(),
        [
            "MCP server \"hangs\" did not answer initialize within 30000 ms. It wrote last:\n\
          Welcome to the server!"
        ]
    );
    assert_eq!(names(&rig.pool.offering()), ["mcp__works__a"]);
}

#[tokio::test(start_paused = true)]
async fn fc_f3_a_server_that_ends_in_the_handshake_is_reported_with_its_last_words() {
    let rig = rig(settings("broken"), |mut peer: Peer| async move {
        peer.expect("initialize").await;
        peer.stderr
            .write_all(b"cannot find module\n")
            .await
            .unwrap();
        peer.exit(ExitStatus::Code(127));
    });
    let start = Instant::now();
    assert!(rig.names().await.is_empty());
    assert!(start.elapsed() < Duration::from_secs(1));
    assert_eq!(
        rig.failures(),
        [
            "MCP server \"broken\" exited with code 127 before it answered initialize. It wrote last:\n\
          cannot find module"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_server_that_must_be_there_is_waited_for() {
    let mut settings = settings("slow");
    settings.always_load = true;
    let rig = rig(settings, |mut peer: Peer| async move {
        tokio::time::sleep(Duration::from_secs(20)).await;
        peer.offer(json!([named("a")])).await;
        peer.echo().await;
    });
    assert_eq!(rig.names().await, ["mcp__slow__a"]);
}

#[tokio::test(start_paused = true)]
async fn attempts_are_spread_with_growing_waits() {
    let rig = rig(settings("s"), |mut peer: Peer| async move {
        peer.expect("initialize").await;
        peer.exit(ExitStatus::Code(1));
    });
    let starts = || rig.starts.load(Ordering::SeqCst);
    for (wait, expected) in [
        (0, 1),
        (400, 1),
        (200, 2),
        (900, 2),
        (200, 3),
        (1_900, 3),
        (200, 4),
    ] {
        tokio::time::sleep(Duration::from_millis(wait)).await;
        rig.pool.prepare(true).await;
        assert_eq!(starts(), expected, "after {wait} ms");
    }
}

#[tokio::test]
async fn wrong_ids_and_noise_are_passed_over() {
    let rig = rig(settings("s"), |mut peer: Peer| async move {
        let request = peer.expect("initialize").await;
        peer.send(json!({"jsonrpc": "2.0", "id": 999, "result": {"x": 1}}))
            .await;
        peer.send(json!({"jsonrpc": "2.0", "id": "abc", "error": {"code": 1, "message": "m"}}))
            .await;
        peer.send(json!({"jsonrpc": "2.0", "error": {"code": 1, "message": "without id"}}))
            .await;
        peer.answer(&request, greeting()).await;
        peer.list(json!([named("a")])).await;
        let request = peer.expect("tools/call").await;
        for line in 0..20_000 {
            peer.write(&format!("debug line {line}\n")).await;
        }
        peer.send(json!({"jsonrpc": "2.0", "id": -1, "result": {}}))
            .await;
        peer.write("\n\r\n[]\n{}\n\"text\"\n").await;
        // Some servers write numbers as texts.
        let id = request["id"].to_string();
        peer.send(json!({"jsonrpc": "2.0", "id": id, "result": text_result("right")}))
            .await;
        peer.echo().await;
    });
    let tool = rig.tool("mcp__s__a").await;
    assert_eq!(text(&call(&tool).await), "right");
    assert!(!call(&tool).await.is_error);
}

#[tokio::test]
async fn a_line_that_is_too_long_fails_the_call_it_answers() {
    let rig = rig(settings("s"), |mut peer: Peer| async move {
        peer.offer(json!([named("huge")])).await;
        let request = peer.expect("tools/call").await;
        peer.write("{\"jsonrpc\":\"2.0\",\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"")
            .await;
        let piece = "x".repeat(1024 * 1024);
        for _ in 0..65 {
            peer.write(&piece).await;
        }
        peer.write(&format!("\"}}]}},\"id\":{}}}\n", request["id"]))
            .await;
        peer.echo().await;
    });
    let tool = rig.tool("mcp__s__huge").await;
    let output = call(&tool).await;
    assert!(output.is_error);
    assert!(
        text(&output).contains("its answer cannot be read: it has 65 MiB"),
        "{}",
        text(&output)
    );
    assert!(!call(&tool).await.is_error);
}

#[tokio::test]
async fn a_server_without_tools_is_no_failure() {
    let rig = rig(settings("s"), |mut peer: Peer| async move {
        let request = peer.expect("initialize").await;
        peer.answer(&request, greeting()).await;
        let request = peer.expect("tools/list").await;
        let error = json!({"code": -32601, "message": "Method not found"});
        peer.send(json!({"jsonrpc": "2.0", "id": request["id"], "error": error}))
            .await;
        peer.echo().await;
    });
    assert!(rig.names().await.is_empty());
    assert!(rig.failures().is_empty());
}

#[tokio::test]
async fn an_unknown_version_of_the_protocol_is_refused() {
    for (version, is_known) in [("2024-11-05", true), ("2026-07-28", false), ("1.0", false)] {
        let rig = rig(settings("s"), move |mut peer: Peer| async move {
            let request = peer.expect("initialize").await;
            let greeting =
                json!({"protocolVersion": version, "capabilities": {}, "serverInfo": {}});
            peer.answer(&request, greeting).await;
            peer.list(json!([named("a")])).await;
            peer.echo().await;
        });
        assert_eq!(rig.names().await.len(), usize::from(is_known), "{version}");
        assert_eq!(rig.failures().is_empty(), is_known, "{version}");
    }
}
