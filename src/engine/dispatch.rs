//! Running the calls of an answer.
//!
//! Calls are taken in order. Read-only neighbours run together, every other call runs alone: it
//! waits for those before it and holds those after it. A result is recorded when it is known.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::{StreamExt, stream};

use crate::base::crash::crash_point;
use crate::base::telemetry;
use crate::error::KernelError;
use crate::protocol::{Body, ContentBlock, Json, Phase, ToolStatus};
use crate::tool::{
    ProgressReceiver, Tool, ToolContext, ToolOutput, ToolSet, fit, progress_channel,
};

use super::measure::ToolMeasure;
use super::run::{Run, Stop, millis};
use super::tell::Announced;
use super::transcript::StoredCall;
use super::{HookedCall, Transcript, optional};

/// The result of a call that was running when the run stopped.
const INTERRUPTED: &str =
    "This call was interrupted while it ran. It may or may not have completed.";
/// The result of a call that the run never came to.
const NOT_STARTED: &str = "This call was not started: the run ended before its turn came.";

/// How a result is written.
type Append = fn(&mut Transcript, &StoredCall, ContentBlock, Option<Json>);

/// Runs calls for a run and writes their results.
pub(super) struct Dispatch<'a> {
    pub run: &'a Run<'a>,
    pub transcript: &'a mut Transcript,
    pub tools: &'a ToolSet,
    /// Calls that the stream announced and that have not ended.
    pub announced: &'a mut Vec<Announced>,
}

/// A call on its way.
struct Planned {
    call: StoredCall,
    tool: Option<Arc<dyn Tool>>,
    is_readable: bool,
    started: AtomicBool,
}

impl Planned {
    fn is_read_only(&self) -> bool {
        self.tool.as_ref().is_some_and(|tool| tool.spec().read_only)
    }
}

impl Dispatch<'_> {
    /// Runs the calls. Afterwards each has a result, whatever happened.
    pub async fn run(mut self, calls: Vec<StoredCall>, unreadable: &[String]) -> Result<(), Stop> {
        let plan: Vec<Planned> = calls
            .into_iter()
            .map(|call| Planned {
                tool: self.tools.get(&call.name).cloned(),
                is_readable: !unreadable.iter().any(|id| **id == *call.id),
                started: AtomicBool::new(false),
                call,
            })
            .collect();
        let mut done = vec![false; plan.len()];
        let result = self.run_groups(&plan, &mut done).await;
        for (planned, _) in plan.iter().zip(done).filter(|(_, done)| !done) {
            let started = planned.started.load(Ordering::Relaxed);
            let why = if started { INTERRUPTED } else { NOT_STARTED };
            self.record(&planned.call, ToolOutput::error(why));
        }
        result
    }

    /// Answers calls that will not run.
    pub fn skip_all(mut self, calls: Vec<StoredCall>) {
        for call in calls {
            self.record(&call, ToolOutput::error(NOT_STARTED));
        }
    }

    async fn run_groups(&mut self, plan: &[Planned], done: &mut [bool]) -> Result<(), Stop> {
        let run = self.run;
        let width = run.config.tool_concurrency.max(1);
        let mut start = 0;
        while start < plan.len() {
            if start > 0 {
                run.durable(self.transcript).await?;
            }
            let group = group_length(&plan[start..]);
            let positions = start..start + group;
            let mut running = stream::iter(positions)
                .map(|at| async move { (at, execute(run, &plan[at]).await) })
                .buffer_unordered(width);
            while let Some((at, finished)) = run.unless_interrupted(running.next()).await? {
                let Finished { output, failure } = finished;
                let is_stopped = run.interrupter.reason().is_some();
                if is_stopped && output.as_ref().is_some_and(|output| output.is_error) {
                    // What a call says that was told to stop is not its outcome.
                    return Err(Stop::Interrupted);
                }
                if let Some(output) = output {
                    done[at] = true;
                    self.record(&plan[at].call, output);
                }
                if let Some(error) = failure {
                    return Err(Stop::Failed(error));
                }
            }
            start += group;
        }
        Ok(())
    }

    /// Writes a result and tells it, in that order.
    pub fn record(&mut self, call: &StoredCall, output: ToolOutput) {
        self.record_as(call, output, Transcript::append_result);
    }

    /// The same for a result that came from outside of the run.
    pub fn record_answer(&mut self, call: &StoredCall, output: ToolOutput) {
        self.record_as(call, output, Transcript::append_answer_of);
    }

    fn record_as(&mut self, call: &StoredCall, output: ToolOutput, append: Append) {
        let output = fit(output, self.run.config.tool_result_limit);
        if let Some(cut) = output.cut {
            tracing::debug!(
                target: telemetry::ENGINE,
                call_id = &*call.id,
                characters = cut.original,
                removed = cut.removed,
                "tool output was cut"
            );
        }
        let is_error = output.is_error;
        let shown = output.to_json();
        let raw = output.structured.clone();
        let block = ContentBlock::ToolResult {
            tool_use_id: call.id.to_string(),
            content: output.into_content(),
            is_error,
        };
        let known = self.transcript.entries().len();
        append(self.transcript, call, block, raw);
        crash_point!("turn.result.appended");
        self.run.tell_entries(self.transcript, known);
        self.announced.retain(|announced| announced.id != call.id);
        let status = if is_error {
            ToolStatus::Failed
        } else {
            ToolStatus::Completed
        };
        let id = call.id.clone();
        self.run.sink.emit_now(Body::ToolEnd {
            name: call.name.clone(),
            id,
            status,
            output: shown,
            is_error,
            input_told: true,
        });
    }
}

/// How many calls at the front run together.
fn group_length(plan: &[Planned]) -> usize {
    plan.iter()
        .take_while(|planned| planned.is_read_only())
        .count()
        .max(1)
}

struct Finished {
    /// None when the call never ran.
    output: Option<ToolOutput>,
    /// Ends the run.
    failure: Option<KernelError>,
}

impl Finished {
    fn told(text: impl Into<String>) -> Self {
        Self {
            output: Some(ToolOutput::error(text)),
            failure: None,
        }
    }
}

async fn execute(run: &Run<'_>, planned: &Planned) -> Finished {
    let Planned {
        call,
        tool,
        is_readable,
        started,
    } = planned;
    let name = &call.name;
    let Some(tool) = tool else {
        return Finished::told(format!(
            "<tool_use_error>Error: No such tool available: {name}</tool_use_error>"
        ));
    };
    let (ctx, reports) = context(run, call);
    if let Some(refusal) = refusal(run, tool.as_ref(), call, *is_readable, &ctx).await {
        return Finished {
            output: Some(refusal),
            failure: None,
        };
    }
    let hooked = HookedCall {
        name,
        input: &call.input,
        ctx: &ctx,
    };
    if let Err(error) = run.hooks.tool_start(&hooked).await {
        return Finished {
            output: None,
            failure: Some(error),
        };
    }
    run.sink.phase(Phase::ToolExecuting, Some(name)).await;
    started.store(true, Ordering::Relaxed);
    crash_point!("turn.tool.started");
    let measure = ToolMeasure::start(run.trace, name, &call.id);
    let start = run.sink.instant();
    let called = call_tool(run, tool.as_ref(), call.input.clone(), &ctx, reports).await;
    let is_error = called.as_ref().map_or(true, |output| output.is_error);
    let duration = run.sink.instant() - start;
    crash_point!("turn.tool.ended");
    measure.ended(run.trace, is_error, duration);
    tracing::debug!(
        target: telemetry::ENGINE,
        tool = &**name,
        call_id = &*call.id,
        is_error,
        ms = millis(duration),
        "tool call ended"
    );
    match called {
        Ok(output) => after_tool(run, &hooked, fit(output, run.config.tool_result_limit)).await,
        Err(error) => Finished {
            output: None,
            failure: Some(error),
        },
    }
}

/// What a call may know, and what it reports.
pub(super) fn context(run: &Run<'_>, call: &StoredCall) -> (ToolContext, ProgressReceiver) {
    let (progress, reports) = progress_channel();
    let ctx = ToolContext {
        tool_use_id: call.id.clone(),
        turn_id: run.sink.turn_id(),
        session: run.session.clone(),
        cancel: run.interrupter.token().child_token(),
        idempotency_key: format!("{}:{}", run.session.conversation_id, call.id),
        progress,
    };
    (ctx, reports)
}

/// What the model is told of a call whose input is faulty; none when it fits.
pub(super) async fn refusal(
    run: &Run<'_>,
    tool: &dyn Tool,
    call: &StoredCall,
    is_readable: bool,
    ctx: &ToolContext,
) -> Option<ToolOutput> {
    let name = &call.name;
    if !is_readable {
        return Some(ToolOutput::error(format!(
            "<tool_use_error>InputValidationError: {name} was called with input that could not be \
             parsed as a JSON object. Send the complete input again.</tool_use_error>"
        )));
    }
    match within_limit(run, tool, ctx, tool.faults(&call.input, ctx)).await {
        Ok(faults) => faults.map(|faults| {
            ToolOutput::error(format!(
                "<tool_use_error>InputValidationError: the input of {name} does not fit its schema:\n\
                 {faults}</tool_use_error>"
            ))
        }),
        Err(late) => Some(late),
    }
}

async fn call_tool(
    run: &Run<'_>,
    tool: &dyn Tool,
    input: Json,
    ctx: &ToolContext,
    mut reports: ProgressReceiver,
) -> Result<ToolOutput, KernelError> {
    let tell = |content| {
        let id = ctx.tool_use_id.clone();
        run.sink.emit(Body::ToolProgress { id, content })
    };
    let mut called = pin!(within_limit(run, tool, ctx, tool.call(input, ctx.clone())));
    let output = loop {
        tokio::select! {
            biased;
            output = &mut called => break output,
            // The context lives as long as the call: there is always a sender.
            Some(content) = reports.recv() => tell(content).await,
        }
    };
    // Those that came together with the result.
    while let Ok(content) = reports.try_recv() {
        tell(content).await;
    }
    output.unwrap_or_else(Ok)
}

/// Waits for a tool, at most as long as it may take; then the call is cancelled.
async fn within_limit<T>(
    run: &Run<'_>,
    tool: &dyn Tool,
    ctx: &ToolContext,
    work: impl Future<Output = T>,
) -> Result<T, ToolOutput> {
    let limit = tool.spec().timeout.unwrap_or(run.config.tool_timeout);
    let Some(limit) = optional(limit) else {
        return Ok(work.await);
    };
    tokio::select! {
        biased;
        done = work => Ok(done),
        () = run.config.clock.sleep(limit) => {
            ctx.cancel.cancel();
            let ms = limit.as_millis();
            Err(ToolOutput::error(format!("The tool did not finish within {ms} ms and was stopped.")))
        }
    }
}

async fn after_tool(run: &Run<'_>, hooked: &HookedCall<'_>, output: ToolOutput) -> Finished {
    let (output, failure) = told_to_hook(run, hooked, output).await;
    Finished {
        output: Some(output),
        failure,
    }
}

/// The output as the hook leaves it, and the failure of the hook: the tool's own output is kept then.
pub(super) async fn told_to_hook(
    run: &Run<'_>,
    hooked: &HookedCall<'_>,
    output: ToolOutput,
) -> (ToolOutput, Option<KernelError>) {
    match run.hooks.tool_end(hooked, &output).await {
        Ok(None) => (output, None),
        Ok(Some(value)) => {
            let replaced = ToolOutput {
                is_error: output.is_error,
                ..ToolOutput::value(value)
            };
            (replaced, None)
        }
        Err(error) => (output, Some(error)),
    }
}
