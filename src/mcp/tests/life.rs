//! From the first need of a server to its end.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use super::peer::{
    Peer, call, eventually, greeting, named, names, rig, settings, text, text_result,
};
use crate::base::process::ExitStatus;

#[tokio::test(start_paused = true)]
async fn fc_f6_an_idle_server_is_ended_but_never_in_a_call() {
    let mut settings = settings("s");
    settings.idle = Some(Duration::from_secs(1));
    let rig = rig(settings, |mut peer: Peer| async move {
        peer.offer(json!([named("work")])).await;
        while let Some(message) = peer.next().await {
            if message["method"] == "tools/call" {
                tokio::time::sleep(Duration::from_millis(700)).await;
                peer.answer(&message, text_result("worked")).await;
            }
        }
        peer.exit(ExitStatus::Code(0));
    });
    let tool = rig.tool("mcp__s__work").await;
    assert_eq!(text(&call(&tool).await), "worked");
    tokio::time::sleep(Duration::from_millis(800)).await;
    assert_eq!(text(&call(&tool).await), "worked");
    assert_eq!(rig.starts.load(Ordering::SeqCst), 1);
    // A run that goes on needs it as well.
    let run = rig.pool.hold();
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(rig.ended.load(Ordering::SeqCst), 0);
    drop(run);
    tokio::time::sleep(Duration::from_millis(900)).await;
    assert_eq!(rig.ended.load(Ordering::SeqCst), 0);
    tokio::time::sleep(Duration::from_millis(200)).await;
    eventually(|| rig.ended.load(Ordering::SeqCst) == 1).await;
    // Its tools stay, and the next call starts it again.
    assert_eq!(names(&rig.pool.offering()), ["mcp__s__work"]);
    assert!(rig.failures().is_empty());
    assert_eq!(text(&call(&tool).await), "worked");
    assert_eq!(rig.starts.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn nothing_is_started_before_it_is_needed() {
    let rig = rig(settings("s"), |mut peer: Peer| async move {
        peer.offer(json!([named("a")])).await;
        peer.echo().await;
    });
    let _run = rig.pool.hold();
    assert!(names(&rig.pool.offering()).is_empty());
    tokio::task::yield_now().await;
    assert_eq!(rig.starts.load(Ordering::SeqCst), 0);
    assert_eq!(rig.names().await, ["mcp__s__a"]);
    assert_eq!(rig.names().await, ["mcp__s__a"]);
    assert_eq!(rig.starts.load(Ordering::SeqCst), 1);
    // The same object until something changes: what is made of it can be kept.
    assert!(Arc::ptr_eq(&rig.offer().await, &rig.offer().await));
}

#[tokio::test(start_paused = true)]
async fn a_changed_list_is_read_again_once_for_many_announcements() {
    let lists = Arc::new(AtomicUsize::new(0));
    let counted = lists.clone();
    let rig = rig(settings("s"), move |mut peer: Peer| {
        let lists = counted.clone();
        async move {
            let request = peer.expect("initialize").await;
            peer.answer(&request, greeting()).await;
            while let Some(message) = peer.next().await {
                match message["method"].as_str() {
                    Some("tools/list") => {
                        let count = lists.fetch_add(1, Ordering::SeqCst);
                        let tool = if count == 0 { "before" } else { "after" };
                        peer.answer(&message, json!({"tools": [named(tool), named("grow")]}))
                            .await;
                    }
                    Some("tools/call") => {
                        for _ in 0..100 {
                            peer.send(json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}))
                                .await;
                        }
                        peer.answer(&message, text_result("grown")).await;
                    }
                    _ => {}
                }
            }
        }
    });
    assert_eq!(rig.names().await, ["mcp__s__before", "mcp__s__grow"]);
    call(&rig.tool("mcp__s__grow").await).await;
    // The next request of the run waits for the new list.
    rig.pool.prepare(false).await;
    assert_eq!(
        names(&rig.pool.offering()),
        ["mcp__s__after", "mcp__s__grow"]
    );
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(lists.load(Ordering::SeqCst) <= 4, "{lists:?}");
}

#[tokio::test]
async fn all_pages_of_a_list_are_read() {
    let rig = rig(settings("s"), |mut peer: Peer| async move {
        let request = peer.expect("initialize").await;
        peer.answer(&request, greeting()).await;
        for (cursor, tool, next) in [
            (json!(null), "a", "2"),
            (json!("2"), "b", "3"),
            (json!("3"), "c", "2"),
        ] {
            let request = peer.expect("tools/list").await;
            assert_eq!(request["params"]["cursor"], cursor);
            peer.answer(
                &request,
                json!({"tools": [named(tool)], "nextCursor": next}),
            )
            .await;
        }
        peer.echo().await;
    });
    assert_eq!(rig.names().await, ["mcp__s__a", "mcp__s__b", "mcp__s__c"]);
}

#[tokio::test]
async fn instructions_are_given_to_the_model_under_the_name_of_the_server() {
    let rig = rig(settings("weather"), |mut peer: Peer| async move {
        let request = peer.expect("initialize").await;
        let mut greeting = greeting();
        greeting["instructions"] = format!("Ask for the city. {}", "x".repeat(10_000)).into();
        peer.answer(&request, greeting).await;
        peer.list(json!([])).await;
        peer.echo().await;
    });
    let notes = rig.offer().await.notes.clone().unwrap();
    assert!(notes.contains("\n\n## weather\nAsk for the city. xxx"));
    assert!(notes.len() < 3_000);
}

#[tokio::test(start_paused = true)]
async fn closing_fails_calls_at_once_and_waits_for_the_children() {
    let rig = rig(settings("s"), |mut peer: Peer| async move {
        peer.offer(json!([named("slow")])).await;
        while peer.next().await.is_some() {}
        // It takes its time to end.
        tokio::time::sleep(Duration::from_millis(300)).await;
        peer.exit(ExitStatus::Code(0));
    });
    let tool = rig.tool("mcp__s__slow").await;
    let start = Instant::now();
    let (output, ()) = tokio::join!(call(&tool), async {
        tokio::time::sleep(Duration::from_millis(10)).await;
        rig.pool.close().await;
    });
    assert!(output.is_error);
    assert!(
        text(&output).contains("was disconnected"),
        "{}",
        text(&output)
    );
    assert_eq!(rig.ended.load(Ordering::SeqCst), 1);
    assert!(
        start.elapsed() < Duration::from_secs(1),
        "{:?}",
        start.elapsed()
    );
    // Nothing is started again.
    let output = call(&tool).await;
    assert!(text(&output).contains("was closed"), "{}", text(&output));
    rig.pool.prepare(true).await;
    assert_eq!(rig.starts.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn closing_does_not_wait_for_ever_for_a_server_that_ignores_it() {
    let rig = rig(settings("s"), |mut peer: Peer| async move {
        peer.offer(json!([named("a")])).await;
        std::future::pending::<()>().await;
    });
    rig.offer().await;
    let start = Instant::now();
    rig.pool.close().await;
    assert_eq!(rig.ended.load(Ordering::SeqCst), 1);
    assert!(
        start.elapsed() < Duration::from_secs(3),
        "{:?}",
        start.elapsed()
    );
}
