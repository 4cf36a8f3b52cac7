//! Retrying, as a layer around any model.
//!
//! Before anything was shown a failed request is repeated silently. Once text was shown it is
//! repeated at most twice, unless the user forbids it. [`ModelEvent::Restart`] tells which it was.
//! No tool of an unfinished answer has started, so that repeating is always safe.

use std::sync::Arc;
use std::time::Duration;

use async_stream::stream;
use futures_util::StreamExt;

use crate::base::clock::SharedClock;
use crate::base::retry::Backoff;
use crate::base::telemetry;
use crate::error::{ErrorKind, KernelError};
use crate::protocol::RestartReason;

use super::{Model, ModelEvent, ModelRequest, ModelStream, truncated};

/// Most repetitions after text was shown.
const MAX_RESTARTS: u32 = 2;

/// How often, and how fast.
#[derive(Clone, Copy, Debug)]
pub struct RetryPolicy {
    /// Most repetitions before text was shown.
    pub max_retries: u32,
    /// Whether a request is repeated after text was shown.
    pub restart: bool,
    /// Whether consumers see text grow, or each block at its end.
    pub as_it_grows: bool,
    pub backoff: Backoff,
}

impl RetryPolicy {
    /// Whether a consumer has seen a part of the answer after this event.
    pub(super) fn shown_after(&self, shown: bool, event: &ModelEvent) -> bool {
        match event {
            ModelEvent::Restart { .. } => false,
            event if self.as_it_grows => shown || event.is_visible(),
            event => shown || event.completes_something(),
        }
    }
}

/// A model that repeats failed requests.
pub struct Retry {
    model: Arc<dyn Model>,
    policy: RetryPolicy,
    clock: SharedClock,
}

impl Retry {
    pub fn new(model: Arc<dyn Model>, policy: RetryPolicy, clock: SharedClock) -> Self {
        Self {
            model,
            policy,
            clock,
        }
    }
}

/// Counts of one request.
#[derive(Debug, Default)]
struct Attempts {
    silent_failures: u32,
    restarts: u32,
}

impl Attempts {
    fn total(&self) -> u32 {
        1 + self.silent_failures + self.restarts
    }

    /// Whether the request may be repeated after this failure; counts it.
    fn allow(&mut self, policy: &RetryPolicy, error: &KernelError, shown: bool) -> bool {
        if !error.is_retryable() {
            return false;
        }
        let (count, most) = if shown {
            (
                &mut self.restarts,
                if policy.restart { MAX_RESTARTS } else { 0 },
            )
        } else {
            (&mut self.silent_failures, policy.max_retries)
        };
        let allowed = *count < most;
        *count += u32::from(allowed);
        allowed
    }
}

impl Model for Retry {
    fn stream(&self, request: Arc<ModelRequest>) -> ModelStream {
        let (model, policy, clock) = (self.model.clone(), self.policy, self.clock.clone());
        stream! {
            let mut attempts = Attempts::default();
            loop {
                let mut shown = false;
                let mut inner = model.stream(request.clone());
                let error = loop {
                    match inner.next().await {
                        Some(Ok(event)) => {
                            shown = policy.shown_after(shown, &event);
                            let finished = event == ModelEvent::Finished;
                            yield Ok(event);
                            if finished {
                                return;
                            }
                        }
                        Some(Err(error)) => break error,
                        None => break truncated(),
                    }
                };
                // The connection is closed before the wait.
                drop(inner);
                if !attempts.allow(&policy, &error, shown) {
                    yield Err(error.with_detail("attempts", attempts.total()));
                    return;
                }
                let asked = error.retry_after_ms().map(Duration::from_millis);
                let delay = policy.backoff.delay(attempts.total() - 1, asked);
                tracing::debug!(
                    target: telemetry::MODEL,
                    code = error.code(),
                    attempts = attempts.total() - 1,
                    delay_ms = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX),
                    shown,
                    "request is repeated"
                );
                yield Ok(ModelEvent::Restart { reason: restart_reason(&error), shown });
                clock.sleep(delay).await;
            }
        }
        .boxed()
    }
}

fn restart_reason(error: &KernelError) -> RestartReason {
    match error.kind() {
        ErrorKind::ModelTimeout => RestartReason::Timeout,
        ErrorKind::ModelNetwork => RestartReason::Network,
        ErrorKind::ModelTruncated => RestartReason::Truncated,
        _ => RestartReason::ErrorEvent,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use futures_util::stream;
    use tokio::time::Instant;

    use super::*;
    use crate::base::clock::SystemClock;
    use crate::model::BlockDelta;

    /// Plays one list of events for each request.
    struct Script(Mutex<Vec<Vec<Result<ModelEvent, KernelError>>>>);

    impl Model for Script {
        fn stream(&self, _: Arc<ModelRequest>) -> ModelStream {
            let mut plays = self.0.lock().unwrap();
            assert!(!plays.is_empty(), "one request too many");
            stream::iter(plays.remove(0)).boxed()
        }
    }

    fn text() -> Result<ModelEvent, KernelError> {
        Ok(ModelEvent::BlockDelta {
            index: 0,
            delta: BlockDelta::Text("hi".into()),
        })
    }

    fn fails(kind: ErrorKind) -> Result<ModelEvent, KernelError> {
        Err(KernelError::new(kind, "no"))
    }

    async fn play(
        plays: Vec<Vec<Result<ModelEvent, KernelError>>>,
        restart: bool,
    ) -> (Vec<Result<ModelEvent, KernelError>>, Duration) {
        let policy = RetryPolicy {
            max_retries: 3,
            restart,
            as_it_grows: true,
            backoff: Backoff::default(),
        };
        let script = Arc::new(Script(Mutex::new(plays)));
        let model = Retry::new(script.clone(), policy, Arc::new(SystemClock));
        let request = ModelRequest::default();
        let start = Instant::now();
        let events = model.stream(Arc::new(request)).collect().await;
        assert!(script.0.lock().unwrap().is_empty(), "a request is missing");
        (events, start.elapsed())
    }

    fn error(events: &[Result<ModelEvent, KernelError>]) -> &KernelError {
        events.last().unwrap().as_ref().unwrap_err()
    }

    #[tokio::test(start_paused = true)]
    async fn failures_before_text_are_repeated_with_growing_waits() {
        let play_list = vec![
            vec![fails(ErrorKind::ModelOverloaded)],
            vec![fails(ErrorKind::ModelNetwork)],
            vec![text(), Ok(ModelEvent::Finished)],
        ];
        let (events, waited) = play(play_list, false).await;
        assert!(matches!(
            events[0],
            Ok(ModelEvent::Restart { shown: false, .. })
        ));
        assert_eq!(
            events.last().unwrap().as_ref().unwrap(),
            &ModelEvent::Finished
        );
        assert!(waited >= Duration::from_millis(1_500) && waited < Duration::from_millis(1_900));
    }

    #[tokio::test(start_paused = true)]
    async fn what_cannot_succeed_is_sent_once() {
        for kind in [
            ErrorKind::ModelAuth,
            ErrorKind::ModelNotFound,
            ErrorKind::ModelRequest,
        ] {
            let (events, waited) = play(vec![vec![fails(kind)]], true).await;
            assert_eq!(error(&events).kind(), kind);
            assert_eq!(error(&events).details()["attempts"], 1);
            assert_eq!(waited, Duration::ZERO);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn retries_end() {
        let plays = (0..4)
            .map(|_| vec![fails(ErrorKind::ModelServer)])
            .collect();
        let (events, _) = play(plays, true).await;
        assert_eq!(error(&events).details()["attempts"], 4);
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_that_the_gateway_asks_for_is_followed() {
        let asked =
            KernelError::new(ErrorKind::ModelRateLimit, "slow").with_retry_after_ms(Some(7_000));
        let (_, waited) = play(vec![vec![Err(asked)], vec![Ok(ModelEvent::Finished)]], true).await;
        assert!(waited >= Duration::from_secs(7));
    }

    #[tokio::test(start_paused = true)]
    async fn shown_text_is_restarted_twice_at_most() {
        let broken = || vec![text(), fails(ErrorKind::ModelOverloaded)];
        let (events, _) = play(vec![broken(), broken(), broken()], true).await;
        let restarts = events.iter().flatten().filter(|event| {
            matches!(
                event,
                ModelEvent::Restart {
                    shown: true,
                    reason: RestartReason::ErrorEvent
                }
            )
        });
        assert_eq!(restarts.count(), 2);
        assert_eq!(error(&events).details()["attempts"], 3);
    }

    #[tokio::test(start_paused = true)]
    async fn shown_text_is_never_repeated_when_forbidden() {
        let (events, _) = play(vec![vec![text(), fails(ErrorKind::ModelNetwork)]], false).await;
        assert_eq!(error(&events).kind(), ErrorKind::ModelNetwork);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_just_ends_is_truncated() {
        let (events, _) = play(vec![vec![text()]], false).await;
        assert_eq!(error(&events).kind(), ErrorKind::ModelTruncated);
    }
}
