//! An agent: one configuration, many sessions.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use futures_util::future::join_all;
use tracing::Dispatch;

use crate::base::cancel::{Interrupt, Interrupter};
use crate::base::clock::{SharedClock, SystemClock};
use crate::base::environment::Environment;
use crate::base::id;
use crate::base::telemetry::Observer;
use crate::error::{ErrorKind, KernelError, Result};
use crate::protocol::{AbortCause, Json};
use crate::render::RenderOptions;
use crate::tool::SessionRef;

use super::config::{self, AgentConfig, Fields};
use super::endpoint::ModelSource;
use super::hooks::AgentHooks;
use super::host::Host;
use super::session::{PromptResult, Session};

/// Longest conversation or user id, in bytes of UTF-8.
const MAX_ID_BYTES: usize = 512;
/// The user of calls that name none.
const DEFAULT_USER: &str = "default";

/// What `createAgent` makes.
pub struct Agent {
    id: String,
    core: Arc<AgentCore>,
    unknown_keys: Vec<String>,
}

/// What the sessions of an agent share.
pub struct AgentCore {
    pub(super) config: AgentConfig,
    pub(super) hooks: AgentHooks,
    pub(super) model: ModelSource,
    pub(super) clock: SharedClock,
    /// Who receives metrics and spans.
    pub(super) observer: Option<Arc<dyn Observer>>,
    /// Who receives log records.
    pub(super) log_dispatch: Option<Dispatch>,
    sessions: Mutex<HashMap<String, Weak<Session>>>,
    closed: AtomicBool,
}

/// Options of `startSession`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartOptions {
    pub user_id: String,
    /// None: a new random id.
    pub conversation_id: Option<String>,
}

/// Options of `agent.prompt`.
#[derive(Debug)]
pub struct PromptRequest {
    pub input: Json,
    pub options: Json,
    pub interrupter: Interrupter,
}

impl StartOptions {
    /// Checks the options.
    pub fn parse(options: &Json) -> Result<Self> {
        let fields = Fields::optional("startSession options", options)?;
        let user_id = identifier(&fields, "userId")?.ok_or_else(|| {
            KernelError::invalid("startSession: userId is required and must be a non-empty string")
        })?;
        for key in ["title", "metadata", "fork", "resumeAt", "continueRecent"] {
            fields.not_built(key, |value| value == &Json::Bool(false))?;
        }
        fields.not_built("runtime", |value| value == "native")?;
        fields.boolean("allowUserChange")?;
        let conversation_id = identifier(&fields, "conversationId")?;
        if let Some(unknown) = fields.unknown().first() {
            return Err(KernelError::invalid(format!(
                "{unknown} is not an option of startSession"
            )));
        }
        Ok(Self {
            user_id,
            conversation_id,
        })
    }

    /// The part of the options of `agent.prompt` that names the session; the rest is for `send`.
    fn of_prompt(options: &Json) -> Result<(Self, Json)> {
        let fields = Fields::optional("prompt options", options)?;
        let user_id = identifier(&fields, "userId")?.unwrap_or_else(|| DEFAULT_USER.to_owned());
        let start = Self {
            user_id,
            conversation_id: identifier(&fields, "conversationId")?,
        };
        let mut rest = options.clone();
        if let Some(rest) = rest.as_object_mut() {
            rest.retain(|key, _| key != "userId" && key != "conversationId");
        }
        Ok((start, rest))
    }
}

/// An id: 1 to 512 bytes without control characters. It is compared byte for byte.
fn identifier<'a>(fields: &Fields<'a>, key: &'a str) -> Result<Option<String>> {
    let Some(id) = fields.string(key)? else {
        return Ok(None);
    };
    if id.is_empty() || id.len() > MAX_ID_BYTES || id.chars().any(char::is_control) {
        return Err(KernelError::invalid(format!(
            "{} must have 1 to {MAX_ID_BYTES} bytes and no control characters",
            fields.path(key)
        )));
    }
    Ok(Some(id.to_owned()))
}

impl Agent {
    /// Checks a configuration and makes an agent. Does no I/O.
    pub fn create(config: &Json, environment: &Environment, host: Arc<dyn Host>) -> Result<Self> {
        let clock: SharedClock = Arc::new(SystemClock);
        let checked = config::check(config, environment, &host)?;
        let observers = checked.config.observers;
        let (observer, log_dispatch) = (observers.observer(&host), observers.dispatch(&host));
        let hooks = AgentHooks {
            table: checked.config.hooks,
            host,
            clock: clock.clone(),
        };
        let core = Arc::new(AgentCore {
            model: ModelSource::new(clock.clone(), &checked.config),
            config: checked.config,
            hooks,
            clock,
            observer,
            log_dispatch,
            sessions: Mutex::default(),
            closed: AtomicBool::new(false),
        });
        Ok(Self {
            id: id::random(),
            core,
            unknown_keys: checked.unknown,
        })
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    pub fn name(&self) -> Option<&str> {
        self.core.config.name.as_deref()
    }

    /// Keys of the configuration that have no meaning.
    pub fn unknown_keys(&self) -> &[String] {
        &self.unknown_keys
    }

    /// Whether requests go to an emulator that the environment names.
    pub fn uses_emulator(&self) -> bool {
        self.core
            .config
            .models
            .iter()
            .any(|model| matches!(model.gateway, config::model::Gateway::Hub(_)))
    }

    /// How the streams of this agent are rendered.
    pub fn render(&self) -> RenderOptions {
        self.core.config.render
    }

    /// Starts a conversation, or goes on with one that a live session of this agent holds.
    pub fn start_session(&self, options: StartOptions) -> Result<Arc<Session>> {
        self.core.open(options)
    }

    /// Goes on with a conversation that a live session of this agent holds. `reference` is its id,
    /// or the JSON of `getState`.
    pub fn resume_session(&self, reference: &str) -> Result<Arc<Session>> {
        self.core.refuse_closed()?;
        self.core.live(&conversation_of(reference)).ok_or_else(|| {
            KernelError::new(
                ErrorKind::Resource,
                "resumeSession: no session with this id is open in this agent, and there is no \
                 session.store to look in (durable sessions are not built yet in this version)",
            )
        })
    }

    /// One message in a live session of the conversation that the options name, else in one of its
    /// own that is closed afterwards.
    pub async fn prompt(&self, request: PromptRequest) -> Result<PromptResult> {
        let (start, options) = StartOptions::of_prompt(&request.options)?;
        let live = start
            .conversation_id
            .as_deref()
            .and_then(|id| self.core.live(id));
        let session = self.start_session(start)?;
        let result = session
            .prompt(&request.input, &options, request.interrupter)
            .await;
        if live.is_none() {
            session.close().await;
        }
        result
    }

    /// Stops every run and refuses further ones, without waiting: the host program is going away.
    pub fn interrupt(&self) {
        self.core.closed.store(true, Ordering::Release);
        for session in self.core.sessions().values().filter_map(Weak::upgrade) {
            session.interrupt(Interrupt::Aborted(AbortCause::Close, None));
        }
    }

    /// Closes every session. Gives up waiting after `deadline`; clean-up then goes on by itself.
    pub async fn close(&self, deadline: Option<Duration>) {
        self.core.closed.store(true, Ordering::Release);
        let sessions: Vec<_> = self
            .core
            .sessions()
            .values()
            .filter_map(Weak::upgrade)
            .collect();
        let closing = tokio::spawn(async move {
            join_all(sessions.iter().map(Session::close)).await;
        });
        match deadline {
            // The task cannot fail: closing has no error, and a panic in it is not ours to pass on.
            None => drop(closing.await),
            Some(deadline) => {
                tokio::select! {
                    _ = closing => {}
                    () = self.core.clock.sleep(deadline) => {}
                }
            }
        }
    }
}

impl AgentCore {
    fn open(self: &Arc<Self>, options: StartOptions) -> Result<Arc<Session>> {
        self.refuse_closed()?;
        let id = options.conversation_id.unwrap_or_else(id::random);
        let mut sessions = self.sessions();
        let open = sessions
            .get(&id)
            .and_then(Weak::upgrade)
            .filter(|session| !session.is_closed());
        if let Some(session) = open {
            return if session.user_id() == options.user_id {
                Ok(session)
            } else {
                Err(KernelError::new(
                    ErrorKind::SessionOwner,
                    "startSession: the conversation belongs to another user",
                ))
            };
        }
        let who = SessionRef {
            conversation_id: id.as_str().into(),
            user_id: options.user_id.into(),
            env_id: self.config.env_id.clone(),
        };
        let session = Arc::new(Session::new(self.clone(), who));
        if sessions.len() == sessions.capacity() {
            sessions.retain(|_, session| session.strong_count() > 0);
        }
        sessions.insert(id, Arc::downgrade(&session));
        Ok(session)
    }

    fn refuse_closed(&self) -> Result<()> {
        if !self.is_closed() {
            return Ok(());
        }
        let message = "the agent is closed: create a new one";
        Err(KernelError::new(ErrorKind::SessionClosed, message))
    }

    /// The live session of a conversation.
    fn live(&self, id: &str) -> Option<Arc<Session>> {
        self.sessions()
            .get(id)
            .and_then(Weak::upgrade)
            .filter(|session| !session.is_closed())
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Forgets a closed session, unless another one has taken its id.
    pub(super) fn forget(&self, session: &Session) {
        let mut sessions = self.sessions();
        if sessions
            .get(session.id())
            .is_some_and(|known| std::ptr::eq(known.as_ptr(), session))
        {
            sessions.remove(session.id());
        }
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<String, Weak<Session>>> {
        // A plain map: whole after every statement.
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The conversation id in a reference: the JSON of `getState`, or the id itself.
fn conversation_of(reference: &str) -> String {
    let state: Option<Json> = serde_json::from_str(reference).ok();
    let id = state
        .as_ref()
        .and_then(|state| state.get("conversationId")?.as_str());
    id.unwrap_or(reference).to_owned()
}
