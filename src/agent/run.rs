//! One run of a session: from a checked message to its end.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::sync::watch;

use crate::base::cancel::{Interrupt, Interrupter};
use crate::base::telemetry::{OpenSpan, SpanKind, Trace};
use crate::engine::{EngineConfig, Run, RunEnd, UpdateReceiver, UpdateSink, set_usage};
use crate::error::{ErrorKind, KernelError, Result};
use crate::protocol::{AbortCause, Body, ErrorInfo, LogLevel, Phase, RunSummary};
use crate::render::Format;

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
