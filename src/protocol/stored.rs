//! Transcript entries as stores keep them.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::content::Role;
use super::{Entry, Json};

/// A transcript entry as a store keeps it: its JSON text, unchanged, and the few fields by which it is
/// found. Entries of other writers may hold anything beside `type`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredEntry {
    text: Arc<str>,
    /// `type`, or `unknown`.
    pub kind: String,
    /// Identity of the entry; bookkeeping entries have none and are always appended.
    pub uuid: Option<String>,
    /// Of a `user` or `assistant` entry on the main thread: the message it belongs to.
    pub message: Option<MessageRef>,
    /// ISO 8601, as it was written.
    pub timestamp: Option<String>,
}

/// The message that an entry is a part of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageRef {
    /// `message.id`, or the uuid of the entry.
    pub id: String,
    pub role: Role,
}

/// The fields that are looked at. Wrong types in foreign entries count as missing.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Header<'a> {
    #[serde(default, rename = "type")]
    kind: Json,
    #[serde(default)]
    uuid: Json,
    #[serde(default)]
    timestamp: Json,
    #[serde(default)]
    is_sidechain: Json,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct MessageHeader {
    #[serde(default)]
    id: Json,
}

/// The string in a value, unless it is empty.
fn word(value: &Json) -> Option<String> {
    value
        .as_str()
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
}

impl StoredEntry {
    /// An entry from its JSON text, which must be an object.
    pub fn parse(text: impl Into<Arc<str>>) -> serde_json::Result<Self> {
        let text = text.into();
        if !text.trim_start().starts_with('{') {
            return Err(serde::de::Error::custom("an entry must be an object"));
        }
        let header: Header<'_> = serde_json::from_str(&text)?;
        let (kind, uuid) = (word(&header.kind), word(&header.uuid));
        let role = match kind.as_deref() {
            Some("user") => Some(Role::User),
            Some("assistant") => Some(Role::Assistant),
            _ => None,
        };
        let message: Option<MessageHeader> = header
            .message
            .filter(|_| header.is_sidechain != Json::Bool(true))
            .and_then(|message| serde_json::from_str(message.get()).ok());
        let role = role.filter(|_| message.is_some());
        let id = message
            .and_then(|message| word(&message.id))
            .or_else(|| uuid.clone());
        Ok(Self {
            message: role.zip(id).map(|(role, id)| MessageRef { id, role }),
            timestamp: word(&header.timestamp),
            kind: kind.unwrap_or_else(|| "unknown".to_owned()),
            uuid,
            text,
        })
    }

    /// An entry that the kernel made; what its text would say is not read from it again.
    pub fn of(entry: &Entry) -> serde_json::Result<Self> {
        let role = match entry.kind.as_str() {
            "user" => Some(Role::User),
            "assistant" => Some(Role::Assistant),
            _ => None,
        };
        let message = entry.message.as_ref().filter(|_| !entry.is_sidechain);
        let id = message
            .and_then(|message| message.id.clone().filter(|id| !id.is_empty()))
            .or_else(|| entry.uuid.clone());
        Ok(Self {
            text: serde_json::to_string(entry)?.into(),
            message: role
                .filter(|_| message.is_some())
                .zip(id)
                .map(|(role, id)| MessageRef { id, role }),
            kind: entry.kind.clone(),
            uuid: entry.uuid.clone(),
            timestamp: entry.timestamp.clone(),
        })
    }

    /// The JSON text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The JSON text, shared.
    pub fn shared_text(&self) -> Arc<str> {
        self.text.clone()
    }

    /// The entry in the form that the engine works with; none when it does not have that form.
    pub fn entry(&self) -> Option<Entry> {
        serde_json::from_str(&self.text).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_of_the_message_decide() {
        let text =
            r#"{"type":"assistant","uuid":"u","message":{"content":[{"id":"no"}],"id":"m"}}"#;
        let entry = StoredEntry::parse(text).unwrap();
        assert_eq!(entry.uuid.as_deref(), Some("u"));
        let message = entry.message.as_ref().unwrap();
        assert_eq!((message.id.as_str(), message.role), ("m", Role::Assistant));
        assert_eq!(entry.text(), text);
    }

    #[test]
    fn an_entry_of_ours_is_found_as_its_text_would_be() {
        for text in [
            r#"{"type":"user","uuid":"u","parentUuid":null,"isSidechain":false,"timestamp":"t","message":{"role":"user","content":"x"}}"#,
            r#"{"type":"assistant","uuid":"u","parentUuid":"p","isSidechain":false,"message":{"role":"assistant","content":[],"id":"m"}}"#,
            r#"{"type":"user","uuid":"u","parentUuid":null,"isSidechain":true,"message":{"role":"user","content":"x"}}"#,
            r#"{"type":"system","uuid":"u","parentUuid":null,"isSidechain":false}"#,
        ] {
            let entry = serde_json::from_str(text).unwrap();
            let made = StoredEntry::of(&entry).unwrap();
            assert_eq!(
                made,
                StoredEntry::parse(made.shared_text()).unwrap(),
                "{text}"
            );
        }
    }

    #[test]
    fn bookkeeping_sidechains_and_foreign_shapes_are_no_messages() {
        for text in [
            r#"{"type":"queue-operation","message":{"id":"m"}}"#,
            r#"{"type":"user","uuid":"u","isSidechain":true,"message":{}}"#,
            r#"{"type":"user","uuid":"u"}"#,
            r#"{"type":"user","uuid":"u","message":null}"#,
            r#"{"type":7,"uuid":["x"],"timestamp":5}"#,
            "{}",
        ] {
            assert_eq!(StoredEntry::parse(text).unwrap().message, None, "{text}");
        }
        assert_eq!(StoredEntry::parse("{}").unwrap().kind, "unknown");
        assert!(StoredEntry::parse(r#"["user","u",null,false,{}]"#).is_err());
        assert!(StoredEntry::parse("{\"type\":").is_err());
    }
}
