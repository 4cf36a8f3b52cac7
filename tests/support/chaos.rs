//! A session store around another one that fails, dawdles and repeats itself, by chance or by a script.
//!
//! Included with `#[path]`.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use fastrand::Rng;
use open_agent_kernel::error::{ErrorKind, KernelError, Result};
use open_agent_kernel::protocol::StoredEntry;
use open_agent_kernel::store::session::{
    Caps, Head, IndexRow, ListCursor, Loaded, Placed, Registration, SessionKey, SessionRow,
    SessionStore, SharedSessionStore,
};
use open_agent_kernel::store::state::StateStore;
use tokio::time::sleep;

/// Longest wait that chance makes.
const LONGEST: u64 = 1_500;

/// What happens to one call.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    Calm,
    /// The call is not made.
    Refused(ErrorKind),
    /// It is made after a while; not at all when the caller has gone by then.
    Delayed(Duration),
    /// It is made, and an error is told.
    Misreported,
    /// It is made twice.
    Doubled,
    /// An error is told at once, and the call is made after a while.
    Late(Duration),
    /// Nothing is ever told, and the call is not made.
    Hanging,
}

/// Where faults come from.
enum Source {
    Chance(Rng),
    /// Of appends, in order; calm behind the last one.
    Script(VecDeque<Fault>),
}

/// The store.
pub struct Chaos {
    inner: SharedSessionStore,
    source: Mutex<Source>,
    is_calm: AtomicBool,
    appends: Mutex<Vec<usize>>,
}

impl Chaos {
    /// Faults of every call by a seed.
    pub fn seeded(inner: SharedSessionStore, seed: u64) -> Arc<Self> {
        Self::around(inner, Source::Chance(Rng::with_seed(seed)))
    }

    /// These faults, each of one append.
    pub fn scripted(inner: SharedSessionStore, faults: &[Fault]) -> Arc<Self> {
        Self::around(inner, Source::Script(faults.iter().copied().collect()))
    }

    fn around(inner: SharedSessionStore, source: Source) -> Arc<Self> {
        Arc::new(Self {
            inner,
            source: Mutex::new(source),
            is_calm: AtomicBool::new(false),
            appends: Mutex::default(),
        })
    }

    /// No faults from now on.
    pub fn calm_down(&self) {
        self.is_calm.store(true, Ordering::SeqCst);
    }

    /// Sizes of the appends that were asked for.
    pub fn appends(&self) -> Vec<usize> {
        self.appends.lock().unwrap().clone()
    }

    fn fault(&self, is_append: bool) -> Fault {
        if self.is_calm.load(Ordering::SeqCst) {
            return Fault::Calm;
        }
        match &mut *self.source.lock().unwrap() {
            Source::Script(faults) if is_append => faults.pop_front().unwrap_or(Fault::Calm),
            Source::Script(_) => Fault::Calm,
            Source::Chance(rng) => by_chance(rng),
        }
    }

    /// Makes a call, or does what chance says.
    async fn disturb<T, F>(
        &self,
        is_append: bool,
        call: impl Fn(SharedSessionStore) -> F,
    ) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let call = || call(self.inner.clone());
        match self.fault(is_append) {
            Fault::Calm => call().await,
            Fault::Refused(kind) => Err(KernelError::new(kind, "chaos: refused")),
            Fault::Delayed(time) => {
                sleep(time).await;
                call().await
            }
            Fault::Misreported => {
                call().await?;
                Err(KernelError::new(ErrorKind::Store, "chaos: no answer"))
            }
            Fault::Doubled => {
                call().await?;
                call().await
            }
            Fault::Late(time) => {
                let call = call();
                tokio::spawn(async move {
                    sleep(time).await;
                    // Nobody is there to hear of it.
                    let _ = call.await;
                });
                Err(KernelError::new(ErrorKind::Store, "chaos: gone"))
            }
            Fault::Hanging => std::future::pending().await,
        }
    }
}

fn by_chance(rng: &mut Rng) -> Fault {
    let time = Duration::from_millis(rng.u64(..LONGEST));
    match rng.u8(..12) {
        0 => Fault::Refused(ErrorKind::Store),
        1 => Fault::Delayed(time),
        2 => Fault::Misreported,
        3 => Fault::Doubled,
        4 => Fault::Late(time),
        5 => Fault::Hanging,
        // A store that is away for a while: the attempts of one append all fail.
        6 | 7 => Fault::Refused(ErrorKind::StoreUnavailable),
        _ => Fault::Calm,
    }
}

/// Passes a call on, with copies of what it borrows.
macro_rules! pass {
    ($self:ident, $is_append:literal, [$($name:ident),*], $method:ident($($arg:expr),*)) => {{
        $(let $name = $name.to_owned();)*
        $self
            .disturb($is_append, move |store| {
                $(let $name = $name.clone();)*
                async move { store.$method($($arg),*).await }
            })
            .await
    }};
}

#[async_trait]
impl SessionStore for Chaos {
    fn caps(&self) -> Caps {
        self.inner.caps()
    }

    async fn append(
        &self,
        key: &SessionKey,
        entries: &[StoredEntry],
        epoch: Option<u64>,
    ) -> Result<u64> {
        self.appends.lock().unwrap().push(entries.len());
        pass!(self, true, [key, entries], append(&key, &entries, epoch))
    }

    async fn replace(&self, key: &SessionKey, entry: &StoredEntry) -> Result<bool> {
        pass!(self, false, [key, entry], replace(&key, &entry))
    }

    async fn fence(&self, project: &str, session: &str, epoch: u64) -> Result<()> {
        pass!(
            self,
            false,
            [project, session],
            fence(&project, &session, epoch)
        )
    }

    async fn head(&self, key: &SessionKey) -> Result<Option<Head>> {
        pass!(self, false, [key], head(&key))
    }

    async fn load(&self, key: &SessionKey, after: Option<u64>) -> Result<Option<Loaded>> {
        pass!(self, false, [key], load(&key, after))
    }

    async fn tail(&self, key: &SessionKey, count: usize) -> Result<Vec<Placed>> {
        pass!(self, false, [key], tail(&key, count))
    }

    async fn by_message_ids(&self, key: &SessionKey, ids: &[String]) -> Result<Vec<Placed>> {
        pass!(self, false, [key, ids], by_message_ids(&key, &ids))
    }

    async fn index(
        &self,
        project: &str,
        session: &str,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<IndexRow>> {
        pass!(
            self,
            false,
            [project, session],
            index(&project, &session, before, limit)
        )
    }

    async fn hide_through(&self, project: &str, session: &str, seq: u64) -> Result<()> {
        pass!(
            self,
            false,
            [project, session],
            hide_through(&project, &session, seq)
        )
    }

    async fn register(
        &self,
        project: &str,
        session: &str,
        registration: &Registration,
    ) -> Result<()> {
        pass!(
            self,
            false,
            [project, session, registration],
            register(&project, &session, &registration)
        )
    }

    async fn get(&self, project: &str, session: &str) -> Result<Option<SessionRow>> {
        pass!(self, false, [project, session], get(&project, &session))
    }

    async fn list(
        &self,
        project: &str,
        user: Option<&str>,
        after: Option<&ListCursor>,
        limit: usize,
    ) -> Result<Vec<SessionRow>> {
        let user = user.map(str::to_owned);
        let after = after.cloned();
        pass!(
            self,
            false,
            [project, user, after],
            list(&project, user.as_deref(), after.as_ref(), limit)
        )
    }

    async fn subkeys(&self, project: &str, session: &str) -> Result<Vec<String>> {
        pass!(self, false, [project, session], subkeys(&project, &session))
    }

    async fn delete(&self, key: &SessionKey) -> Result<()> {
        pass!(self, false, [key], delete(&key))
    }

    async fn finish(&self, key: &SessionKey) -> Result<()> {
        pass!(self, false, [key], finish(&key))
    }

    fn state(&self) -> Option<Arc<dyn StateStore>> {
        self.inner.state()
    }
}
