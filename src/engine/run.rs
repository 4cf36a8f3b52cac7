//! The loop of one run.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;

use crate::base::cancel::{Interrupt, Interrupter};
use crate::base::crash::crash_point;
use crate::base::telemetry::{self, Trace};
use crate::error::{ErrorKind, KernelError};
use crate::model::{Answer, AnswerBuilder, ModelEvent, truncated};
use crate::protocol::{
    Body, ContentBlock, ErrorInfo, LogLevel, OpenCall, Phase, StopReason, Usage,
};
use crate::store::state::CallRecords;
use crate::tool::{SessionRef, ToolOutput};

use super::answer::CallReply;
use super::dispatch::Dispatch;
use super::end::RunEnd;
use super::measure::{self, RequestMeasure};
use super::outcome::{Next, Patience};
use super::tell::Announced;
use super::toolbox::{Offer, Toolbox};
use super::transcript::StoredCall;
use super::{EngineConfig, Transcript, TurnHooks, UpdateSink, optional, request, tell};

/// Asks for the rest of an answer that was cut off.
const CONTINUE: &str = "[Your answer reached the output limit. Continue exactly where it stopped, \
    without repeating or summarising.]";
/// Asks for an answer that the user can see.
const SHOW_SOMETHING: &str = "[Your last answer had no visible text. Answer the user now.]";
/// What the stream says when calls were cut off.
const CALLS_CUT: &str = "the answer reached the output limit; its tool calls were not run";
/// The result of a call that was cut off.
const CUT: &str = "This call was not run: the answer reached the output limit (max_tokens) before it \
    was complete. Write a shorter input, or split the work into several calls.";
/// The result of a call in an answer that filled the context.
const FULL: &str = "This call was not run: the conversation filled the context window before the \
    answer was complete.";
/// The result of a call in a refused answer.
const REFUSED: &str = "This call was not run: the model refused the answer it belongs to.";
/// What the stream says of a call whose answer never became complete.
const VOID: &str = "The answer that this call belongs to broke off; the call was not run.";

/// What a run begins with.
#[derive(Debug)]
pub enum Work {
    /// A message of the user.
    Prompt(String),
    /// The answer to a call of an earlier run, whose turn goes on.
    Reply(CallReply),
}

/// Everything one run works with.
pub struct Run<'a> {
    pub config: &'a EngineConfig,
    pub toolbox: &'a dyn Toolbox,
    pub hooks: &'a dyn TurnHooks,
    pub session: &'a SessionRef,
    /// Calls that wait for an answer from outside.
    pub calls: &'a CallRecords,
    pub sink: &'a UpdateSink,
    pub interrupter: &'a Interrupter,
    pub trace: &'a Trace,
}

/// Why a run does not go on.
#[derive(Debug)]
pub(super) enum Stop {
    Interrupted,
    Failed(KernelError),
}

impl From<KernelError> for Stop {
    fn from(error: KernelError) -> Self {
        Self::Failed(error)
    }
}

/// What a run has done so far.
#[derive(Debug, Default)]
pub(super) struct Progress {
    usage: Usage,
    context_tokens: u64,
    requests: u32,
    text: String,
    /// Whether the next answer goes on with this text.
    continues: bool,
    /// Calls that the stream announced and that have not ended.
    pub(super) announced: Vec<Announced>,
    /// Calls that wait for an answer from outside.
    pub(super) pending: Vec<OpenCall>,
    /// What the last request offered.
    pub(super) offer: Offer,
}

impl Run<'_> {
    /// Runs until the model is done, a limit is reached, the run is interrupted or fails. The
    /// transcript is valid for a next run in every case.
    pub async fn execute(self, transcript: &mut Transcript, work: Work) -> RunEnd {
        let mut progress = Progress::default();
        let result = self
            .within_time(Box::pin(self.turn(transcript, work, &mut progress)))
            .await;
        for call in std::mem::take(&mut progress.announced) {
            self.sink.emit_now(tell::failed_call(call, VOID));
        }
        if progress.requests > 0 {
            self.sink.emit_now(self.usage(&progress));
        }
        let result = self.store_rest(transcript, result).await;
        self.end(progress, result)
    }

    /// Waits until the entries are in the store, before the stream may end.
    async fn store_rest(
        &self,
        transcript: &Transcript,
        result: Result<StopReason, Stop>,
    ) -> Result<StopReason, Stop> {
        let Some(journal) = transcript.journal() else {
            return result;
        };
        let is_store_failure = |error: &KernelError| {
            matches!(
                error.kind(),
                ErrorKind::StoreUnavailable | ErrorKind::SessionLeaseLost
            )
        };
        if self.interrupter.reason() == Some(&Interrupt::LeaseLost) {
            journal.abandon();
            return result;
        }
        if matches!(&result, Err(Stop::Failed(error)) if is_store_failure(error)) {
            // It was waited for already.
            return result;
        }
        crash_point!("turn.flush.begun");
        let stored = journal.flush().await;
        crash_point!("turn.flush.ended");
        match (stored, result) {
            (Ok(()), result) => result,
            (Err(error), result)
                if journal.is_lenient() && error.kind() != ErrorKind::SessionLeaseLost =>
            {
                self.warn(&error);
                result
            }
            (Err(error), Err(Stop::Failed(first))) => {
                self.warn(&error);
                Err(Stop::Failed(first))
            }
            (Err(error), _) => Err(Stop::Failed(error)),
        }
    }

    /// Waits until what was said so far is in the store: nothing may follow from it before.
    pub(super) async fn durable(&self, transcript: &Transcript) -> Result<(), Stop> {
        let Some(journal) = transcript.journal() else {
            return Ok(());
        };
        match self.unless_interrupted(journal.flush()).await? {
            Err(error) if journal.is_lenient() && error.kind() != ErrorKind::SessionLeaseLost => {
                self.warn(&error);
                Ok(())
            }
            stored => Ok(stored?),
        }
    }

    pub(super) fn warn(&self, error: &KernelError) {
        let body = Body::Log {
            level: LogLevel::Error,
            message: error.message().to_owned(),
            error: Some(ErrorInfo::from(error)),
        };
        self.sink.emit_now(body);
    }

    /// Interrupts the work when the time of the run is over, then lets it end in order.
    async fn within_time<T>(&self, work: impl Future<Output = T>) -> T {
        let Some(limit) = optional(self.config.limits.max_time) else {
            return work.await;
        };
        let mut work = pin!(work);
        tokio::select! {
            biased;
            value = &mut work => return value,
            () = self.config.clock.sleep(limit) => self.interrupter.interrupt(Interrupt::Deadline),
        }
        work.await
    }

    async fn turn(
        &self,
        transcript: &mut Transcript,
        work: Work,
        progress: &mut Progress,
    ) -> Result<StopReason, Stop> {
        match work {
            Work::Prompt(prompt) => self.take_prompt(transcript, &prompt, progress).await?,
            Work::Reply(reply) => self.take_reply(transcript, reply, progress).await?,
        }
        if !progress.pending.is_empty() {
            return Ok(StopReason::AwaitingClientTool);
        }
        let mut patience = Patience::default();
        loop {
            if let Some(reason) = self
                .config
                .limits
                .exceeded(progress.requests, &progress.usage)
            {
                return Ok(reason);
            }
            if progress.requests > 0 {
                self.durable(transcript).await?;
                self.refresh_offer(progress).await?;
            }
            crash_point!("turn.request");
            let answer = self.ask(transcript, progress).await?;
            let next = patience.decide(&answer);
            let text = visible_text(&answer);
            let unreadable = answer.unreadable.clone();
            let known = transcript.entries().len();
            let calls = transcript.append_answer(answer);
            crash_point!("turn.assistant.appended");
            self.tell_entries(transcript, known);
            if std::mem::take(&mut progress.continues) {
                progress.text.push_str(&text);
            } else if !text.is_empty() {
                progress.text.clone_from(&text);
            }
            progress.continues = matches!(next, Next::AskToContinue | Next::Resend);
            let told = self.unless_interrupted(self.tell_text(&text));
            let told = match told.await {
                Ok(()) if !matches!(next, Next::End(_)) => {
                    self.unless_interrupted(self.sink.emit(self.usage(progress)))
                        .await
                }
                told => told,
            };
            let told = match told {
                Ok(()) if !calls.is_empty() => self.durable(transcript).await,
                told => told,
            };
            crash_point!("turn.assistant.durable");
            if let Err(stop) = told {
                self.dispatch(transcript, progress).skip_all(calls);
                return Err(stop);
            }
            match next {
                Next::RunTools => {
                    self.run_calls(transcript, progress, calls, &unreadable)
                        .await?;
                    if !progress.pending.is_empty() {
                        return Ok(StopReason::AwaitingClientTool);
                    }
                }
                Next::RejectCutCalls => {
                    self.log(CALLS_CUT);
                    self.reject(transcript, progress, &calls, CUT);
                }
                Next::RejectRefusedCalls => {
                    self.reject(transcript, progress, &calls, REFUSED);
                    return Ok(StopReason::Refusal);
                }
                Next::AskToContinue => {
                    self.log("the answer reached the output limit; the model is asked to continue");
                    transcript.append_note(CONTINUE);
                }
                Next::AskForOutput => transcript.append_note(SHOW_SOMETHING),
                Next::Resend => {}
                Next::End(StopReason::MaxTokens) if !calls.is_empty() => {
                    self.log(CALLS_CUT);
                    self.reject(transcript, progress, &calls, CUT);
                    return Ok(StopReason::MaxTokens);
                }
                Next::End(reason) => {
                    self.reject(transcript, progress, &calls, FULL);
                    return Ok(reason);
                }
            }
        }
    }

    /// Begins with a message of the user, which follows on results for all calls.
    async fn take_prompt(
        &self,
        transcript: &mut Transcript,
        prompt: &str,
        progress: &mut Progress,
    ) -> Result<(), Stop> {
        let hook = self.hooks.user_message(self.session, prompt);
        let changed = self.unless_interrupted(hook).await??;
        self.refresh_offer(progress).await?;
        self.give_up_open_calls(transcript, progress).await?;
        transcript.append_prompt(changed.as_deref().unwrap_or(prompt));
        crash_point!("turn.prompt.appended");
        Ok(())
    }

    /// Looks which tools there are now, and tells why some are missing.
    pub(super) async fn refresh_offer(&self, progress: &mut Progress) -> Result<(), Stop> {
        progress.offer = self.unless_interrupted(self.toolbox.offer()).await?;
        for failure in &progress.offer.failures {
            self.warn(failure);
        }
        Ok(())
    }

    /// One request and its complete answer.
    async fn ask(&self, transcript: &Transcript, progress: &mut Progress) -> Result<Answer, Stop> {
        let (request, repairs) = request::build(self.config, transcript, &progress.offer);
        if !repairs.is_empty() {
            tracing::debug!(target: telemetry::ENGINE, repairs = repairs.len(), "request was repaired");
        }
        let settings = request.settings.clone();
        let measure = RequestMeasure::start(self.trace, &settings);
        let start = self.sink.instant();
        let (announced, offer) = (&mut progress.announced, &progress.offer);
        let answer = self.unless_interrupted(async {
            self.sink.phase(Phase::ModelResponding, None).await;
            let events = self.config.model.stream(Arc::new(request));
            self.receive(events, transcript, announced, offer, &settings.model)
                .await
        });
        let answer = answer.await?;
        let took = self.sink.instant() - start;
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => {
                measure.failed(self.trace, error.code(), took);
                return Err(error.into());
            }
        };
        measure.answered(self.trace, &answer, took);
        tracing::debug!(
            target: telemetry::ENGINE,
            request_id = answer.request_id.as_deref().unwrap_or_default(),
            stop_reason = answer.stop_reason.as_deref().unwrap_or_default(),
            input_tokens = answer.usage.context_tokens() - answer.usage.output_tokens,
            output_tokens = answer.usage.output_tokens,
            ms = millis(took),
            "request was answered"
        );
        progress.requests += 1;
        progress.usage.add(&answer.usage);
        progress.context_tokens = answer.usage.context_tokens();
        Ok(answer)
    }

    /// Tells an answer as it comes.
    async fn receive(
        &self,
        mut events: crate::model::ModelStream,
        transcript: &Transcript,
        announced: &mut Vec<Announced>,
        offer: &Offer,
        model: &str,
    ) -> Result<Answer, KernelError> {
        let start = self.sink.instant();
        let mut waiting = true;
        let mut builder = AnswerBuilder::new(transcript.taken_ids());
        let mut teller = tell::Teller::new(self.sink, &offer.tools, self.config);
        while let Some(event) = events.next().await {
            let event = event?;
            let finished = event == ModelEvent::Finished;
            if waiting && event.is_visible() {
                waiting = false;
                measure::first_piece(self.trace, model, self.sink.instant() - start);
            }
            if let ModelEvent::Restart { shown, reason } = event {
                for call in std::mem::take(announced) {
                    self.sink.emit(tell::failed_call(call, VOID)).await;
                }
                if shown {
                    let message_id = teller.message_id();
                    self.sink.emit(Body::Restart { message_id, reason }).await;
                }
            }
            if let ModelEvent::FellBack { from, to } = &event {
                self.log(&format!("{from} is not available; {to} answers instead"));
            }
            teller.tell(event, &mut builder, announced).await?;
            if finished {
                return Ok(builder.finish());
            }
        }
        Err(truncated())
    }

    /// Tells the entries after the first `known`, for those who follow the transcript.
    pub(super) fn tell_entries(&self, transcript: &Transcript, known: usize) {
        if !self.config.tell_all {
            return;
        }
        for entry in &transcript.entries()[known..] {
            self.sink.emit_now(Body::Appended(Arc::new(entry.clone())));
        }
    }

    async fn tell_text(&self, text: &str) {
        if !text.is_empty() {
            self.hooks.agent_message(self.session, text).await;
        }
    }

    fn reject(
        &self,
        transcript: &mut Transcript,
        progress: &mut Progress,
        calls: &[StoredCall],
        why: &str,
    ) {
        let mut dispatch = self.dispatch(transcript, progress);
        for call in calls {
            dispatch.record(call, ToolOutput::error(why));
        }
    }

    pub(super) fn dispatch<'b>(
        &'b self,
        transcript: &'b mut Transcript,
        progress: &'b mut Progress,
    ) -> Dispatch<'b> {
        Dispatch {
            run: self,
            transcript,
            tools: &progress.offer.tools,
            announced: &mut progress.announced,
        }
    }

    pub(super) fn log(&self, message: &str) {
        let body = Body::Log {
            level: LogLevel::Info,
            message: message.to_owned(),
            error: None,
        };
        self.sink.emit_now(body);
    }

    fn usage(&self, progress: &Progress) -> Body {
        Body::Usage {
            used: progress.context_tokens,
            size: self.config.context_window,
            totals: progress.usage,
        }
    }

    pub(super) async fn unless_interrupted<T>(
        &self,
        work: impl Future<Output = T>,
    ) -> Result<T, Stop> {
        self.interrupter.unless(work).await.ok_or(Stop::Interrupted)
    }

    fn end(&self, progress: Progress, result: Result<StopReason, Stop>) -> RunEnd {
        let mut end = match result {
            Ok(reason) => RunEnd::without_work(reason),
            Err(Stop::Failed(error)) => RunEnd::failed(error),
            Err(Stop::Interrupted) => RunEnd::interrupted(self.interrupter),
        };
        end.usage = progress.usage;
        end.requests = progress.requests;
        end.text = progress.text;
        end.pending = progress.pending;
        end
    }
}

/// A duration in whole milliseconds.
pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn visible_text(answer: &Answer) -> String {
    let text = answer.blocks.iter().filter_map(|block| match block {
        ContentBlock::Text { text, .. } => Some(text.as_str()),
        _ => None,
    });
    text.collect()
}
