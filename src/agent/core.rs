//! An agent: one configuration, many sessions.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use futures_util::future::join_all;
use tokio::sync::OnceCell;
use tracing::Dispatch;

use crate::base::cancel::{Interrupt, Interrupter};
use crate::base::clock::{SharedClock, SystemClock};
use crate::base::environment::Environment;
use crate::base::id;
use crate::base::telemetry::Observer;
use crate::engine::Toolbox;
use crate::error::{ErrorKind, KernelError, Result};
use crate::protocol::{AbortCause, Json};
use crate::render::RenderOptions;
use crate::store::session::OpenStore;

use super::config::{self, AgentConfig, Fields, Wiring};
use super::endpoint::ModelSource;
use super::hooks::AgentHooks;
use super::host::Host;
use super::opening::StartOptions;
use super::session::{PromptResult, Session};
use super::storage::Storage;
#[cfg(feature = "mcp")]
use super::toolbox::Servers;

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
    /// Where sessions are kept; none: each lives as long as its object.
    pub(super) storage: Option<Storage>,
    /// The conversation that the configuration chose.
    pub(super) resolved: OnceCell<String>,
    /// Whether a session went on behind the message that the configuration names.
    pub(super) rewound: AtomicBool,
    pub(super) clock: SharedClock,
    #[cfg(feature = "mcp")]
    servers: Servers,
    /// Who receives metrics and spans.
    pub(super) observer: Option<Arc<dyn Observer>>,
    /// Who receives log records.
    pub(super) log_dispatch: Option<Dispatch>,
    sessions: Mutex<HashMap<String, Weak<Session>>>,
    closed: AtomicBool,
}

/// Options of `agent.prompt`.
#[derive(Debug)]
pub struct PromptRequest {
    pub input: Json,
    pub options: Json,
    pub interrupter: Interrupter,
}

impl StartOptions {
    /// The part of the options of `agent.prompt` that names the session; the rest is for `send`.
    fn of_prompt(options: &Json) -> Result<(Self, Json)> {
        let fields = Fields::optional("prompt options", options)?;
        let user_id = identifier(&fields, "userId")?.unwrap_or_else(|| DEFAULT_USER.to_owned());
        let start = Self {
            user_id,
            conversation_id: identifier(&fields, "conversationId")?,
            ..Self::default()
        };
        let mut rest = options.clone();
        if let Some(rest) = rest.as_object_mut() {
            rest.retain(|key, _| key != "userId" && key != "conversationId");
        }
        Ok((start, rest))
    }
}

/// An id: 1 to 512 bytes without control characters. It is compared byte for byte.
pub(super) fn identifier<'a>(fields: &Fields<'a>, key: &'a str) -> Result<Option<String>> {
    let Some(id) = fields.string(key)? else {
        return Ok(None);
    };
    check_id(&fields.path(key), id)?;
    Ok(Some(id.to_owned()))
}

/// Refuses what cannot be an id; `what` names it.
pub(super) fn check_id(what: &str, id: &str) -> Result<()> {
    if id.is_empty() || id.len() > MAX_ID_BYTES || id.chars().any(char::is_control) {
        return Err(KernelError::invalid(format!(
            "{what} must have 1 to {MAX_ID_BYTES} bytes and no control characters"
        )));
    }
    Ok(())
}

impl Agent {
    /// Checks a configuration and makes an agent. Does no I/O.
    /// `native_store` is the driver behind a store of the configuration that the kernel itself made.
    pub fn create(
        config: &Json,
        environment: &Environment,
        host: Arc<dyn Host>,
        native_store: Option<OpenStore>,
    ) -> Result<Self> {
        let clock: SharedClock = Arc::new(SystemClock);
        let wiring = Wiring {
            environment,
            host: &host,
            clock: &clock,
            native_store,
        };
        let checked = config::check(config, &wiring)?;
        let observers = checked.config.observers;
        let (observer, log_dispatch) = (observers.observer(&host), observers.dispatch(&host));
        let hooks = AgentHooks {
            table: checked.config.hooks,
            host,
            clock: clock.clone(),
        };
        let core = Arc::new(AgentCore {
            model: ModelSource::new(clock.clone(), &checked.config),
            storage: Storage::shared(&checked.config.session, &clock),
            resolved: OnceCell::new(),
            rewound: AtomicBool::new(false),
            #[cfg(feature = "mcp")]
            servers: Servers::new(&checked.config, environment, clock.clone()),
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

    pub(super) fn core(&self) -> &Arc<AgentCore> {
        &self.core
    }

    /// One message in a live session of the conversation that the options name, else in one of its
    /// own that is closed afterwards.
    pub async fn prompt(&self, request: PromptRequest) -> Result<PromptResult> {
        let (start, options) = StartOptions::of_prompt(&request.options)?;
        let live = start
            .conversation_id
            .as_deref()
            .and_then(|id| self.core.live(id));
        let session = self.start_session(start).await?;
        let result = session
            .prompt(&request.input, &options, request.interrupter)
            .await;
        if live.is_none() {
            session.close().await?;
        }
        result
    }

    /// Stops every run and refuses further ones, without waiting: the host program is going away.
    pub fn interrupt(&self) {
        self.core.closed.store(true, Ordering::Release);
        for session in self.core.sessions().values().filter_map(Weak::upgrade) {
            session.interrupt(Interrupt::Aborted(AbortCause::Close, None));
        }
        #[cfg(feature = "mcp")]
        self.core.servers.pool.stop();
    }

    /// Closes every session, then the connections to servers. Gives up waiting after `deadline`; clean-up then goes on by itself. Fails
    /// when entries of a session are not stored.
    pub async fn close(&self, deadline: Option<Duration>) -> Result<()> {
        self.core.closed.store(true, Ordering::Release);
        let sessions: Vec<_> = self
            .core
            .sessions()
            .values()
            .filter_map(Weak::upgrade)
            .collect();
        #[cfg(feature = "mcp")]
        let core = self.core.clone();
        let closing = tokio::spawn(async move {
            let closed = join_all(sessions.iter().map(Session::close)).await;
            #[cfg(feature = "mcp")]
            core.servers.pool.close().await;
            closed.into_iter().collect::<Result<()>>()
        });
        // A panic in the task is not ours to pass on.
        let closed = async { closing.await.unwrap_or(Ok(())) };
        match deadline {
            None => closed.await,
            Some(deadline) => {
                tokio::select! {
                    closed = closed => closed,
                    () = self.core.clock.sleep(deadline) => Ok(()),
                }
            }
        }
    }
}

impl AgentCore {
    /// The tools of one run.
    pub(super) fn toolbox(&self) -> Box<dyn Toolbox + '_> {
        #[cfg(feature = "mcp")]
        let toolbox = self.servers.of_run(&self.config.tools);
        #[cfg(not(feature = "mcp"))]
        let toolbox = self.config.tools.clone();
        Box::new(toolbox)
    }

    /// Keeps a new session, unless there is a live one with its id, which is given instead.
    pub(super) fn keep(&self, session: Session) -> Arc<Session> {
        let mut sessions = self.sessions();
        let open = sessions
            .get(session.id())
            .and_then(Weak::upgrade)
            .filter(|session| !session.is_closed());
        if let Some(open) = open {
            return open;
        }
        let session = Arc::new(session);
        if sessions.len() == sessions.capacity() {
            sessions.retain(|_, session| session.strong_count() > 0);
        }
        sessions.insert(session.id().to_owned(), Arc::downgrade(&session));
        session
    }

    pub(super) fn refuse_closed(&self) -> Result<()> {
        if !self.is_closed() {
            return Ok(());
        }
        let message = "the agent is closed: create a new one";
        Err(KernelError::new(ErrorKind::SessionClosed, message))
    }

    /// The live session of a conversation.
    pub(super) fn live(&self, id: &str) -> Option<Arc<Session>> {
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
