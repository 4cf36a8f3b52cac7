//! What is known of sessions: registration, summary, lists, deletion.

use std::time::Duration;

use open_agent_kernel::store::session::{
    ListCursor, Registration, SessionKey, SessionRow, SharedSessionStore,
};
use serde_json::json;

use super::{add, all, entry, key, listed, message, noted};

async fn row(store: &SharedSessionStore) -> SessionRow {
    store.get("p", "s").await.unwrap().unwrap()
}

/// Long enough that a clock of milliseconds moves on.
async fn tick() {
    tokio::time::sleep(Duration::from_millis(15)).await;
}

pub async fn a_registration_is_kept_and_merged(store: SharedSessionStore) {
    let first = Registration {
        user: Some("u".into()),
        title: Some("T".into()),
        metadata: Some(json!({"b": {"z": [1, "ü"]}, "a": null})),
        parent: None,
    };
    store.register("p", "s", &first).await.unwrap();
    let stored = row(&store).await;
    assert_eq!(stored.session, "s");
    assert_eq!((&stored.user, &stored.title), (&first.user, &first.title));
    assert_eq!(stored.metadata, first.metadata);
    assert_eq!(stored.parent, None);
    assert_eq!(stored.shown_title(), Some("T"));
    let second = Registration {
        title: Some("U".into()),
        parent: Some("other".into()),
        ..Registration::default()
    };
    store.register("p", "s", &second).await.unwrap();
    let merged = row(&store).await;
    assert_eq!(merged.user.as_deref(), Some("u"));
    assert_eq!(merged.title.as_deref(), Some("U"));
    assert_eq!(merged.metadata, first.metadata);
    assert_eq!(merged.parent.as_deref(), Some("other"));
    assert_eq!(merged.created_at, stored.created_at);
    let third = Registration {
        metadata: Some(json!({"c": 1})),
        ..Registration::default()
    };
    store.register("p", "s", &third).await.unwrap();
    assert_eq!(row(&store).await.metadata, third.metadata, "as a whole");
    add(&store, &key(), &[noted("a", 1)]).await;
    let after = row(&store).await;
    assert_eq!((after.user, after.title), (merged.user, merged.title));
    assert_eq!(after.created_at, stored.created_at);
}

pub async fn a_registered_session_without_entries_is_listed(store: SharedSessionStore) {
    let registration = Registration::default();
    store.register("p", "s", &registration).await.unwrap();
    assert_eq!(listed(&store, "p").await, ["s"]);
    assert_eq!(store.load(&key(), None).await.unwrap(), None);
    assert_eq!(store.head(&key()).await.unwrap(), None);
    let row = row(&store).await;
    assert!(row.created_at > 1_000_000_000_000);
    assert_eq!(row.updated_at, row.created_at);
}

pub async fn an_unknown_session_has_no_row(store: SharedSessionStore) {
    assert_eq!(store.get("p", "s").await.unwrap(), None);
    store.fence("p", "s", 1).await.unwrap();
    assert_eq!(store.get("p", "s").await.unwrap(), None);
    assert_eq!(listed(&store, "p").await, Vec::<String>::new());
}

pub async fn an_append_makes_the_row_and_its_summary(store: SharedSessionStore) {
    add(&store, &key(), &[message("a", "user")]).await;
    let row_of = row(&store).await;
    assert_eq!(row_of.session, "s");
    assert_eq!((row_of.user, row_of.title), (None, None));
    assert_eq!(row_of.summary.first_prompt(), Some("text of a"));
    let titled = entry(json!({"type": "custom-title", "customTitle": "Mine"}));
    let tagged = entry(json!({"type": "tag", "tag": "x"}));
    add(&store, &key(), &[titled, tagged, message("b", "user")]).await;
    let row_of = row(&store).await;
    assert_eq!(row_of.shown_title(), Some("Mine"));
    assert_eq!(row_of.summary.tag(), Some("x"));
    assert_eq!(row_of.summary.first_prompt(), Some("text of a"));
    let rows = store.list("p", None, None, 10).await.unwrap();
    assert_eq!(rows, std::slice::from_ref(&row_of));
    // What a sub-agent wrote is not in the summary.
    let foreign = entry(json!({"type": "custom-title", "customTitle": "Not mine"}));
    add(&store, &key().with_subpath("x"), &[foreign]).await;
    assert_eq!(row(&store).await.shown_title(), Some("Mine"));
}

pub async fn updated_at_follows_the_main_transcript(store: SharedSessionStore) {
    add(&store, &key(), &[noted("a", 1)]).await;
    let first = row(&store).await;
    tick().await;
    add(&store, &key(), &[noted("a", 1)]).await;
    add(&store, &key().with_subpath("x"), &[noted("b", 1)]).await;
    assert_eq!(row(&store).await.updated_at, first.updated_at);
    add(&store, &key(), &[noted("b", 1)]).await;
    let second = row(&store).await;
    assert!(second.updated_at > first.updated_at);
    assert_eq!(second.created_at, first.created_at);
    tick().await;
    let registration = Registration::default();
    store.register("p", "s", &registration).await.unwrap();
    assert!(row(&store).await.updated_at > second.updated_at);
}

pub async fn list_pages_neither_repeat_nor_lose(store: SharedSessionStore) {
    // Registered at once, so that many share a millisecond.
    let mut expected = Vec::new();
    for n in 0..30 {
        let session = format!("s{n:02}");
        let registration = Registration::default();
        store.register("p", &session, &registration).await.unwrap();
        expected.push(session);
    }
    for size in [1, 4] {
        let (mut after, mut found): (Option<ListCursor>, Vec<String>) = (None, Vec::new());
        loop {
            let page = store.list("p", None, after.as_ref(), size).await.unwrap();
            assert!(page.len() <= size);
            let Some(last) = page.last() else {
                break;
            };
            after = Some(ListCursor {
                updated_at: last.updated_at,
                session: last.session.clone(),
            });
            found.extend(page.into_iter().map(|row| row.session));
        }
        assert_eq!(found, listed(&store, "p").await);
        found.sort();
        assert_eq!(found, expected);
    }
    assert_eq!(store.list("p", None, None, 0).await.unwrap(), vec![]);
}

pub async fn list_is_ordered_by_time_then_id(store: SharedSessionStore) {
    for session in ["b", "ä", "B", "a", "a0"] {
        let key = SessionKey::main("p", session);
        add(&store, &key, &[noted("a", 1)]).await;
    }
    let rows = store.list("p", None, None, 10).await.unwrap();
    let order: Vec<_> = rows
        .iter()
        .map(|row| (row.updated_at, row.session.clone()))
        .collect();
    assert!(order.is_sorted_by(|a, b| a > b), "{order:?}");
    // A session that is cut off by the cursor of its own place does not come again.
    let same_time = ListCursor {
        updated_at: rows[0].updated_at,
        session: rows[0].session.clone(),
    };
    let rest = store.list("p", None, Some(&same_time), 10).await.unwrap();
    assert_eq!(rest, rows[1..]);
    let above = ListCursor {
        session: format!("{}0", rows[0].session),
        ..same_time
    };
    let with_first = store.list("p", None, Some(&above), 10).await.unwrap();
    assert_eq!(with_first, rows);
    tick().await;
    let last = rows.last().unwrap().session.clone();
    add(&store, &SessionKey::main("p", &last), &[noted("b", 1)]).await;
    assert_eq!(listed(&store, "p").await[0], last);
}

pub async fn list_filters_by_user(store: SharedSessionStore) {
    for (session, user) in [("a", Some("u")), ("b", Some("U")), ("c", None)] {
        let registration = Registration {
            user: user.map(str::to_owned),
            ..Registration::default()
        };
        store.register("p", session, &registration).await.unwrap();
    }
    for n in 0..5 {
        let registration = Registration {
            user: Some("u".into()),
            ..Registration::default()
        };
        let session = format!("u{n}");
        store.register("p", &session, &registration).await.unwrap();
    }
    let of = async |user: &str, limit| {
        let rows = store.list("p", Some(user), None, limit).await.unwrap();
        rows.into_iter().map(|row| row.session).collect::<Vec<_>>()
    };
    assert_eq!(of("U", 10).await, ["b"]);
    assert_eq!(of("u", 10).await.len(), 6);
    assert_eq!(of("u", 2).await.len(), 2, "the filter comes first");
    assert_eq!(of("nobody", 10).await, Vec::<String>::new());
    assert_eq!(listed(&store, "p").await.len(), 8);
}

pub async fn delete_takes_row_index_and_registration(store: SharedSessionStore) {
    let registration = Registration {
        user: Some("u".into()),
        ..Registration::default()
    };
    store.register("p", "s", &registration).await.unwrap();
    add(&store, &key(), &[message("a", "user")]).await;
    store.delete(&key()).await.unwrap();
    assert_eq!(store.get("p", "s").await.unwrap(), None);
    assert_eq!(store.index("p", "s", None, 10).await.unwrap(), vec![]);
    assert_eq!(store.head(&key()).await.unwrap(), None);
    assert_eq!(store.tail(&key(), 3).await.unwrap(), vec![]);
    assert_eq!(listed(&store, "p").await, Vec::<String>::new());
    let users = store.list("p", Some("u"), None, 10).await.unwrap();
    assert_eq!(users, vec![]);
}

pub async fn a_deleted_session_starts_anew(store: SharedSessionStore) {
    let entries = [message("a", "user"), message("b", "user")];
    add(&store, &key(), &entries).await;
    let last = all(&store, &key()).await[1].seq;
    store.hide_through("p", "s", last).await.unwrap();
    store.delete(&key()).await.unwrap();
    add(&store, &key(), &entries[..1]).await;
    assert_eq!(all(&store, &key()).await.len(), 1);
    let rows = store.index("p", "s", None, 10).await.unwrap();
    assert_eq!(rows.len(), 1, "what was hidden went with the session");
    assert_eq!(row(&store).await.summary.first_prompt(), Some("text of a"));
}
