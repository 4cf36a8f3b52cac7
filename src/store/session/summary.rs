//! What lists show of a session, folded from its entries as they are appended.
//!
//! Source of the fields: the session summaries of the Claude Agent SDK.

use serde_json::json;

use crate::base::clock::parse_timestamp;
use crate::protocol::{Json, JsonMap, StoredEntry};

/// Longest first prompt that a summary keeps, in characters.
const PROMPT_CHARS: usize = 200;
/// Fields where the last value counts, by the type of entry they come from (none: any).
const LAST_WINS: [(Option<&str>, &str); 6] = [
    (Some("custom-title"), "customTitle"),
    (Some("ai-title"), "aiTitle"),
    (Some("last-prompt"), "lastPrompt"),
    (Some("summary"), "summaryHint"),
    (Some("tag"), "tag"),
    (None, "gitBranch"),
];

/// The folded fields: `createdAt`, `firstPrompt`, `cwd`, `customTitle`, `tag` and others.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary(pub JsonMap);

impl Summary {
    pub fn custom_title(&self) -> Option<&str> {
        self.text("customTitle")
    }

    /// None when there is none or it was cleared.
    pub fn tag(&self) -> Option<&str> {
        self.text("tag")
    }

    pub fn first_prompt(&self) -> Option<&str> {
        self.text("firstPrompt")
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.0
            .get(key)?
            .as_str()
            .filter(|text| !text.trim().is_empty())
    }

    /// A summary from the text that a store keeps; an unreadable one counts as empty.
    pub fn from_text(text: &str) -> Self {
        Self(serde_json::from_str(text).unwrap_or_default())
    }

    /// The text that a store keeps.
    pub fn to_text(&self) -> String {
        json!(self.0).to_string()
    }
}

/// Takes appended entries of a main transcript into its summary.
pub fn fold(summary: &mut Summary, entries: &[StoredEntry]) {
    for entry in entries {
        if is_of_interest(summary, entry)
            && let Ok(Json::Object(fields)) = serde_json::from_str(entry.text())
        {
            fold_one(&mut summary.0, entry, &fields);
        }
    }
}

/// Most entries of a long conversation change nothing: they are not parsed.
fn is_of_interest(summary: &Summary, entry: &StoredEntry) -> bool {
    let is_special = LAST_WINS
        .iter()
        .any(|(kind, _)| *kind == Some(entry.kind.as_str()));
    is_special
        || !summary.0.contains_key("createdAt")
        || (entry.kind == "user" && !summary.0.contains_key("firstPrompt"))
}

fn fold_one(summary: &mut JsonMap, entry: &StoredEntry, fields: &JsonMap) {
    let mut once = |key: &str, value: Option<Json>| {
        if let Some(value) = value.filter(|_| !summary.contains_key(key)) {
            summary.insert(key.to_owned(), value);
        }
    };
    let created = entry.timestamp.as_deref().and_then(parse_timestamp);
    once("createdAt", created.map(Json::from));
    once("isSidechain", fields.get("isSidechain").cloned());
    once("cwd", fields.get("cwd").cloned());
    once("firstPrompt", first_prompt(entry, fields).map(Json::from));
    for (kind, key) in LAST_WINS {
        let value = fields.get(key);
        if let Some(value) = value.filter(|_| kind.is_none_or(|kind| kind == entry.kind)) {
            summary.insert(key.to_owned(), value.clone());
        }
    }
}

/// The text of a prompt of the user, cut.
fn first_prompt(entry: &StoredEntry, fields: &JsonMap) -> Option<String> {
    if entry.kind != "user" || fields.get("isMeta") == Some(&Json::Bool(true)) {
        return None;
    }
    let content = fields.get("message")?.get("content")?;
    let text = match content {
        Json::String(text) => text.clone(),
        Json::Array(blocks) => {
            let texts = blocks.iter().filter(|block| block["type"] == "text");
            let texts: Vec<&str> = texts.filter_map(|block| block["text"].as_str()).collect();
            texts.join("\n")
        }
        _ => return None,
    };
    (!text.trim().is_empty()).then(|| text.chars().take(PROMPT_CHARS).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(value: Json) -> StoredEntry {
        StoredEntry::parse(value.to_string()).unwrap()
    }

    #[test]
    fn first_values_stay_and_last_values_win() {
        let mut summary = Summary::default();
        let prompt = |text: &str, at: &str| {
            entry(json!({"type": "user", "uuid": text, "timestamp": at,
                "message": {"role": "user", "content": text}}))
        };
        fold(
            &mut summary,
            &[
                prompt("one", "2026-01-02T03:04:05.678Z"),
                prompt("two", "2026-02-02T03:04:05.678Z"),
                entry(json!({"type": "custom-title", "customTitle": "A"})),
                entry(json!({"type": "custom-title", "customTitle": "B"})),
                entry(json!({"type": "tag", "tag": "x"})),
                entry(json!({"type": "tag", "tag": null})),
            ],
        );
        assert_eq!(summary.first_prompt(), Some("one"));
        assert_eq!(summary.0["createdAt"], 1_767_323_045_678_u64);
        assert_eq!(summary.custom_title(), Some("B"));
        assert_eq!(summary.tag(), None);
        assert_eq!(Summary::from_text(&summary.to_text()), summary);
        assert_eq!(Summary::from_text("garbage"), Summary::default());
    }
}
