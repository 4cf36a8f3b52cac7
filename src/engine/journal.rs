//! Writing the entries of a session to its store.
//!
//! Entries are queued in order. One writer task at a time stores what is queued: entries that come
//! while an append is under way go together into the next one. An entry that could not be stored stays
//! queued and is offered again; appends are idempotent on the uuid of an entry.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};

use crate::base::clock::SharedClock;
use crate::base::crash::crash_point;
use crate::base::telemetry;
use crate::error::{ErrorKind, KernelError, Result};
use crate::protocol::{Entry, Json, StoredEntry};
use crate::store::session::{
    Head, Loaded, Placed, Registration, SessionKey, SharedSessionStore, fenced_out,
};

/// Waits between the attempts at an append.
const PAUSES: [Duration; 3] = [
    Duration::from_millis(200),
    Duration::from_millis(800),
    Duration::from_secs(2),
];
/// Most entries that go into one append.
const BATCH: usize = 500;
/// What the entries of this kernel say of their writer, beside their own fields.
const WRITER: [(&str, &str); 3] = [
    ("userType", "external"),
    ("entrypoint", "sdk-ts"),
    ("version", env!("CARGO_PKG_VERSION")),
];

/// How a session is stored.
#[derive(Clone)]
pub struct JournalSettings {
    pub store: SharedSessionStore,
    pub key: SessionKey,
    /// How long a run waits for its entries to be stored.
    pub timeout: Duration,
    /// Whether each entry is an append of its own.
    pub eager: bool,
    /// Whether a run goes on when its entries cannot be stored.
    pub lenient: bool,
    pub clock: SharedClock,
}

/// The way of a session's entries to its store.
pub struct Journal {
    settings: JournalSettings,
    state: Mutex<State>,
    /// Changes whenever the writer has stored something or given up.
    progress: watch::Sender<u64>,
    /// Somebody waits for the entries: the writer need not wait until its next attempt.
    offered: Notify,
}

#[derive(Default)]
struct State {
    queue: VecDeque<StoredEntry>,
    /// Grows when the queue is given up: what belongs to an earlier one has no say any more.
    generation: u64,
    is_writing: bool,
    failure: Option<KernelError>,
    epoch: Option<u64>,
    registration: Option<Registration>,
    /// Where the transcript ends as far as this process knows; none before the first look.
    known: Option<Known>,
}

/// The end of a transcript.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Known {
    head: Head,
    /// Of the newest entry, for stores that have no head.
    uuid: Option<String>,
}

impl std::fmt::Debug for Journal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Journal").finish_non_exhaustive()
    }
}

impl Journal {
    pub fn new(settings: JournalSettings) -> Arc<Self> {
        let (progress, _) = watch::channel(0);
        Arc::new(Self {
            settings,
            state: Mutex::default(),
            progress,
            offered: Notify::new(),
        })
    }

    pub fn store(&self) -> &SharedSessionStore {
        &self.settings.store
    }

    pub fn key(&self) -> &SessionKey {
        &self.settings.key
    }

    /// Whether a run goes on when its entries cannot be stored.
    pub fn is_lenient(&self) -> bool {
        self.settings.lenient
    }

    /// Appends of this writer carry the epoch from now on.
    pub fn set_epoch(&self, epoch: Option<u64>) {
        self.state().epoch = epoch;
    }

    /// Says what must be known of the session before its first entry is stored.
    pub fn set_registration(&self, registration: Registration) {
        self.state().registration = Some(registration);
    }

    /// Stores the registration, if it is not stored yet.
    pub async fn register(&self) -> Result<()> {
        let Some(registration) = self.state().registration.clone() else {
            return Ok(());
        };
        let SessionKey {
            project, session, ..
        } = &self.settings.key;
        let work = self
            .settings
            .store
            .register(project, session, &registration);
        self.within_time(work).await?;
        let mut state = self.state();
        if state.registration.as_ref() == Some(&registration) {
            state.registration = None;
        }
        Ok(())
    }

    /// Queues entries and starts to store them. Needs a tokio runtime.
    pub fn push(self: &Arc<Self>, entries: &[Entry]) {
        let stored = entries.iter().filter_map(|entry| stored(entry).ok());
        self.state().queue.extend(stored);
        self.start();
    }

    /// Whether entries wait to be stored.
    pub fn has_unstored(&self) -> bool {
        !self.state().queue.is_empty()
    }

    /// Waits until every queued entry is stored, at most the time that the settings give. On failure
    /// the entries stay queued, unless another process has the session: then they are forgotten.
    pub async fn flush(self: &Arc<Self>) -> Result<()> {
        let mut progress = self.progress.subscribe();
        let generation = self.state().generation;
        self.start();
        self.offered.notify_waiters();
        let stored = async {
            loop {
                {
                    let state = self.state();
                    if state.generation != generation {
                        return Err(fenced_out());
                    }
                    if state.queue.is_empty() && !state.is_writing {
                        return Ok(());
                    }
                    if let Some(error) = state.failure.clone().filter(|_| !state.is_writing) {
                        return Err(error);
                    }
                }
                // The sender lives in `self`.
                let _ = progress.changed().await;
            }
        };
        let timeout = self.settings.timeout;
        let result = tokio::select! {
            biased;
            result = stored => result,
            () = self.settings.clock.sleep(timeout) => Err(KernelError::new(
                ErrorKind::Store,
                format!("no answer within {} ms", timeout.as_millis()),
            )),
        };
        result.map_err(|error| {
            if error.kind() == ErrorKind::SessionLeaseLost {
                self.give_up(generation);
            }
            self.unavailable(&error)
        })
    }

    /// Says that the transcript does not exist yet, as far as this process knows.
    pub fn assume_new(&self) {
        self.state().known = Some(Known::default());
    }

    /// Forgets what is queued: another process has the session, its transcript decides.
    pub fn abandon(&self) {
        let generation = self.state().generation;
        self.give_up(generation);
    }

    /// Forgets a queue and lets go of its writer, whose append may still be under way.
    fn give_up(&self, generation: u64) {
        let mut state = self.state();
        if state.generation != generation {
            return;
        }
        state.generation += 1;
        state.queue.clear();
        state.is_writing = false;
        state.failure = None;
        state.known = None;
        drop(state);
        self.offered.notify_waiters();
        self.progress.send_modify(|step| *step += 1);
    }

    /// Looks whether others have written to the transcript, and loads it if so. None when what this
    /// process knows is all there is.
    pub async fn changes(&self) -> Result<Option<Loaded>> {
        let known = self.state().known.clone();
        if let Some(known) = known
            && self.is_current(&known).await?
        {
            return Ok(None);
        }
        let load = self.settings.store.load(&self.settings.key, None);
        let loaded = self.within_time(load).await?.unwrap_or_default();
        let last = loaded.entries.last();
        self.state().known = Some(Known {
            head: Head {
                seq: last.map_or(0, |placed| placed.seq),
                count: loaded.entries.len() as u64,
            },
            uuid: last.and_then(|placed| placed.entry.uuid.clone()),
        });
        Ok(Some(loaded))
    }

    /// Whether others have written to the transcript since this process stored its last entry: what
    /// is queued here no longer follows from it. Entries of the queue that arrived although an error
    /// was told do not count.
    pub async fn is_outrun(&self) -> Result<bool> {
        let look = async {
            let (known, queued) = {
                let state = self.state();
                let queued: HashSet<_> =
                    state.queue.iter().map(|entry| entry.uuid.clone()).collect();
                (state.known.clone(), queued)
            };
            let Some(known) = known else {
                return Ok(false);
            };
            if self.settings.store.caps().head && self.is_current(&known).await? {
                return Ok(false);
            }
            let after = Some(known.head.seq);
            let load = self.settings.store.load(&self.settings.key, after);
            let behind = self.within_time(load).await?.unwrap_or_default().entries;
            let is_own = |placed: &Placed| queued.contains(&placed.entry.uuid);
            Ok(!behind.iter().all(is_own))
        };
        look.await
            .map_err(|error: KernelError| self.unavailable(&error))
    }

    /// Whether the transcript ends where this process left it. A store that cannot tell is read anew.
    async fn is_current(&self, known: &Known) -> Result<bool> {
        let (store, key) = (&self.settings.store, &self.settings.key);
        let caps = store.caps();
        if caps.head {
            let head = self.within_time(store.head(key)).await?;
            return Ok(head.unwrap_or_default() == known.head);
        }
        if !caps.tail || known.uuid.is_none() {
            return Ok(false);
        }
        let tail = self.within_time(store.tail(key, 1)).await?;
        Ok(tail
            .last()
            .is_some_and(|placed| placed.entry.uuid == known.uuid))
    }

    fn start(self: &Arc<Self>) {
        let generation = {
            let mut state = self.state();
            if state.is_writing || state.queue.is_empty() {
                return;
            }
            state.is_writing = true;
            state.failure = None;
            state.generation
        };
        let journal = self.clone();
        tokio::spawn(async move { journal.write(generation).await });
    }

    /// Stores what is queued until nothing is left or the store fails.
    async fn write(self: Arc<Self>, generation: u64) {
        let mut guard = WriterGuard {
            journal: &self,
            generation,
            failure: Some(KernelError::new(
                ErrorKind::Internal,
                "the session store failed in an unexpected way",
            )),
        };
        self.register_first().await;
        loop {
            let batch = self.batch(generation);
            let Some(last) = batch.last() else {
                guard.failure = None;
                return;
            };
            match self.append(&batch, generation).await {
                Ok(seq) => self.stored(generation, batch.len(), seq, last.uuid.clone()),
                Err(error) => {
                    tracing::warn!(
                        target: telemetry::SESSION,
                        code = error.code(),
                        entries = batch.len(),
                        "entries were not stored"
                    );
                    guard.failure = Some(error);
                    return;
                }
            }
        }
    }

    /// Tries to store the registration before an entry. One that fails, or takes its time, does not hold
    /// up the entries: it is tried again with the next ones.
    async fn register_first(&self) {
        let patience = self.settings.timeout / 4;
        let registered = tokio::select! {
            biased;
            registered = self.register() => registered,
            () = self.settings.clock.sleep(patience) => Err(KernelError::new(
                ErrorKind::Store,
                "the session store takes its time",
            )),
        };
        if let Err(error) = registered {
            tracing::warn!(target: telemetry::SESSION, code = error.code(), "session was not registered");
        }
    }

    /// The next entries. None: the writer is done, and what is pushed from now on starts another one.
    fn batch(&self, generation: u64) -> Vec<StoredEntry> {
        let mut state = self.state();
        if state.generation != generation {
            return Vec::new();
        }
        let most = if self.settings.eager { 1 } else { BATCH };
        let batch: Vec<_> = state.queue.iter().take(most).cloned().collect();
        state.is_writing = !batch.is_empty();
        batch
    }

    async fn append(&self, batch: &[StoredEntry], generation: u64) -> Result<u64> {
        let (store, key) = (&self.settings.store, &self.settings.key);
        let mut pauses = PAUSES.iter();
        loop {
            let epoch = {
                let state = self.state();
                if state.generation != generation {
                    return Err(fenced_out());
                }
                state.epoch
            };
            crash_point!("journal.append.begun");
            let result = self.within_time(store.append(key, batch, epoch)).await;
            crash_point!("journal.append.ended");
            let error = match result {
                Ok(seq) => return Ok(seq),
                Err(error) => error,
            };
            let pause = pauses.next().filter(|_| error.is_retryable());
            let Some(pause) = pause.filter(|_| error.kind() != ErrorKind::SessionLeaseLost) else {
                return Err(error);
            };
            tokio::select! {
                () = self.settings.clock.sleep(*pause) => {}
                () = self.offered.notified() => {}
            }
        }
    }

    fn stored(&self, generation: u64, count: usize, seq: u64, uuid: Option<String>) {
        let mut state = self.state();
        if state.generation != generation {
            return;
        }
        state.queue.drain(..count);
        let known = state.known.get_or_insert_default();
        known.head.seq = seq;
        known.head.count += count as u64;
        known.uuid = uuid;
        drop(state);
        self.progress.send_modify(|step| *step += 1);
    }

    async fn within_time<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        let timeout = self.settings.timeout;
        tokio::select! {
            biased;
            result = work => result,
            () = self.settings.clock.sleep(timeout) => Err(KernelError::new(
                ErrorKind::Store,
                format!("the session store did not answer within {} ms", timeout.as_millis()),
            )),
        }
    }

    fn unavailable(&self, error: &KernelError) -> KernelError {
        if error.kind() == ErrorKind::SessionLeaseLost {
            return fenced_out();
        }
        let state = self.state();
        let unsaved: Vec<Json> = state
            .queue
            .iter()
            .filter_map(|entry| entry.uuid.clone().map(Json::from))
            .collect();
        let message = format!(
            "the session store does not take new entries ({}); they are kept and offered again",
            error.message()
        );
        KernelError::new(ErrorKind::StoreUnavailable, message)
            .with_detail("unsaved", unsaved)
            .with_detail("cause", error.code())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change is one statement, or a queue and a number that are checked before use.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends a writer: with what made it give up, or with nothing when it is done. A panic is told as well.
struct WriterGuard<'a> {
    journal: &'a Arc<Journal>,
    generation: u64,
    failure: Option<KernelError>,
}

impl Drop for WriterGuard<'_> {
    fn drop(&mut self) {
        if let Some(failure) = self.failure.take() {
            let mut state = self.journal.state();
            if state.generation == self.generation {
                state.is_writing = false;
                state.failure = Some(failure);
            }
        }
        self.journal.progress.send_modify(|step| *step += 1);
    }
}

/// An entry as it is stored: with what readers of other kernels look for.
fn stored(entry: &Entry) -> serde_json::Result<StoredEntry> {
    let mut entry = entry.clone();
    for (key, value) in WRITER {
        let value = || Json::from(value);
        entry.extra.entry(key).or_insert_with(value);
    }
    StoredEntry::of(&entry)
}
