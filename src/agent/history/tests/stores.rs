//! Clearing, and what is asked of stores.

use std::sync::atomic::Ordering;

use super::*;

fn turn(n: usize) -> [Json; 4] {
    let call = format!("t{n}");
    [
        user(&format!("u{n}"), format!("prompt {n}")),
        answer(&format!("m{n}"), &format!("a{n}"), tool_use(&call, "n")),
        result(&call, "ok"),
        answer(&format!("e{n}"), &format!("e{n}"), text("done")),
    ]
}

#[tokio::test]
async fn a_cleared_history_stays_empty_until_new_messages_come() {
    for store in stores() {
        append(&*store, &turn(1)).await;
        append(&*store, &turn(2)).await;
        let newest = page(&*store, &limit(1)).await;
        clear(&*store, &key(), &clock()).await.unwrap();
        assert_eq!(page(&*store, &limit(0)).await, HistoryPage::default());
        let old = HistoryQuery {
            cursor: newest.next_cursor,
            ..HistoryQuery::default()
        };
        assert_eq!(page(&*store, &old).await, HistoryPage::default());
        // Neither a correction of an old entry nor one that is offered again brings anything back.
        let patched = stored(&result("t1", "patched"));
        assert!(store.replace(&key(), &patched).await.unwrap());
        append(&*store, &turn(1)).await;
        append(
            &*store,
            &[answer("m2", "late", text("rest of an old answer"))],
        )
        .await;
        assert_eq!(page(&*store, &limit(0)).await, HistoryPage::default());
        append(&*store, &turn(3)).await;
        let records = in_pages(&*store, 1).await;
        let ids: Vec<_> = records.iter().map(|record| record.id.as_str()).collect();
        assert_eq!(ids, ["u3", "m3"]);
        clear(&*store, &key(), &clock()).await.unwrap();
        assert_eq!(page(&*store, &limit(0)).await, HistoryPage::default());
        // The transcript stays: the model still knows everything.
        let loaded = store.load(&key(), None).await.unwrap().unwrap();
        let messages = loaded
            .entries
            .iter()
            .filter(|placed| placed.entry.message.is_some());
        assert_eq!(messages.count(), 13);
    }
}

#[tokio::test]
async fn sessions_that_were_never_written_are_empty_and_clearing_them_writes_nothing() {
    for store in stores() {
        assert_eq!(page(&*store, &limit(0)).await, HistoryPage::default());
        clear(&*store, &key(), &clock()).await.unwrap();
        assert!(store.load(&key(), None).await.unwrap().is_none());
        append(&*store, &turn(1)).await;
        assert_eq!(page(&*store, &limit(0)).await.records.len(), 2);
    }
}

#[tokio::test]
async fn a_patched_result_takes_the_place_of_the_sentinel() {
    for store in stores() {
        let entries = [
            user("u1", "go"),
            answer("m1", "a1", tool_use("t1", "n")),
            sentinel("t1", "__OAK_CLIENT_TOOL__"),
        ];
        append(&*store, &entries).await;
        assert_eq!(
            lines(&page(&*store, &limit(0)).await.records),
            ["user: 'go'"]
        );
        let patched = stored(&result("t1", "given"));
        assert!(store.replace(&key(), &patched).await.unwrap());
        let records = page(&*store, &limit(0)).await.records;
        assert_eq!(lines(&records)[1], "assistant: t1 done, t1 -> \"given\"");
    }
}

#[tokio::test]
async fn transcripts_of_sub_agents_have_a_history_without_an_index() {
    let store = MemoryStore::new(clock());
    let key = key().with_subpath("subagents/agent-1");
    let entries: Vec<_> = turn(1).iter().map(stored).collect();
    store.append(&key, &entries, None).await.unwrap();
    let page = history(&store, &key, &limit(0), &[]).await.unwrap();
    assert_eq!(page.records.len(), 2);
    clear(&store, &key, &clock()).await.unwrap();
    let page = history(&store, &key, &limit(0), &[]).await.unwrap();
    assert_eq!(page, HistoryPage::default());
}

#[tokio::test]
async fn what_a_page_reads_does_not_grow_with_the_session() {
    let mut read = Vec::new();
    for turns in [100, 2_000] {
        let store = Limited::new(Caps::ALL);
        let entries: Vec<_> = (0..turns).flat_map(turn).collect();
        append(&store, &entries).await;
        let first = page(&store, &limit(50)).await;
        let query = HistoryQuery {
            cursor: first.next_cursor,
            ..limit(50)
        };
        assert_eq!(page(&store, &query).await.records.len(), 50);
        assert_eq!(store.loads.load(Ordering::Relaxed), 0);
        read.push(store.found.load(Ordering::Relaxed));
    }
    assert_eq!(read[0], read[1]);
    assert!(read[0] <= 2 * 50 * 4 + 8, "{}", read[0]);
}
