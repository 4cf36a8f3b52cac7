//! Calls of tools, and what goes with them on the wire.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::peer::{
    Peer, Script, call, context, eventually, greeting, named, names, rig, rig_of, settings, text,
    text_result,
};
use crate::mcp::ToolPolicy;
use crate::protocol::{ContentBlock, Json};
use crate::tool::{ToolContext, fit, progress_channel};

#[tokio::test]
async fn a_call_carries_name_input_and_the_id_of_the_call() {
    let (seen, mut requests) = mpsc::unbounded_channel();
    let rig = rig(settings("weather"), move |mut peer: Peer| {
        let seen = seen.clone();
        async move {
            let request = peer.expect("initialize").await;
            seen.send(request.clone()).unwrap();
            peer.answer(&request, greeting()).await;
            seen.send(peer.next().await.unwrap()).unwrap();
            peer.list(json!([named("get it")])).await;
            let request = peer.expect("tools/call").await;
            seen.send(request.clone()).unwrap();
            peer.answer(&request, text_result("sunny")).await;
            peer.echo().await;
        }
    });
    let tool = rig.tool("mcp__weather__get_it").await;
    let output = tool
        .call(json!({"city": "北京"}), context("toolu_9"))
        .await
        .unwrap();
    assert_eq!(text(&output), "sunny");

    let initialize = requests.recv().await.unwrap();
    let params = &initialize["params"];
    assert_eq!(params["protocolVersion"], "2025-11-25");
    assert_eq!(params["capabilities"], json!({}));
    assert_eq!(params["clientInfo"]["name"], "open-agent-kernel");
    assert_eq!(
        requests.recv().await.unwrap()["method"],
        "notifications/initialized"
    );
    let call = requests.recv().await.unwrap();
    assert_eq!(call["params"]["name"], "get it");
    assert_eq!(call["params"]["arguments"], json!({"city": "北京"}));
    let meta = &call["params"]["_meta"];
    assert_eq!(meta["claudecode/toolUseId"], "toolu_9");
    assert!(meta["progressToken"].is_number(), "{meta}");
}

#[tokio::test]
async fn fc_f7_mapped_names_are_mapped_back_for_calls() {
    let script = |own: &'static [&'static str]| {
        let script = move |mut peer: Peer| async move {
            let tools: Vec<_> = own.iter().map(|name| named(name)).collect();
            peer.offer(json!(tools)).await;
            peer.echo().await;
        };
        let script: Script = Arc::new(move |peer| Box::pin(script(peer)));
        script
    };
    let own = &["a.b", "a_b", "Créer fichier", "same"];
    let rig = rig_of(vec![
        (settings("one"), script(own)),
        (settings("two"), script(&["same"])),
    ]);
    let offering = rig.offer().await;
    assert_eq!(offering.tools.len(), 5);
    let mut called = Vec::new();
    for tool in &offering.tools {
        let params: Json = serde_json::from_str(&text(&call(tool).await)).unwrap();
        called.push(params["name"].as_str().unwrap().to_owned());
    }
    assert_eq!(called, ["a.b", "a_b", "Créer fichier", "same", "same"]);
    assert!(names(&offering).contains(&"mcp__one__a_b".to_owned()));
    assert!(names(&offering).contains(&"mcp__two__same".to_owned()));
}

#[tokio::test]
async fn fifty_calls_at_once_share_one_connection() {
    let rig = rig(settings("s"), |mut peer: Peer| async move {
        peer.offer(json!([named("echo")])).await;
        let mut calls = Vec::new();
        while calls.len() < 50 {
            calls.push(peer.expect("tools/call").await);
        }
        for request in calls.iter().rev() {
            let text = request["params"]["arguments"]["n"].to_string();
            peer.answer(request, text_result(&text)).await;
        }
        peer.echo().await;
    });
    let tool = rig.tool("mcp__s__echo").await;
    let calls = (0..50).map(|n| {
        let tool = tool.clone();
        // The same id for all: ids of calls are only unique in a conversation.
        async move {
            tool.call(json!({"n": n}), context("toolu_1"))
                .await
                .unwrap()
        }
    });
    let outputs = join_all(calls).await;
    let texts: Vec<_> = outputs.iter().map(text).collect();
    let expected: Vec<_> = (0..50).map(|n| n.to_string()).collect();
    assert_eq!(texts, expected);
    assert_eq!(rig.starts.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn progress_goes_to_the_call_it_belongs_to() {
    let rig = rig(settings("s"), |mut peer: Peer| async move {
        peer.offer(json!([named("slow")])).await;
        let first = peer.expect("tools/call").await;
        let second = peer.expect("tools/call").await;
        for (request, message) in [(&second, "two"), (&first, "one")] {
            let token = &request["params"]["_meta"]["progressToken"];
            let params =
                json!({"progressToken": token, "progress": 1, "total": 2.5, "message": message});
            peer.send(
                json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}),
            )
            .await;
        }
        let unknown = json!({"progressToken": "nobody", "progress": 1});
        peer.send(json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": unknown}))
            .await;
        peer.answer(&first, text_result("first")).await;
        peer.answer(&second, text_result("second")).await;
        peer.echo().await;
    });
    let tool = rig.tool("mcp__s__slow").await;
    let mut receivers = Vec::new();
    let mut calls = Vec::new();
    for id in ["toolu_1", "toolu_2"] {
        let (progress, receiver) = progress_channel();
        receivers.push(receiver);
        calls.push(tool.call(
            json!({}),
            ToolContext {
                progress,
                ..context(id)
            },
        ));
    }
    let outputs = join_all(calls).await;
    for ((output, receiver), (answer, message)) in outputs
        .into_iter()
        .zip(&mut receivers)
        .zip([("first", "one"), ("second", "two")])
    {
        assert_eq!(text(&output.unwrap()), answer);
        let report = receiver.recv().await.unwrap();
        assert_eq!(
            report,
            json!({"progress": 1, "total": 2.5, "message": message})
        );
        assert_eq!(receiver.recv().await, None);
    }
}

#[tokio::test]
async fn a_call_that_is_given_up_is_cancelled_at_the_server() {
    let (seen, mut messages) = mpsc::unbounded_channel();
    let rig = rig(settings("s"), move |mut peer: Peer| {
        let seen = seen.clone();
        async move {
            peer.offer(json!([named("slow")])).await;
            while let Some(message) = peer.next().await {
                seen.send(message).unwrap();
            }
        }
    });
    let tool = rig.tool("mcp__s__slow").await;
    // The run stops: the call is dropped.
    let dropped = tokio::spawn({
        let tool = tool.clone();
        async move { call(&tool).await }
    });
    let request = loop {
        let message = messages.recv().await.unwrap();
        if message["method"] == "tools/call" {
            break message;
        }
    };
    dropped.abort();
    let cancelled = messages.recv().await.unwrap();
    assert_eq!(cancelled["method"], "notifications/cancelled");
    assert_eq!(cancelled["params"]["requestId"], request["id"]);
    // The call is told to stop.
    let ctx = context("toolu_2");
    let cancel = ctx.cancel.clone();
    let (output, request) = tokio::join!(tool.call(json!({}), ctx), async {
        let request = messages.recv().await.unwrap();
        cancel.cancel();
        request
    });
    assert!(output.unwrap().is_error);
    let cancelled = messages.recv().await.unwrap();
    assert_eq!(cancelled["params"]["requestId"], request["id"]);
}

#[tokio::test(start_paused = true)]
async fn the_limit_on_a_call_is_hard() {
    let mut settings = settings("s");
    settings.timeout = Duration::from_secs(10);
    let (seen, mut messages) = mpsc::unbounded_channel();
    let rig = rig(settings, move |mut peer: Peer| {
        let seen = seen.clone();
        async move {
            peer.offer(json!([named("slow")])).await;
            let request = peer.expect("tools/call").await;
            for progress in 0..8 {
                let token = &request["params"]["_meta"]["progressToken"];
                let params = json!({"progressToken": token, "progress": progress});
                peer.send(
                    json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}),
                )
                .await;
                tokio::time::sleep(Duration::from_secs(3)).await;
            }
            seen.send(peer.expect("notifications/cancelled").await)
                .unwrap();
            peer.answer(&request, text_result("late")).await;
            peer.echo().await;
        }
    });
    let tool = rig.tool("mcp__s__slow").await;
    let start = Instant::now();
    let output = call(&tool).await;
    assert_eq!(start.elapsed(), Duration::from_secs(10));
    assert!(output.is_error);
    let expected = "MCP server \"s\" did not answer the call of the tool \"slow\" within 10000 ms";
    assert!(text(&output).starts_with(expected), "{}", text(&output));
    assert!(messages.recv().await.is_some());
    // The late answer harms nobody.
    assert!(!call(&tool).await.is_error);
    // The engine sets no limit of its own on top.
    assert_eq!(tool.spec().timeout, Some(Duration::ZERO));
}

#[tokio::test]
async fn what_servers_ask_for_is_refused_and_a_ping_is_answered() {
    let (seen, mut answers) = mpsc::unbounded_channel();
    let rig = rig(settings("s"), move |mut peer: Peer| {
        let seen = seen.clone();
        async move {
            // Also before the handshake is over.
            let request = peer.expect("initialize").await;
            peer.send(json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}))
                .await;
            seen.send(peer.next().await.unwrap()).unwrap();
            peer.answer(&request, greeting()).await;
            peer.list(json!([named("a")])).await;
            for method in [
                "roots/list",
                "sampling/createMessage",
                "elicitation/create",
                "x/y",
            ] {
                peer.send(
                    json!({"jsonrpc": "2.0", "id": method, "method": method, "params": {"a": 1}}),
                )
                .await;
                seen.send(peer.next().await.unwrap()).unwrap();
            }
            peer.echo().await;
        }
    });
    rig.offer().await;
    let pong = answers.recv().await.unwrap();
    assert_eq!((&pong["id"], &pong["result"]), (&json!(1), &json!({})));
    for method in [
        "roots/list",
        "sampling/createMessage",
        "elicitation/create",
        "x/y",
    ] {
        let answer = answers.recv().await.unwrap();
        assert_eq!(answer["id"], method);
        assert_eq!(answer["error"]["code"], -32601);
    }
}

#[tokio::test]
async fn an_error_of_the_server_names_server_and_tool() {
    let rig = rig(settings("s"), |mut peer: Peer| async move {
        peer.offer(json!([named("a")])).await;
        let request = peer.expect("tools/call").await;
        let error = json!({"code": -32602, "message": "no such city"});
        peer.send(json!({"jsonrpc": "2.0", "id": request["id"], "error": error}))
            .await;
        peer.echo().await;
    });
    let output = call(&rig.tool("mcp__s__a").await).await;
    assert!(output.is_error);
    assert_eq!(
        text(&output),
        "MCP server \"s\" answered with error -32602: no such city (call of the tool \"a\")"
    );
}

#[tokio::test]
async fn a_result_of_50_mb_is_cut_at_both_ends() {
    let rig = rig(settings("s"), |mut peer: Peer| async move {
        peer.offer(json!([named("big")])).await;
        let request = peer.expect("tools/call").await;
        peer.write(&format!(
            "{{\"id\":{},\"result\":{{\"content\":[{{\"type\":\"text\",\"text\":\"A",
            request["id"]
        ))
        .await;
        let piece = "x".repeat(1_000_000);
        for _ in 0..50 {
            peer.write(&piece).await;
        }
        peer.write("Z\"}]}}\n").await;
        peer.echo().await;
    });
    let output = fit(call(&rig.tool("mcp__s__big").await).await, 100_000);
    assert_eq!(output.cut.unwrap().original, 50_000_002);
    let text = text(&output);
    assert!(text.starts_with("Axxx") && text.ends_with("xxxZ") && text.len() < 100_200);
}

#[tokio::test]
async fn schemas_with_circles_are_offered_and_checked() {
    let rig = rig(settings("s"), |mut peer: Peer| async move {
        let tree = json!({
            "type": "object",
            "properties": {"next": {"$ref": "#"}, "name": {"type": "string"}},
        });
        let circle = json!({
            "type": "object",
            "properties": {"a": {"$ref": "#/$defs/a"}},
            "$defs": {"a": {"$ref": "#/$defs/a"}},
        });
        let broken = json!({"type": "object", "properties": {"a": {"$ref": "#/nowhere"}}});
        peer.offer(json!([
            {"name": "tree", "inputSchema": tree},
            {"name": "circle", "inputSchema": circle},
            {"name": "broken", "inputSchema": broken},
        ]))
        .await;
        peer.echo().await;
    });
    let ctx = context("toolu_1");
    let tree = rig.tool("mcp__s__tree").await;
    let bad = json!({"next": {"next": {"name": 5}}});
    assert!(
        tree.faults(&bad, &ctx)
            .await
            .unwrap()
            .contains("next/next/name")
    );
    assert_eq!(
        tree.faults(&json!({"next": {"name": "a"}}), &ctx).await,
        None
    );
    for name in ["mcp__s__circle", "mcp__s__broken"] {
        let tool = rig.tool(name).await;
        assert_eq!(tool.faults(&json!({"a": 5}), &ctx).await, None);
        assert!(!call(&tool).await.is_error);
    }
}

#[tokio::test]
async fn hints_and_policies_decide_what_a_tool_is() {
    let script = |mut peer: Peer| async move {
        let hints = json!({"readOnlyHint": true, "idempotentHint": false});
        peer.offer(json!([
            {"name": "read", "inputSchema": {"type": "object"}, "annotations": hints},
            named("write"),
            named("never"),
        ]))
        .await;
        peer.echo().await;
    };
    for trusted in [false, true] {
        let mut settings = settings("s");
        settings.trusted = trusted;
        settings.policies.insert("never".into(), ToolPolicy::Deny);
        settings.policies.insert("write".into(), ToolPolicy::Allow);
        let rig = rig(settings, script);
        assert_eq!(rig.names().await, ["mcp__s__read", "mcp__s__write"]);
        let (read, write) = (
            rig.tool("mcp__s__read").await,
            rig.tool("mcp__s__write").await,
        );
        assert!(read.spec().read_only && !write.spec().read_only);
        // Whether a lost call is run again does not depend on a stranger's word.
        assert_eq!(read.spec().idempotent, trusted);
        assert!(!write.spec().idempotent);
    }
}

#[tokio::test]
async fn images_reach_the_model() {
    let rig = rig(settings("s"), |mut peer: Peer| async move {
        peer.offer(json!([named("draw")])).await;
        let request = peer.expect("tools/call").await;
        let image = json!({"type": "image", "data": "aGk=", "mimeType": "image/png"});
        peer.answer(&request, json!({"content": [image, {"type": "hologram"}]}))
            .await;
        peer.echo().await;
    });
    let output = call(&rig.tool("mcp__s__draw").await).await;
    assert!(matches!(output.blocks[0], ContentBlock::Image { .. }));
    assert_eq!(output.blocks.len(), 2);
}

#[tokio::test]
async fn a_pool_that_is_dropped_ends_its_children() {
    let rig = rig(settings("s"), |mut peer: Peer| async move {
        peer.offer(json!([named("a")])).await;
        peer.echo().await;
    });
    assert!(!call(&rig.tool("mcp__s__a").await).await.is_error);
    let ended = rig.ended.clone();
    drop(rig);
    eventually(|| ended.load(Ordering::SeqCst) == 1).await;
}
