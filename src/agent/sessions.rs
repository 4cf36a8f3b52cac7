//! `agent.sessions`: the stored conversations of an agent.

use std::collections::HashSet;

use serde::Serialize;
use serde_json::json;
use ts_rs::TS;

use crate::base::clock::iso_timestamp;
use crate::base::id;
use crate::error::{ErrorKind, KernelError, Result};
use crate::protocol::{Json, StoredEntry};
use crate::store::session::{ListCursor, SessionRow};

use super::config::Fields;
use super::core::{Agent, AgentCore, check_id, identifier};
use super::storage::Storage;

/// Sessions on a page unless the call says otherwise.
const PAGE: u64 = 100;
/// Most sessions on a page.
const MAX_PAGE: u64 = 1_000;

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
    /// A call of it waits for an answer.
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

pub(super) fn refuse_unknown(fields: &Fields<'_>, call: &str) -> Result<()> {
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
        let waiting = match &core.storage {
            Some(storage) if !rows.is_empty() => storage.waiting(None).await,
            _ => HashSet::new(),
        };
        let sessions = rows.into_iter().map(|row| core.summary(row, &waiting));
        let sessions = sessions.collect();
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
        let waiting = match row {
            Some(_) => storage.waiting(Some(id)).await,
            None => HashSet::new(),
        };
        Ok(row.map(|row| core.summary(row, &waiting)))
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
        if let Some(state) = storage.state() {
            state.forget(storage.project(), id).await?;
        }
        storage.forget_calls(id).await
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

    pub(super) fn storage(&self, call: &str) -> Result<&Storage> {
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
    /// `waiting` are the conversations with a call that waits.
    fn summary(&self, row: SessionRow, waiting: &HashSet<String>) -> SessionSummary {
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
            } else if waiting.contains(&row.session) {
                SessionStatus::RequiresAction
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
}
