//! A session: one conversation, one run at a time.
//!
//! A run ends in three steps. *Stop*: nothing new starts. *Settled*: the session is free again.
//! *Stream end*: idle was told, the stream is over.

use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt;
use serde_json::json;
use tokio::sync::{Mutex as AsyncMutex, oneshot, watch};
use tracing::instrument::WithSubscriber;

use crate::base::cancel::{Interrupt, Interrupter};
use crate::base::id;
use crate::base::telemetry::{self, Trace};
use crate::engine::{Journal, RunEnd, Transcript, update_channel};
use crate::error::{ErrorKind, KernelError, Result};
use crate::protocol::{AbortCause, Json, OpenCall, StopReason, Usage};
use crate::tool::SessionRef;

use super::core::AgentCore;
use super::history::{self, HistoryPage, HistoryQuery};
use super::input::{Input, Respond, SendOptions};
use super::run::{RunHandle, Starting, panicked, tell_end};
use super::storage::Storage;

/// Calls without a result that a history looks up, newest first; the others are given up.
const MAX_LOOKED_UP: usize = 32;
/// Version mark of the JSON that names a session.
const STATE_SCHEMA: &str = "oak/v1/sessionRef";

/// One conversation of one user.
pub struct Session {
    pub(super) agent: Arc<AgentCore>,
    pub(super) who: SessionRef,
    pub(super) storage: Storage,
    pub(super) journal: Arc<Journal>,
    pub(super) transcript: AsyncMutex<Transcript>,
    active: Mutex<Option<ActiveRun>>,
    /// Whether `onSessionStart` ran and `onSessionEnd` has not.
    begun: AsyncMutex<bool>,
    closed: AtomicBool,
}

/// The run in progress.
#[derive(Clone)]
struct ActiveRun {
    interrupter: Interrupter,
    done: watch::Receiver<bool>,
}

impl ActiveRun {
    async fn ended(run: Option<Self>) {
        if let Some(mut run) = run {
            // An error means that the sender is gone: the run is over.
            let _ = run.done.wait_for(|done| *done).await;
        }
    }
}

/// What [`Session::prompt`] gives.
#[derive(Clone, Debug)]
pub struct PromptResult {
    pub text: String,
    pub conversation_id: String,
    pub stop_reason: StopReason,
    pub usage: Usage,
    /// Model requests.
    pub num_turns: u32,
    /// Calls that wait for an answer.
    pub pending: Vec<OpenCall>,
}

impl Session {
    pub(super) fn new(agent: Arc<AgentCore>, who: SessionRef, storage: Storage) -> Self {
        let journal = storage.journal(&who.conversation_id);
        let transcript = Transcript::new(who.conversation_id.clone(), agent.clock.clone());
        let transcript = transcript.with_journal(journal.clone());
        Self {
            agent,
            who,
            storage,
            journal,
            transcript: AsyncMutex::new(transcript),
            active: Mutex::new(None),
            begun: AsyncMutex::new(false),
            closed: AtomicBool::new(false),
        }
    }

    pub fn id(&self) -> &str {
        &self.who.conversation_id
    }

    pub fn user_id(&self) -> &str {
        &self.who.user_id
    }

    /// JSON that names this session, for `resumeSession`.
    pub fn state(&self) -> String {
        json!({ "conversationId": self.id(), "schema": STATE_SCHEMA }).to_string()
    }

    /// Starts a run that `interrupter` stops. Refuses wrong input, a closed session and a session
    /// with a run in progress, here or (in [`Starting::admitted`]) in another process; every later
    /// failure is told in the stream. Needs a tokio runtime.
    ///
    /// The answer to a call waits for a run in progress.
    pub fn start(
        self: &Arc<Self>,
        input: &Json,
        options: &Json,
        interrupter: Interrupter,
    ) -> Result<Starting> {
        let options = SendOptions::parse(options, &self.agent.config)?;
        self.launch(Input::parse(input)?, options, interrupter)
    }

    /// Starts a run that begins with the answer to a call, in the form that a method of the interface
    /// takes.
    pub fn respond(
        self: &Arc<Self>,
        method: Respond,
        answer: &Json,
        options: &Json,
        interrupter: Interrupter,
    ) -> Result<Starting> {
        let options = SendOptions::parse(options, &self.agent.config)?;
        let reply = method.parse(answer)?;
        self.launch(Input::Reply(reply), options, interrupter)
    }

    fn launch(
        self: &Arc<Self>,
        input: Input,
        options: SendOptions,
        interrupter: Interrupter,
    ) -> Result<Starting> {
        let (done, is_done) = watch::channel(false);
        let run = ActiveRun {
            interrupter: interrupter.clone(),
            done: is_done,
        };
        let waits = matches!(input, Input::Reply(_));
        let is_first = match self.occupy(run.clone()) {
            Err(error) if waits && error.kind() == ErrorKind::SessionBusy => false,
            occupied => occupied.map(|()| true)?,
        };
        let (sink, updates) = update_channel(id::random().into(), self.agent.clock.clone());
        let (end_sender, end) = watch::channel(None);
        let (session, run_interrupter) = (self.clone(), interrupter.clone());
        let observer = self.agent.observer.clone();
        let trace = Trace::new(
            observer,
            self.agent.clock.clone(),
            options.trace_parent.clone(),
        );
        let (admit, admission) = oneshot::channel();
        let task = async move {
            let started = sink.instant();
            if !is_first {
                match session.occupy_in_turn(run, &run_interrupter).await {
                    Some(Ok(())) => {}
                    Some(Err(error)) => {
                        let _ = admit.send(Err(error));
                        return;
                    }
                    None => {
                        let _ = admit.send(Ok(()));
                        let end = Arc::new(RunEnd::interrupted(&run_interrupter));
                        end_sender.send_replace(Some(end.clone()));
                        tell_end(&sink, &end, sink.instant() - started).await;
                        return;
                    }
                }
            }
            let taken = async {
                let (storage, id) = (&session.storage, session.id());
                if waits {
                    storage.take_in_turn(id, &run_interrupter).await
                } else {
                    storage.take(id, &run_interrupter).await
                }
            };
            let tenure = match run_interrupter.unless(taken).await {
                Some(Err(error)) if error.kind() == ErrorKind::SessionBusy => {
                    session.vacate();
                    done.send_replace(true);
                    // Whoever started the run may have gone away.
                    let _ = admit.send(Err(error));
                    return;
                }
                Some(taken) => taken,
                None => Ok(None),
            };
            let _ = admit.send(Ok(()));
            let (tenure, refusal) = match tenure {
                Ok(tenure) => (tenure, None),
                Err(error) => (None, Some(error)),
            };
            let epoch = tenure.as_ref().map(|tenure| tenure.epoch);
            let input = refusal.map_or(Ok(input), Err);
            let run = AssertUnwindSafe(session.run(
                &sink,
                &run_interrupter,
                input,
                options,
                epoch,
                &trace,
            ))
            .catch_unwind();
            let end = Arc::new(run.await.unwrap_or_else(|_| panicked()));
            if let Some(tenure) = tenure {
                tenure.release().await;
            }
            session.vacate();
            // The session is free before its consumer learns that the run is over.
            done.send_replace(true);
            end_sender.send_replace(Some(end.clone()));
            tracing::debug!(
                target: telemetry::SESSION,
                stop_reason = end.stop_reason.as_str(),
                code = end.error.as_ref().map(KernelError::code),
                requests = end.requests,
                "run ended"
            );
            tell_end(&sink, &end, sink.instant() - started).await;
        };
        match &self.agent.log_dispatch {
            Some(dispatch) => drop(tokio::spawn(task.with_subscriber(dispatch.clone()))),
            None => drop(tokio::spawn(task)),
        }
        let handle = RunHandle::new(updates, interrupter, end);
        Ok(Starting { handle, admission })
    }

    /// Runs and waits for the end; an error of the run is an error of the call.
    pub async fn prompt(
        self: &Arc<Self>,
        input: &Json,
        options: &Json,
        interrupter: Interrupter,
    ) -> Result<PromptResult> {
        let run = self.start(input, options, interrupter)?.admitted().await?;
        run.updates.close();
        let end = run.ended().await;
        if let Some(error) = &end.error {
            return Err(error.clone());
        }
        Ok(PromptResult {
            text: end.text.clone(),
            conversation_id: self.id().to_owned(),
            stop_reason: end.stop_reason.clone(),
            usage: end.usage,
            num_turns: end.requests,
            pending: end.pending.clone(),
        })
    }

    /// Stops the run in progress, if any, at once; the future waits until it is over. The session
    /// stays usable: a run that starts meanwhile is another one.
    pub fn abort(self: &Arc<Self>, reason: Option<String>) -> impl Future<Output = ()> + use<> {
        self.stop(Interrupt::Aborted(AbortCause::Abort, reason))
    }

    /// Stops the run in progress, if any, and refuses further ones, at once; the future waits for the
    /// end, and until every entry is in the store. Fails when one is not.
    pub fn close(self: &Arc<Self>) -> impl Future<Output = Result<()>> + use<> {
        self.closed.store(true, Ordering::Release);
        let stopped = self.stop(Interrupt::Aborted(AbortCause::Close, None));
        let session = self.clone();
        async move {
            stopped.await;
            let stored = session.finish().await;
            session.storage.end_private(session.id()).await;
            session.agent.forget(&session);
            stored
        }
    }

    /// Waits until every entry is in the store. Fails with what is not, which stays to be offered again.
    pub async fn flush(&self) -> Result<()> {
        self.journal.flush().await
    }

    /// A page of what was said, for a program to show.
    pub async fn history(&self, query: &HistoryQuery) -> Result<HistoryPage> {
        let (store, key) = (self.storage.store(), self.journal.key());
        let page = history::history(store.as_ref(), key, query, &[]).await?;
        let open = self.open_calls(&page.unresolved).await;
        if open.is_empty() {
            return Ok(page);
        }
        history::history(store.as_ref(), key, query, &open).await
    }

    /// Those of the calls without a result that wait for an answer; newest first. A store that fails
    /// does not hide what was said.
    async fn open_calls(&self, unresolved: &[String]) -> Vec<OpenCall> {
        let calls = self.storage.calls(&self.who);
        let mut open = Vec::new();
        for id in unresolved.iter().take(MAX_LOOKED_UP) {
            match calls.find_open(id).await {
                Ok(found) => open.extend(found),
                Err(error) => {
                    tracing::warn!(target: telemetry::SESSION, code = error.code(), "nobody knows which calls wait");
                    break;
                }
            }
        }
        open
    }

    /// Hides what was said so far from the history; the model still knows it.
    pub async fn clear_history(&self) -> Result<()> {
        let (store, key) = (self.storage.store(), self.journal.key());
        history::clear(store.as_ref(), key, &self.agent.clock).await
    }

    async fn finish(&self) -> Result<()> {
        let stored = self.flush().await;
        if let Err(error) = self.storage.store().finish(self.journal.key()).await {
            tracing::warn!(target: telemetry::SESSION, code = error.code(), "session was not finished");
        }
        stored
    }

    /// Whether the session refuses further messages.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire) || self.agent.is_closed()
    }

    /// Whether a run is in progress.
    pub fn is_running(&self) -> bool {
        self.active().is_some()
    }

    /// Tells the run in progress, if any, to stop, and does not wait.
    pub(super) fn interrupt(&self, reason: Interrupt) {
        if let Some(run) = self.active().as_ref() {
            run.interrupter.interrupt(reason);
        }
    }

    /// Waits until the run in progress, if any, is over and all clean-up is done.
    pub async fn settled(&self) {
        let active = self.active().clone();
        ActiveRun::ended(active).await;
    }

    fn stop(self: &Arc<Self>, reason: Interrupt) -> impl Future<Output = ()> + use<> {
        let active = self.active().clone();
        if let Some(run) = &active {
            run.interrupter.interrupt(reason);
        }
        let session = self.clone();
        async move {
            ActiveRun::ended(active).await;
            session.leave().await;
        }
    }

    fn active(&self) -> MutexGuard<'_, Option<ActiveRun>> {
        // The slot is replaced whole: it is never half written.
        self.active.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn occupy(&self, run: ActiveRun) -> Result<()> {
        let mut active = self.active();
        if self.is_closed() {
            return Err(KernelError::new(
                ErrorKind::SessionClosed,
                "the session is closed: start or resume one for the next message",
            ));
        }
        if active.is_some() {
            return Err(busy());
        }
        *active = Some(run);
        Ok(())
    }

    /// Waits until the session is free and takes it; none when the run was stopped before.
    async fn occupy_in_turn(
        &self,
        run: ActiveRun,
        interrupter: &Interrupter,
    ) -> Option<Result<()>> {
        let turn = async {
            loop {
                match self.occupy(run.clone()) {
                    Err(error) if error.kind() == ErrorKind::SessionBusy => {
                        let active = self.active().clone();
                        ActiveRun::ended(active).await;
                    }
                    occupied => return occupied,
                }
            }
        };
        let limited = async {
            tokio::select! {
                biased;
                occupied = turn => occupied,
                () = self.agent.clock.sleep(self.storage.busy_timeout()) => Err(busy()),
            }
        };
        interrupter.unless(limited).await
    }

    fn vacate(&self) {
        *self.active() = None;
    }

    /// Calls `onSessionStart` before the first run.
    pub(super) async fn enter(&self) -> Result<()> {
        let mut begun = self.begun.lock().await;
        if !*begun {
            self.agent.hooks.session_start(&self.who).await?;
            *begun = true;
        }
        Ok(())
    }

    /// Calls `onSessionEnd`, once for each start, unless another run goes on.
    async fn leave(&self) {
        let mut begun = self.begun.lock().await;
        // Looked at under the lock: a run that began meanwhile has seen the session as begun.
        if self.active().is_none() && std::mem::take(&mut *begun) {
            self.agent.hooks.session_end(&self.who).await;
        }
    }
}

fn busy() -> KernelError {
    KernelError::new(
        ErrorKind::SessionBusy,
        "the session has a run in progress: read its stream to the end, or abort() it first",
    )
}
