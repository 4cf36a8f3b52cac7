//! `transcript.json`: a whole session as one JSON document that other programs read.
//!
//! `{"metadata": {…}, "messages": […]}`. Beside its message an entry holds a chain, times and more;
//! that stands under one member `oak` of the message, which other programs keep or ignore.

use std::collections::HashSet;
use std::fmt::Write;
use std::fs::File;
use std::io::BufReader;

use serde::Deserializer;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::line;
use crate::base::clock::parse_timestamp;
use crate::base::id;
use crate::error::{ErrorKind, KernelError, Result};
use crate::protocol::{Json, JsonMap, StoredEntry};

/// The member of a message that holds what its entry has beside it.
const OAK: &str = "oak";
/// Marks an entry whose message came from a document and is given back as it is.
const VERBATIM: &str = "verbatim";
/// Bytes of the digest in a derived uuid.
const DIGEST: usize = 16;

/// A document, read.
pub struct Document {
    pub metadata: JsonMap,
    pub messages: Vec<Json>,
}

impl Document {
    /// Whether the document has all that its form requires.
    pub fn is_complete(&self) -> bool {
        let text = |key: &str| self.metadata.get(key).and_then(Json::as_str);
        let date = |key| text(key).and_then(parse_timestamp).is_some();
        ["id", "cwd", "model"].iter().all(|key| text(key).is_some())
            && ["createdAt", "updatedAt"].into_iter().all(date)
            && self
                .metadata
                .get("messageCount")
                .is_some_and(Json::is_number)
    }
}

/// A document from its text; none when it is not one.
pub fn parse(text: &[u8]) -> Option<Document> {
    let mut document: JsonMap = serde_json::from_slice(text).ok()?;
    let Json::Object(metadata) = document.remove("metadata")? else {
        return None;
    };
    let Json::Array(messages) = document.remove("messages")? else {
        return None;
    };
    Some(Document { metadata, messages })
}

/// The metadata of a document, without keeping anything else of it.
pub fn read_metadata(file: File) -> Option<JsonMap> {
    let mut search = Search::default();
    let mut reader = serde_json::Deserializer::from_reader(BufReader::new(file));
    // Stopping behind the metadata is an error to the reader.
    let _ = reader.deserialize_map(&mut search);
    search.metadata
}

/// Whether metadata is that of a session as it is now.
pub fn is_of(metadata: &JsonMap, id: &str, updated_at: u64) -> bool {
    let document = Document {
        metadata: metadata.clone(),
        messages: Vec::new(),
    };
    let text = |key: &str| metadata.get(key).and_then(Json::as_str);
    document.is_complete()
        && text("id") == Some(id)
        && text("updatedAt").and_then(parse_timestamp) == Some(updated_at)
}

/// Looks for the metadata of a document.
#[derive(Default)]
struct Search {
    metadata: Option<JsonMap>,
}

impl<'de> Visitor<'de> for &mut Search {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a transcript document")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            if key == "metadata" {
                self.metadata = map.next_value()?;
                break;
            }
            map.next_value::<IgnoredAny>()?;
        }
        Ok(())
    }
}

/// The lines that the transcript file of a document's text would have. Those of an unreadable document
/// are one damaged line.
pub fn lines_of(text: &[u8]) -> Result<Vec<u8>> {
    match parse(text) {
        Some(document) => lines(&document),
        None => Ok(b"unreadable\n".to_vec()),
    }
}

pub fn lines(document: &Document) -> Result<Vec<u8>> {
    let mut lines = Vec::new();
    let entries = entries(&document.metadata, &document.messages, Chain::default())?;
    for (seq, entry) in (1..).zip(entries) {
        line::write(&mut lines, seq, &entry, 0)?;
    }
    Ok(lines)
}

/// What messages are put behind.
#[derive(Default)]
pub struct Chain {
    /// Messages in front.
    pub count: usize,
    /// The uuid of the last entry.
    pub last: Option<String>,
    /// Uuids that are taken.
    pub uuids: HashSet<String>,
}

/// Messages as entries behind a chain.
pub fn entries(
    metadata: &JsonMap,
    messages: &[Json],
    mut chain: Chain,
) -> Result<Vec<StoredEntry>> {
    let mut entries = Vec::new();
    for message in messages {
        let mut fields = entry_fields(message);
        let uuid = chain.free_uuid(&fields, message);
        let parent = chain.last.replace(uuid.clone());
        let parent = json!(parent);
        fields.entry("parentUuid").or_insert(parent);
        fields.insert("uuid".to_owned(), json!(uuid));
        for (key, source) in [("sessionId", "id"), ("timestamp", "createdAt")] {
            if let Some(value) = metadata.get(source) {
                fields.entry(key).or_insert(value.clone());
            }
        }
        let entry = StoredEntry::parse(Json::Object(fields).to_string());
        entries.push(entry.map_err(|error| {
            let position = chain.count;
            KernelError::new(
                ErrorKind::SerializeFailed,
                format!("messages[{position}]: {error}"),
            )
        })?);
        chain.uuids.insert(uuid);
        chain.count += 1;
    }
    Ok(entries)
}

impl Chain {
    /// The message's own uuid; where it has none, or another entry has it, one made from it.
    fn free_uuid(&self, fields: &JsonMap, message: &Json) -> String {
        let is_free = |uuid: &String| !self.uuids.contains(uuid);
        uuid_of(fields, message)
            .filter(is_free)
            .or_else(|| Some(derived_uuid(self.count, message)).filter(is_free))
            .unwrap_or_else(id::random)
    }
}

/// The entry of a message, without its place in the chain.
fn entry_fields(message: &Json) -> JsonMap {
    if let Some(Json::Object(oak)) = message.get(OAK) {
        let mut fields = oak.clone();
        let mut message = message.clone();
        if let Some(message) = message.as_object_mut() {
            message.remove(OAK);
            if fields.get("uuid") == message.get("uuid") {
                message.remove("uuid");
            }
        }
        fields.insert("message".to_owned(), message);
        return fields;
    }
    let word = |key: &str| message.get(key).and_then(Json::as_str);
    let is_role = |word: &&str| matches!(*word, "user" | "assistant" | "system");
    let role = word("type")
        .filter(is_role)
        .or(word("role").filter(is_role));
    let mut fields = JsonMap::new();
    fields.insert("type".to_owned(), json!(role.unwrap_or("unknown")));
    fields.insert("isSidechain".to_owned(), json!(false));
    fields.insert("message".to_owned(), message.clone());
    fields.insert(OAK.to_owned(), json!({VERBATIM: true}));
    fields
}

fn uuid_of(fields: &JsonMap, message: &Json) -> Option<String> {
    let of_entry = fields.get("uuid").and_then(Json::as_str);
    let found = of_entry
        .or_else(|| message.get("uuid")?.as_str())
        .or_else(|| message.get("id")?.as_str());
    found.filter(|uuid| !uuid.is_empty()).map(str::to_owned)
}

/// The same for the same message in the same place.
fn derived_uuid(position: usize, message: &Json) -> String {
    let mut message = message.clone();
    message.sort_all_objects();
    let digest = Sha256::digest(format!("{position} {message}").as_bytes());
    let mut uuid = String::new();
    for (at, byte) in digest.iter().take(DIGEST).enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            uuid.push('-');
        }
        // Writing to a string cannot fail.
        let _ = write!(uuid, "{byte:02x}");
    }
    uuid
}

/// A message of the main thread, and the last entry that it was made from.
pub struct Told {
    pub message: Json,
    /// Position of its last entry.
    pub last: usize,
}

/// The messages of the main thread. The entries of one answer of the model become one message. With
/// `oak`, what the entries hold beside them goes along.
pub fn messages(entries: &[StoredEntry], with_oak: bool) -> Vec<Told> {
    let mut told: Vec<Told> = Vec::new();
    let mut answer: Option<String> = None;
    for (position, entry) in entries.iter().enumerate() {
        let Some((fields, message)) = message_of(entry) else {
            continue;
        };
        let is_verbatim = is_verbatim(&fields);
        let id = message.get("id").and_then(Json::as_str);
        let id = id
            .filter(|_| entry.kind == "assistant" && !is_verbatim)
            .map(str::to_owned);
        if id.is_some()
            && id == answer
            && let Some(before) = told.last_mut()
        {
            join(&mut before.message, &message);
            before.last = position;
            continue;
        }
        answer = id;
        let message = if is_verbatim {
            message
        } else {
            plain(message, fields, with_oak)
        };
        told.push(Told {
            message: Json::Object(message),
            last: position,
        });
    }
    told
}

/// An entry of the main thread as its fields and its message.
fn message_of(entry: &StoredEntry) -> Option<(JsonMap, JsonMap)> {
    let Ok(Json::Object(mut fields)) = serde_json::from_str(entry.text()) else {
        return None;
    };
    let Some(Json::Object(message)) = fields.remove("message") else {
        return None;
    };
    let is_message = matches!(entry.kind.as_str(), "user" | "assistant") || is_verbatim(&fields);
    let is_true = |key| fields.get(key) == Some(&Json::Bool(true));
    let is_hidden = ["isSidechain", "isMeta", "isApiErrorMessage"]
        .into_iter()
        .any(is_true);
    (is_message && !is_hidden).then_some((fields, message))
}

fn is_verbatim(fields: &JsonMap) -> bool {
    let oak = fields.get(OAK).and_then(|oak| oak.get(VERBATIM));
    oak == Some(&Json::Bool(true))
}

fn plain(mut message: JsonMap, fields: JsonMap, with_oak: bool) -> JsonMap {
    if let Some(uuid) = fields.get("uuid") {
        message.insert("uuid".to_owned(), uuid.clone());
    }
    if with_oak {
        message.insert(OAK.to_owned(), Json::Object(fields));
    }
    message
}

/// Puts the blocks of a later part of an answer behind those of an earlier one.
fn join(before: &mut Json, later: &JsonMap) {
    let blocks = |content: &Json| match content {
        Json::Array(blocks) => blocks.clone(),
        Json::String(text) => vec![json!({"type": "text", "text": text})],
        _ => Vec::new(),
    };
    let mut all = blocks(&before["content"]);
    all.extend(later.get("content").map(blocks).unwrap_or_default());
    before["content"] = Json::Array(all);
    for key in ["stop_reason", "usage"] {
        if let Some(value) = later.get(key).filter(|value| !value.is_null()) {
            before[key] = value.clone();
        }
    }
}

/// The text of a document. `fileSize` is the size of the document without that member.
pub fn render(mut metadata: JsonMap, messages: &[Json]) -> Result<Vec<u8>> {
    metadata.remove("fileSize");
    let count = json!(messages.len());
    metadata.insert("messageCount".to_owned(), count);
    let mut document = json!({"metadata": metadata, "messages": messages});
    document.sort_all_objects();
    let size = pretty(&document)?.len();
    document["metadata"]["fileSize"] = json!(size);
    document.sort_all_objects();
    pretty(&document)
}

fn pretty(document: &Json) -> Result<Vec<u8>> {
    serde_json::to_vec_pretty(document)
        .map_err(|error| KernelError::new(ErrorKind::SerializeFailed, error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(messages: &[Json]) -> Vec<StoredEntry> {
        let metadata = json!({"id": "s", "createdAt": "2026-01-02T03:04:05.678Z"});
        let metadata = metadata.as_object().unwrap();
        entries(metadata, messages, Chain::default()).unwrap()
    }

    fn plain_messages(entries: &[StoredEntry]) -> Vec<Json> {
        let told = messages(entries, false);
        told.into_iter().map(|told| told.message).collect()
    }

    #[test]
    fn messages_become_a_chain_and_come_back_as_they_were() {
        let given = [
            json!({"role": "user", "content": "hi", "z": 1, "a": 2}),
            json!({"role": "assistant", "id": "m", "content": [{"type": "text", "text": "a"}]}),
            json!({"role": "assistant", "id": "m", "content": []}),
            json!({"role": "system", "content": "x", "uuid": "u"}),
            json!({"role": "user", "content": "hi", "z": 1, "a": 2}),
            json!({"strange": true}),
        ];
        let entries = chain(&given);
        assert_eq!(plain_messages(&entries), given);
        let uuids: HashSet<_> = entries.iter().map(|entry| entry.uuid.clone()).collect();
        assert_eq!(uuids.len(), given.len());
        assert_eq!(entries[1].uuid.as_deref(), Some("m"));
        assert_eq!(entries[3].uuid.as_deref(), Some("u"));
        let fields: Json = serde_json::from_str(entries[1].text()).unwrap();
        assert_eq!(fields["parentUuid"], entries[0].uuid.clone().unwrap());
        assert_eq!(fields["timestamp"], "2026-01-02T03:04:05.678Z");
        assert_eq!(chain(&given), entries, "always the same");
    }

    #[test]
    fn an_answer_of_several_entries_is_one_message() {
        let part = |uuid: &str, text: &str, stop: Option<&str>| {
            json!({"type": "assistant", "uuid": uuid, "parentUuid": null, "message": {
                "role": "assistant", "id": "m", "stop_reason": stop,
                "content": [{"type": "text", "text": text}]}})
        };
        let stored = |value: Json| StoredEntry::parse(value.to_string()).unwrap();
        let entries = [
            stored(part("a", "one", None)),
            stored(json!({"type": "tag", "tag": "x"})),
            stored(part("b", "two", Some("end_turn"))),
            stored(json!({"type": "user", "uuid": "c", "isMeta": true, "message": {}})),
        ];
        let told = messages(&entries, true);
        assert_eq!(told.len(), 1);
        assert_eq!(told[0].last, 2);
        let message = &told[0].message;
        assert_eq!(message["content"][1]["text"], "two");
        assert_eq!(message["stop_reason"], "end_turn");
        assert_eq!(message["uuid"], "a");
        let again = chain(std::slice::from_ref(message));
        assert_eq!(again[0].uuid.as_deref(), Some("a"));
        let with_uuid = plain_messages(&again);
        assert_eq!(with_uuid, plain_messages(&entries));
    }
}
