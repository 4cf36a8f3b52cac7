//! Where a run reports: numbered updates on a bounded channel.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

use crate::base::channel::{self, Bounds, Receiver, Sender, Weigh};
use crate::base::clock::SharedClock;
use crate::protocol::{Body, Json, Phase, Update};

/// What the channel holds at most.
const CHANNEL: Bounds = Bounds {
    elements: 1_024,
    bytes: 1 << 20,
};
/// Bytes that an update takes besides its texts.
const UPDATE_BYTES: usize = 128;

pub type UpdateReceiver = Receiver<Update>;

/// Numbers updates and hands them on in order. A full channel holds the run.
#[derive(Debug)]
pub struct UpdateSink {
    clock: SharedClock,
    sender: Sender<Update>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    turn_id: Arc<str>,
    seq: u64,
    phase: Option<(Phase, Option<String>)>,
}

/// A sink and the channel it writes to.
pub fn update_channel(turn_id: Arc<str>, clock: SharedClock) -> (UpdateSink, UpdateReceiver) {
    let (sender, receiver) = channel::bounded(CHANNEL);
    let state = Mutex::new(State {
        turn_id,
        seq: 0,
        phase: None,
    });
    (
        UpdateSink {
            clock,
            sender,
            state,
        },
        receiver,
    )
}

impl UpdateSink {
    pub fn turn_id(&self) -> Arc<str> {
        self.state().turn_id.clone()
    }

    /// What is told from now on belongs to an earlier turn, which goes on.
    pub fn continue_turn(&self, turn_id: &str) {
        self.state().turn_id = turn_id.into();
    }

    pub fn instant(&self) -> Instant {
        self.clock.instant()
    }

    /// Tells what happened, waiting while the channel is full. Updates are numbered when they are
    /// written: one that is given up while it waits leaves no gap.
    pub async fn emit(&self, body: Body) {
        let weight = weight(&body);
        let mut body = Some(body);
        self.sender
            .send_with(weight, || {
                Some(self.number(&mut self.state(), body.take()?))
            })
            .await;
    }

    /// Tells what happened without waiting for room: for the few updates that end a call or a run.
    pub fn emit_now(&self, body: Body) {
        let mut body = Some(body);
        self.sender
            .send_now_with(|| Some(self.number(&mut self.state(), body.take()?)));
    }

    /// Tells a change of phase; the same phase and tool twice in a row is told once.
    pub async fn phase(&self, phase: Phase, tool: Option<&str>) {
        let next = (phase, tool.map(str::to_owned));
        let told = || {
            let mut state = self.state();
            if state.phase.as_ref() == Some(&next) {
                return None;
            }
            state.phase = Some(next.clone());
            let body = Body::Phase {
                phase,
                tool: tool.map(str::to_owned),
            };
            Some(self.number(&mut state, body))
        };
        self.sender.send_with(UPDATE_BYTES, told).await;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Numbers and words: whole after every statement.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn number(&self, state: &mut State, body: Body) -> Update {
        let seq = state.seq;
        state.seq += 1;
        let at_ms = self.clock.now_ms();
        Update {
            turn_id: state.turn_id.clone(),
            seq,
            parent: None,
            at_ms,
            body,
        }
    }
}

impl Weigh for Update {
    fn weight(&self) -> usize {
        weight(&self.body)
    }
}

fn weight(body: &Body) -> usize {
    let text = match body {
        Body::TextEnd { text, .. } => text.len(),
        Body::Text { delta, .. } | Body::Thinking { delta, .. } => delta.len(),
        Body::ToolCall { input, .. } => input.as_ref().map_or(0, json_weight),
        Body::ToolInput { input, .. } => json_weight(input),
        Body::ToolProgress { content, .. } => json_weight(content),
        Body::ToolEnd { output, .. } => json_weight(output),
        Body::ClientToolOpen { call, .. } | Body::QuestionOpen { call, .. } => {
            json_weight(&call.input)
        }
        Body::Log { message, .. } => message.len(),
        Body::Raw(event) => json_weight(event),
        Body::Appended(entry) => serde_json::to_value(entry).map_or(0, |entry| json_weight(&entry)),
        _ => 0,
    };
    UPDATE_BYTES + text
}

fn json_weight(value: &Json) -> usize {
    match value {
        Json::String(text) => text.len(),
        Json::Array(items) => items.iter().map(|item| 16 + json_weight(item)).sum(),
        Json::Object(fields) => fields
            .iter()
            .map(|(key, value)| 32 + key.len() + json_weight(value))
            .sum(),
        _ => 16,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::clock::SystemClock;

    #[tokio::test]
    async fn updates_are_numbered_and_phases_not_repeated() {
        let (sink, receiver) = update_channel("turn".into(), Arc::new(SystemClock));
        sink.phase(Phase::ModelResponding, None).await;
        sink.phase(Phase::ModelResponding, None).await;
        sink.phase(Phase::ToolExecuting, Some("a")).await;
        sink.phase(Phase::ToolExecuting, Some("b")).await;
        drop(sink);
        let updates = receiver.batch(CHANNEL).await.unwrap();
        assert_eq!(
            updates.iter().map(|update| update.seq).collect::<Vec<_>>(),
            [0, 1, 2]
        );
        assert!(receiver.batch(CHANNEL).await.is_none());
    }
}
