//! Where a run reports: numbered updates on a bounded channel.

use std::sync::Arc;

use tokio::sync::Mutex;
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
    turn_id: Arc<str>,
    clock: SharedClock,
    /// Held while an update waits for room, so that updates of parallel tools keep their numbers.
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    sender: Sender<Update>,
    seq: u64,
    phase: Option<(Phase, Option<String>)>,
}

/// A sink and the channel it writes to.
pub fn update_channel(turn_id: Arc<str>, clock: SharedClock) -> (UpdateSink, UpdateReceiver) {
    let (sender, receiver) = channel::bounded(CHANNEL);
    let state = Mutex::new(State {
        sender,
        seq: 0,
        phase: None,
    });
    (
        UpdateSink {
            turn_id,
            clock,
            state,
        },
        receiver,
    )
}

impl UpdateSink {
    pub fn turn_id(&self) -> &Arc<str> {
        &self.turn_id
    }

    pub fn instant(&self) -> Instant {
        self.clock.instant()
    }

    /// Tells what happened, waiting while the channel is full.
    pub async fn emit(&self, body: Body) {
        let mut state = self.state.lock().await;
        let update = self.number(&mut state, body);
        state.sender.send(update).await;
    }

    /// Tells what happened without waiting for room: for the few updates that end a call or a run.
    pub async fn emit_now(&self, body: Body) {
        let mut state = self.state.lock().await;
        let update = self.number(&mut state, body);
        state.sender.send_now(update);
    }

    /// Tells a change of phase; the same phase and tool twice in a row is told once.
    pub async fn phase(&self, phase: Phase, tool: Option<&str>) {
        let mut state = self.state.lock().await;
        let next = (phase, tool.map(str::to_owned));
        if state.phase.as_ref() == Some(&next) {
            return;
        }
        state.phase = Some(next);
        let body = Body::Phase {
            phase,
            tool: tool.map(str::to_owned),
        };
        let update = self.number(&mut state, body);
        state.sender.send(update).await;
    }

    fn number(&self, state: &mut State, body: Body) -> Update {
        let seq = state.seq;
        state.seq += 1;
        let at_ms = self.clock.now_ms();
        Update {
            turn_id: self.turn_id.clone(),
            seq,
            parent: None,
            at_ms,
            body,
        }
    }
}

impl Weigh for Update {
    fn weight(&self) -> usize {
        let text = match &self.body {
            Body::TextEnd { text, .. } => text.len(),
            Body::Text { delta, .. } | Body::Thinking { delta, .. } => delta.len(),
            Body::ToolCall { input, .. } => input.as_ref().map_or(0, json_weight),
            Body::ToolInput { input, .. } => json_weight(input),
            Body::ToolProgress { content, .. } => json_weight(content),
            Body::ToolEnd { output, .. } => json_weight(output),
            Body::Log { message, .. } => message.len(),
            _ => 0,
        };
        UPDATE_BYTES + text
    }
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
