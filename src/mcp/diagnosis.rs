//! What is known of a connection when it fails: why it ended, and what the server wrote last.

use std::collections::VecDeque;
use std::error::Error;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use tokio_util::sync::CancellationToken;

use crate::base::secret::Secret;
use crate::base::text::excerpt;

/// Bytes of the server's output that are kept.
const KEPT: usize = 8 * 1024;
/// Characters of it that a message shows; the same for an error.
const SHOWN: usize = 2_000;

/// Collects what a message about a failure should say.
#[derive(Debug, Default)]
pub struct Diagnosis {
    tail: Mutex<VecDeque<u8>>,
    reason: OnceLock<String>,
    ended: CancellationToken,
    secrets: Vec<Secret>,
}

impl Diagnosis {
    /// `secrets` are never shown.
    pub fn new(secrets: Vec<Secret>) -> Self {
        Self {
            secrets,
            ..Self::default()
        }
    }

    /// Keeps the end of what the server wrote beside the protocol.
    pub fn note(&self, output: &[u8]) {
        let output = &output[output.len().saturating_sub(KEPT)..];
        let mut tail = self.tail();
        let excess = (tail.len() + output.len()).saturating_sub(KEPT);
        tail.drain(..excess);
        tail.extend(output);
    }

    /// Says that the connection is over; the first reason stays.
    pub fn end(&self, reason: impl Into<String>) {
        // Losing the race is fine: the connection is over either way.
        let _ = self.reason.set(reason.into());
        self.ended.cancel();
    }

    /// The same, unless the connection is over already.
    pub fn end_now(&self, reason: &str) {
        if !self.is_over() {
            self.end(reason);
        }
    }

    /// Says that the connection is over, for no reason that is known here.
    pub fn close(&self) {
        self.ended.cancel();
    }

    /// Whether the connection is over.
    pub fn is_over(&self) -> bool {
        self.ended.is_cancelled()
    }

    /// Waits until the connection is over.
    pub async fn over(&self) {
        self.ended.cancelled().await;
    }

    /// Why the connection is over, as far as it is known.
    pub fn reason(&self) -> Option<&str> {
        self.reason.get().map(String::as_str)
    }

    /// The same, in words in any case.
    pub fn told_reason(&self) -> &str {
        self.reason().unwrap_or("closed the connection")
    }

    /// What happened, with the end of what the server wrote.
    pub fn describe(&self, what: &str) -> String {
        let mut tail = self.tail();
        let text = String::from_utf8_lossy(tail.make_contiguous()).into_owned();
        drop(tail);
        let start = text.trim().char_indices().rev().nth(SHOWN - 1);
        let text = &text.trim()[start.map_or(0, |(at, _)| at)..];
        let message = if text.is_empty() {
            what.to_owned()
        } else {
            format!("{what}. It wrote last:\n{text}")
        };
        self.redact(message)
    }

    /// The message without secrets.
    pub fn redact(&self, message: String) -> String {
        let hide = |text: String, secret: &Secret| secret.redact(&text);
        self.secrets.iter().fold(message, hide)
    }

    fn tail(&self) -> MutexGuard<'_, VecDeque<u8>> {
        // Bytes: whole after every statement.
        self.tail.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An error with its causes.
pub fn causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    excerpt(&text, SHOWN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_end_of_the_output_is_kept_and_shown() {
        let diagnosis = Diagnosis::default();
        for _ in 0..1_000 {
            diagnosis.note(&[b'x'; 1_000]);
        }
        diagnosis.note("日志 last words\n".as_bytes());
        assert_eq!(diagnosis.tail().len(), KEPT);
        let text = diagnosis.describe("exited with code 1");
        assert!(text.starts_with("exited with code 1. It wrote last:\nxxx"));
        assert!(text.ends_with("日志 last words"));
        assert!(text.chars().count() < SHOWN + 100);
    }

    #[test]
    fn secrets_are_not_shown() {
        let diagnosis = Diagnosis::new(vec![Secret::new("sk-12345678")]);
        diagnosis.note(b"starting with TOKEN=sk-12345678");
        let text = diagnosis.describe("exited");
        assert!(text.ends_with("TOKEN=***"), "{text}");
    }

    #[test]
    fn the_first_reason_stays() {
        let diagnosis = Diagnosis::default();
        assert!(!diagnosis.is_over());
        diagnosis.close();
        diagnosis.end_now("was disconnected");
        assert!(diagnosis.is_over());
        assert_eq!(diagnosis.told_reason(), "closed the connection");
        diagnosis.end("exited with code 1");
        diagnosis.end("was disconnected");
        assert_eq!(diagnosis.reason(), Some("exited with code 1"));
    }
}
