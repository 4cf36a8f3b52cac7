//! A session: one conversation, one run at a time.
//!
//! A run ends in three steps. *Stop*: nothing new starts. *Settled*: clean-up is done. *Stream
//! end*: idle was told, the stream is over. A run that ends by itself takes them in the order stop,
//! settled, stream end; one that is interrupted ends its stream first.

use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use serde_json::json;
use tokio::sync::{Mutex as AsyncMutex, watch};
use tracing::instrument::WithSubscriber;

use crate::base::cancel::{Interrupt, Interrupter};
use crate::base::id;
use crate::base::telemetry::{self, OpenSpan, SpanKind, Trace};
use crate::engine::{
    EngineConfig, Run, RunEnd, Transcript, UpdateReceiver, UpdateSink, set_usage, update_channel,
};
use crate::error::{ErrorKind, KernelError, Result};
use crate::protocol::{
    AbortCause, Body, ErrorInfo, Json, LogLevel, Phase, RunSummary, StopReason, Usage,
};
use crate::render::Format;
use crate::tool::SessionRef;

use super::config::Limits;
use super::core::AgentCore;
use super::input::{Input, SendOptions};

/// Version mark of the JSON that names a session.
const STATE_SCHEMA: &str = "oak/v1/sessionRef";

/// One conversation of one user.
pub struct Session {
    agent: Arc<AgentCore>,
    who: SessionRef,
    transcript: AsyncMutex<Transcript>,
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

/// A started run.
pub struct RunHandle {
    pub updates: UpdateReceiver,
    interrupter: Interrupter,
    end: watch::Receiver<Option<Arc<RunEnd>>>,
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
}

impl Session {
    pub(super) fn new(agent: Arc<AgentCore>, who: SessionRef) -> Self {
        let transcript = Transcript::new(who.conversation_id.clone(), agent.clock.clone());
        Self {
            agent,
            who,
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
    /// with a run in progress; every later failure is told in the stream. Needs a tokio runtime.
    pub fn start(
        self: &Arc<Self>,
        input: &Json,
        options: &Json,
        interrupter: Interrupter,
    ) -> Result<RunHandle> {
        let options = SendOptions::parse(options, &self.agent.config)?;
        let input = match Input::parse(input) {
            Err(error) if error.kind() == ErrorKind::InvalidConfig => return Err(error),
            input => input,
        };
        let (done, is_done) = watch::channel(false);
        self.occupy(ActiveRun {
            interrupter: interrupter.clone(),
            done: is_done,
        })?;
        let (sink, updates) = update_channel(id::random().into(), self.agent.clock.clone());
        let (end_sender, end) = watch::channel(None);
        let (session, run_interrupter) = (self.clone(), interrupter.clone());
        let observer = self.agent.observer.clone();
        let trace = Trace::new(
            observer,
            self.agent.clock.clone(),
            options.trace_parent.clone(),
        );
        let task = async move {
            let started = sink.instant();
            let run =
                AssertUnwindSafe(session.run(&sink, &run_interrupter, input, options, &trace))
                    .catch_unwind();
            let end = Arc::new(run.await.unwrap_or_else(|_| panicked()));
            session.vacate();
            // The session is free before its consumer learns that the run is over.
            done.send_replace(true);
            end_sender.send_replace(Some(end.clone()));
            tracing::debug!(
                target: telemetry::SESSION,
                stop_reason = end.stop_reason.as_str(),
                code = end.error.as_ref().map(KernelError::code).unwrap_or_default(),
                requests = end.requests,
                "run ended"
            );
            tell_end(&sink, &end, sink.instant() - started).await;
        };
        match &self.agent.log_dispatch {
            Some(dispatch) => drop(tokio::spawn(task.with_subscriber(dispatch.clone()))),
            None => drop(tokio::spawn(task)),
        }
        Ok(RunHandle {
            updates,
            interrupter,
            end,
        })
    }

    /// Runs and waits for the end; an error of the run is an error of the call.
    pub async fn prompt(
        self: &Arc<Self>,
        input: &Json,
        interrupter: Interrupter,
    ) -> Result<PromptResult> {
        let run = self.start(input, &Json::Null, interrupter)?;
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
        })
    }

    /// Stops the run in progress, if any, at once; the future waits until it is over. The session
    /// stays usable: a run that starts meanwhile is another one.
    pub fn abort(self: &Arc<Self>, reason: Option<String>) -> impl Future<Output = ()> + use<> {
        self.stop(Interrupt::Aborted(AbortCause::Abort, reason))
    }

    /// Stops the run in progress, if any, and refuses further ones, at once; the future waits for the
    /// end.
    pub fn close(self: &Arc<Self>) -> impl Future<Output = ()> + use<> {
        self.closed.store(true, Ordering::Release);
        let stopped = self.stop(Interrupt::Aborted(AbortCause::Close, None));
        let session = self.clone();
        async move {
            stopped.await;
            session.agent.forget(&session);
        }
    }

    /// Whether the session refuses further messages.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire) || self.agent.is_closed()
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
            return Err(KernelError::new(
                ErrorKind::SessionBusy,
                "the session has a run in progress: read its stream to the end, or abort() it first",
            ));
        }
        *active = Some(run);
        Ok(())
    }

    fn vacate(&self) {
        *self.active() = None;
    }

    async fn run(
        &self,
        sink: &UpdateSink,
        interrupter: &Interrupter,
        input: Result<Input>,
        options: SendOptions,
        trace: &Trace,
    ) -> RunEnd {
        let prepared = async {
            sink.phase(Phase::Preparing, None).await;
            let input = input?;
            self.enter().await?;
            Ok((input, self.engine(options).await?))
        };
        let (input, engine) = match interrupter.unless(prepared).await {
            Some(Ok(prepared)) => prepared,
            Some(Err(error)) => return RunEnd::failed(error),
            None => return RunEnd::interrupted(interrupter),
        };
        let mut span = self.turn_span(trace, &engine);
        let run = Run {
            config: &engine,
            tools: &self.agent.config.tools,
            hooks: &self.agent.hooks,
            session: &self.who,
            sink,
            interrupter,
            trace: &trace.within(&span),
        };
        let end = Box::pin(run.execute(&mut *self.transcript.lock().await, &input.text)).await;
        set_usage(&mut span, &end.usage);
        span.set("gen_ai.response.finish_reasons", || {
            json!([end.stop_reason.as_str()])
        });
        if let Some(error) = &end.error {
            span.fail(error.code());
        }
        end
    }

    fn turn_span(&self, trace: &Trace, engine: &EngineConfig) -> OpenSpan {
        let name = self.agent.config.name.as_deref();
        let title = || {
            name.map_or_else(
                || "invoke_agent".into(),
                |name| format!("invoke_agent {name}"),
            )
        };
        let mut span = trace.span(title, SpanKind::Internal);
        span.set("gen_ai.operation.name", || "invoke_agent");
        span.set("gen_ai.conversation.id", || self.id());
        span.set("gen_ai.request.model", || engine.settings.model.clone());
        if let Some(name) = name {
            span.set("gen_ai.agent.name", || name);
        }
        span
    }

    /// Calls `onSessionStart` before the first run.
    async fn enter(&self) -> Result<()> {
        let mut begun = self.begun.lock().await;
        if !*begun {
            self.agent.hooks.session_start(&self.who).await?;
            *begun = true;
        }
        Ok(())
    }

    /// Calls `onSessionEnd`, once for each start, unless another run goes on.
    async fn leave(&self) {
        if self.active().is_some() {
            return;
        }
        if std::mem::take(&mut *self.begun.lock().await) {
            self.agent.hooks.session_end(&self.who).await;
        }
    }

    async fn engine(&self, options: SendOptions) -> Result<EngineConfig> {
        let config = &self.agent.config;
        let Limits { run, timeouts } = options.limits;
        let changes_waiting = timeouts != config.limits.timeouts;
        let models = options.models.as_deref().unwrap_or(&config.models);
        let model = if options.models.is_some() || changes_waiting {
            self.agent.model.make(models, &timeouts).await?
        } else {
            self.agent.model.configured(models, &timeouts).await?
        };
        let primary = &models[0];
        Ok(EngineConfig {
            model,
            settings: primary.request.clone(),
            system: config.system_prompt.clone(),
            context_window: primary.context_window,
            stream_text: config.stream_text,
            tell_all: config.render.format == Format::Sdk,
            limits: run,
            tool_concurrency: timeouts.tool_concurrency,
            tool_result_limit: TOOL_RESULT_LIMIT,
            clock: self.agent.clock.clone(),
        })
    }
}

/// Most characters of a tool's output.
const TOOL_RESULT_LIMIT: usize = 100_000;

impl RunHandle {
    /// Throws the rest of the stream away and tells the run to stop.
    pub fn close(&self) {
        self.interrupter
            .interrupt(Interrupt::Aborted(AbortCause::Close, None));
        self.updates.close();
    }

    /// How the run ended; none while it goes on.
    pub fn end(&self) -> Option<Arc<RunEnd>> {
        self.end.borrow().clone()
    }

    /// Waits for the end of the run. Its stream must be read or closed meanwhile.
    pub async fn ended(&self) -> Arc<RunEnd> {
        let mut end = self.end.clone();
        match end.wait_for(Option::is_some).await.map(|end| end.clone()) {
            Ok(Some(end)) => end,
            _ => Arc::new(panicked()),
        }
    }
}

impl Drop for RunHandle {
    fn drop(&mut self) {
        // Nobody reads the stream any more.
        self.close();
    }
}

/// Tells how a run ended; idle comes last, exactly once.
async fn tell_end(sink: &UpdateSink, end: &RunEnd, elapsed: Duration) {
    if let Some(error) = &end.error {
        let body = Body::Log {
            level: LogLevel::Error,
            message: error.message().to_owned(),
            error: Some(ErrorInfo::from(error)),
        };
        sink.emit_now(body).await;
    }
    let summary = RunSummary {
        usage: end.usage,
        requests: end.requests,
        text: end.text.clone(),
        elapsed_ms: u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
        error: end.error.as_ref().map(|error| error.message().to_owned()),
    };
    let body = Body::Idle {
        stop_reason: end.stop_reason.clone(),
        summary,
        abort: end.abort.clone(),
    };
    sink.emit_now(body).await;
}

fn panicked() -> RunEnd {
    RunEnd::failed(KernelError::new(
        ErrorKind::Internal,
        "the kernel failed while it ran this turn; the session can be used again. Please report this",
    ))
}
