//! A session as one document: its metadata, its messages, and both written anew.

use std::collections::HashSet;

use serde_json::json;

use super::super::{Placed, Registration};
use super::append::Written;
use super::document::{self, Chain, Told};
use super::line;
use super::meta::OF_ALL_DOCUMENTS;
use super::opened::Opened;
use super::{DOCUMENT, ENTRIES, side};
use crate::base::clock::iso_timestamp;
use crate::error::{ErrorKind, KernelError, Result};
use crate::protocol::{Json, JsonMap, StoredEntry};

/// Members of the metadata that are made from what the store knows.
const KNOWN: [&str; 7] = [
    "cwd",
    "model",
    "summary",
    "tag",
    "firstPrompt",
    "gitBranch",
    "parentSessionId",
];

/// A session, read as a whole.
pub struct Whole {
    pub metadata: JsonMap,
    pub entries: Vec<Placed>,
    pub told: Vec<Told>,
}

impl Whole {
    pub fn stored(&self) -> Vec<StoredEntry> {
        let entries = self.entries.iter();
        entries.map(|placed| placed.entry.clone()).collect()
    }

    pub fn text(&self, key: &str) -> Option<&str> {
        self.metadata.get(key)?.as_str()
    }
}

impl Opened<'_> {
    /// The whole session; none when there is none. Refuses one that is too large.
    pub fn whole(&mut self, with_oak: bool) -> Result<Option<Whole>> {
        self.check_size()?;
        let Some(row) = self.row()? else {
            return Ok(None);
        };
        let entries = match self.transcript(None)? {
            Some((content, transcript)) => transcript.after(&content, None)?,
            None => Vec::new(),
        };
        let stored: Vec<_> = entries.iter().map(|placed| placed.entry.clone()).collect();
        let told = document::messages(&stored, with_oak);
        let fields = self.meta.document();
        let mut metadata = fields.clone();
        let mut set = |key: &str, value: Json| {
            metadata.insert(key.to_owned(), value);
        };
        set("id", json!(self.session));
        set("createdAt", json!(iso_timestamp(row.created_at)));
        set("updatedAt", json!(iso_timestamp(row.updated_at)));
        set("messageCount", json!(told.len()));
        let given = |key: &str| fields.get(key).cloned();
        let folded = |key: &str| row.summary.0.get(key).cloned();
        let model = || last_model(&told);
        set(
            "cwd",
            given("cwd").or(folded("cwd")).unwrap_or_else(|| json!("")),
        );
        set(
            "model",
            given("model").or_else(model).unwrap_or_else(|| json!("")),
        );
        set(
            "summary",
            folded("customTitle").unwrap_or_else(|| json!(row.title)),
        );
        set("tag", folded("tag").or(given("tag")).unwrap_or_default());
        for key in ["firstPrompt", "gitBranch"] {
            set(key, given(key).or(folded(key)).unwrap_or_default());
        }
        let parent = row.parent.map(Json::from);
        set(
            "parentSessionId",
            parent.or(given("parentSessionId")).unwrap_or_default(),
        );
        metadata.retain(|_, value| !value.is_null());
        Ok(Some(Whole {
            metadata,
            entries,
            told,
        }))
    }

    fn check_size(&self) -> Result<()> {
        let main = self.folder.look(ENTRIES)?;
        let size = match main {
            Some(main) => Some(main),
            None => self.folder.look(DOCUMENT)?,
        };
        let limit = self.files.max_bytes;
        if size.is_some_and(|size| size.length > limit) {
            return Err(KernelError::new(
                ErrorKind::SessionTooLarge,
                format!("the transcript of the session is larger than maxBytes ({limit})"),
            ));
        }
        Ok(())
    }

    /// Writes the document. One that is there and cannot be read is kept beside it; what other
    /// programs added to its metadata stays.
    pub fn fold(&mut self) -> Result<()> {
        self.convert()?;
        let Some(whole) = self.whole(true)? else {
            return Ok(());
        };
        let mut metadata = whole.metadata;
        if let Some(text) = self.folder.read(DOCUMENT)? {
            match document::parse(&text) {
                Some(before) => keep_unknown(&mut metadata, before.metadata),
                None => side::set_aside(&self.folder, DOCUMENT, "transcript.damaged-")?,
            }
        }
        let messages = whole.told.into_iter().map(|told| told.message);
        let messages: Vec<_> = messages.collect();
        let text = document::render(metadata, &messages)?;
        self.folder.sweep()?;
        self.folder.write(DOCUMENT, &text, self.files.is_synced())
    }

    /// Makes messages those of the session. What is the same at the beginning stays as it is.
    pub fn set_messages(&mut self, messages: &[Json]) -> Result<Option<Written>> {
        self.convert()?;
        let Some(whole) = self.whole(false)? else {
            return self.add_messages(messages).map(Some);
        };
        let pairs = whole.told.iter().zip(messages);
        let same = pairs
            .take_while(|(told, message)| told.message == **message)
            .count();
        if same < whole.told.len() {
            self.cut_messages(&whole, same)?;
        }
        match &messages[same..] {
            [] => Ok(None),
            new => self.add_messages(new).map(Some),
        }
    }

    /// Puts messages behind those that are there.
    pub fn add_messages(&mut self, messages: &[Json]) -> Result<Written> {
        self.convert()?;
        let whole = self.whole(false)?;
        let entries = whole.as_ref().map_or(&[][..], |whole| &whole.entries);
        let uuids: HashSet<String> = entries
            .iter()
            .filter_map(|placed| placed.entry.uuid.clone())
            .collect();
        let chain = Chain {
            count: whole.as_ref().map_or(0, |whole| whole.told.len()),
            last: entries
                .iter()
                .rev()
                .find_map(|placed| placed.entry.uuid.clone()),
            uuids,
        };
        let now = iso_timestamp(self.files.clock.now_ms());
        let facts = json!({"id": self.session, "createdAt": now});
        let facts = facts.as_object().cloned().unwrap_or_default();
        let new = document::entries(&facts, messages, chain)?;
        self.append(None, &new, None)
    }

    /// Rewrites the transcript with its first messages, and what is no message.
    fn cut_messages(&mut self, whole: &Whole, count: usize) -> Result<()> {
        let kept = count
            .checked_sub(1)
            .map_or(0, |last| whole.told[last].last + 1);
        let mut lines = Vec::new();
        for (position, placed) in whole.entries.iter().enumerate() {
            if position < kept || placed.entry.uuid.is_none() {
                let now = self.files.clock.now_ms();
                line::write(&mut lines, placed.seq, &placed.entry, now)?;
            }
        }
        self.folder.write(ENTRIES, &lines, self.files.is_synced())?;
        // Cursors must not take new entries for those that went.
        let last = whole.entries.last().map_or(0, |placed| placed.seq);
        self.transcript(None)?;
        self.known(None).skip_to(last);
        Ok(())
    }

    /// Takes over what is given of the metadata: what is missing stays, null clears.
    pub fn merge(&mut self, given: &JsonMap) -> Result<Option<Written>> {
        let before = self.whole(false)?;
        let mut fields = self.meta.document();
        let mut notes = Vec::new();
        for (key, value) in given {
            match key.as_str() {
                "summary" | "tag" => {
                    let had = before.as_ref().and_then(|before| before.metadata.get(key));
                    if had.unwrap_or(&Json::Null) != value {
                        notes.push(self.note(key, value)?);
                    }
                }
                key if OF_ALL_DOCUMENTS.contains(&key) => {}
                key => {
                    fields.insert(key.to_owned(), value.clone());
                }
            }
        }
        self.meta.set_document(fields);
        self.touch()?;
        match notes.as_slice() {
            [] => Ok(None),
            notes => self.append(None, notes, None).map(Some),
        }
    }

    /// Makes the session one that was changed just now.
    pub fn touch(&mut self) -> Result<()> {
        self.meta.name(self.project, self.session);
        let nothing = Registration::default();
        self.meta.register(&nothing, self.files.clock.now_ms());
        self.meta.write(&self.folder, self.files.is_synced())
    }

    /// The entry by which a title (`summary`) or tag is given.
    fn note(&self, key: &str, value: &Json) -> Result<StoredEntry> {
        let (kind, member) = match key {
            "tag" => ("tag", "tag"),
            _ => ("custom-title", "customTitle"),
        };
        let now = iso_timestamp(self.files.clock.now_ms());
        let fields =
            json!({"type": kind, member: value, "sessionId": self.session, "timestamp": now});
        StoredEntry::parse(fields.to_string())
            .map_err(|error| KernelError::new(ErrorKind::SerializeFailed, error.to_string()))
    }
}

fn keep_unknown(metadata: &mut JsonMap, before: JsonMap) {
    for (key, value) in before {
        let is_known = OF_ALL_DOCUMENTS.contains(&key.as_str()) || KNOWN.contains(&key.as_str());
        if !is_known && !metadata.contains_key(&key) {
            metadata.insert(key, value);
        }
    }
}

fn last_model(told: &[Told]) -> Option<Json> {
    let models = told
        .iter()
        .rev()
        .filter_map(|told| told.message.get("model"));
    models.into_iter().find(|model| model.is_string()).cloned()
}
