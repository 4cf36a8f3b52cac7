//! Where sessions are kept, and who may write to one.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::base::cancel::{Interrupt, Interrupter};
use crate::base::clock::{SharedClock, SystemClock};
use crate::engine::{Journal, JournalSettings};
use crate::error::Result;
use crate::store::session::{MemoryStore, SessionKey, SharedSessionStore};
use crate::store::state::{Lease, LeaseKey, LeaseTimes, MemoryState, SharedStateStore};

use super::config::session::SessionSettings;

/// Leases of sessions whose store keeps no state: they hold within this process only.
static PROCESS_STATE: LazyLock<Arc<MemoryState>> =
    LazyLock::new(|| Arc::new(MemoryState::new(Arc::new(SystemClock))));

/// The store of some sessions, with all that is needed to write to it.
#[derive(Clone)]
pub struct Storage {
    store: SharedSessionStore,
    project: Arc<str>,
    /// Where leases are; none when nobody else can know the sessions.
    state: Option<SharedStateStore>,
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
        let state = store.state().unwrap_or_else(|| PROCESS_STATE.clone());
        Some(Self {
            state: Some(state),
            ..Self::around(store, settings, clock)
        })
    }

    /// A store for one session, which lives as long as its object.
    pub fn private(settings: &SessionSettings, clock: &SharedClock) -> Self {
        Self::around(Arc::new(MemoryStore::new(clock.clone())), settings, clock)
    }

    fn around(store: SharedSessionStore, settings: &SessionSettings, clock: &SharedClock) -> Self {
        Self {
            store,
            project: settings.project.clone(),
            state: None,
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

    pub fn project(&self) -> &str {
        &self.project
    }

    /// Where records about the sessions are; none when nobody else can know them.
    pub fn state(&self) -> Option<&SharedStateStore> {
        self.state.as_ref()
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
