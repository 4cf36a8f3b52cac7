//! How long to wait before the next attempt.

use std::time::Duration;

/// Exponential back-off with jitter.
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    /// Wait after the first failure; doubles each time.
    pub first: Duration,
    /// Largest wait before jitter.
    pub most: Duration,
    /// Largest share of the wait that is added at random.
    pub jitter: f64,
    /// Largest wait that the other side may ask for.
    pub asked_most: Duration,
}

/// 0.5 s doubling to 32 s, jitter 25 %; a `retry-after` of at most 60 s is followed.
/// Source of the numbers: measured on the Claude Agent SDK.
impl Default for Backoff {
    fn default() -> Self {
        Self {
            first: Duration::from_millis(500),
            most: Duration::from_secs(32),
            jitter: 0.25,
            asked_most: Duration::from_mins(1),
        }
    }
}

impl Backoff {
    /// The wait after failure number `failures` (from 1), unless the other side asked for one.
    pub fn delay(&self, failures: u32, asked: Option<Duration>) -> Duration {
        let base = asked.map_or_else(
            || {
                self.first
                    .saturating_mul(1 << failures.saturating_sub(1).min(16))
                    .min(self.most)
            },
            |asked| asked.min(self.asked_most),
        );
        base + base.mul_f64(self.jitter * fastrand::f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(failures: u32, asked: Option<Duration>) -> (f64, f64) {
        let delays = (0..200).map(|_| Backoff::default().delay(failures, asked).as_secs_f64());
        delays.fold((f64::MAX, 0.0), |(low, high), delay| {
            (low.min(delay), high.max(delay))
        })
    }

    #[test]
    fn waits_double_up_to_the_limit() {
        for (failures, seconds) in [(1, 0.5), (2, 1.0), (3, 2.0), (7, 32.0), (40, 32.0)] {
            let (low, high) = bounds(failures, None);
            assert!(
                low >= seconds && high <= seconds * 1.25,
                "{failures}: {low}..{high}"
            );
        }
    }

    #[test]
    fn what_the_other_side_asks_is_followed_within_reason() {
        let (low, _) = bounds(1, Some(Duration::from_secs(5)));
        assert!(low >= 5.0);
        let (_, high) = bounds(1, Some(Duration::from_secs(100_000)));
        assert!(high <= 75.0);
    }
}
