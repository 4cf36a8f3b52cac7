//! Paging: nothing is repeated, nothing is lost, whatever the size of the page.

use std::collections::HashMap;

use super::*;
use crate::agent::history::aggregate::MAX_MESSAGES;

/// A conversation with everything that transcripts hold, in any order that a writer may choose.
struct Conversation {
    random: fastrand::Rng,
    entries: Vec<Json>,
    /// Calls without a result.
    open: Vec<String>,
}

impl Conversation {
    fn make(seed: u64, steps: usize) -> Vec<Json> {
        let mut conversation = Self {
            random: fastrand::Rng::with_seed(seed),
            entries: Vec::new(),
            open: Vec::new(),
        };
        for _ in 0..steps {
            conversation.step();
        }
        conversation.entries
    }

    fn id(&self, what: &str) -> String {
        format!("{what}{}", self.entries.len())
    }

    fn step(&mut self) {
        match self.random.u8(0..12) {
            0..3 => self.answer(),
            3..7 => self.result(),
            7..9 => self.prompt(),
            9 => self.hidden(),
            10 => self.answer_all(),
            _ => self.failure(),
        }
    }

    fn prompt(&mut self) {
        let id = self.id("u");
        self.entries.push(user(&id, format!("prompt {id}")));
    }

    fn answer(&mut self) {
        let message = self.id("m");
        for _ in 0..self.random.usize(1..4) {
            let id = self.id("a");
            let block = match self.random.u8(0..3) {
                0 => text(&id),
                1 => json!({"type": "thinking", "thinking": id, "signature": "s"}),
                _ => {
                    self.open.push(id.clone());
                    tool_use(&id, "n")
                }
            };
            self.entries.push(answer(&message, &id, block));
        }
    }

    /// A result of any open call, sometimes together with a prompt.
    fn result(&mut self) {
        if self.open.is_empty() {
            return;
        }
        let call = self.open.swap_remove(self.random.usize(..self.open.len()));
        let block = match self.random.u8(0..5) {
            0 => tool_result(&call, r#"{"__OAK_INTERRUPT__":true}"#, true),
            1 => tool_result(&call, r#"{"type":"oak_user_denied"}"#, true),
            _ => tool_result(&call, "ok", false),
        };
        let mut blocks = vec![block];
        let id = self.id("r");
        if self.random.u8(0..6) == 0 {
            blocks.push(text(&format!("beside {id}")));
        }
        self.entries.push(user(&id, blocks));
    }

    fn answer_all(&mut self) {
        while !self.open.is_empty() {
            self.result();
        }
    }

    fn hidden(&mut self) {
        let id = self.id("h");
        let entry = match self.random.u8(0..4) {
            0 => with(user(&id, "note"), "isMeta", true),
            1 => user(&id, "[系统通知] 请继续"),
            2 => json!({"type": "last-prompt", "lastPrompt": "x"}),
            _ => user(&id, json!([tool_result("nobody", "x", false)])),
        };
        self.entries.push(entry);
    }

    fn failure(&mut self) {
        let id = self.id("f");
        let entry = answer(&id, &id, text("API Error"));
        self.entries.push(with(entry, "isApiErrorMessage", true));
    }
}

/// The history of a conversation as [`Conversation`] makes them, in the plainest way: everything at
/// once, oldest first.
fn plain_history(entries: &[Json]) -> Vec<String> {
    let mut results = HashMap::new();
    let blocks = entries
        .iter()
        .filter_map(|entry| entry["message"]["content"].as_array());
    for block in blocks
        .flatten()
        .filter(|block| block["type"] == "tool_result")
    {
        results.insert(
            block["tool_use_id"].as_str().unwrap(),
            block["content"].as_str().unwrap(),
        );
    }
    let mut records: Vec<(bool, Vec<String>)> = Vec::new();
    for entry in entries {
        let is_user = entry["type"] == "user";
        let is_failure = entry["isApiErrorMessage"] == true;
        if entry["message"].is_null() || entry["isMeta"] == true {
            continue;
        }
        let content = match &entry["message"]["content"] {
            Json::String(prompt) => vec![text(prompt)],
            blocks => blocks.as_array().unwrap().clone(),
        };
        let mut parts = Vec::new();
        for block in content.iter().filter(|_| !is_failure) {
            match block["type"].as_str().unwrap() {
                "text" if !block["text"].as_str().unwrap().starts_with("[系统通知]") => {
                    parts.push(format!("'{}'", block["text"].as_str().unwrap()));
                }
                "thinking" => {
                    parts.push(format!("thinks '{}'", block["thinking"].as_str().unwrap()));
                }
                "tool_use" => parts.extend(plain_call(block["id"].as_str().unwrap(), &results)),
                _ => {}
            }
        }
        match records.last_mut() {
            _ if parts.is_empty() && !is_failure => {}
            Some((false, last)) if !is_user => last.extend(parts),
            _ => records.push((is_user, parts)),
        }
    }
    let role = |is_user| if is_user { "user" } else { "assistant" };
    let lines = records.into_iter();
    lines
        .map(|(is_user, parts)| format!("{}: {}", role(is_user), parts.join(", ")))
        .collect()
}

fn plain_call(id: &str, results: &HashMap<&str, &str>) -> Vec<String> {
    let status = match results.get(id) {
        None => return vec![format!("{id} executing")],
        Some(output) if output.contains("INTERRUPT") => return Vec::new(),
        Some(output) if output.contains("denied") => "denied",
        Some(_) => "done",
    };
    vec![
        format!("{id} {status}"),
        format!("{id} -> {}", json!(results[id])),
    ]
}

#[tokio::test]
async fn pages_of_any_size_hold_what_the_whole_history_holds() {
    let mut records = 0;
    for seed in 0..30 {
        let entries = Conversation::make(seed, 10 + usize::try_from(seed).unwrap() * 4);
        let stores = stores();
        // With everything and with nothing but `load`; the others only mix the two.
        for store in &stores[..2] {
            append(&**store, &entries).await;
            let whole = page(&**store, &limit(1_000)).await;
            assert_eq!(whole.next_cursor, None, "seed {seed}");
            assert_eq!(
                lines(&whole.records),
                plain_history(&entries),
                "seed {seed}"
            );
            records += whole.records.len();
            for size in [1, 3, 20] {
                assert_eq!(
                    in_pages(&**store, size).await,
                    whole.records,
                    "seed {seed}, {size}"
                );
            }
        }
    }
    assert!(records > 1_000);
}

#[tokio::test]
async fn a_page_may_begin_at_any_record() {
    let entries = Conversation::make(7, 200);
    for store in stores() {
        append(&*store, &entries).await;
        let whole = page(&*store, &limit(1_000)).await.records;
        for (at, record) in whole.iter().enumerate() {
            let query = HistoryQuery {
                cursor: Some(record.cursor.clone()),
                ..limit(1_000)
            };
            assert_eq!(page(&*store, &query).await.records, whole[..at]);
        }
    }
}

#[tokio::test]
async fn equal_times_do_not_matter_in_pages_of_one() {
    // The clock stands still; two writers take turns.
    let turn = |n: usize| {
        let (one, two) = (format!("t{n}a"), format!("t{n}b"));
        let message = format!("m{n}");
        vec![
            user(&format!("u{n}"), format!("prompt {n}")),
            answer(&message, &format!("{message}a"), text("let me see")),
            answer(&message, &format!("{message}b"), tool_use(&one, "n")),
            answer(&message, &format!("{message}c"), tool_use(&two, "n")),
            result(&two, "second"),
            result(&one, "first"),
            answer(&format!("e{n}"), &format!("e{n}"), text("done")),
        ]
    };
    for store in stores() {
        for n in 0..5 {
            append(&*store, &turn(n)).await;
        }
        let records = in_pages(&*store, 1).await;
        assert_eq!(records.len(), 10);
        assert!(records.iter().all(|record| record.created_at == NOW));
        for (n, turn) in records.chunks(2).enumerate() {
            assert_eq!(line(&turn[0]), format!("user: 'prompt {n}'"));
            assert_eq!(
                line(&turn[1]),
                format!(
                    "assistant: 'let me see', t{n}a done, t{n}a -> \"first\", t{n}b done, \
                     t{n}b -> \"second\", 'done'"
                )
            );
        }
    }
}

#[tokio::test]
async fn entries_that_come_while_paging_change_no_older_page() {
    for store in stores() {
        append(&*store, &Conversation::make(3, 100)).await;
        let whole = page(&*store, &limit(1_000)).await.records;
        let first = page(&*store, &limit(3)).await;
        append(
            &*store,
            &[user("new", "more"), answer("new", "new-a", text("answer"))],
        )
        .await;
        let query = HistoryQuery {
            cursor: first.next_cursor,
            ..limit(1_000)
        };
        assert_eq!(
            page(&*store, &query).await.records,
            whole[..whole.len() - 3]
        );
    }
}

#[tokio::test]
async fn a_very_long_answer_is_split_between_answers() {
    let rounds = MAX_MESSAGES + MAX_MESSAGES / 4;
    let mut entries = vec![user("u", "go")];
    for n in 0..rounds {
        entries.push(answer(
            &format!("m{n}"),
            &format!("a{n}"),
            tool_use(&format!("t{n}"), "n"),
        ));
        entries.push(result(&format!("t{n}"), "ok"));
    }
    for store in stores() {
        append(&*store, &entries).await;
        let whole = page(&*store, &limit(0)).await.records;
        let calls: Vec<_> = whole.iter().map(|record| record.parts.len() / 2).collect();
        let half = MAX_MESSAGES / 2;
        assert_eq!(calls, [0, rounds - 2 * half, half, half]);
        for record in &whole[1..] {
            assert!(matches!(
                record.parts.first(),
                Some(MessagePart::ToolCall { .. })
            ));
            assert!(matches!(
                record.parts.last(),
                Some(MessagePart::ToolResult { .. })
            ));
        }
        assert_eq!(in_pages(&*store, 1).await, whole);
    }
}

#[tokio::test]
async fn times_choose_where_to_start_and_stop() {
    let entries = [
        at(user("u1", "one"), 1_000),
        at(answer("m1", "a1", text("begins")), 2_000),
        at(answer("m2", "a2", text("ends")), 5_000),
        at(user("u2", "two"), 6_000),
        // The clock was put back.
        at(user("u3", "three"), 3_000),
        at(user("u4", "four"), 7_000),
    ];
    let query = |before, after| HistoryQuery {
        before_ms: before,
        after_ms: after,
        ..HistoryQuery::default()
    };
    for store in stores() {
        append(&*store, &entries).await;
        for (query, ids) in [
            (
                query(Some(7_001), None),
                &["u1", "m1", "u2", "u3", "u4"][..],
            ),
            (query(Some(7_000), None), &["u1", "m1", "u2", "u3"]),
            // A record belongs to the time of its first message.
            (query(Some(3_000), None), &["u1", "m1"]),
            (query(Some(2_000), None), &["u1"]),
            (query(Some(1_000), None), &[]),
            (query(None, Some(6_000)), &["u4"]),
            (query(None, Some(2_999)), &["u2", "u3", "u4"]),
            (query(None, Some(7_000)), &[]),
            (query(Some(7_000), Some(1_000)), &["m1", "u2", "u3"]),
        ] {
            let page = page(&*store, &query).await;
            let found: Vec<_> = page
                .records
                .iter()
                .map(|record| record.id.as_str())
                .collect();
            assert_eq!(
                (found.as_slice(), page.next_cursor),
                (ids, None),
                "{query:?}"
            );
        }
        let mut query = HistoryQuery {
            limit: 1,
            ..query(Some(4_000), None)
        };
        let mut ids = Vec::new();
        loop {
            let page = page(&*store, &query).await;
            ids.extend(page.records.into_iter().map(|record| record.id));
            query.cursor = page.next_cursor;
            if query.cursor.is_none() {
                break;
            }
        }
        assert_eq!(ids, ["u3", "u2", "m1", "u1"]);
    }
}

#[tokio::test]
async fn a_time_far_back_is_found() {
    let entries: Vec<_> = (0..3_500)
        .map(|n| at(user(&format!("u{n}"), format!("prompt {n}")), NOW + n * 10))
        .collect();
    for store in stores() {
        append(&*store, &entries).await;
        for n in [0, 1, 499, 500, 1_500, 2_499, 2_500, 3_499] {
            let query = HistoryQuery {
                before_ms: Some(NOW + n * 10),
                ..limit(1)
            };
            let page = page(&*store, &query).await;
            let expected = n.checked_sub(1).map(|n| format!("u{n}"));
            assert_eq!(
                page.records.first().map(|record| record.id.clone()),
                expected
            );
            assert_eq!(page.next_cursor.is_some(), n > 1);
        }
    }
}

#[tokio::test]
async fn a_record_that_begins_before_the_time_is_whole() {
    let (begin, later) = (1_000, 9_000);
    let mut entries = vec![at(user("u", "go"), begin)];
    for n in 0..700 {
        let time = if n == 0 { begin } else { later };
        let id = format!("m{n}");
        entries.push(at(answer(&id, &id, text(&id)), time));
    }
    entries.extend((0..600).map(|n| at(user(&format!("p{n}"), "more"), later)));
    let query = HistoryQuery {
        before_ms: Some(begin + 1),
        ..limit(1)
    };
    for store in stores() {
        append(&*store, &entries).await;
        let page = page(&*store, &query).await;
        assert_eq!(page.records[0].id, "m0");
        assert_eq!(page.records[0].parts.len(), 700);
    }
}

#[tokio::test]
async fn cursors_that_are_none_are_refused() {
    let store = MemoryStore::new(clock());
    let query = HistoryQuery {
        cursor: Some("5".to_owned()),
        ..HistoryQuery::default()
    };
    let error = history(&store, &key(), &query, &[]).await.unwrap_err();
    assert_eq!(error.code(), "E_INVALID_CONFIG");
    assert!(error.message().contains("cursor"));
    // One behind the end, or of a session that is gone, is a place like any other.
    let query = HistoryQuery {
        cursor: Some("szzzzzz".to_owned()),
        ..HistoryQuery::default()
    };
    assert_eq!(page(&store, &query).await, HistoryPage::default());
}
