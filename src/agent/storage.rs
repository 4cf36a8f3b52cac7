//! Where sessions are kept, and who may write to one.

use std::collections::HashSet;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::base::cancel::{Interrupt, Interrupter};
use crate::base::clock::{SharedClock, SystemClock};
use crate::base::telemetry;
use crate::engine::{Journal, JournalSettings};
use crate::error::{ErrorKind, KernelError, Result};
use crate::store::session::{MemoryStore, SessionKey, SharedSessionStore};
use crate::store::state::{
    CallRecords, Lease, LeaseKey, LeaseTimes, MemoryState, SharedStateStore, waiting,
};
use crate::tool::SessionRef;

use super::config::session::SessionSettings;

/// State of sessions whose store keeps none: it holds within this process only.
static PROCESS_STATE: LazyLock<Arc<MemoryState>> =
    LazyLock::new(|| Arc::new(MemoryState::new(Arc::new(SystemClock))));

/// How often a run that waits for its turn looks.
const TURN_POLL: Duration = Duration::from_millis(20);
/// What is said when a call is opened that another process cannot know.
const ONLY_HERE: &str = "the session store keeps no state: calls that wait for an answer are kept in \
    this process only; set config.toolStore to answer them in another one";

/// The store of some sessions, with all that is needed to write to it.
#[derive(Clone)]
pub struct Storage {
    store: SharedSessionStore,
    project: Arc<str>,
    /// Where leases are; none when nobody else can know the sessions.
    state: Option<SharedStateStore>,
    /// Where the records of calls that wait for an answer are.
    records: SharedStateStore,
    /// What should be said once when such a call is opened.
    hint: Arc<Mutex<Option<&'static str>>>,
    store_timeout: Duration,
    busy_timeout: Duration,
    eager: bool,
    lenient: bool,
    clock: SharedClock,
}

impl Storage {
    /// The store that the configuration names.
    pub fn shared(settings: &SessionSettings, clock: &SharedClock) -> Option<Self> {
        let store = settings.store.clone()?;
        let own = store.state();
        let hint = (own.is_none() && settings.tool_store.is_none()).then_some(ONLY_HERE);
        let state = own.unwrap_or_else(|| PROCESS_STATE.clone());
        let records = settings.tool_store.clone();
        Some(Self {
            records: records.unwrap_or_else(|| state.clone()),
            state: Some(state),
            hint: Arc::new(Mutex::new(hint)),
            ..Self::around(store, settings, clock)
        })
    }

    /// A store for one session, which lives as long as its object.
    pub fn private(settings: &SessionSettings, clock: &SharedClock) -> Self {
        Self::around(Arc::new(MemoryStore::new(clock.clone())), settings, clock)
    }

    fn around(store: SharedSessionStore, settings: &SessionSettings, clock: &SharedClock) -> Self {
        // Of a stored conversation that is only read, others answer the calls.
        let is_copy = settings.store.is_some();
        let records = settings.tool_store.clone().filter(|_| !is_copy);
        Self {
            store,
            project: settings.project.clone(),
            state: None,
            records: records.unwrap_or_else(|| Arc::new(MemoryState::new(clock.clone()))),
            hint: Arc::default(),
            store_timeout: settings.store_timeout,
            busy_timeout: settings.busy_timeout,
            eager: settings.eager,
            lenient: settings.lenient,
            clock: clock.clone(),
        }
    }

    pub fn store(&self) -> &SharedSessionStore {
        &self.store
    }

    pub fn project(&self) -> &Arc<str> {
        &self.project
    }

    /// Where records about the sessions are; none when nobody else can know them.
    pub fn state(&self) -> Option<&SharedStateStore> {
        self.state.as_ref()
    }

    /// The calls of a session that wait for an answer.
    pub fn calls(&self, who: &SessionRef) -> CallRecords {
        CallRecords {
            store: self.records.clone(),
            project: self.project.clone(),
            conversation: who.conversation_id.clone(),
            user: who.user_id.clone(),
            timeout: self.store_timeout,
            clock: self.clock.clone(),
            hint: self.hint.clone(),
        }
    }

    /// Conversations, or this one, with a call that waits for an answer. A store of the program that
    /// cannot list tells of those that this process opened; one that fails tells of none.
    pub async fn waiting(&self, conversation: Option<&str>) -> HashSet<String> {
        let found = tokio::select! {
            biased;
            found = waiting(self.records.as_ref(), &self.project, conversation) => found.ok(),
            () = self.clock.sleep(self.store_timeout) => None,
        };
        found.unwrap_or_else(|| {
            tracing::warn!(target: telemetry::SESSION, "nobody knows which calls wait");
            HashSet::new()
        })
    }

    /// Removes the calls of a session that wait for an answer.
    pub async fn forget_calls(&self, session: &str) -> Result<()> {
        let forgotten = self.records.forget(&self.project, session);
        tokio::select! {
            biased;
            forgotten = forgotten => forgotten,
            () = self.clock.sleep(self.store_timeout) => Err(KernelError::new(
                ErrorKind::Store,
                "the store of calls that wait for an answer does not answer",
            )),
        }
    }

    /// Removes what nobody could use any more when a session that only its object has ends.
    pub async fn end_private(&self, session: &str) {
        if self.state.is_none()
            && let Err(error) = self.forget_calls(session).await
        {
            tracing::warn!(target: telemetry::SESSION, code = error.code(), "records of calls were not removed");
        }
    }

    /// The main transcript of a session.
    pub fn key(&self, session: &str) -> SessionKey {
        SessionKey::main(&self.project, session)
    }

    /// The way of a session's entries to the store.
    pub fn journal(&self, session: &str) -> Arc<Journal> {
        Journal::new(JournalSettings {
            store: self.store.clone(),
            key: self.key(session),
            timeout: self.store_timeout,
            eager: self.eager,
            lenient: self.lenient,
            clock: self.clock.clone(),
        })
    }

    /// Waits for the lease of a session like [`Storage::take`], also while this process has it.
    pub async fn take_in_turn(
        &self,
        session: &str,
        interrupter: &Interrupter,
    ) -> Result<Option<Tenure>> {
        let start = self.clock.instant();
        loop {
            let taken = self.take(session, interrupter).await;
            let is_busy = matches!(&taken, Err(error) if error.kind() == ErrorKind::SessionBusy);
            if !is_busy || self.clock.instant() - start >= self.busy_timeout {
                return taken;
            }
            self.clock.sleep(TURN_POLL).await;
        }
    }

    /// How long a run waits for another one of the session.
    pub fn busy_timeout(&self) -> Duration {
        self.busy_timeout
    }

    /// Takes the lease of a session for a run, which it ends when the lease is lost. None when there
    /// is nobody to share the session with. Fails with `E_SESSION_BUSY`.
    pub async fn take(&self, session: &str, interrupter: &Interrupter) -> Result<Option<Tenure>> {
        let Some(state) = &self.state else {
            return Ok(None);
        };
        let key = LeaseKey {
            project: self.project.clone(),
            session: session.into(),
        };
        let lease = Lease::acquire(
            state.clone(),
            self.clock.clone(),
            &key,
            LeaseTimes::default(),
            self.busy_timeout,
        )
        .await?;
        let tenure = Tenure::start(lease, interrupter.clone());
        if self.store.caps().fenced_append
            && let Err(error) = self.store.fence(&self.project, session, tenure.epoch).await
        {
            tenure.release().await;
            return Err(error);
        }
        Ok(Some(tenure))
    }
}

/// A lease that is renewed for as long as a run goes on.
pub struct Tenure {
    pub epoch: u64,
    stop: oneshot::Sender<()>,
    /// Gives the lease back at its end, also when the tenure is dropped.
    renewal: JoinHandle<()>,
}

impl Tenure {
    fn start(mut lease: Lease, interrupter: Interrupter) -> Self {
        let (stop, stopped) = oneshot::channel();
        let epoch = lease.epoch();
        let renewal = tokio::spawn(async move {
            let is_lost = tokio::select! {
                // Also when the sender is gone: then the run is.
                _ = stopped => false,
                _error = lease.keep() => true,
            };
            if is_lost {
                interrupter.interrupt(Interrupt::LeaseLost);
            } else {
                lease.release().await;
            }
        });
        Self {
            epoch,
            stop,
            renewal,
        }
    }

    /// Lets others have the session.
    pub async fn release(self) {
        // The task may have ended: the lease was lost.
        let _ = self.stop.send(());
        let _ = self.renewal.await;
    }
}
