//! One run of a session: from a checked message to its end.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::sync::{oneshot, watch};

use crate::base::cancel::{Interrupt, Interrupter};
use crate::base::telemetry::{OpenSpan, SpanKind, Trace};
use crate::engine::{
    EngineConfig, Run, RunEnd, Transcript, UpdateReceiver, UpdateSink, Work, set_usage,
};
use crate::error::{ErrorKind, KernelError, Result};
use crate::protocol::{AbortCause, Body, Entry, ErrorInfo, LogLevel, Phase, RunSummary};
use crate::render::Format;
use crate::store::session::{Damage, Loaded};

use super::config::Limits;
use super::input::{Input, SendOptions};
use super::session::Session;

/// Most characters of a tool's output.
const TOOL_RESULT_LIMIT: usize = 100_000;

/// A started run.
pub struct RunHandle {
    pub updates: UpdateReceiver,
    interrupter: Interrupter,
    end: watch::Receiver<Option<Arc<RunEnd>>>,
}

impl Session {
    pub(super) async fn run(
        &self,
        sink: &UpdateSink,
        interrupter: &Interrupter,
        input: Result<Input>,
        options: SendOptions,
        epoch: Option<u64>,
        trace: &Trace,
    ) -> RunEnd {
        let prepared = async {
            sink.phase(Phase::Preparing, None).await;
            let input = input?;
            self.enter().await?;
            let mut transcript = self.transcript.lock().await;
            self.catch_up(&mut transcript, epoch, sink).await?;
            Ok((input, self.engine(options).await?, transcript))
        };
        let (input, engine, mut transcript) = match interrupter.unless(prepared).await {
            Some(Ok(prepared)) => prepared,
            Some(Err(error)) => return RunEnd::failed(error),
            None => return RunEnd::interrupted(interrupter),
        };
        let mut span = self.turn_span(trace, &engine);
        let toolbox = self.agent.toolbox();
        let run = Run {
            config: &engine,
            toolbox: toolbox.as_ref(),
            hooks: &self.agent.hooks,
            session: &self.who,
            calls: &self.storage.calls(&self.who),
            sink,
            interrupter,
            trace: &trace.within(&span),
        };
        let work = match input {
            Input::Message(text) => Work::Prompt(text),
            Input::Reply(reply) => Work::Reply(reply),
        };
        let end = Box::pin(run.execute(&mut transcript, work)).await;
        set_usage(&mut span, &end.usage);
        span.set("gen_ai.response.finish_reasons", || {
            json!([end.stop_reason.as_str()])
        });
        if let Some(error) = &end.error {
            span.fail(error.code());
        }
        end
    }

    /// Takes over what others wrote to the transcript, and what an earlier run could not store.
    async fn catch_up(
        &self,
        transcript: &mut Transcript,
        epoch: Option<u64>,
        sink: &UpdateSink,
    ) -> Result<()> {
        let journal = &self.journal;
        journal.set_epoch(epoch);
        if journal.has_unstored() {
            self.offer_again(sink).await?;
        }
        let Some(loaded) = journal.changes().await? else {
            return Ok(());
        };
        if let Some(damage) = &loaded.damage {
            sink.emit(damage_log(damage)).await;
        }
        transcript.reload(entries(&loaded));
        Ok(())
    }

    /// Stores what an earlier run could not store, unless the conversation went on without it.
    async fn offer_again(&self, sink: &UpdateSink) -> Result<()> {
        let journal = &self.journal;
        let stored = match journal.is_outrun().await {
            Ok(true) => {
                journal.abandon();
                sink.emit(outrun_log()).await;
                Ok(())
            }
            Ok(false) => journal.flush().await,
            Err(error) => Err(error),
        };
        match stored {
            Err(error) if !journal.is_lenient() || error.kind() == ErrorKind::SessionLeaseLost => {
                Err(error)
            }
            _ => Ok(()),
        }
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

    async fn engine(&self, options: SendOptions) -> Result<EngineConfig> {
        let config = &self.agent.config;
        let Limits { run, timeouts } = options.limits;
        let models = options.models.as_deref().unwrap_or(&config.models);
        let is_configured =
            options.models.is_none() && timeouts.same_network(&config.limits.timeouts);
        let model = if is_configured {
            self.agent.model.configured(models, &timeouts).await?
        } else {
            self.agent.model.make(models, &timeouts).await?
        };
        let primary = &models[0];
        let mut settings = primary.request.clone();
        settings.max_tokens = options.max_tokens.unwrap_or(settings.max_tokens);
        Ok(EngineConfig {
            model,
            settings,
            system: config.system_prompt.clone(),
            context_window: primary.context_window,
            stream_text: config.stream_text,
            tell_whole_texts: config.render.format == Format::Events,
            tell_all: config.render.format == Format::Sdk,
            limits: run,
            tool_concurrency: timeouts.tool_concurrency,
            tool_timeout: timeouts.tool,
            tool_result_limit: TOOL_RESULT_LIMIT,
            clock: self.agent.clock.clone(),
        })
    }
}

/// The entries of a transcript that have the form of one.
pub(super) fn entries(loaded: &Loaded) -> Vec<Entry> {
    let entries = loaded.entries.iter();
    entries.filter_map(|placed| placed.entry.entry()).collect()
}

fn damage_log(damage: &Damage) -> Body {
    let message = format!(
        "the stored conversation is damaged: {} ({} entries lost); it goes on with what can be read",
        damage.what, damage.lost
    );
    Body::Log {
        level: LogLevel::Info,
        message,
        error: None,
    }
}

fn outrun_log() -> Body {
    Body::Log {
        level: LogLevel::Info,
        message: "entries that could not be stored were dropped: another process went on with the \
            conversation meanwhile"
            .to_owned(),
        error: None,
    }
}

/// A run that has taken its session in this process, but perhaps not from others.
pub struct Starting {
    pub(super) handle: RunHandle,
    pub(super) admission: oneshot::Receiver<Result<()>>,
}

impl Starting {
    /// Waits until the run has the session. Fails with `E_SESSION_BUSY` when another process keeps it.
    pub async fn admitted(self) -> Result<RunHandle> {
        match self.admission.await {
            Ok(Err(error)) => Err(error),
            // A run that is gone tells so in its stream.
            _ => Ok(self.handle),
        }
    }
}

impl RunHandle {
    pub(super) fn new(
        updates: UpdateReceiver,
        interrupter: Interrupter,
        end: watch::Receiver<Option<Arc<RunEnd>>>,
    ) -> Self {
        Self {
            updates,
            interrupter,
            end,
        }
    }

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
pub(super) async fn tell_end(sink: &UpdateSink, end: &RunEnd, elapsed: Duration) {
    if let Some(error) = &end.error {
        let body = Body::Log {
            level: LogLevel::Error,
            message: error.message().to_owned(),
            error: Some(ErrorInfo::from(error)),
        };
        sink.emit_now(body);
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
    sink.emit_now(body);
}

pub(super) fn panicked() -> RunEnd {
    RunEnd::failed(KernelError::new(
        ErrorKind::Internal,
        "the kernel failed while it ran this turn; the session can be used again. Please report this",
    ))
}
