//! Sessions by a string id, as whole documents: what the class `FileSessionStore` offers.

use std::sync::Arc;

use serde_json::json;

use super::super::SessionKey;
use super::append::Written;
use super::files::{Files, Slot};
use super::opened::Opened;
use super::whole::Whole;
use super::{DOCUMENT, ENTRIES, delete, document, list};
use crate::base::id;
use crate::base::telemetry;
use crate::error::{ErrorKind, KernelError, Result};
use crate::protocol::{Json, JsonMap, StoredEntry};

/// Longest id, in bytes.
const LONGEST_ID: usize = 512;

/// Which messages to load. 0 and negative values mean no limit, except that any `offset` counts from
/// the front.
#[derive(Clone, Copy, Debug, Default)]
pub struct LoadOptions {
    /// Without `offset` the last messages, with it the first ones behind it.
    pub limit: Option<i64>,
    pub offset: Option<i64>,
    /// The last messages of those behind `offset`. Not together with `limit`.
    pub tail: Option<i64>,
}

/// Which sessions to list.
#[derive(Clone, Copy, Debug, Default)]
pub struct ListOptions {
    /// 0 and negative values mean no limit.
    pub limit: Option<i64>,
    /// Also sessions of git worktrees, whose ids begin with `wt-`.
    pub include_worktrees: bool,
}

/// What to copy.
#[derive(Clone, Debug, Default)]
pub struct ForkOptions {
    /// A random UUID when missing.
    pub new_session_id: Option<String>,
    /// The number of messages to keep. Not together with `up_to_message_id`.
    pub up_to_message_index: Option<i64>,
    /// `uuid` or `id` of the last message to keep.
    pub up_to_message_id: Option<String>,
    /// Whether an existing session may be replaced.
    pub overwrite: bool,
}

/// Sessions of a file store by string id. They have no project.
#[derive(Clone)]
pub struct Documents {
    files: Arc<Files>,
}

impl Documents {
    pub(super) fn new(files: Arc<Files>) -> Self {
        Self { files }
    }

    /// Stores messages as those of the session. Of `metadata` what is missing keeps its stored value
    /// and null clears.
    pub async fn save(&self, id: &str, messages: Vec<Json>, metadata: JsonMap) -> Result<()> {
        check_id(id)?;
        let id = id.to_owned();
        self.run(move |files| {
            change(files, &id, |session| {
                let of_messages = session.set_messages(&messages)?;
                let of_metadata = session.merge(&metadata)?;
                session.fold()?;
                Ok(of_metadata.or(of_messages))
            })
        })
        .await
    }

    /// `{metadata, messages}`; none when the session does not exist or cannot be read. Fails with
    /// [`ErrorKind::SessionTooLarge`].
    pub async fn load(&self, id: &str, options: LoadOptions) -> Result<Option<Json>> {
        check_id(id)?;
        if options.limit.is_some_and(|limit| limit > 0) && options.tail.is_some_and(|tail| tail > 0)
        {
            return Err(invalid(
                "limit and tail exclude each other: give one of them",
            ));
        }
        let id = id.to_owned();
        self.run(move |files| {
            let Some((whole, size)) = read(files, &id)? else {
                return Ok(None);
            };
            let metadata = shown(whole.metadata, size);
            let messages = whole.told.into_iter().map(|told| told.message).collect();
            Ok(Some(
                json!({"metadata": metadata, "messages": page(messages, options)}),
            ))
        })
        .await
    }

    /// The metadata of sessions, that changed last first. What cannot be read is left out.
    pub async fn list(&self, options: ListOptions) -> Result<Vec<Json>> {
        self.run(move |files| {
            let mut found = Vec::new();
            for row in list::list(files, "", None, None, usize::MAX)? {
                let is_wanted = options.include_worktrees || !is_worktree(&row.session);
                if is_wanted
                    && check_id(&row.session).is_ok()
                    && let Some(metadata) = metadata(files, &row.session, row.updated_at)
                {
                    found.push(metadata);
                }
            }
            found.sort_by(|a, b| order(b).cmp(&order(a)));
            if let Some(limit) = options.limit.and_then(positive) {
                found.truncate(limit);
            }
            Ok(found)
        })
        .await
    }

    /// Copies a session and gives the id of the copy; none when there is no such session.
    pub async fn fork(&self, source: &str, options: ForkOptions) -> Result<Option<String>> {
        check_id(source)?;
        let target = options.new_session_id.clone().unwrap_or_else(id::random);
        check_id(&target)?;
        if options.up_to_message_index.is_some() && options.up_to_message_id.is_some() {
            return Err(invalid(
                "upToMessageIndex and upToMessageId exclude each other: give one of them",
            ));
        }
        if target == source {
            return Err(exists());
        }
        let source = source.to_owned();
        self.run(move |files| {
            let Some((whole, _)) = read(files, &source)? else {
                return Ok(None);
            };
            let entries = kept(&whole, &options)?;
            if options.overwrite {
                delete::delete(files, &SessionKey::main("", &target))?;
            }
            change(files, &target, |session| {
                if session.row()?.is_some() {
                    return Err(exists());
                }
                write_fork(session, &whole, &source, &entries)
            })?;
            Ok(Some(target))
        })
        .await
    }

    /// Whether there was such a session.
    pub async fn delete(&self, id: &str) -> Result<bool> {
        check_id(id)?;
        let key = SessionKey::main("", id);
        self.run(move |files| {
            let existed = files.look("", &key.session, |session| Ok(session.row()?.is_some()));
            // What cannot be read can be deleted.
            let existed = existed.unwrap_or(true);
            Ok(delete::delete_session_or_part(files, &key)? && existed)
        })
        .await
    }

    /// Gives a title; nothing when there is no such session.
    pub async fn rename(&self, id: &str, title: &str) -> Result<()> {
        self.change_metadata(id, "summary", json!(title)).await
    }

    /// Gives or clears a tag; nothing when there is no such session.
    pub async fn tag(&self, id: &str, tag: Option<&str>) -> Result<()> {
        self.change_metadata(id, "tag", json!(tag)).await
    }

    pub async fn exists(&self, id: &str) -> Result<bool> {
        check_id(id)?;
        let id = id.to_owned();
        self.run(move |files| files.look("", &id, |session| Ok(session.row()?.is_some())))
            .await
    }

    /// Puts messages behind those of the session and gives their new number.
    pub async fn append(&self, id: &str, messages: Vec<Json>) -> Result<u64> {
        check_id(id)?;
        let id = id.to_owned();
        self.run(move |files| {
            let mut count = 0;
            change(files, &id, |session| {
                let written = session.add_messages(&messages)?;
                session.touch()?;
                session.fold()?;
                let whole = session.whole(false)?;
                count = whole.map_or(0, |whole| whole.told.len() as u64);
                Ok(Some(written))
            })?;
            Ok(count)
        })
        .await
    }

    async fn change_metadata(&self, id: &str, key: &'static str, value: Json) -> Result<()> {
        check_id(id)?;
        let id = id.to_owned();
        self.run(move |files| {
            let slot = files.slot("", &id);
            let written = files.change_existing("", &id, |session| {
                session.convert()?;
                if session.row()?.is_none() {
                    return Ok(None);
                }
                let written = session.merge(&JsonMap::from_iter([(key.to_owned(), value)]))?;
                session.fold()?;
                Ok(written)
            })?;
            finish(&slot, written)
        })
        .await
    }

    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Files) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let files = self.files.clone();
        let done = tokio::task::spawn_blocking(move || work(&files)).await;
        done.unwrap_or_else(|error| Err(KernelError::new(ErrorKind::Internal, error.to_string())))
    }
}

fn change(
    files: &Files,
    id: &str,
    change: impl FnOnce(&mut Opened) -> Result<Option<Written>>,
) -> Result<()> {
    let slot = files.slot("", id);
    let written = files.change("", id, change)?;
    finish(&slot, written)
}

fn finish(slot: &Slot, written: Option<Written>) -> Result<()> {
    match written {
        Some(written) => slot.finish(written).map(|_| ()),
        None => Ok(()),
    }
}

/// A whole session and the size of its file; none when it cannot be read.
fn read(files: &Files, id: &str) -> Result<Option<(Whole, u64)>> {
    files.look("", id, |session| {
        let entries = session.folder.look(ENTRIES)?;
        let Some(whole) = session.whole(false)? else {
            return Ok(None);
        };
        if entries.is_none() && !is_whole_document(session)? {
            tracing::warn!(target: telemetry::SESSION, session = id, "the document of a session is not complete");
            return Ok(None);
        }
        let document = session.folder.look(DOCUMENT)?;
        let size = document.or(entries).map_or(0, |file| file.length);
        Ok(Some((whole, size)))
    })
}

/// Of a session that has nothing but a document: whether that has all it must have.
fn is_whole_document(session: &Opened) -> Result<bool> {
    match session.folder.read(DOCUMENT)? {
        Some(text) => Ok(document::parse(&text).is_some_and(|document| document.is_complete())),
        None => Ok(true),
    }
}

/// The metadata of a session: from its document, if that is as new as the session.
fn metadata(files: &Files, id: &str, updated_at: u64) -> Option<Json> {
    let of_document = files.look("", id, |session| {
        let size = session.folder.look(DOCUMENT)?.map_or(0, |file| file.length);
        let metadata = session
            .folder
            .read_file(DOCUMENT)?
            .and_then(document::read_metadata);
        Ok(metadata
            .filter(|metadata| document::is_of(metadata, id, updated_at))
            .map(|metadata| shown(metadata, size)))
    });
    if let Ok(Some(metadata)) = of_document {
        return Some(metadata);
    }
    let (whole, size) = read(files, id).ok().flatten()?;
    Some(shown(whole.metadata, size))
}

fn shown(mut metadata: JsonMap, size: u64) -> Json {
    metadata.insert("fileSize".to_owned(), json!(size));
    Json::Object(metadata)
}

/// Newest first, by text: the timestamps have one form.
fn order(metadata: &Json) -> [&str; 3] {
    ["updatedAt", "createdAt", "id"].map(|key| metadata[key].as_str().unwrap_or_default())
}

fn positive(number: i64) -> Option<usize> {
    usize::try_from(number).ok().filter(|number| *number > 0)
}

fn page(mut messages: Vec<Json>, options: LoadOptions) -> Vec<Json> {
    if let Some(offset) = options.offset.and_then(positive) {
        messages.drain(..offset.min(messages.len()));
    }
    let last = |messages: &mut Vec<Json>, count: usize| {
        messages.drain(..messages.len().saturating_sub(count));
    };
    match options.limit.and_then(positive) {
        Some(limit) if options.offset.is_some() => messages.truncate(limit),
        Some(limit) => last(&mut messages, limit),
        None => {}
    }
    if let Some(tail) = options.tail.and_then(positive) {
        last(&mut messages, tail);
    }
    messages
}

/// The entries of the messages that a fork keeps.
fn kept(whole: &Whole, options: &ForkOptions) -> Result<Vec<StoredEntry>> {
    let total = whole.told.len();
    let count = match (options.up_to_message_index, &options.up_to_message_id) {
        (Some(index), _) if index < 0 => {
            return Err(invalid(format!("upToMessageIndex {index} is negative")));
        }
        (Some(index), _) => usize::try_from(index)
            .ok()
            .filter(|count| *count <= total)
            .ok_or_else(|| {
                invalid(format!(
                    "upToMessageIndex {index} out of range (0..{total})"
                ))
            })?,
        (None, Some(id)) => {
            let is_it = |message: &Json| ["uuid", "id"].iter().any(|key| message[*key] == **id);
            let found = whole.told.iter().position(|told| is_it(&told.message));
            1 + found.ok_or_else(|| invalid("upToMessageId names no message of the session"))?
        }
        (None, None) => total,
    };
    let end = match count.checked_sub(1) {
        Some(_) if count == total => whole.entries.len(),
        Some(last) => whole.told[last].last + 1,
        None => 0,
    };
    let mut entries = whole.stored();
    entries.truncate(end);
    // Title and tag are those of the source.
    entries.retain(|entry| entry.uuid.is_some());
    Ok(entries)
}

fn write_fork(
    session: &mut Opened,
    whole: &Whole,
    source: &str,
    entries: &[StoredEntry],
) -> Result<Option<Written>> {
    let mut given = JsonMap::new();
    for key in ["cwd", "model", "firstPrompt", "gitBranch"] {
        if let Some(value) = whole.text(key) {
            given.insert(key.to_owned(), json!(value));
        }
    }
    given.insert(
        "summary".to_owned(),
        json!(format!("Forked from session {source}")),
    );
    session.meta.set_parent(source);
    if !entries.is_empty() {
        session.append(None, entries, None)?;
    }
    let written = session.merge(&given)?;
    session.fold()?;
    Ok(written)
}

fn is_worktree(id: &str) -> bool {
    let id = id.to_lowercase();
    id.contains("/.claude/worktrees/") || id.starts_with("wt-")
}

/// Refuses ids that could be taken for something else by whoever builds a path from them.
fn check_id(id: &str) -> Result<()> {
    let refused = |message: String| Err(KernelError::new(ErrorKind::InvalidSessionId, message));
    if id.is_empty() {
        return refused("Session ID must not be empty".to_owned());
    }
    if let Some(part) = ["/", "\\", ".."].iter().find(|part| id.contains(**part)) {
        return refused(format!("Session ID contains invalid character: '{part}'"));
    }
    if id.starts_with('.') {
        return refused("Session ID contains invalid character: '.'".to_owned());
    }
    if id.chars().any(char::is_control) {
        return refused("Session ID contains invalid character: a control character".to_owned());
    }
    if id.len() > LONGEST_ID {
        return refused(format!("Session ID is longer than {LONGEST_ID} bytes"));
    }
    Ok(())
}

fn invalid(message: impl Into<String>) -> KernelError {
    KernelError::new(ErrorKind::InvalidArgument, message)
}

fn exists() -> KernelError {
    KernelError::new(
        ErrorKind::SessionExists,
        "the fork would overwrite a session: give another newSessionId or overwrite: true",
    )
}
