//! Keys that files, tables and filters may take for something else.

use open_agent_kernel::store::state::{SharedStateStore, StateKind, StateRecord};
use serde_json::json;

use super::{key, listed, put, query, record};

/// Names that must not collide, whatever a store makes of them.
fn odd_names() -> Vec<String> {
    let odd = [
        "a",
        "A",
        "a ",
        " a",
        "a.",
        ".a",
        ".",
        "..",
        "/",
        "a/b",
        "a\\b",
        "../../x",
        "a|b",
        "a%b",
        "a%7Cb",
        "a_b",
        "a?b",
        "a*b",
        "a:b",
        "a'b",
        "a\"b",
        "{\"$gt\":\"\"}",
        "~",
        "~a",
        "%00",
        "\\0",
        "null",
        "0",
        "00",
        "a.json",
        ".lock",
        "é",
        "e\u{301}",
        "É",
        "ß",
        "ss",
        "ﬁ",
        "fi",
        "\u{212b}",
        "\u{c5}",
        "日本語",
        "😀",
        "\u{200b}",
        "\u{202e}a",
        "\u{a0}",
        "İ",
        "i",
        "ı",
        "~ca978112ca1bbdcafac231b39a23dc4d",
    ];
    let long = ["a", "é", "/", "😀"].map(|unit| unit.repeat(512 / unit.len()));
    odd.iter().map(ToString::to_string).chain(long).collect()
}

pub async fn keys_are_compared_byte_for_byte(store: SharedStateStore) {
    for name in odd_names() {
        let named = StateRecord {
            data: json!(name),
            ..record(&name)
        };
        put(&store, &named).await;
        let of_project = StateRecord {
            key: key(&name, StateKind::Lease, "k"),
            ..named
        };
        put(&store, &of_project).await;
    }
    for name in odd_names() {
        let found = store.get(&record(&name).key).await.unwrap().unwrap();
        assert_eq!((&found.key.key, &found.data), (&name, &json!(name)));
        let leases = store.list(&query(&name, StateKind::Lease)).await.unwrap();
        let data: Vec<_> = leases.into_iter().map(|record| record.data).collect();
        assert_eq!(data, [json!(name)]);
    }
    let mut expected = odd_names();
    expected.sort();
    let whole = listed(&store, &query("p", StateKind::Approval)).await;
    assert_eq!(whole, expected);
}

pub async fn parts_of_a_key_do_not_run_together(store: SharedStateStore) {
    for separator in ["/", "|", ":", ".", "\\", "~", "_", "%", " "] {
        let grant = StateKind::Grant.as_str();
        let keys = [
            key(&format!("a{separator}{grant}"), StateKind::Grant, "c"),
            key("a", StateKind::Grant, &format!("{grant}{separator}c")),
            key(&format!("a{separator}b"), StateKind::Grant, "c"),
            key("a", StateKind::Grant, &format!("b{separator}c")),
        ];
        for one in &keys {
            let named = StateRecord {
                key: one.clone(),
                ..record("k")
            };
            put(&store, &named).await;
        }
        for one in &keys {
            let found = store.get(one).await.unwrap().unwrap();
            assert_eq!(found.key, *one);
        }
    }
}
