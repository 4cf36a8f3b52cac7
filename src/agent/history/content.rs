//! What a message of the transcript brings to the history.
//!
//! Entries may come from any writer: what does not have the known form is left out.

use std::collections::HashSet;

use serde_json::{Map, json};

use super::marks::{Outcome, is_known_notice, is_marked_notice, outcome};
use crate::protocol::{ImageRef, Json, MessagePart, Role, StoredEntry, bare_name};
use crate::store::session::{IndexRow, Placed};

/// In front of addresses in cloud storage.
const CLOUD_SCHEME: &str = "cloud://";
const UNKNOWN_IMAGE: &str = "image/*";

/// A message: all of its entries, in order.
pub(super) struct Message {
    pub row: IndexRow,
    pub pieces: Vec<Piece>,
    pub results: Vec<CallResult>,
    /// Whether it reports a failure of the gateway.
    pub is_failure: bool,
}

/// Something that is shown.
pub(super) enum Piece {
    Part(MessagePart),
    Call(Call),
}

/// A call of a tool.
pub(super) struct Call {
    pub id: String,
    /// Bare.
    pub name: String,
    pub input: Json,
}

/// A result of a call.
#[derive(Clone, Debug)]
pub(super) struct CallResult {
    pub call: String,
    pub output: Json,
    pub is_error: bool,
    pub outcome: Outcome,
}

impl Message {
    pub fn read(row: IndexRow, entries: &[StoredEntry]) -> Self {
        let mut message = Self {
            row,
            pieces: Vec::new(),
            results: Vec::new(),
            is_failure: false,
        };
        for entry in entries {
            message.take(entry);
        }
        message
    }

    /// Calls in order.
    pub fn calls(&self) -> impl DoubleEndedIterator<Item = &Call> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Call(call) => Some(call),
            Piece::Part(_) => None,
        })
    }

    fn take(&mut self, entry: &StoredEntry) {
        let Some(fields) = fields_of(entry) else {
            return;
        };
        self.results.extend(results_in(&fields));
        if fields["isApiErrorMessage"] == true {
            self.is_failure |= self.row.role == Role::Assistant;
        } else if !is_hidden(&fields) {
            let is_user = self.row.role == Role::User;
            self.pieces.extend(pieces(&fields, is_user));
        }
    }
}

/// Results of calls among entries, in order.
pub(super) fn results_among(entries: &[Placed], calls: &HashSet<String>) -> Vec<CallResult> {
    let mentions = |entry: &StoredEntry| calls.iter().any(|id| entry.text().contains(id.as_str()));
    entries
        .iter()
        .map(|placed| &placed.entry)
        .filter(|entry| entry.message.is_some() && mentions(entry))
        .filter_map(fields_of)
        .flat_map(|fields| results_in(&fields).collect::<Vec<_>>())
        .filter(|result| calls.contains(&result.call))
        .collect()
}

fn fields_of(entry: &StoredEntry) -> Option<Json> {
    serde_json::from_str(entry.text()).ok()
}

/// Whether the kernel wrote the entry, for the model alone.
fn is_hidden(fields: &Json) -> bool {
    fields["isMeta"] == true || fields["isCompactSummary"] == true || is_marked_notice(fields)
}

fn blocks(fields: &Json) -> impl Iterator<Item = &Json> {
    fields["message"]["content"]
        .as_array()
        .into_iter()
        .flatten()
}

fn results_in(fields: &Json) -> impl Iterator<Item = CallResult> {
    let results = blocks(fields).filter(|block| block["type"] == "tool_result");
    results.filter_map(|block| {
        let output = block["content"].clone();
        let is_error = block["is_error"] == true;
        Some(CallResult {
            call: text(block, "tool_use_id")?,
            outcome: outcome(&output, is_error, fields),
            output,
            is_error,
        })
    })
}

fn pieces(fields: &Json, is_user: bool) -> Vec<Piece> {
    // An entry with a mark of the kernel says by itself what it is.
    let may_be_notice = is_user && fields["oak"]["kind"].is_null();
    let is_shown = |text: &str| !(may_be_notice && is_known_notice(text));
    if let Some(text) = fields["message"]["content"].as_str() {
        return text_piece(text)
            .filter(|_| is_shown(text))
            .into_iter()
            .collect();
    }
    let mut images = 0;
    let pieces = blocks(fields).filter_map(|block| match block["type"].as_str()? {
        "text" => text_piece(block["text"].as_str().filter(|text| is_shown(text))?),
        "thinking" => thinking(block),
        "tool_use" => call(block),
        "image" => {
            images += 1;
            image(block, named_ref(fields, images - 1))
        }
        _ => None,
    });
    pieces.collect()
}

fn text_piece(text: &str) -> Option<Piece> {
    let part = MessagePart::Text {
        text: text.to_owned(),
    };
    (!text.is_empty()).then_some(Piece::Part(part))
}

fn thinking(block: &Json) -> Option<Piece> {
    let text = text(block, "thinking")?;
    Some(Piece::Part(MessagePart::Thinking { text }))
}

fn call(block: &Json) -> Option<Piece> {
    let input = match &block["input"] {
        Json::Null => json!(Map::new()),
        input => input.clone(),
    };
    Some(Piece::Call(Call {
        id: text(block, "id")?,
        name: bare_name(&text(block, "name")?).to_owned(),
        input,
    }))
}

fn image(block: &Json, named: Option<ImageRef>) -> Option<Piece> {
    let source = &block["source"];
    let mime_type = text(source, "media_type").unwrap_or_else(|| UNKNOWN_IMAGE.to_owned());
    let stored = || match source["type"].as_str()? {
        "base64" => Some(ImageRef::Base64 {
            data_url: format!("data:{mime_type};base64,{}", source["data"].as_str()?),
        }),
        "url" => Some(address(text(source, "url")?)),
        _ => None,
    };
    let r#ref = named.or_else(stored)?;
    Some(Piece::Part(MessagePart::Image { mime_type, r#ref }))
}

fn address(url: String) -> ImageRef {
    if url.starts_with(CLOUD_SCHEME) {
        ImageRef::Cos { file_id: url }
    } else {
        ImageRef::Url { url }
    }
}

/// Where the n-th image of an entry is kept, when whoever stored it says so: `oak.messageRef` of the
/// entry is a reference in the form of [`ImageRef`], or an array of them (or nulls), one an image. An
/// address in an image block is one that the gateway could read then, and may have expired.
fn named_ref(fields: &Json, n: usize) -> Option<ImageRef> {
    let named = &fields["oak"]["messageRef"];
    let named = if named.is_array() {
        named.get(n)?
    } else {
        named
    };
    serde_json::from_value(named.clone()).ok()
}

fn text(block: &Json, key: &str) -> Option<String> {
    let text = block.get(key)?.as_str()?;
    (!text.is_empty()).then(|| text.to_owned())
}
