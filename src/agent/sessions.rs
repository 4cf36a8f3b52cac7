//! `agent.sessions`: the stored conversations of an agent.

use serde::Serialize;
use serde_json::json;
use ts_rs::TS;

use crate::base::clock::iso_timestamp;
use crate::base::id;
use crate::error::{ErrorKind, KernelError, Result};
use crate::protocol::{Entry, Json, JsonMap, Role, StoredEntry, Thread};
use crate::store::session::{ListCursor, Registration, SessionKey, SessionRow};

use super::config::Fields;
use super::core::{Agent, AgentCore, check_id, identifier};
use super::storage::Storage;

/// Sessions on a page unless the call says otherwise.
const PAGE: u64 = 100;
/// Most sessions on a page.
const MAX_PAGE: u64 = 1_000;
/// Entries that a fork copies at once.
const COPY_BATCH: usize = 500;

/// What `agent.sessions` tells of a session.
#[derive(Clone, Debug, PartialEq, Serialize, TS)]
#[serde(rename_all = "camelCase")]
#[ts(rename_all = "camelCase")]
pub struct SessionSummary {
    pub conversation_id: String,
    /// Empty when it is not known.
    pub user_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub tag: Option<String>,
    pub status: SessionStatus,
    /// Milliseconds since the epoch.
    #[ts(type = "number")]
    pub created_at: u64,
    /// Milliseconds since the epoch of the last stored entry.
    #[ts(type = "number")]
    pub updated_at: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional, type = "Record<string, unknown>")]
    pub metadata: Option<Json>,
    /// The first prompt, cut to 200 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub first_prompt: Option<String>,
    /// The session that this one was forked from.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[ts(optional)]
    pub parent_conversation_id: Option<String>,
}

/// What a session is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(rename_all = "snake_case")]
pub enum SessionStatus {
    Idle,
    /// A run of it is in progress in this agent.
    Running,
    RequiresAction,
    Archived,
}

/// Options of `agent.sessions.list`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListOptions {
    /// None: of all users.
    pub user_id: Option<String>,
    pub limit: usize,
    pub after: Option<ListCursor>,
}

/// How much of a session a fork copies, and to where.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ForkOptions {
    /// The last message to copy, by its uuid or id.
    pub up_to_message_id: Option<String>,
    /// How many messages to copy.
    pub up_to_message_index: Option<u64>,
    /// Id of the copy; none: a random one.
    pub conversation_id: Option<String>,
}

/// A page of sessions.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionPage {
    pub sessions: Vec<SessionSummary>,
    /// None on the last page.
    pub next_cursor: Option<String>,
}

impl ListOptions {
    /// Checks the options.
    pub fn parse(options: &Json) -> Result<Self> {
        let fields = Fields::optional("sessions.list options", options)?;
        let limit = match fields.integer("limit", 0..=MAX_PAGE)? {
            None | Some(0) => PAGE,
            Some(limit) => limit,
        };
        let cursor = fields.string("cursor")?.map(|cursor| {
            read_cursor(cursor)
                .ok_or_else(|| fields.wrong("cursor", "the nextCursor of an earlier page"))
        });
        let parsed = Self {
            user_id: identifier(&fields, "userId")?,
            limit: usize::try_from(limit).unwrap_or(usize::MAX),
            after: cursor.transpose()?,
        };
        refuse_unknown(&fields, "sessions.list")?;
        Ok(parsed)
    }
}

impl ForkOptions {
    /// Checks the options of `agent.sessions.fork`.
    pub fn parse(options: &Json) -> Result<Self> {
        let fields = Fields::optional("sessions.fork options", options)?;
        let parsed = Self::read(&fields)?;
        refuse_unknown(&fields, "sessions.fork")?;
        Ok(parsed)
    }

    /// Reads the options that say how much is copied.
    pub(super) fn read(fields: &Fields<'_>) -> Result<Self> {
        let parsed = Self {
            up_to_message_id: fields.text("upToMessageId")?.map(str::to_owned),
            up_to_message_index: fields.integer("upToMessageIndex", 0..=u64::from(u32::MAX))?,
            conversation_id: identifier(fields, "conversationId")?,
        };
        if parsed.up_to_message_id.is_some() && parsed.up_to_message_index.is_some() {
            let (one, other) = (
                fields.path("upToMessageId"),
                fields.path("upToMessageIndex"),
            );
            return Err(KernelError::invalid(format!(
                "{one} and {other} exclude each other: give one of them"
            )));
        }
        Ok(parsed)
    }
}

fn refuse_unknown(fields: &Fields<'_>, call: &str) -> Result<()> {
    match fields.unknown().first() {
        None => Ok(()),
        Some(unknown) => Err(KernelError::invalid(format!(
            "{unknown} is not an option of {call}"
        ))),
    }
}

/// `<milliseconds>-<id>`; callers take it as it is.
fn write_cursor(row: &SessionRow) -> String {
    format!("{}-{}", row.updated_at, row.session)
}

fn read_cursor(text: &str) -> Option<ListCursor> {
    let (updated_at, session) = text.split_once('-')?;
    Some(ListCursor {
        updated_at: updated_at.parse().ok()?,
        session: session.to_owned(),
    })
}

impl Agent {
    /// The stored sessions, newest first; none without a store.
    pub async fn list_sessions(&self, options: &ListOptions) -> Result<SessionPage> {
        let core = self.core();
        let mut rows = match &core.storage {
            None => Vec::new(),
            Some(storage) => {
                let user = options.user_id.as_deref();
                let (project, after) = (storage.project(), options.after.as_ref());
                // One more tells whether there is a next page.
                let count = options.limit.saturating_add(1);
                storage.store().list(project, user, after, count).await?
            }
        };
        let has_more = rows.len() > options.limit;
        rows.truncate(options.limit);
        let next_cursor = rows.last().filter(|_| has_more).map(write_cursor);
        let sessions = rows.into_iter().map(|row| core.summary(row)).collect();
        Ok(SessionPage {
            sessions,
            next_cursor,
        })
    }

    /// One stored session; none when there is no such one.
    pub async fn get_session(&self, id: &str) -> Result<Option<SessionSummary>> {
        check_id("sessions.get: the conversation id", id)?;
        let core = self.core();
        let Some(storage) = &core.storage else {
            return Ok(None);
        };
        let row = storage.store().get(storage.project(), id).await?;
        Ok(row.map(|row| core.summary(row)))
    }

    /// Stops a session of this agent and deletes everything that is stored of it. One that does not
    /// exist is deleted already.
    pub async fn delete_session(&self, id: &str) -> Result<()> {
        check_id("sessions.delete: the conversation id", id)?;
        let core = self.core();
        if let Some(session) = core.live(id) {
            // What it could not store is deleted with the rest.
            let _ = session.close().await;
        }
        let Some(storage) = &core.storage else {
            return Ok(());
        };
        storage.store().delete(&storage.key(id)).await?;
        match storage.state() {
            Some(state) => state.forget(storage.project(), id).await,
            None => Ok(()),
        }
    }

    /// Gives a stored session a title.
    pub async fn rename_session(&self, id: &str, title: &str) -> Result<()> {
        if title.trim().is_empty() {
            return Err(KernelError::invalid(
                "sessions.rename: title must be a non-empty string",
            ));
        }
        let fields = json!({ "type": "custom-title", "customTitle": title });
        self.annotate("sessions.rename", id, fields).await
    }

    /// Gives a stored session a tag, or takes it away.
    pub async fn tag_session(&self, id: &str, tag: Option<&str>) -> Result<()> {
        let fields = json!({ "type": "tag", "tag": tag });
        self.annotate("sessions.tag", id, fields).await
    }

    /// Copies a stored session, or its beginning; gives the id of the copy.
    pub async fn fork_session(&self, id: &str, options: &ForkOptions) -> Result<String> {
        check_id("sessions.fork: the conversation id", id)?;
        let storage = self.storage("sessions.fork")?;
        self.core().fork(storage, id, options).await
    }

    fn storage(&self, call: &str) -> Result<&Storage> {
        self.core().storage.as_ref().ok_or_else(|| {
            KernelError::new(
                ErrorKind::Resource,
                format!("{call}: this agent keeps no sessions; set config.session.store or config.session.database"),
            )
        })
    }

    /// Appends an entry that says something of the session.
    async fn annotate(&self, call: &str, id: &str, mut fields: Json) -> Result<()> {
        check_id(&format!("{call}: the conversation id"), id)?;
        let storage = self.storage(call)?;
        if !exists(storage, id).await? {
            return Err(KernelError::new(
                ErrorKind::Resource,
                format!("{call}: no stored session has this id"),
            ));
        }
        fields["uuid"] = id::random().into();
        fields["sessionId"] = id.into();
        fields["timestamp"] = iso_timestamp(self.core().clock.now_ms()).into();
        let entry = StoredEntry::parse(fields.to_string())
            .map_err(|error| KernelError::new(ErrorKind::SerializeFailed, error.to_string()))?;
        let key = storage.key(id);
        storage.store().append(&key, &[entry], None).await.map(drop)
    }
}

/// Whether a session is stored: registered, or with entries.
pub(super) async fn exists(storage: &Storage, id: &str) -> Result<bool> {
    let store = storage.store();
    if store.get(storage.project(), id).await?.is_some() {
        return Ok(true);
    }
    let key = storage.key(id);
    if store.caps().head {
        return Ok(store.head(&key).await?.is_some());
    }
    Ok(store.load(&key, None).await?.is_some())
}

impl AgentCore {
    fn summary(&self, row: SessionRow) -> SessionSummary {
        let is_running = self
            .live(&row.session)
            .is_some_and(|session| session.is_running());
        let owned = |text: Option<&str>| text.map(str::to_owned);
        SessionSummary {
            title: owned(row.shown_title()),
            tag: owned(row.summary.tag()),
            first_prompt: owned(row.summary.first_prompt()),
            status: if is_running {
                SessionStatus::Running
            } else {
                SessionStatus::Idle
            },
            conversation_id: row.session,
            user_id: row.user.unwrap_or_default(),
            created_at: row.created_at,
            updated_at: row.updated_at,
            metadata: row.metadata,
            parent_conversation_id: row.parent,
        }
    }

    /// Copies a session; gives the id of the copy.
    pub(super) async fn fork(
        &self,
        storage: &Storage,
        from: &str,
        options: &ForkOptions,
    ) -> Result<String> {
        let store = storage.store();
        let target = options.conversation_id.clone().unwrap_or_else(id::random);
        if exists(storage, &target).await? {
            return Err(KernelError::new(
                ErrorKind::SessionExists,
                "fork: a session with the id of the copy exists; choose another conversationId",
            ));
        }
        let Some(loaded) = store.load(&storage.key(from), None).await? else {
            return Err(KernelError::new(
                ErrorKind::Resource,
                "fork: no stored session has the id of the source",
            ));
        };
        let entries: Vec<StoredEntry> = loaded
            .entries
            .into_iter()
            .map(|placed| placed.entry)
            .collect();
        let kept = selected(entries, options)?;
        self.copy(storage, &kept, &storage.key(&target)).await?;
        if options.up_to_message_id.is_none() && options.up_to_message_index.is_none() {
            for subpath in store.subkeys(storage.project(), from).await? {
                let key = storage.key(from).with_subpath(&subpath);
                let sub = store.load(&key, None).await?.unwrap_or_default();
                let sub: Vec<_> = sub.entries.into_iter().map(|placed| placed.entry).collect();
                let to = storage.key(&target).with_subpath(&subpath);
                self.copy(storage, &sub, &to).await?;
            }
        }
        let source = store.get(storage.project(), from).await?;
        let registration = Registration {
            user: source.as_ref().and_then(|row| row.user.clone()),
            title: source
                .as_ref()
                .and_then(|row| row.shown_title().map(str::to_owned)),
            metadata: source.and_then(|row| row.metadata),
            parent: Some(from.to_owned()),
        };
        store
            .register(storage.project(), &target, &registration)
            .await?;
        Ok(target)
    }

    /// Appends entries to a transcript of another session, under its id.
    async fn copy(
        &self,
        storage: &Storage,
        entries: &[StoredEntry],
        to: &SessionKey,
    ) -> Result<()> {
        let renamed = entries.iter().map(|entry| with_session(entry, &to.session));
        let renamed: Vec<StoredEntry> = renamed.collect::<Result<_>>()?;
        for batch in renamed.chunks(COPY_BATCH) {
            storage.store().append(to, batch, None).await?;
        }
        Ok(())
    }
}

fn with_session(entry: &StoredEntry, session: &str) -> Result<StoredEntry> {
    let failed = |error: serde_json::Error| {
        KernelError::new(ErrorKind::SerializeFailed, format!("fork: {error}"))
    };
    let mut fields: JsonMap = serde_json::from_str(entry.text()).map_err(failed)?;
    if fields.contains_key("sessionId") {
        fields.insert("sessionId".to_owned(), session.into());
    }
    StoredEntry::parse(Json::from(fields).to_string()).map_err(failed)
}

/// The entries that a fork copies: all of them, or the main conversation up to a message.
fn selected(entries: Vec<StoredEntry>, options: &ForkOptions) -> Result<Vec<StoredEntry>> {
    let ForkOptions {
        up_to_message_id,
        up_to_message_index,
        ..
    } = options;
    if up_to_message_id.is_none() && up_to_message_index.is_none() {
        return Ok(entries);
    }
    let parsed: Vec<(usize, Entry)> = entries
        .iter()
        .enumerate()
        .filter_map(|(at, entry)| Some((at, entry.entry()?)))
        .collect();
    let (places, messages): (Vec<usize>, Vec<Entry>) = parsed.into_iter().unzip();
    let thread: Vec<usize> = Thread::positions(&messages)
        .into_iter()
        .filter(|&at| messages[at].message.is_some())
        .collect();
    let ends = message_ends(&messages, &thread);
    let kept = match (up_to_message_id, up_to_message_index) {
        (Some(id), _) => ends
            .iter()
            .copied()
            .find(|&end| {
                let start = ends
                    .iter()
                    .rev()
                    .find(|&&other| other < end)
                    .map_or(0, |&end| end);
                thread[start..end]
                    .iter()
                    .any(|&at| is_named(&messages[at], id))
            })
            .ok_or_else(|| {
                KernelError::new(
                    ErrorKind::Resource,
                    "fork: upToMessageId names no message of the conversation",
                )
            })?,
        (None, Some(count)) => {
            let count = usize::try_from(*count).unwrap_or(usize::MAX);
            if count > ends.len() {
                return Err(KernelError::invalid(format!(
                    "fork: upToMessageIndex {count} is out of range (0..={})",
                    ends.len()
                )));
            }
            count.checked_sub(1).map_or(0, |last| ends[last])
        }
        (None, None) => thread.len(),
    };
    let kept: Vec<usize> = thread[..kept].iter().map(|&at| places[at]).collect();
    Ok(kept.into_iter().map(|at| entries[at].clone()).collect())
}

/// Where each message of a thread ends: the entries of one answer are one message, and so are those
/// of the user between two answers that hold nothing but tool results.
fn message_ends(messages: &[Entry], thread: &[usize]) -> Vec<usize> {
    let mut ends = Vec::new();
    for (place, &at) in thread.iter().enumerate() {
        let next = thread.get(place + 1).map(|&next| &messages[next]);
        if !next.is_some_and(|next| is_one_message(&messages[at], next)) {
            ends.push(place + 1);
        }
    }
    ends
}

fn is_one_message(entry: &Entry, next: &Entry) -> bool {
    let (Some(one), Some(other)) = (&entry.message, &next.message) else {
        return false;
    };
    let holds_results = |entry: &Entry| {
        let blocks = entry
            .message
            .as_ref()
            .map_or(&[][..], |message| message.content.as_blocks());
        !blocks.is_empty() && blocks.iter().all(|block| block.answers().is_some())
    };
    match (one.role, other.role) {
        (Role::Assistant, Role::Assistant) => one.id.is_some() && one.id == other.id,
        (Role::User, Role::User) => holds_results(entry) && holds_results(next),
        _ => false,
    }
}

fn is_named(entry: &Entry, name: &str) -> bool {
    let id = entry
        .message
        .as_ref()
        .and_then(|message| message.id.as_deref());
    entry.uuid.as_deref() == Some(name) || id == Some(name)
}
