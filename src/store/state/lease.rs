//! The lease of a session: one run at a time, over processes and machines.
//!
//! The record is never removed; its epoch grows at each acquisition, so that a store can refuse late
//! writes of an earlier holder. Clocks of two machines are never compared: a contender takes over when
//! it has itself watched the record stay unchanged for one TTL, when the server's clock says so, or
//! when the holder was a process of this machine that is gone.

use std::collections::HashSet;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::{Inserted, SharedStateStore, StateKey, StateKind, StateRecord, StoreClock, Swapped};
use crate::base::clock::SharedClock;
use crate::base::crash::crash_point;
use crate::base::id;
use crate::base::process::ProcessId;
use crate::base::telemetry;
use crate::error::{ErrorKind, KernelError, Result};
use crate::protocol::Json;

/// How leases are timed.
#[derive(Clone, Copy, Debug)]
pub struct LeaseTimes {
    /// After this time without a renewal others may take the lease.
    pub ttl: Duration,
    pub renew_every: Duration,
    /// How often a contender looks.
    pub poll_every: Duration,
}

impl Default for LeaseTimes {
    fn default() -> Self {
        Self {
            ttl: Duration::from_secs(15),
            renew_every: Duration::from_secs(5),
            poll_every: Duration::from_millis(250),
        }
    }
}

/// The session that a lease is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseKey {
    pub project: Arc<str>,
    pub session: Arc<str>,
}

/// Who holds a lease.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    #[serde(flatten)]
    pub process: ProcessId,
    /// Tells apart the leases of one process.
    pub nonce: String,
}

/// What the record holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Body {
    owner: Owner,
    epoch: u64,
    /// Grows with each renewal.
    beat: u64,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Held,
    Free,
}

/// Leases that this process holds, by nonce.
static LIVE: LazyLock<Mutex<HashSet<String>>> = LazyLock::new(Mutex::default);

fn live() -> std::sync::MutexGuard<'static, HashSet<String>> {
    // A set of words: whole after every statement.
    LIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The place of a lease among those of this process, for as long as it lives: of a contender that is
/// given up in the middle nothing stays that holds others up.
struct Live(String);

impl Live {
    fn enter() -> Self {
        let nonce = id::random();
        live().insert(nonce.clone());
        Self(nonce)
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        live().remove(&self.0);
    }
}

/// A held lease. Dropping it without [`Lease::release`] leaves the record to expire for other
/// machines; this one sees at once that nobody holds it.
pub struct Lease {
    store: SharedStateStore,
    clock: SharedClock,
    times: LeaseTimes,
    key: StateKey,
    body: Body,
    version: u64,
    renewed_at: Instant,
    _live: Live,
}

/// What a contender has seen of a holder.
struct Watch {
    owner: Owner,
    beat: u64,
    since: Instant,
}

impl Lease {
    /// Takes the lease, waiting at most `wait` for another process. A holder in this process is not
    /// waited for. Fails with [`ErrorKind::SessionBusy`].
    pub async fn acquire(
        store: SharedStateStore,
        clock: SharedClock,
        key: &LeaseKey,
        times: LeaseTimes,
        wait: Duration,
    ) -> Result<Self> {
        let live = Live::enter();
        let contender = Contender {
            key: StateKey {
                project: key.project.clone(),
                kind: StateKind::Lease,
                key: key.session.to_string(),
            },
            owner: Owner {
                process: ProcessId::current().clone(),
                nonce: live.0.clone(),
            },
            store,
            clock,
            times,
        };
        contender.take(live, wait).await
    }

    /// Grows with each acquisition of the session's lease.
    pub fn epoch(&self) -> u64 {
        self.body.epoch
    }

    /// Renews until the lease is lost, which it tells.
    pub async fn keep(&mut self) -> KernelError {
        loop {
            self.clock.sleep(self.times.renew_every).await;
            let body = Body {
                beat: self.body.beat + 1,
                ..self.body.clone()
            };
            match self.write(body).await {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::SessionLeaseLost => return error,
                Err(error) => {
                    tracing::warn!(target: telemetry::SESSION, code = error.code(), "lease was not renewed");
                    if self.clock.instant() - self.renewed_at >= self.times.ttl {
                        return lost();
                    }
                }
            }
        }
    }

    /// Gives the lease back. A failure only makes others wait.
    pub async fn release(mut self) {
        let body = Body {
            state: State::Free,
            ..self.body.clone()
        };
        if let Err(error) = self.write(body).await {
            tracing::debug!(target: telemetry::SESSION, code = error.code(), "lease was not released");
        }
        crash_point!("lease.released");
    }

    async fn write(&mut self, body: Body) -> Result<()> {
        let mut record = record(&self.key, &body)?;
        record.expires_at = Some(self.store.now().await? + millis(self.times.ttl));
        match self.store.swap(&record, self.version).await? {
            Swapped::Done(version) => self.version = version,
            // A write that reported an error may have landed all the same.
            Swapped::Conflict(Some(found)) if read(&found) == Some(body.clone()) => {
                self.version = found.version;
            }
            Swapped::Conflict(_) => return Err(lost()),
        }
        self.body = body;
        self.renewed_at = self.clock.instant();
        Ok(())
    }
}

/// Somebody who wants a lease.
struct Contender {
    store: SharedStateStore,
    clock: SharedClock,
    times: LeaseTimes,
    key: StateKey,
    owner: Owner,
}

impl Contender {
    async fn take(self, live: Live, wait: Duration) -> Result<Lease> {
        let start = self.clock.instant();
        let mut watch: Option<Watch> = None;
        loop {
            let found = self.store.get(&self.key).await?;
            if let Some(taken) = self.attempt(found.as_ref(), &mut watch).await? {
                let (body, version) = taken;
                crash_point!("lease.acquired");
                let renewed_at = self.clock.instant();
                return Ok(Lease {
                    store: self.store,
                    clock: self.clock,
                    times: self.times,
                    key: self.key,
                    body,
                    version,
                    renewed_at,
                    _live: live,
                });
            }
            if self.clock.instant() - start >= wait {
                return Err(busy("another process"));
            }
            self.clock.sleep(self.times.poll_every).await;
        }
    }

    /// One try; none when the lease is held or somebody was faster.
    async fn attempt(
        &self,
        found: Option<&StateRecord>,
        watch: &mut Option<Watch>,
    ) -> Result<Option<(Body, u64)>> {
        let Some(found) = found else {
            let body = self.body(1);
            let record = self.record(&body).await?;
            let done = self.store.insert(&record).await? == Inserted::Done;
            return Ok(done.then_some((body, 1)));
        };
        let held = read(found);
        if let Some(held) = &held
            && !self.may_take(found, held, watch).await?
        {
            return Ok(None);
        }
        // An unreadable record is nobody's; its version still orders the epochs.
        let epoch = held.map_or(found.version, |held| held.epoch) + 1;
        let body = self.body(epoch);
        let record = self.record(&body).await?;
        match self.store.swap(&record, found.version).await? {
            Swapped::Done(version) => Ok(Some((body, version))),
            Swapped::Conflict(_) => Ok(None),
        }
    }

    async fn may_take(
        &self,
        found: &StateRecord,
        held: &Body,
        watch: &mut Option<Watch>,
    ) -> Result<bool> {
        if held.state == State::Free || held.owner.process.is_gone() {
            return Ok(true);
        }
        if held.owner.process == *ProcessId::current() {
            return if live().contains(&held.owner.nonce) {
                Err(busy("another session object of this process"))
            } else {
                Ok(true)
            };
        }
        if self.store.caps().clock == StoreClock::Server {
            let now = self.store.now().await?;
            return Ok(found.expires_at.is_none_or(|expires_at| expires_at < now));
        }
        let seen = watch
            .as_ref()
            .filter(|watch| watch.owner == held.owner && watch.beat == held.beat);
        let Some(seen) = seen else {
            *watch = Some(Watch {
                owner: held.owner.clone(),
                beat: held.beat,
                since: self.clock.instant(),
            });
            return Ok(false);
        };
        Ok(self.clock.instant() - seen.since >= self.times.ttl)
    }

    fn body(&self, epoch: u64) -> Body {
        Body {
            owner: self.owner.clone(),
            epoch,
            beat: 0,
            state: State::Held,
        }
    }

    async fn record(&self, body: &Body) -> Result<StateRecord> {
        let mut record = record(&self.key, body)?;
        record.expires_at = Some(self.store.now().await? + millis(self.times.ttl));
        Ok(record)
    }
}

fn record(key: &StateKey, body: &Body) -> Result<StateRecord> {
    let data = serde_json::to_value(body)
        .map_err(|error| KernelError::new(ErrorKind::Internal, error.to_string()))?;
    Ok(StateRecord {
        key: key.clone(),
        // Not of the conversation: the record outlives it, so that epochs never start again.
        conversation: None,
        user: None,
        version: 0,
        data,
        expires_at: None,
    })
}

fn read(record: &StateRecord) -> Option<Body> {
    let data: &Json = &record.data;
    Body::deserialize(data).ok()
}

fn busy(who: &str) -> KernelError {
    KernelError::new(
        ErrorKind::SessionBusy,
        format!("the session has a run in progress in {who}: try again when it is over"),
    )
}

fn lost() -> KernelError {
    KernelError::new(
        ErrorKind::SessionLeaseLost,
        "the session was taken over by another process: this run was ended",
    )
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::clock::SystemClock;
    use crate::store::state::{MemoryState, StateCaps, StateQuery, StateStore};

    const WAIT: Duration = Duration::from_secs(20);

    fn key() -> LeaseKey {
        LeaseKey {
            project: "p".into(),
            session: "s".into(),
        }
    }

    async fn acquire(store: &Arc<MemoryState>) -> Result<Lease> {
        let clock: SharedClock = Arc::new(SystemClock);
        Lease::acquire(store.clone(), clock, &key(), LeaseTimes::default(), WAIT).await
    }

    fn store() -> Arc<MemoryState> {
        Arc::new(MemoryState::new(Arc::new(SystemClock)))
    }

    /// Makes the stored lease that of another machine.
    async fn give_away(store: &MemoryState) {
        let key = StateKey {
            project: "p".into(),
            kind: StateKind::Lease,
            key: "s".into(),
        };
        let mut record = store.get(&key).await.unwrap().unwrap();
        record.data["owner"]["host"] = "elsewhere".into();
        store.swap(&record, record.version).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn epochs_grow_and_a_holder_in_this_process_is_not_waited_for() {
        let store = store();
        let first = acquire(&store).await.unwrap();
        assert_eq!(first.epoch(), 1);
        let start = Instant::now();
        let error = acquire(&store).await.err().unwrap();
        assert_eq!(error.kind(), ErrorKind::SessionBusy);
        assert!(start.elapsed() < Duration::from_secs(1));
        first.release().await;
        let second = acquire(&store).await.unwrap();
        assert_eq!(second.epoch(), 2);
        drop(second);
        assert_eq!(acquire(&store).await.unwrap().epoch(), 3);
    }

    /// Loses its caller in the middle of a write.
    struct Slow(MemoryState);

    #[async_trait::async_trait]
    impl StateStore for Slow {
        fn caps(&self) -> StateCaps {
            self.0.caps()
        }

        async fn get(&self, key: &StateKey) -> Result<Option<StateRecord>> {
            self.0.get(key).await
        }

        async fn insert(&self, record: &StateRecord) -> Result<Inserted> {
            let done = self.0.insert(record).await;
            tokio::time::sleep(Duration::from_mins(1)).await;
            done
        }

        async fn swap(&self, record: &StateRecord, expected: u64) -> Result<Swapped> {
            self.0.swap(record, expected).await
        }

        async fn remove(&self, key: &StateKey, expected: Option<u64>) -> Result<Swapped> {
            self.0.remove(key, expected).await
        }

        async fn list(&self, query: &StateQuery) -> Result<Vec<StateRecord>> {
            self.0.list(query).await
        }

        async fn forget(&self, project: &str, conversation: &str) -> Result<()> {
            self.0.forget(project, conversation).await
        }

        async fn now(&self) -> Result<u64> {
            self.0.now().await
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_contender_that_is_given_up_after_its_write_holds_nobody_up() {
        let clock: SharedClock = Arc::new(SystemClock);
        let store = Arc::new(Slow(MemoryState::new(clock.clone())));
        let times = LeaseTimes::default();
        let key = key();
        let first = Lease::acquire(store.clone(), clock.clone(), &key, times, WAIT);
        let short = tokio::time::timeout(Duration::from_secs(1), first);
        assert!(
            short.await.is_err(),
            "given up after the record was written"
        );
        let second = Lease::acquire(store, clock, &key, times, WAIT).await;
        assert_eq!(second.unwrap().epoch(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn another_machine_is_watched_for_one_ttl() {
        let store = store();
        let mut first = acquire(&store).await.unwrap();
        give_away(&store).await;
        let start = Instant::now();
        let second = acquire(&store).await.unwrap();
        assert!(start.elapsed() >= LeaseTimes::default().ttl);
        assert_eq!(second.epoch(), 2);
        assert_eq!(first.keep().await.kind(), ErrorKind::SessionLeaseLost);
    }

    #[tokio::test(start_paused = true)]
    async fn a_holder_that_renews_is_left_alone() {
        let store = store();
        let mut first = acquire(&store).await.unwrap();
        give_away(&store).await;
        first.body.owner.process.host = "elsewhere".into();
        first.version += 1;
        tokio::select! {
            error = first.keep() => panic!("{error}"),
            second = acquire(&store) => {
                assert_eq!(second.err().unwrap().kind(), ErrorKind::SessionBusy);
            }
        }
    }
}
