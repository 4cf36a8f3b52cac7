//! Calls that are answered outside of the run: the run ends while one of them waits.
//!
//! The calls of an answer that run here run first. Then the others are written down, and only when they
//! are is anybody told of them.

use std::sync::Arc;

use crate::base::crash::crash_point;
use crate::protocol::{Body, OpenCall, OpenKind, bare_name};
use crate::tool::{Origin, Tool, ToolSet};

use super::dispatch::{context, refusal};
use super::run::{Progress, Run, Stop};
use super::transcript::StoredCall;
use super::{HookedCall, Transcript};

impl Run<'_> {
    /// Runs the calls of an answer that run here, then opens the others. Afterwards each has a result
    /// or waits, whatever happened.
    pub(super) async fn run_calls(
        &self,
        transcript: &mut Transcript,
        progress: &mut Progress,
        calls: Vec<StoredCall>,
        unreadable: &[String],
    ) -> Result<(), Stop> {
        let tools = progress.offer.tools.clone();
        let (others, here): (Vec<_>, Vec<_>) =
            calls.into_iter().partition(|call| pauses(call, &tools));
        let ran = self
            .dispatch(transcript, progress)
            .run(here, unreadable)
            .await;
        if others.is_empty() {
            return ran;
        }
        let ready = match ran {
            // What a call waits beside must not be lost while it waits.
            Ok(()) => self.durable(transcript).await,
            stopped => stopped,
        };
        let mut others = others.into_iter();
        let opened = match ready {
            Ok(()) => {
                self.open_each(transcript, progress, &mut others, unreadable)
                    .await
            }
            stopped => stopped,
        };
        // Of those that are open people are told, whatever became of the rest.
        self.dispatch(transcript, progress)
            .skip_all(others.collect());
        for call in progress.pending.clone() {
            self.tell_open(progress, call, false);
        }
        opened
    }

    /// Opens calls one after the other; a failing one is answered, those behind it are left.
    async fn open_each(
        &self,
        transcript: &mut Transcript,
        progress: &mut Progress,
        calls: &mut impl Iterator<Item = StoredCall>,
        unreadable: &[String],
    ) -> Result<(), Stop> {
        let tools = progress.offer.tools.clone();
        for call in calls {
            let Some(tool) = tools.get(&call.name) else {
                continue;
            };
            let is_readable = !unreadable.iter().any(|id| **id == *call.id);
            let opened = self.open(tool.as_ref(), &call, is_readable).await;
            match opened {
                Ok(Opened::Waits(open)) => progress.pending.push(open),
                Ok(Opened::Refused(output)) => {
                    self.dispatch(transcript, progress).record(&call, output);
                }
                Err(stop) => {
                    self.dispatch(transcript, progress).skip_all(vec![call]);
                    return Err(stop);
                }
            }
        }
        Ok(())
    }

    async fn open(
        &self,
        tool: &dyn Tool,
        call: &StoredCall,
        is_readable: bool,
    ) -> Result<Opened, Stop> {
        let (ctx, _) = context(self, call);
        let refused = refusal(self, tool, call, is_readable, &ctx);
        if let Some(output) = self.unless_interrupted(refused).await? {
            return Ok(Opened::Refused(output));
        }
        let hooked = HookedCall {
            name: bare_name(&call.name),
            input: &call.input,
            ctx: &ctx,
        };
        self.unless_interrupted(self.hooks.tool_start(&hooked))
            .await??;
        let open = open_call(call, kind(&tool.spec().origin));
        crash_point!("answer.open.begun");
        // Not given up half-way: nobody would know whether the call waits.
        self.calls.open(&open, &self.sink.turn_id()).await?;
        crash_point!("answer.open.stored");
        Ok(Opened::Waits(open))
    }

    /// Tells that a call waits.
    pub(super) fn tell_open(&self, progress: &mut Progress, call: OpenCall, repeated: bool) {
        progress
            .announced
            .retain(|announced| *announced.id != *call.tool_use_id);
        if !repeated && let Some(hint) = self.calls.hint() {
            self.log(hint);
        }
        let is_question = call.kind == OpenKind::Question;
        let call = Arc::new(call);
        self.sink.emit_now(if is_question {
            Body::QuestionOpen { call, repeated }
        } else {
            Body::ClientToolOpen { call, repeated }
        });
    }
}

/// Whether a call is answered outside of the run.
pub(super) fn pauses(call: &StoredCall, tools: &ToolSet) -> bool {
    let tool = tools.get(&call.name);
    tool.is_some_and(|tool| tool.spec().origin.pauses())
}

/// What became of a call that is answered outside.
enum Opened {
    Waits(OpenCall),
    /// Its input is faulty: it is answered at once.
    Refused(crate::tool::ToolOutput),
}

/// A stored call as those who answer it know it.
pub(super) fn open_call(call: &StoredCall, kind: OpenKind) -> OpenCall {
    OpenCall {
        tool_use_id: call.id.to_string(),
        tool_name: bare_name(&call.name).to_owned(),
        input: call.input.clone(),
        kind,
    }
}

fn kind(origin: &Origin) -> OpenKind {
    match origin {
        Origin::User => OpenKind::Question,
        _ => OpenKind::ClientTool,
    }
}
