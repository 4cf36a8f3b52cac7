//! What an answer means for the turn.

use crate::model::Answer;
use crate::protocol::{ContentBlock, StopReason};

/// What comes after an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Run the calls of the answer, then ask again.
    RunTools,
    /// The answer was cut off: no call of it may run. Answer the calls with an error, ask again.
    RejectCutCalls,
    /// The model refused: its calls are answered and the run ends.
    RejectRefusedCalls,
    /// The text was cut off: ask the model to go on.
    AskToContinue,
    /// There is nothing to see: ask for visible output.
    AskForOutput,
    /// The model paused: send the conversation again as it is.
    Resend,
    /// The run ends.
    End(StopReason),
}

/// How often one run may go round because of answers that made no progress.
#[derive(Debug, Default)]
pub struct Patience {
    cut: u32,
    silent: u32,
    paused: u32,
}

const MAX_CUT: u32 = 3;
const MAX_SILENT: u32 = 1;
const MAX_PAUSED: u32 = 5;

impl Patience {
    /// Decides. Calls are run whatever the gateway names as the reason, except when the answer was
    /// cut off or refused. Reasons that the kernel does not know end the run and are passed on.
    pub fn decide(&mut self, answer: &Answer) -> Next {
        let reason = answer.stop_reason.as_deref();
        let has_calls = answer.blocks.iter().any(|block| block.call_id().is_some());
        match (reason, has_calls) {
            (Some("refusal"), true) => Next::RejectRefusedCalls,
            (Some("refusal"), false) => Next::End(StopReason::Refusal),
            (Some("max_tokens"), true) => Self::within(
                &mut self.cut,
                MAX_CUT,
                Next::RejectCutCalls,
                StopReason::MaxTokens,
            ),
            (Some("max_tokens"), false) => Self::within(
                &mut self.cut,
                MAX_CUT,
                Next::AskToContinue,
                StopReason::MaxTokens,
            ),
            // Asking again would only make the conversation longer.
            (Some(full @ "model_context_window_exceeded"), true) => {
                Next::End(StopReason::Other(full.to_owned()))
            }
            (_, true) => {
                self.cut = 0;
                Next::RunTools
            }
            (Some("pause_turn"), false) => {
                let paused = StopReason::Other("pause_turn".to_owned());
                Self::within(&mut self.paused, MAX_PAUSED, Next::Resend, paused)
            }
            (None | Some("end_turn" | "tool_use"), false) if !has_visible_text(answer) => {
                Self::within(
                    &mut self.silent,
                    MAX_SILENT,
                    Next::AskForOutput,
                    StopReason::EndTurn,
                )
            }
            (None | Some("end_turn" | "tool_use"), false) => Next::End(StopReason::EndTurn),
            (Some(other), false) => Next::End(StopReason::Other(other.to_owned())),
        }
    }

    fn within(count: &mut u32, most: u32, next: Next, otherwise: StopReason) -> Next {
        *count += 1;
        if *count <= most {
            next
        } else {
            Next::End(otherwise)
        }
    }
}

fn has_visible_text(answer: &Answer) -> bool {
    answer.blocks.iter().any(|block| match block {
        ContentBlock::Text { .. } => !block.is_blank_text(),
        ContentBlock::Thinking { .. } | ContentBlock::RedactedThinking { .. } => false,
        _ => true,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn answer(reason: Option<&str>, blocks: Vec<ContentBlock>) -> Answer {
        Answer {
            stop_reason: reason.map(str::to_owned),
            blocks,
            ..Answer::default()
        }
    }

    fn text() -> Vec<ContentBlock> {
        vec![ContentBlock::text("hi")]
    }

    fn call() -> Vec<ContentBlock> {
        vec![ContentBlock::ToolUse {
            id: "t".into(),
            name: "n".into(),
            input: json!({}),
        }]
    }

    #[test]
    fn every_reason_has_its_outcome() {
        let end = Next::End;
        let other = |name: &str| Next::End(StopReason::Other(name.into()));
        for (reason, blocks, next) in [
            (Some("end_turn"), text(), end(StopReason::EndTurn)),
            (Some("tool_use"), text(), end(StopReason::EndTurn)),
            (None, text(), end(StopReason::EndTurn)),
            (Some("end_turn"), call(), Next::RunTools),
            (Some("pause_turn"), call(), Next::RunTools),
            (None, call(), Next::RunTools),
            (Some("max_tokens"), call(), Next::RejectCutCalls),
            (
                Some("model_context_window_exceeded"),
                call(),
                other("model_context_window_exceeded"),
            ),
            (Some("max_tokens"), text(), Next::AskToContinue),
            (Some("refusal"), text(), end(StopReason::Refusal)),
            (Some("refusal"), call(), Next::RejectRefusedCalls),
            (Some("pause_turn"), text(), Next::Resend),
            (Some("stop_sequence"), text(), other("stop_sequence")),
            (
                Some("model_context_window_exceeded"),
                text(),
                other("model_context_window_exceeded"),
            ),
            (Some("brand_new"), text(), other("brand_new")),
            (Some("end_turn"), vec![], Next::AskForOutput),
            (
                Some("end_turn"),
                vec![ContentBlock::text(" ")],
                Next::AskForOutput,
            ),
        ] {
            assert_eq!(
                Patience::default().decide(&answer(reason, blocks)),
                next,
                "{reason:?}"
            );
        }
    }

    #[test]
    fn answers_without_progress_end() {
        for (reason, blocks, most, last) in [
            (Some("max_tokens"), text(), MAX_CUT, StopReason::MaxTokens),
            (Some("max_tokens"), call(), MAX_CUT, StopReason::MaxTokens),
            (
                Some("pause_turn"),
                text(),
                MAX_PAUSED,
                StopReason::Other("pause_turn".into()),
            ),
            (Some("end_turn"), vec![], MAX_SILENT, StopReason::EndTurn),
        ] {
            let mut patience = Patience::default();
            for _ in 0..most {
                let next = patience.decide(&answer(reason, blocks.clone()));
                assert!(!matches!(next, Next::End(_)));
            }
            assert_eq!(
                patience.decide(&answer(reason, blocks.clone())),
                Next::End(last)
            );
        }
    }
}
