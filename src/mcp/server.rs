//! One server: its connection is made when it is needed, shared, and made again when it broke.

use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::instrument::WithSubscriber;

use super::connection::{Connection, Fault, Opening, ToolCall};
use super::diagnosis::Diagnosis;
use super::listing::Listing;
use super::settings::ServerSettings;
use super::transport::Dial;
use super::wire::OpenGuard;
use crate::base::clock::SharedClock;
use crate::base::telemetry;
use crate::error::{ErrorKind, KernelError, Result};
use crate::protocol::Json;

/// Wait after a first failure; it doubles with each further one.
const BACK_OFF: Duration = Duration::from_millis(500);
/// Longest wait.
const LONGEST_BACK_OFF: Duration = Duration::from_secs(30);
/// A connection that lasted so long was a good one.
const GOOD_LIFE: Duration = Duration::from_secs(30);
/// Pause between two lists, for servers that never stop announcing changes.
const LIST_PAUSE: Duration = Duration::from_millis(100);

/// One server.
pub(super) struct Server {
    settings: ServerSettings,
    dial: Box<dyn Dial>,
    clock: SharedClock,
    state: Mutex<State>,
    /// Grows with each change of the state.
    moved: watch::Sender<u64>,
    /// Runs and calls that need the server.
    users: watch::Sender<usize>,
    /// Connections that are not closed yet, of all servers.
    open: watch::Sender<usize>,
    stop: CancellationToken,
}

struct State {
    phase: Phase,
    /// Failures since the last time that the server was of use.
    strikes: u32,
    /// What the server offered last.
    listing: Option<Arc<Listing>>,
}

#[derive(Clone)]
enum Phase {
    /// Nobody needs it.
    Asleep,
    Starting,
    Ready(Arc<Live>),
    Down {
        error: KernelError,
        until: Instant,
    },
}

/// A connection in use.
struct Live {
    connection: Connection,
    since: Instant,
    /// The change of the server's tools that the listing has seen.
    listed: watch::Sender<u64>,
}

/// Says that somebody needs the server, until it is dropped.
#[derive(Debug)]
pub(super) struct Hold(watch::Sender<usize>);

impl Drop for Hold {
    fn drop(&mut self) {
        self.0.send_modify(|users| *users -= 1);
    }
}

impl Server {
    /// Does no I/O.
    pub fn new(
        settings: ServerSettings,
        dial: Box<dyn Dial>,
        clock: SharedClock,
        open: watch::Sender<usize>,
        stop: CancellationToken,
    ) -> Arc<Self> {
        Arc::new(Self {
            settings,
            dial,
            clock,
            state: Mutex::new(State {
                phase: Phase::Asleep,
                strikes: 0,
                listing: None,
            }),
            moved: watch::Sender::new(0),
            users: watch::Sender::new(0),
            open,
            stop,
        })
    }

    pub fn settings(&self) -> &ServerSettings {
        &self.settings
    }

    pub fn clock(&self) -> &SharedClock {
        &self.clock
    }

    /// Keeps the server from being ended as unused.
    pub fn hold(&self) -> Hold {
        self.users.send_modify(|users| *users += 1);
        Hold(self.users.clone())
    }

    /// Connects in the background, unless there is a connection, or the last attempt failed just now.
    /// Needs a tokio runtime.
    pub fn wake(self: &Arc<Self>) {
        if self.stop.is_cancelled() {
            return;
        }
        self.notice_death();
        let mut state = self.state();
        let is_due = match &state.phase {
            Phase::Asleep => true,
            Phase::Down { until, .. } => self.clock.instant() >= *until,
            Phase::Starting | Phase::Ready(_) => false,
        };
        if is_due {
            state.phase = Phase::Starting;
            drop(state);
            let server = self.clone();
            tokio::spawn(async move { server.live().await }.with_current_subscriber());
        }
    }

    /// Whether there is a connection.
    pub fn is_connected(&self) -> bool {
        matches!(self.state().phase, Phase::Ready(_))
    }

    /// Waits until the server is connected or has failed, and its list of tools is up to date.
    pub async fn settled(&self) {
        let mut moved = self.moved.subscribe();
        while matches!(self.phase(), Phase::Starting) {
            tokio::select! {
                _ = moved.changed() => {}
                () = self.stop.cancelled() => return,
            }
        }
        let Phase::Ready(live) = self.phase() else {
            return;
        };
        let wanted = *live.connection.changes().borrow();
        let mut listed = live.listed.subscribe();
        tokio::select! {
            _ = listed.wait_for(|seen| *seen >= wanted) => {}
            () = live.connection.diagnosis().over() => {}
        }
    }

    /// What the server offers; none when it cannot be used.
    pub fn listing(&self) -> Option<Arc<Listing>> {
        let state = self.state();
        match state.phase {
            Phase::Down { .. } => None,
            _ => state.listing.clone(),
        }
    }

    /// Why the server cannot be used.
    pub fn failure(&self) -> Option<KernelError> {
        match &self.state().phase {
            Phase::Down { error, .. } => Some(error.clone()),
            _ => None,
        }
    }

    /// Calls a tool. Connects first when there is no connection, once; calls again, once, when the
    /// server has forgotten the connection.
    pub async fn call(self: &Arc<Self>, call: ToolCall<'_>) -> Result<Json> {
        let tool = call.name;
        let mut live = self.connected_for(tool).await?;
        let mut result = live.connection.call(call.clone()).await;
        if matches!(result, Err(Fault::Forgotten(_))) {
            live = self.connected_for(tool).await?;
            result = live.connection.call(call).await;
        }
        if matches!(result, Ok(_) | Err(Fault::Refused { .. })) {
            self.state().strikes = 0;
        }
        result.map_err(|fault| {
            let diagnosis = live.connection.diagnosis();
            self.error(&match fault {
                Fault::Gone => {
                    let what = format!(
                        "{} while it ran the tool \"{tool}\"",
                        diagnosis.told_reason()
                    );
                    diagnosis.describe(&what)
                }
                fault => diagnosis.redact(format!("{fault} (call of the tool \"{tool}\")")),
            })
        })
    }

    async fn connected_for(self: &Arc<Self>, tool: &str) -> Result<Arc<Live>> {
        self.connected().await.map_err(|error| {
            let message = format!("the tool \"{tool}\" was not called: {}", error.message());
            KernelError::new(ErrorKind::McpServer, message)
        })
    }

    async fn connected(self: &Arc<Self>) -> Result<Arc<Live>> {
        self.wake();
        let mut moved = self.moved.subscribe();
        loop {
            match self.phase() {
                Phase::Ready(live) => return Ok(live),
                Phase::Down { error, .. } => return Err(error),
                Phase::Asleep => return Err(self.error("was closed")),
                Phase::Starting => {}
            }
            tokio::select! {
                _ = moved.changed() => {}
                () = self.stop.cancelled() => return Err(self.error("was closed")),
            }
        }
    }

    /// One connection, from its beginning to its end.
    async fn live(self: Arc<Self>) {
        let started = tokio::select! {
            biased;
            () = self.stop.cancelled() => return self.change(|state| state.phase = Phase::Asleep),
            started = self.connect() => started,
        };
        let name = &*self.settings.name;
        let (connection, listing) = match started {
            Ok(started) => started,
            Err(error) => {
                tracing::debug!(target: telemetry::MCP, server = name, "server failed to start");
                return self.change(|state| {
                    state.strikes += 1;
                    let until = self.clock.instant() + back_off(state.strikes);
                    state.phase = Phase::Down { error, until };
                });
            }
        };
        tracing::debug!(target: telemetry::MCP, server = name, tools = listing.tools.len(), "server is connected");
        let live = Arc::new(Live {
            connection,
            since: self.clock.instant(),
            listed: watch::Sender::new(0),
        });
        self.change(|state| {
            state.offer(listing);
            state.phase = Phase::Ready(live.clone());
        });
        self.tend(&live).await;
        live.connection.close().await;
        tracing::debug!(target: telemetry::MCP, server = name, "server is disconnected");
    }

    async fn connect(&self) -> Result<(Connection, Listing)> {
        let diagnosis = Arc::new(Diagnosis::new(self.settings.target.secrets()));
        let opening = Opening::new(
            diagnosis.clone(),
            self.clock.clone(),
            OpenGuard::new(&self.open),
        );
        let step = Mutex::new("initialize");
        let work = async {
            let connection = self.dial.dial(opening).await.map_err(|error| {
                let message = format!("could not be started: {}", error.message());
                let failed = self.error(&diagnosis.describe(&message));
                error
                    .status()
                    .map_or(failed.clone(), |status| failed.with_status(status))
            })?;
            let told = |step: &str, fault: &Fault| {
                self.error(&diagnosis.describe(&match fault {
                    Fault::Gone => format!("{} before it answered {step}", diagnosis.told_reason()),
                    fault => format!("{fault} ({step})"),
                }))
            };
            let instructions = connection
                .initialize()
                .await
                .map_err(|fault| told("initialize", &fault))?;
            *step.lock().unwrap_or_else(PoisonError::into_inner) = "tools/list";
            let tools = connection
                .list_tools()
                .await
                .map_err(|fault| told("tools/list", &fault))?;
            Ok((connection, Listing::new(tools, instructions)))
        };
        let limit = self.settings.handshake;
        tokio::select! {
            biased;
            started = work => started,
            () = self.clock.sleep(limit) => {
                let step = *step.lock().unwrap_or_else(PoisonError::into_inner);
                let what = format!("did not answer {step} within {} ms", limit.as_millis());
                Err(self.error(&diagnosis.describe(&what)))
            }
        }
    }

    /// Looks after a connection until it is over, nobody needs it, or everything ends.
    async fn tend(&self, live: &Arc<Live>) {
        let mut changes = live.connection.changes();
        let mut unused = pin!(self.unused());
        loop {
            tokio::select! {
                biased;
                () = self.stop.cancelled() => {
                    return self.change(|state| state.phase = Phase::Asleep);
                }
                () = live.connection.diagnosis().over() => {
                    self.notice_death();
                    return;
                }
                () = &mut unused => {
                    if self.retire(live) {
                        return;
                    }
                    unused.set(self.unused());
                }
                // An error means that the connection is over: that is seen in the next round.
                _ = changes.changed() => {
                    let change = *changes.borrow_and_update();
                    tokio::select! {
                        biased;
                        () = self.stop.cancelled() => {}
                        () = live.connection.diagnosis().over() => {}
                        () = self.list_again(live, change) => {}
                    }
                }
            }
        }
    }

    async fn list_again(&self, live: &Live, change: u64) {
        let listed = tokio::select! {
            biased;
            listed = live.connection.list_tools() => listed.ok(),
            () = self.clock.sleep(self.settings.handshake) => None,
        };
        if let Some(tools) = listed {
            self.change(|state| {
                let instructions = state.listing.as_ref();
                let instructions = instructions.and_then(|known| known.instructions.clone());
                state.offer(Listing::new(tools, instructions));
            });
        }
        live.listed.send_replace(change);
        self.clock.sleep(LIST_PAUSE).await;
    }

    /// Waits until nobody needed the server for as long as it may be idle.
    async fn unused(&self) {
        let Some(limit) = self.settings.idle else {
            return std::future::pending().await;
        };
        let mut users = self.users.subscribe();
        loop {
            // The sender is this server: there is no error.
            let _ = users.wait_for(|users| *users == 0).await;
            tokio::select! {
                biased;
                _ = users.changed() => {}
                () = self.clock.sleep(limit) => return,
            }
        }
    }

    /// Lets go of a connection, unless somebody needs it again.
    fn retire(&self, live: &Arc<Live>) -> bool {
        let mut state = self.state();
        // Who needs the server says so before looking for its connection.
        let is_unused = *self.users.borrow() == 0;
        let is_current =
            matches!(&state.phase, Phase::Ready(current) if Arc::ptr_eq(current, live));
        if is_unused && is_current {
            state.phase = Phase::Asleep;
        }
        is_unused && is_current
    }

    /// Takes note of a connection that is over by itself.
    fn notice_death(&self) {
        let Phase::Ready(live) = self.phase() else {
            return;
        };
        let diagnosis = live.connection.diagnosis();
        if !diagnosis.is_over() {
            return;
        }
        let error = self.error(&diagnosis.describe(diagnosis.told_reason()));
        self.change(|state| {
            if !matches!(&state.phase, Phase::Ready(current) if Arc::ptr_eq(current, &live)) {
                return;
            }
            let now = self.clock.instant();
            if now - live.since >= GOOD_LIFE {
                state.strikes = 0;
            }
            // The first time it may be started again at once.
            let until = now + back_off(state.strikes);
            state.strikes += 1;
            state.phase = Phase::Down { error, until };
        });
    }

    fn error(&self, what: &str) -> KernelError {
        let name = &self.settings.name;
        KernelError::new(
            ErrorKind::McpServer,
            format!("MCP server \"{name}\" {what}"),
        )
        .with_detail("server", &**name)
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state());
        self.moved.send_modify(|moved| *moved += 1);
    }

    fn phase(&self) -> Phase {
        self.state().phase.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Its fields are replaced whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// What has not changed stays the same object: nothing has to be made of it again.
    fn offer(&mut self, listing: Listing) {
        if self.listing.as_deref() != Some(&listing) {
            self.listing = Some(Arc::new(listing));
        }
    }
}

/// How long to wait after so many failures.
fn back_off(strikes: u32) -> Duration {
    match strikes.checked_sub(1) {
        None => Duration::ZERO,
        Some(doublings) => {
            let factor = 2_u32.saturating_pow(doublings.min(16));
            (BACK_OFF * factor).min(LONGEST_BACK_OFF)
        }
    }
}
