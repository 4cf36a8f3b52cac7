//! What becomes of entries: merging, pairing, hiding.

use super::*;
use crate::protocol::{ImageRef, MessageStatus, OpenKind};

const INTERRUPT: &str = "__OAK_INTERRUPT__";
const CLIENT_TOOL: &str = "__OAK_CLIENT_TOOL__";
const DENIED: &str = r#"{"reason":"no","type":"oak_user_denied"}"#;

fn open_call(id: &str, kind: OpenKind) -> OpenCall {
    OpenCall {
        tool_use_id: id.to_owned(),
        tool_name: "mcp__custom__delete".to_owned(),
        input: json!({"seen": id}),
        kind,
    }
}

/// A round of the sandbox example, and its second half after an approval.
fn approved_session() -> Vec<Json> {
    let notice = "[系统通知] 用户已批准刚才的工具调用 `mcp__sandbox__bash`。请立即重新调用该工具完成原任务，不要再询问用户。";
    vec![
        json!({"type": "queue-operation", "operation": "enqueue"}),
        user("u1", "列出文件"),
        answer("m1", "a1", text("好的")),
        answer("m1", "a2", tool_use("t1", "mcp__sandbox__glob")),
        result("t1", json!([{"type": "text", "text": "a.txt"}])),
        answer("m2", "a3", text("有一个文件")),
        user("u2", "删除它"),
        answer("m3", "a4", tool_use("t2", "mcp__sandbox__bash")),
        sentinel("t2", INTERRUPT),
        answer("m4", "a5", text("等待批准")),
        user("u3", notice),
        answer("m5", "a6", tool_use("t3", "mcp__sandbox__bash")),
        result("t3", "removed"),
        answer("m6", "a7", text("已删除")),
    ]
}

fn texts_of(records: &[MessageRecord]) -> Vec<&str> {
    let parts = records.iter().flat_map(|record| &record.parts);
    let texts = parts.filter_map(|part| match part {
        MessagePart::Text { text } => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

/// What the examples check of every history.
fn assert_presentable(records: &[MessageRecord], marker: &str) {
    for role in [Role::User, Role::Assistant] {
        assert!(records.iter().any(|record| record.role == role));
    }
    let all = json!(records).to_string();
    assert!(!all.contains(marker));
    assert!(
        !texts_of(records)
            .iter()
            .any(|text| text.starts_with("[系统通知]"))
    );
    for record in records {
        let only_results = record
            .parts
            .iter()
            .all(|part| matches!(part, MessagePart::ToolResult { .. }));
        assert!(record.role == Role::Assistant || !only_results);
        for pair in record.parts.windows(2) {
            if let [
                MessagePart::ToolCall {
                    tool_use_id,
                    status,
                    ..
                },
                after,
            ] = pair
            {
                let id = tool_use_id;
                assert_ne!(*status, CallStatus::AwaitingApproval);
                assert!(
                    matches!(after, MessagePart::ToolResult { tool_use_id, .. } if tool_use_id == id)
                );
            }
        }
    }
}

#[tokio::test]
async fn the_session_of_example_14_is_presentable_and_empty_once_cleared() {
    let entries = approved_session();
    let records = history_of(&entries, &[]).await;
    assert_presentable(&records, INTERRUPT);
    assert_eq!(
        lines(&records),
        [
            "user: '列出文件'",
            r#"assistant: '好的', t1 done, t1 -> [{"type":"text","text":"a.txt"}], '有一个文件'"#,
            "user: '删除它'",
            "assistant: '等待批准', t3 done, t3 -> \"removed\", '已删除'",
        ]
    );
    for store in stores() {
        append(&*store, &entries).await;
        clear(&*store, &key(), &clock()).await.unwrap();
        assert_eq!(page(&*store, &limit(50)).await, HistoryPage::default());
    }
}

#[tokio::test]
async fn the_client_tool_session_of_seven_records_becomes_two() {
    let notice = "[系统通知] 用户为刚才的工具调用 `get_weather` 提供了实际执行结果。请重新调用该工具以获取该结果（hook 会自动注入），然后基于结果继续。";
    let output = r#"{"city":"Beijing","temp":25}"#;
    let records = history_of(
        &[
            user("u1", "北京今天天气怎么样？"),
            answer("m1", "a1", text("让我查一下北京的天气。")),
            answer("m1", "a2", tool_use("tool-001", "mcp__custom__get_weather")),
            sentinel("tool-001", CLIENT_TOOL),
            user("u2", notice),
            answer("m2", "a3", tool_use("tool-002", "mcp__custom__get_weather")),
            result("tool-002", output),
            answer("m3", "a4", text("北京今天天气晴朗，气温 25°C。")),
        ],
        &[],
    )
    .await;
    assert_presentable(&records, CLIENT_TOOL);
    assert_eq!(records.len(), 2);
    assert_eq!(
        (records[0].id.as_str(), records[1].id.as_str()),
        ("u1", "m1")
    );
    assert_eq!(
        json!(records[1].parts),
        json!([
            {"type": "text", "text": "让我查一下北京的天气。"},
            {"type": "tool_call", "toolUseId": "tool-002", "toolName": "get_weather",
                "input": {"of": "tool-002"}, "status": "done"},
            {"type": "tool_result", "toolUseId": "tool-002", "output": output,
                "isError": false, "status": "done"},
            {"type": "text", "text": "北京今天天气晴朗，气温 25°C。"},
        ])
    );
}

#[tokio::test]
async fn records_have_the_form_that_programs_know() {
    let records = history_of(&[user("u1", "hi")], &[]).await;
    assert_eq!(
        json!(records),
        json!([{
            "id": "u1", "conversationId": "c", "role": "user", "status": "done",
            "parts": [{"type": "text", "text": "hi"}], "createdAt": NOW, "cursor": "s1",
        }])
    );
}

#[tokio::test]
async fn all_entries_of_a_message_are_merged_in_order() {
    let thinking = json!({"type": "thinking", "thinking": "hm", "signature": "s"});
    let records = history_of(
        &[
            user("u1", "go"),
            answer("m1", "a1", thinking),
            answer(
                "m1",
                "a2",
                json!({"type": "redacted_thinking", "data": "x"}),
            ),
            answer("m1", "a3", text("first")),
            answer("m1", "a4", tool_use("t1", "n")),
            result("t1", "one"),
            // The rest of the answer came behind the first result.
            answer("m1", "a5", tool_use("t2", "n")),
            result("t2", "two"),
            answer("m2", "a6", text("")),
            answer("m2", "a7", text("last")),
        ],
        &[],
    )
    .await;
    assert_eq!(
        lines(&records)[1],
        "assistant: thinks 'hm', 'first', t1 done, t1 -> \"one\", t2 done, t2 -> \"two\", 'last'"
    );
}

#[tokio::test]
async fn a_pending_call_waits_and_an_abandoned_one_is_hidden() {
    let entries = [
        user("u1", "go"),
        answer("m1", "a1", tool_use("t1", "mcp__custom__delete")),
        sentinel("t1", INTERRUPT),
        answer("m2", "a2", text("paused")),
    ];
    let abandoned = history_of(&entries, &[]).await;
    assert_eq!(lines(&abandoned), ["user: 'go'", "assistant: 'paused'"]);
    for kind in [OpenKind::Approval, OpenKind::ClientTool, OpenKind::Question] {
        let pending = history_of(&entries, &[open_call("t1", kind)]).await;
        let assistant = "assistant: t1 awaiting_approval, t1 needs approval, 'paused'";
        assert_eq!(lines(&pending)[1], assistant);
        assert_eq!(
            json!(pending[1].parts[1]),
            json!({"type": "tool_approval_required", "toolUseId": "t1", "toolName": "delete",
                "input": {"seen": "t1"}})
        );
    }
    // Native pauses write no result at all; one that came makes an old record of the pause void.
    let open = [open_call("t1", OpenKind::Approval)];
    let native = history_of(&entries[..2], &open).await;
    assert_eq!(
        lines(&native)[1],
        "assistant: t1 awaiting_approval, t1 needs approval"
    );
    let answered = [entries[0].clone(), entries[1].clone(), result("t1", "ok")];
    let answered = history_of(&answered, &open).await;
    assert_eq!(lines(&answered)[1], "assistant: t1 done, t1 -> \"ok\"");
}

#[tokio::test]
async fn a_call_without_result_executes_and_a_denied_one_stays_visible() {
    let records = history_of(
        &[
            user("u1", "go"),
            answer("m1", "a1", tool_use("t1", "n")),
            answer("m1", "a2", tool_use("t2", "n")),
            answer("m1", "a3", tool_use("t3", "n")),
            answer("m1", "a4", tool_use("t4", "n")),
            failed("t1", DENIED),
            with(failed("t2", "no"), "toolDenialKind", "user-rejected"),
            failed("t3", "exit code 1"),
        ],
        &[],
    )
    .await;
    assert_eq!(
        lines(&records)[1],
        format!(
            "assistant: t1 denied, t1 -> {}, t2 denied, t2 -> \"no\", t3 done, \
             t3 -> \"exit code 1\", t4 executing",
            json!(DENIED)
        )
    );
}

#[tokio::test]
async fn sentinels_are_judged_one_result_at_a_time_and_in_blocks_too() {
    let payload = json!({INTERRUPT: true}).to_string();
    let second = json!({"type": "oak_pending_approval_in_turn"}).to_string();
    let records = history_of(
        &[
            user("u1", "go"),
            answer("m1", "a1", tool_use("t1", "n")),
            answer("m1", "a2", tool_use("t2", "n")),
            answer("m1", "a3", tool_use("t3", "n")),
            user(
                "r",
                json!([
                    tool_result("t1", json!([{"type": "text", "text": payload}]), true),
                    tool_result("t2", "real", false),
                    tool_result("t3", second, true),
                ]),
            ),
        ],
        &[],
    )
    .await;
    assert_eq!(lines(&records)[1], "assistant: t2 done, t2 -> \"real\"");
}

#[tokio::test]
async fn a_result_beside_a_prompt_is_paired_and_one_without_call_disappears() {
    let records = history_of(
        &[
            user("u1", "go"),
            answer("m1", "a1", tool_use("t1", "n")),
            user(
                "u2",
                json!([tool_result("t1", "late", true), text("and now?")]),
            ),
            user("u3", json!([tool_result("nobody", "x", false)])),
            answer("m2", "a2", text("well")),
        ],
        &[],
    )
    .await;
    assert_eq!(
        lines(&records),
        [
            "user: 'go'",
            "assistant: t1 done, t1 -> \"late\"",
            "user: 'and now?'",
            "assistant: 'well'",
        ]
    );
}

#[tokio::test]
async fn the_result_that_the_model_saw_counts_and_a_real_one_replaces_a_sentinel() {
    let named = |uuid: &str, entry: Json| with(entry, "uuid", uuid);
    let records = history_of(
        &[
            user("u1", "go"),
            answer("m1", "a1", tool_use("t1", "n")),
            answer("m1", "a2", tool_use("t2", "n")),
            named("r1", result("t1", "first")),
            named("r2", result("t1", "second")),
            named("r3", sentinel("t2", CLIENT_TOOL)),
            named("r4", result("t2", "given")),
        ],
        &[],
    )
    .await;
    assert_eq!(
        lines(&records)[1],
        "assistant: t1 done, t1 -> \"first\", t2 done, t2 -> \"given\""
    );
}

#[tokio::test]
async fn what_the_kernel_wrote_for_the_model_is_hidden() {
    let summary = with(
        user("s", "summary of what was said"),
        "isCompactSummary",
        true,
    );
    let meta = with(user("n", "body of a skill"), "isMeta", true);
    let marked = with(user("k", "go on"), "oak", json!({"kind": "resume_notice"}));
    let mut side = answer("m9", "x", text("of a sub-agent"));
    side["isSidechain"] = json!(true);
    let records = history_of(
        &[
            summary,
            user("u1", "go"),
            answer("m1", "a1", text("one")),
            meta,
            marked,
            side,
            json!({"type": "system", "subtype": "compact_boundary", "uuid": "b"}),
            answer("m2", "a2", text("two")),
        ],
        &[],
    )
    .await;
    assert_eq!(lines(&records), ["user: 'go'", "assistant: 'one', 'two'"]);
}

#[tokio::test]
async fn texts_of_people_that_look_like_notices_are_shown() {
    let notice = "[系统通知] 用户已批准刚才的工具调用 `x`。";
    let marked = with(user("u3", notice), "oak", json!({"kind": "prompt"}));
    let records = history_of(
        &[
            user("u1", "[系统通知] 今晚停机维护"),
            user("u2", json!([text("[系统通知] 用户小明加入了群聊")])),
            marked,
            user("u4", notice),
            answer("m1", "a1", text(notice)),
        ],
        &[],
    )
    .await;
    let ids: Vec<_> = records.iter().map(|record| record.id.as_str()).collect();
    assert_eq!(ids, ["u1", "u2", "u3", "m1"]);
}

#[tokio::test]
async fn a_failure_of_the_gateway_is_a_status_and_no_text() {
    let failure = |id: &str| {
        let entry = answer(id, id, text("API Error: 529 overloaded"));
        with(entry, "isApiErrorMessage", true)
    };
    let records = history_of(
        &[
            user("u1", "go"),
            answer("m1", "a1", text("let me see")),
            failure("f1"),
            user("u2", "again"),
            failure("f2"),
            user("u3", "again"),
            failure("f3"),
            answer("m2", "a2", text("done")),
        ],
        &[],
    )
    .await;
    let of = |at: usize| (line(&records[at]), records[at].status);
    assert_eq!(
        of(1),
        ("assistant: 'let me see'".to_owned(), MessageStatus::Error)
    );
    assert_eq!(of(3), ("assistant: ".to_owned(), MessageStatus::Error));
    assert_eq!(of(5), ("assistant: 'done'".to_owned(), MessageStatus::Done));
}

#[tokio::test]
async fn images_have_references() {
    let image = |source: Json| json!({"type": "image", "source": source});
    let base64 = image(json!({"type": "base64", "media_type": "image/png", "data": "AAAA"}));
    let url = image(json!({"type": "url", "url": "https://example.com/a.png"}));
    let cloud = image(json!({"type": "url", "url": "cloud://env/a.png"}));
    let named = with(
        user("u2", json!([url.clone(), base64.clone(), text("see")])),
        "oak",
        json!({"messageRef": [{"kind": "cos", "fileId": "cloud://env/b.png"}, null]}),
    );
    let records = history_of(&[user("u1", json!([base64, url, cloud])), named], &[]).await;
    let refs = |record: &MessageRecord| -> Vec<ImageRef> {
        let parts = record.parts.iter();
        let refs = parts.filter_map(|part| match part {
            MessagePart::Image { r#ref, .. } => Some(r#ref.clone()),
            _ => None,
        });
        refs.collect()
    };
    let cos = |id: &str| ImageRef::Cos {
        file_id: id.to_owned(),
    };
    let data = ImageRef::Base64 {
        data_url: "data:image/png;base64,AAAA".to_owned(),
    };
    let web = ImageRef::Url {
        url: "https://example.com/a.png".to_owned(),
    };
    assert_eq!(
        refs(&records[0]),
        [data.clone(), web, cos("cloud://env/a.png")]
    );
    assert_eq!(refs(&records[1]), [cos("cloud://env/b.png"), data]);
    assert_eq!(
        json!(records[0].parts[0]),
        json!({"type": "image", "mimeType": "image/png",
            "ref": {"kind": "base64", "dataUrl": "data:image/png;base64,AAAA"}})
    );
}

#[tokio::test]
async fn entries_of_unknown_writers_do_no_harm() {
    let mut odd = answer(
        "m1",
        "a1",
        json!({"type": "tool_use", "id": 5, "name": "n"}),
    );
    odd["message"]["content"] = json!([
        5, null, {"type": 7}, {"type": "text"}, {"type": "thinking", "text": "wrong field"},
        {"type": "tool_use", "id": "t1", "name": "n"}, {"type": "server_tool_use", "id": "s"},
        {"type": "image"}, {"type": "image", "source": {"type": "file", "file_id": "f"}},
    ]);
    let mut silent = user("u2", "x");
    silent["message"] = json!({"role": "user"});
    let records = history_of(&[user("u1", "go"), odd, silent], &[]).await;
    assert_eq!(lines(&records), ["user: 'go'", "assistant: t1 executing"]);
    let MessagePart::ToolCall { input, .. } = &records[1].parts[0] else {
        panic!("the call");
    };
    assert_eq!(input, &json!({}));
}
