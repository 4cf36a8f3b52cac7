//! Opening a conversation: a new one, a stored one, a copy, or the newest.
//!
//! The order is: which id, whether to copy it, where to go on. Source: the resolution of the sessions
//! of the Claude Agent SDK and of the file store.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::base::id;
use crate::error::{ErrorKind, KernelError, Result};
use crate::protocol::{Json, JsonMap};
use crate::store::session::{Registration, SessionRow};
use crate::tool::SessionRef;

use super::config::Fields;
use super::core::{Agent, AgentCore, identifier};
use super::fork::ForkOptions;
use super::run::entries;
use super::session::Session;
use super::sessions::exists;
use super::storage::Storage;

/// The user of a stored session that has none.
const UNKNOWN_USER: &str = "resumed";
/// Longest title, in bytes.
const MAX_TITLE_BYTES: usize = 4_096;
/// Largest metadata, in bytes of JSON.
const MAX_METADATA_BYTES: usize = 256 << 10;

/// Options of `startSession`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StartOptions {
    pub user_id: String,
    /// None: that of the configuration, else a new random id.
    pub conversation_id: Option<String>,
    pub title: Option<String>,
    pub metadata: Option<Json>,
    /// Whether a session of another user passes to this one.
    pub allow_user_change: bool,
    /// Whether the newest session of the user is taken when no id is given; none: as configured.
    pub continue_recent: Option<bool>,
    /// The session to work on a copy of, and how much of it.
    pub fork: Option<(String, ForkOptions)>,
    /// The message to go on behind; none: as configured.
    pub resume_at: Option<String>,
}

/// Options of `resumeSession`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResumeOptions {
    pub user_id: Option<String>,
    pub allow_user_change: bool,
}

impl StartOptions {
    /// Checks the options.
    pub fn parse(options: &Json) -> Result<Self> {
        let fields = Fields::optional("startSession options", options)?;
        let user_id = identifier(&fields, "userId")?.ok_or_else(|| {
            KernelError::invalid("startSession: userId is required and must be a non-empty string")
        })?;
        fields.not_built("runtime", |value| value == "native")?;
        let started = Self {
            user_id,
            conversation_id: identifier(&fields, "conversationId")?,
            title: title(&fields)?,
            metadata: metadata(&fields)?,
            allow_user_change: fields.boolean("allowUserChange")?.unwrap_or(false),
            continue_recent: fields.boolean("continueRecent")?,
            fork: fork(&fields)?,
            resume_at: fields.text("resumeAt")?.map(str::to_owned),
        };
        match fields.unknown().first() {
            None => Ok(started),
            Some(unknown) => Err(KernelError::invalid(format!(
                "{unknown} is not an option of startSession"
            ))),
        }
    }
}

impl ResumeOptions {
    /// Checks the options.
    pub fn parse(options: &Json) -> Result<Self> {
        let fields = Fields::optional("resumeSession options", options)?;
        let parsed = Self {
            user_id: identifier(&fields, "userId")?,
            allow_user_change: fields.boolean("allowUserChange")?.unwrap_or(false),
        };
        match fields.unknown().first() {
            None => Ok(parsed),
            Some(unknown) => Err(KernelError::invalid(format!(
                "{unknown} is not an option of resumeSession"
            ))),
        }
    }
}

fn title(fields: &Fields<'_>) -> Result<Option<String>> {
    let Some(title) = fields.text("title")? else {
        return Ok(None);
    };
    if title.len() > MAX_TITLE_BYTES {
        let what = format!("at most {MAX_TITLE_BYTES} bytes long");
        return Err(fields.wrong("title", &what));
    }
    Ok(Some(title.to_owned()))
}

fn metadata(fields: &Fields<'_>) -> Result<Option<Json>> {
    let Some(value) = fields.get("metadata") else {
        return Ok(None);
    };
    super::config::pure_json(&fields.path("metadata"), value)?;
    if !value.is_object() {
        return Err(fields.wrong("metadata", "an object"));
    }
    if value.to_string().len() > MAX_METADATA_BYTES {
        let what = format!("at most {MAX_METADATA_BYTES} bytes of JSON");
        return Err(fields.wrong("metadata", &what));
    }
    Ok(Some(value.clone()))
}

fn fork(fields: &Fields<'_>) -> Result<Option<(String, ForkOptions)>> {
    if fields.get("fork") == Some(&Json::Bool(false)) {
        return Ok(None);
    }
    let Some(fork) = fields.object("fork")? else {
        return Ok(None);
    };
    let from = identifier(&fork, "from")?
        .ok_or_else(|| fork.wrong("from", "the id of the session to copy"))?;
    Ok(Some((from, ForkOptions::read(&fork)?)))
}

impl Agent {
    /// Starts a conversation, or goes on with one. Without an id that somebody chose nothing is read,
    /// and what is known of the session is stored in the background.
    pub async fn start_session(&self, options: StartOptions) -> Result<Arc<Session>> {
        let core = self.core();
        core.refuse_closed()?;
        let storage = core.storage.as_ref();
        let choice = core.choose(&options, storage).await?;
        if let Some(session) = choice.known_id().and_then(|id| core.live(id)) {
            return owned_by(session, &options.user_id, "startSession");
        }
        if let (Some(storage), Some(id)) = (storage, choice.known_id()) {
            refuse_foreign(storage, id, &options).await?;
        }
        let session = core.open(&choice, &options.user_id)?;
        let resume_at = core.resume_point(&options);
        session.journal.set_registration(Registration {
            user: Some(options.user_id),
            title: options.title,
            metadata: options.metadata,
            parent: None,
        });
        let is_strict = core.config.session.resume.strict;
        core.go_on(&session, &choice, resume_at.as_deref(), is_strict)
            .await?;
        register_in_background(&session);
        Ok(session)
    }

    /// Goes on with a stored conversation, or one that a live session of this agent holds.
    /// `reference` is its id, or the JSON of `getState`.
    pub async fn resume_session(
        &self,
        reference: &str,
        options: ResumeOptions,
    ) -> Result<Arc<Session>> {
        let core = self.core();
        core.refuse_closed()?;
        let id = conversation_of(reference);
        super::core::check_id("resumeSession: the conversation id", &id)?;
        if let Some(session) = core.live(&id) {
            return match &options.user_id {
                Some(user) => owned_by(session, user, "resumeSession"),
                None => Ok(session),
            };
        }
        let Some(storage) = &core.storage else {
            return Err(unknown_session(
                "no session with this id is open in this agent, and there is no session.store to look in",
            ));
        };
        let row = storage.store().get(storage.project(), &id).await?;
        if row.is_none() && !exists(storage, &id).await? {
            return Err(unknown_session("no stored session has this id"));
        }
        let user = resumed_user(row.as_ref(), &options)?;
        let choice = Choice::Stored(id);
        let session = core.open(&choice, &user)?;
        core.go_on(&session, &choice, None, false).await?;
        if let Some(user) = options.user_id {
            // The stored row may have none, or another one that may be replaced.
            session.journal.set_registration(Registration {
                user: Some(user),
                ..Registration::default()
            });
        }
        Ok(session)
    }
}

/// Which conversation is opened.
#[derive(Debug)]
pub(super) enum Choice {
    /// Nobody can have written to it.
    New(String),
    /// It may exist.
    Stored(String),
}

impl Choice {
    pub fn id(&self) -> &str {
        match self {
            Self::New(id) | Self::Stored(id) => id,
        }
    }

    /// The id, if there may be something under it.
    fn known_id(&self) -> Option<&str> {
        match self {
            Self::New(_) => None,
            Self::Stored(id) => Some(id),
        }
    }
}

impl AgentCore {
    /// Decides which conversation is opened: the one that is named, else the newest; perhaps a copy.
    async fn choose(&self, options: &StartOptions, storage: Option<&Storage>) -> Result<Choice> {
        let resume = &self.config.session.resume;
        if let Some((from, fork)) = &options.fork {
            let storage = storage.ok_or_else(|| needs_store("fork"))?;
            let fork = ForkOptions {
                conversation_id: options
                    .conversation_id
                    .clone()
                    .or_else(|| fork.conversation_id.clone()),
                ..fork.clone()
            };
            refuse_foreign(storage, from, options).await?;
            return Ok(Choice::Stored(self.fork(storage, from, &fork).await?));
        }
        if let Some(id) = &options.conversation_id {
            return Ok(Choice::Stored(id.clone()));
        }
        let is_configured = resume.session_id.is_some()
            || resume.continue_recent
            || options.continue_recent == Some(true);
        if !is_configured {
            return Ok(Choice::New(id::random()));
        }
        if options.continue_recent.is_some() {
            return self.recent_or_new(options, storage).await;
        }
        // Once for the agent: a second session must not copy, or look for, another one.
        let resolved = self
            .resolved
            .get_or_try_init(|| self.resolve(options, storage))
            .await?;
        Ok(Choice::Stored(resolved.clone()))
    }

    async fn resolve(&self, options: &StartOptions, storage: Option<&Storage>) -> Result<String> {
        let resume = &self.config.session.resume;
        let id = match &resume.session_id {
            Some(id) => id.clone(),
            None => match self.recent_or_new(options, storage).await? {
                Choice::New(id) => return Ok(id),
                Choice::Stored(id) => id,
            },
        };
        if !resume.fork {
            return Ok(id);
        }
        let storage = storage.ok_or_else(|| needs_store("config.forkSession"))?;
        if !exists(storage, &id).await? {
            return Ok(id);
        }
        refuse_foreign(storage, &id, options).await?;
        self.fork(storage, &id, &ForkOptions::default()).await
    }

    /// The message behind which the session goes on. That of the configuration is for the conversation
    /// that the configuration chose, once: a later session would lose what was said since.
    fn resume_point(&self, options: &StartOptions) -> Option<String> {
        if options.resume_at.is_some() {
            return options.resume_at.clone();
        }
        let configured = self.config.session.resume.resume_at.as_ref()?;
        let is_chosen = options.conversation_id.is_none() && options.fork.is_none();
        let is_first = is_chosen && !self.rewound.swap(true, Ordering::AcqRel);
        is_first.then(|| configured.clone())
    }

    async fn recent_or_new(
        &self,
        options: &StartOptions,
        storage: Option<&Storage>,
    ) -> Result<Choice> {
        let storage = storage.ok_or_else(|| needs_store("continueRecent"))?;
        let (store, project) = (storage.store(), storage.project());
        let newest = store.list(project, Some(&options.user_id), None, 1).await?;
        let newest = newest.into_iter().next();
        Ok(newest.map_or_else(
            || Choice::New(id::random()),
            |row| Choice::Stored(row.session),
        ))
    }

    /// Makes the session object, or takes the one that was made meanwhile.
    fn open(self: &Arc<Self>, choice: &Choice, user_id: &str) -> Result<Arc<Session>> {
        let settings = &self.config.session;
        let storage = self
            .storage
            .clone()
            .filter(|_| settings.persist)
            .unwrap_or_else(|| Storage::private(settings, &self.clock));
        let who = SessionRef {
            conversation_id: choice.id().into(),
            user_id: user_id.into(),
            env_id: self.config.env_id.clone(),
        };
        let session = Session::new(self.clone(), who, storage);
        // Nothing is read from a store that only this session has.
        if matches!(choice, Choice::New(_)) || self.storage.is_none() || !settings.persist {
            session.journal.assume_new();
        }
        let session = self.keep(session);
        owned_by(session, user_id, "startSession")
    }

    /// Loads what must be there before the first run: a conversation that is only read, or one that
    /// goes on behind a message.
    async fn go_on(
        &self,
        session: &Session,
        choice: &Choice,
        resume_at: Option<&str>,
        is_strict: bool,
    ) -> Result<()> {
        let Some(storage) = &self.storage else {
            return match resume_at {
                Some(_) => Err(needs_store("resumeAt")),
                None => Ok(()),
            };
        };
        let is_read_only = !self.config.session.persist;
        if choice.known_id().is_none() || (resume_at.is_none() && !is_read_only) {
            return Ok(());
        }
        let loaded = if is_read_only {
            let key = storage.key(session.id());
            storage.store().load(&key, None).await?
        } else {
            session.journal.changes().await?
        };
        let mut transcript = session.transcript.lock().await;
        transcript.reload(entries(&loaded.unwrap_or_default()));
        match resume_at {
            Some(message) if !transcript.rewind(message) && is_strict => Err(KernelError::new(
                ErrorKind::ResumePoint,
                "startSession: resumeAt names no message of the conversation",
            )),
            _ => Ok(()),
        }
    }
}

/// Refuses a stored session of another user.
async fn refuse_foreign(storage: &Storage, id: &str, options: &StartOptions) -> Result<()> {
    let row = storage.store().get(storage.project(), id).await?;
    let stored = row.and_then(|row| row.user);
    let is_foreign = stored.is_some_and(|user| user != options.user_id);
    if is_foreign && !options.allow_user_change {
        return Err(foreign("startSession"));
    }
    Ok(())
}

/// Stores what is known of a session; what fails is tried again with the first entry.
fn register_in_background(session: &Arc<Session>) {
    let journal = session.journal.clone();
    tokio::spawn(async move {
        if let Err(error) = journal.register().await {
            tracing::debug!(
                target: crate::base::telemetry::SESSION,
                code = error.code(),
                "session was not registered yet"
            );
        }
    });
}

fn resumed_user(row: Option<&SessionRow>, options: &ResumeOptions) -> Result<String> {
    let stored = row.and_then(|row| row.user.clone());
    match (stored, &options.user_id) {
        (Some(stored), Some(given)) if stored != *given && !options.allow_user_change => {
            Err(foreign("resumeSession"))
        }
        (_, Some(given)) => Ok(given.clone()),
        (Some(stored), None) => Ok(stored),
        (None, None) => Ok(UNKNOWN_USER.to_owned()),
    }
}

fn owned_by(session: Arc<Session>, user_id: &str, call: &str) -> Result<Arc<Session>> {
    let is_known = session.user_id() != UNKNOWN_USER;
    if is_known && session.user_id() != user_id {
        return Err(foreign(call));
    }
    Ok(session)
}

/// Tells nothing of the session.
fn foreign(call: &str) -> KernelError {
    KernelError::new(
        ErrorKind::SessionOwner,
        format!("{call}: the conversation belongs to another user"),
    )
}

fn unknown_session(why: &str) -> KernelError {
    KernelError::new(ErrorKind::Resource, format!("resumeSession: {why}"))
}

fn needs_store(option: &str) -> KernelError {
    KernelError::invalid(format!(
        "startSession: {option} needs stored sessions: set config.session.store or config.session.database"
    ))
}

/// The conversation id in a reference: the JSON of `getState`, or the id itself.
fn conversation_of(reference: &str) -> String {
    let state: Option<JsonMap> = serde_json::from_str(reference).ok();
    let id = state
        .as_ref()
        .and_then(|state| state.get("conversationId")?.as_str());
    id.unwrap_or(reference).to_owned()
}
