//! Ids that files, tables and filters may take for something else.

use open_agent_kernel::store::session::{Registration, SessionKey, SharedSessionStore};

use super::{add, all, key, listed, noted, sorted, uuids};

/// Ids that must not collide with each other, whatever a store makes of them.
fn odd_ids() -> Vec<String> {
    let odd = [
        "a",
        "A",
        "a ",
        " a",
        "a.",
        ".a",
        ".",
        "..",
        "...",
        "/",
        "//",
        "a/b",
        "a\\b",
        "a/../a",
        "../../x",
        "/etc/passwd",
        "a|b",
        "a%b",
        "a%7Cb",
        "a_b",
        "a?b",
        "a*b",
        "a:b",
        "a;b",
        "a'b",
        "a\"b",
        "a`b",
        "$(a)",
        "$where",
        "{\"$gt\":\"\"}",
        "--",
        "-a",
        "~",
        "~a",
        "%00",
        "\\0",
        "\\n",
        "null",
        "undefined",
        "NaN",
        "0",
        "00",
        "sub",
        "meta.json",
        "entries.jsonl",
        "transcript.json",
        ".lock",
        ".state",
        "fence",
        "con",
        "nul",
        "com1",
        "wt-a",
        "é",
        "e\u{301}",
        "É",
        "ß",
        "ss",
        "ﬁ",
        "fi",
        "\u{212b}",
        "\u{c5}",
        "K",
        "\u{212a}",
        "日本語",
        "😀",
        "\u{200b}",
        "\u{feff}",
        "\u{202e}a",
        "\u{a0}",
        "\u{fffd}",
        "İ",
        "i",
        "ı",
        // What the first id's digest would be called.
        "~ca978112ca1bbdcafac231b39a23dc4d",
    ];
    odd.map(str::to_owned).into()
}

pub async fn ids_are_compared_byte_for_byte(store: SharedSessionStore) {
    let ids = odd_ids();
    for (n, id) in ids.iter().enumerate() {
        let entry = noted(&format!("main {id}"), n as u64);
        add(&store, &SessionKey::main("p", id), &[entry]).await;
        let entry = noted(&format!("project {id}"), n as u64);
        add(&store, &SessionKey::main(id, "s"), &[entry]).await;
    }
    for id in &ids {
        let main = all(&store, &SessionKey::main("p", id)).await;
        assert_eq!(uuids(&main), [format!("main {id}")]);
        let project = all(&store, &SessionKey::main(id, "s")).await;
        assert_eq!(uuids(&project), [format!("project {id}")]);
        let row = store.get("p", id).await.unwrap().unwrap();
        assert_eq!(row.session, *id);
        assert_eq!(listed(&store, id).await, ["s"]);
    }
    assert_eq!(sorted(listed(&store, "p").await), sorted(ids.clone()));
    store.delete(&SessionKey::main("p", "a")).await.unwrap();
    let left: Vec<_> = ids.into_iter().filter(|id| id != "a").collect();
    assert_eq!(sorted(listed(&store, "p").await), sorted(left));
}

pub async fn parts_of_a_key_do_not_run_together(store: SharedSessionStore) {
    for separator in ["/", "|", ":", ".", "\\", "~", "_", "%", " "] {
        let join = |a: &str, b: &str| format!("{a}{separator}{b}");
        let keys = [
            SessionKey::main(&join("a", "b"), "c"),
            SessionKey::main("a", &join("b", "c")),
            SessionKey::main("a", "b").with_subpath("c"),
            SessionKey::main("a", &join("b", "sub")).with_subpath("c"),
            SessionKey::main("a", "b").with_subpath(&join("sub", "c")),
        ];
        for (n, key) in keys.iter().enumerate() {
            let entry = noted(&format!("{separator}{n}"), 1);
            add(&store, key, &[entry]).await;
        }
        for (n, key) in keys.iter().enumerate() {
            let uuids = uuids(&all(&store, key).await);
            assert_eq!(uuids.last(), Some(&format!("{separator}{n}")));
        }
    }
}

pub async fn subpaths_are_opaque(store: SharedSessionStore) {
    let ids = odd_ids();
    for id in &ids {
        let sub = key().with_subpath(id);
        add(&store, &sub, &[noted(&format!("sub {id}"), 1)]).await;
    }
    add(&store, &key(), &[noted("main", 1)]).await;
    for id in &ids {
        let sub = all(&store, &key().with_subpath(id)).await;
        assert_eq!(uuids(&sub), [format!("sub {id}")]);
    }
    assert_eq!(uuids(&all(&store, &key()).await), ["main"]);
    let subkeys = store.subkeys("p", "s").await.unwrap();
    assert_eq!(sorted(subkeys), sorted(ids));
}

pub async fn ids_of_512_bytes_work(store: SharedSessionStore) {
    for unit in ["a", "/", "é", "😀", "A"] {
        let long = unit.repeat(512 / unit.len());
        let shorter = unit.repeat(512 / unit.len() - 1);
        for id in [&long, &shorter] {
            let key = SessionKey::main(id, id);
            for key in [key.clone(), key.with_subpath(id)] {
                add(&store, &key, &[noted(id, 1)]).await;
                assert_eq!(uuids(&all(&store, &key).await), [id.as_str()]);
            }
            store.fence(id, id, 3).await.unwrap();
            assert_eq!(listed(&store, id).await, [id.as_str()]);
            assert_eq!(store.subkeys(id, id).await.unwrap(), [id.as_str()]);
        }
    }
}

pub async fn users_and_titles_hold_any_text(store: SharedSessionStore) {
    for id in odd_ids() {
        let registration = Registration {
            user: Some(id.clone()),
            title: Some(id.clone()),
            metadata: None,
            parent: Some(id.clone()),
        };
        store.register("p", &id, &registration).await.unwrap();
        let row = store.get("p", &id).await.unwrap().unwrap();
        assert_eq!(row.title.as_ref(), Some(&id));
        assert_eq!(row.parent.as_ref(), Some(&id));
        let of_user = store.list("p", Some(&id), None, 100).await.unwrap();
        assert_eq!(of_user, [row], "{id:?}");
    }
}
