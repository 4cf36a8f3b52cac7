//! Answers from outside, to calls of an earlier run.
//!
//! All of it happens under the lease of the session. An answer is written into the record of its call,
//! then into the transcript; then the record is removed. Whoever takes the lease next finishes what a
//! process that ended has begun.

use crate::base::crash::crash_point;
use crate::base::telemetry;
use crate::error::{ErrorKind, KernelError};
use crate::protocol::{Json, OpenKind};
use crate::store::state::{CallAnswer, CallRecord};
use crate::tool::{ToolOutput, answered, fit};

use super::dispatch::{context, told_to_hook};
use super::open::open_call;
use super::run::{Progress, Run, Stop};
use super::transcript::{Answered, StoredCall};
use super::{HookedCall, Transcript};

/// The result of a call that waited when the user said something else.
const SUPERSEDED: &str = "This call was not run: it was superseded by a new message of the user.";
/// Makes the model go on when its last words were that it waits.
const GO_ON: &str = "[The call that you waited for has its result now. Go on.]";

/// An answer to a call.
#[derive(Clone, Debug, PartialEq)]
pub struct CallReply {
    pub tool_use_id: String,
    pub to: ReplyTo,
    pub output: Json,
    pub is_error: bool,
}

/// What may be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyTo {
    /// Client tools and questions.
    Any,
    Question,
}

/// What becomes of calls that wait.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Waiting {
    /// They are told once more.
    Stay,
    /// The user said something else.
    GiveUp,
}

impl Run<'_> {
    /// Begins with an answer. Calls that wait still are told once more.
    pub(super) async fn take_reply(
        &self,
        transcript: &mut Transcript,
        reply: CallReply,
        progress: &mut Progress,
    ) -> Result<(), Stop> {
        let (record, call) = self.replied_to(transcript, &reply).await?;
        if let Some(turn_id) = &record.turn_id {
            self.sink.continue_turn(turn_id);
        }
        self.refresh_offer(progress).await?;
        if record.answer.is_some() {
            // A process ended with it half done.
            self.finish(transcript, progress, record, &call).await?;
            return Err(already_answered(&reply).into());
        }
        let answer = self.answer(&record, &call, &reply);
        let Some(record) = self.calls.claim(record, answer).await? else {
            return Err(already_answered(&reply).into());
        };
        crash_point!("answer.claimed");
        let put_off = call.put_off;
        self.finish(transcript, progress, record, &call).await?;
        self.settle_open_calls(transcript, progress, Waiting::Stay)
            .await?;
        if put_off && progress.pending.is_empty() {
            transcript.append_note(GO_ON);
        }
        Ok(())
    }

    /// The record and the call that an answer is for.
    async fn replied_to(
        &self,
        transcript: &Transcript,
        reply: &CallReply,
    ) -> Result<(CallRecord, StoredCall), Stop> {
        let find = self.calls.find(&reply.tool_use_id);
        let record = self.unless_interrupted(find).await??;
        let Some((call, answered)) = transcript.find_call(&reply.tool_use_id) else {
            return Err(not_pending(reply).into());
        };
        if answered != Answered::No {
            if let Some(record) = record {
                self.forget(&record).await;
            }
            let error = match answered {
                Answered::Outside => already_answered(reply),
                _ => not_pending(reply),
            };
            return Err(error.into());
        }
        let is_meant =
            |record: &CallRecord| reply.to == ReplyTo::Any || record.kind == OpenKind::Question;
        match record.filter(is_meant) {
            Some(record) => Ok((record, call)),
            None => Err(not_pending(reply).into()),
        }
    }

    fn answer(&self, record: &CallRecord, call: &StoredCall, reply: &CallReply) -> CallAnswer {
        let output = match record.kind {
            OpenKind::Question if !reply.is_error => answered(&call.input, &reply.output),
            _ => reply.output.clone(),
        };
        // Within the limit before it is kept anywhere.
        let output = fit(ToolOutput::value(output), self.config.tool_result_limit);
        CallAnswer {
            output: output.to_json(),
            is_error: reply.is_error,
            is_superseded: false,
        }
    }

    /// Answers all calls without a result, because the user said something else.
    pub(super) async fn give_up_open_calls(
        &self,
        transcript: &mut Transcript,
        progress: &mut Progress,
    ) -> Result<(), Stop> {
        self.settle_open_calls(transcript, progress, Waiting::GiveUp)
            .await?;
        let mut tools = progress.offer.tools.tools();
        if tools.any(|tool| tool.spec().origin.pauses()) {
            self.forget_leftovers().await;
        }
        Ok(())
    }

    /// Goes through the calls without a result: finishes what has its answer, and what was lost.
    async fn settle_open_calls(
        &self,
        transcript: &mut Transcript,
        progress: &mut Progress,
        waiting: Waiting,
    ) -> Result<(), Stop> {
        let mut lost = Vec::new();
        for call in transcript.open_calls() {
            let find = self.calls.find(&call.id);
            match self.unless_interrupted(find).await?? {
                Some(record) if record.answer.is_some() => {
                    self.finish(transcript, progress, record, &call).await?;
                }
                Some(record) if waiting == Waiting::Stay => {
                    let open = open_call(&call, record.kind);
                    progress.pending.push(open.clone());
                    self.tell_open(progress, open, true);
                }
                Some(record) => self.give_up(transcript, progress, record, &call).await?,
                // Whoever put it off has given it up.
                None if call.put_off => {}
                None => lost.push(call),
            }
        }
        self.settle_lost_calls(transcript, progress, lost).await
    }

    async fn give_up(
        &self,
        transcript: &mut Transcript,
        progress: &mut Progress,
        record: CallRecord,
        call: &StoredCall,
    ) -> Result<(), Stop> {
        let superseded = CallAnswer {
            output: SUPERSEDED.into(),
            is_error: true,
            is_superseded: true,
        };
        let claimed = match self.calls.claim(record, superseded).await? {
            None => self.calls.find(&call.id).await?,
            claimed => claimed,
        };
        if let Some(record) = claimed {
            return self.finish(transcript, progress, record, call).await;
        }
        let output = ToolOutput::error(SUPERSEDED);
        self.dispatch(transcript, progress).record(call, output);
        Ok(())
    }

    /// Writes the answer that a record has into the transcript, and removes the record.
    async fn finish(
        &self,
        transcript: &mut Transcript,
        progress: &mut Progress,
        record: CallRecord,
        call: &StoredCall,
    ) -> Result<(), Stop> {
        let Some(answer) = record.answer.clone() else {
            return Ok(());
        };
        let output = ToolOutput {
            is_error: answer.is_error,
            ..ToolOutput::value(answer.output)
        };
        let mut failure = None;
        if answer.is_superseded {
            self.dispatch(transcript, progress).record(call, output);
        } else {
            let output = fit(output, self.config.tool_result_limit);
            let (ctx, _) = context(self, call);
            let hooked = HookedCall {
                name: crate::protocol::bare_name(&call.name),
                input: &call.input,
                ctx: &ctx,
            };
            let told = told_to_hook(self, &hooked, output);
            let (output, error) = self.unless_interrupted(told).await?;
            failure = error;
            self.dispatch(transcript, progress)
                .record_answer(call, output);
        }
        crash_point!("answer.appended");
        self.durable(transcript).await?;
        crash_point!("answer.durable");
        self.forget(&record).await;
        crash_point!("answer.removed");
        failure.map_or(Ok(()), |error| Err(Stop::Failed(error)))
    }

    /// Removes records of calls that have their result: a process ended before it could.
    async fn forget_leftovers(&self) {
        match self.calls.all().await {
            Ok(records) => {
                for record in records {
                    self.forget(&record).await;
                }
            }
            Err(error) => tracing::warn!(
                target: telemetry::ENGINE,
                code = error.code(),
                "records of calls were not looked at"
            ),
        }
    }

    /// Removes a record. A failure leaves it to the next message.
    async fn forget(&self, record: &CallRecord) {
        if let Err(error) = self.calls.remove(record).await {
            tracing::warn!(
                target: telemetry::ENGINE,
                code = error.code(),
                "the record of a call was not removed"
            );
        }
    }
}

fn not_pending(reply: &CallReply) -> KernelError {
    let error = KernelError::new(ErrorKind::Resource, "No pending client tool found");
    error.with_detail("toolUseId", reply.tool_use_id.as_str())
}

fn already_answered(reply: &CallReply) -> KernelError {
    let message = "Client tool result has already been resolved";
    let error = KernelError::new(ErrorKind::AlreadyResolved, message);
    error.with_detail("toolUseId", reply.tool_use_id.as_str())
}
