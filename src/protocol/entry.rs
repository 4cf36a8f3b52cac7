//! Transcript entries: the durable form of a conversation, shared with the Claude Agent SDK.
//!
//! Field names are those of that SDK's transcript files, so that either side can resume what the
//! other wrote. Fields and entry types that the kernel does not know are kept untouched.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};

use super::content::{ContentBlock, MessageContent, Role};
use super::{Json, JsonMap, Usage};

/// One transcript entry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// `user`, `assistant`, `system`, `attachment`, or a bookkeeping type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Identity of the entry; bookkeeping entries have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<String>,
    /// The entry before this one in the tree; none at the root.
    #[serde(default)]
    pub parent_uuid: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// ISO 8601 with milliseconds, UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<String>,
    /// Whether the entry belongs to a sub-agent.
    #[serde(default)]
    pub is_sidechain: bool,
    /// A message the kernel wrote in the user's name; hidden from histories.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_meta: bool,
    /// A message that reports a gateway failure; never sent to the model.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_api_error_message: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subtype: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// For a tool result: the assistant entry that holds the call.
    #[serde(
        default,
        rename = "sourceToolAssistantUUID",
        skip_serializing_if = "Option::is_none"
    )]
    pub source_tool_assistant_uuid: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_use_result: Option<Json>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<EntryMessage>,
    #[serde(flatten)]
    pub extra: JsonMap,
}

/// The message inside a `user` or `assistant` entry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EntryMessage {
    pub role: Role,
    pub content: MessageContent,
    /// The gateway's message id; the entries of one answer share it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    #[serde(flatten)]
    pub extra: JsonMap,
}

impl Entry {
    /// Whether this entry starts a new conversation for the model: what is before it was summarised.
    fn is_compact_boundary(&self) -> bool {
        self.kind == "system" && self.subtype.as_deref() == Some("compact_boundary")
    }

    /// Whether the entry sits in the chain of the main conversation.
    fn is_on_main_thread(&self) -> bool {
        self.uuid.is_some() && !self.is_sidechain
    }

    /// The message, if the model may see it.
    pub fn model_message(&self) -> Option<&EntryMessage> {
        let is_message = self.kind == "user" || self.kind == "assistant";
        self.message
            .as_ref()
            .filter(|_| is_message && !self.is_api_error_message)
    }
}

/// The entries of the main conversation, oldest first: the branch that ends at the newest message.
///
/// The transcript is a tree. The newest message in append order names the branch; the entries of
/// an answer that hang on other nodes (parallel calls) and the results of its calls are put back.
/// Source of the rules: the transcript format of the Claude Agent SDK.
pub struct Thread;

impl Thread {
    /// Positions in `entries` that belong to the main conversation, in append order.
    pub fn positions(entries: &[Entry]) -> Vec<usize> {
        let by_uuid = index(entries);
        let Some(leaf) = newest_message(entries) else {
            return Vec::new();
        };
        let path = path_to_root(entries, &by_uuid, leaf);
        let mut chosen = with_siblings(entries, &by_uuid, path);
        chosen.sort_unstable();
        chosen
    }
}

/// First position of each uuid: a store may hold an entry twice.
fn index(entries: &[Entry]) -> HashMap<&str, usize> {
    let mut by_uuid = HashMap::with_capacity(entries.len());
    for (position, entry) in entries.iter().enumerate() {
        if let Some(uuid) = entry.uuid.as_deref() {
            by_uuid.entry(uuid).or_insert(position);
        }
    }
    by_uuid
}

fn newest_message(entries: &[Entry]) -> Option<usize> {
    entries
        .iter()
        .rposition(|entry| entry.is_on_main_thread() && entry.message.is_some())
}

fn path_to_root(entries: &[Entry], by_uuid: &HashMap<&str, usize>, leaf: usize) -> HashSet<usize> {
    let mut path = HashSet::new();
    let mut next = Some(leaf);
    while let Some(position) = next {
        let first = !path.insert(position);
        if first || entries[position].is_compact_boundary() {
            break;
        }
        next = parent(entries, by_uuid, position);
    }
    path
}

/// The parent of an entry. One that was lost is replaced by the nearest entry before it, so that a
/// gap does not hide the conversation in front of it.
fn parent(entries: &[Entry], by_uuid: &HashMap<&str, usize>, position: usize) -> Option<usize> {
    let uuid = entries[position].parent_uuid.as_deref()?;
    by_uuid.get(uuid).copied().or_else(|| {
        entries[..position]
            .iter()
            .rposition(|entry| entry.is_on_main_thread() && entry.message.is_some())
    })
}

fn with_siblings(
    entries: &[Entry],
    by_uuid: &HashMap<&str, usize>,
    path: HashSet<usize>,
) -> Vec<usize> {
    let first = path.iter().copied().min().unwrap_or(0);
    let answers: HashSet<&str> = path
        .iter()
        .filter_map(|&at| answer_id(&entries[at]))
        .collect();
    let is_first_copy = |at: usize| {
        entries[at]
            .uuid
            .as_deref()
            .is_some_and(|uuid| by_uuid.get(uuid) == Some(&at))
    };
    let mut calls = HashSet::new();
    let mut chosen = path;
    for (at, entry) in entries.iter().enumerate().skip(first) {
        if !entry.is_on_main_thread() || !is_first_copy(at) {
            continue;
        }
        if answer_id(entry).is_some_and(|id| answers.contains(id)) {
            chosen.insert(at);
            calls.extend(blocks(entry).filter_map(ContentBlock::call_id));
        } else if blocks(entry)
            .filter_map(ContentBlock::answers)
            .any(|id| calls.contains(id))
        {
            chosen.insert(at);
        }
    }
    chosen.into_iter().collect()
}

fn answer_id(entry: &Entry) -> Option<&str> {
    let message = entry.message.as_ref()?;
    (message.role == Role::Assistant)
        .then_some(message.id.as_deref())
        .flatten()
}

fn blocks(entry: &Entry) -> impl Iterator<Item = &ContentBlock> {
    let blocks = entry
        .message
        .as_ref()
        .map_or(&[][..], |message| message.content.as_blocks());
    blocks.iter().map(AsRef::as_ref)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(uuid: &str, parent: Option<&str>, role: &str, message: Json) -> Entry {
        let mut message = message;
        message["role"] = json!(role);
        serde_json::from_value(
            json!({"type": role, "uuid": uuid, "parentUuid": parent, "message": message}),
        )
        .unwrap()
    }

    fn uuids(entries: &[Entry]) -> Vec<&str> {
        let positions = Thread::positions(entries);
        positions
            .into_iter()
            .map(|at| entries[at].uuid.as_deref().unwrap())
            .collect()
    }

    #[test]
    fn unknown_fields_and_types_are_kept() {
        let value = json!({
            "type": "queue-operation", "parentUuid": null, "isSidechain": false,
            "operation": "enqueue", "nested": {"b": 1, "a": 2},
        });
        let entry: Entry = serde_json::from_value(value.clone()).unwrap();
        assert_eq!(serde_json::to_value(entry).unwrap(), value);
    }

    #[test]
    fn the_later_branch_wins() {
        let entries = [
            entry("u1", None, "user", json!({"content": "a"})),
            entry(
                "a1",
                Some("u1"),
                "assistant",
                json!({"content": [], "id": "m1"}),
            ),
            entry("u2", Some("u1"), "user", json!({"content": "b"})),
        ];
        assert_eq!(uuids(&entries), ["u1", "u2"]);
    }

    #[test]
    fn parallel_results_on_other_nodes_are_put_back() {
        let call = |id: &str| json!({"id": "m1", "content": [{"type": "tool_use", "id": id, "name": "n", "input": {}}]});
        let result = |id: &str| json!({"content": [{"type": "tool_result", "tool_use_id": id, "content": "ok"}]});
        let entries = [
            entry("u1", None, "user", json!({"content": "go"})),
            entry("a1", Some("u1"), "assistant", call("t1")),
            entry("a2", Some("a1"), "assistant", call("t2")),
            entry("r1", Some("a1"), "user", result("t1")),
            entry("r2", Some("a2"), "user", result("t2")),
            entry(
                "a3",
                Some("r2"),
                "assistant",
                json!({"id": "m2", "content": [{"type": "text", "text": "done"}]}),
            ),
        ];
        assert_eq!(uuids(&entries), ["u1", "a1", "a2", "r1", "r2", "a3"]);
    }

    #[test]
    fn sidechains_duplicates_and_everything_before_a_boundary_are_left_out() {
        let mut side = entry(
            "s1",
            Some("u1"),
            "assistant",
            json!({"content": [], "id": "m9"}),
        );
        side.is_sidechain = true;
        let boundary: Entry = serde_json::from_value(
            json!({"type": "system", "subtype": "compact_boundary", "uuid": "b", "parentUuid": null}),
        )
        .unwrap();
        let entries = [
            entry("old", None, "user", json!({"content": "old"})),
            boundary,
            entry("u1", Some("b"), "user", json!({"content": "new"})),
            entry("u1", Some("b"), "user", json!({"content": "new"})),
            side,
        ];
        assert_eq!(uuids(&entries), ["b", "u1"]);
    }

    #[test]
    fn a_lost_parent_does_not_hide_what_came_before() {
        let entries = [
            entry("u1", None, "user", json!({"content": "a"})),
            entry("u2", Some("lost"), "user", json!({"content": "b"})),
        ];
        assert_eq!(uuids(&entries), ["u1", "u2"]);
    }

    #[test]
    fn a_cycle_ends() {
        let entries = [
            entry("u1", Some("u2"), "user", json!({"content": "a"})),
            entry("u2", Some("u1"), "user", json!({"content": "b"})),
        ];
        assert_eq!(uuids(&entries), ["u1", "u2"]);
    }
}
