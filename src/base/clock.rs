//! Time, as a trait: what waits or stamps takes a clock, so that tests run on paused time.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use tokio::time::Instant;

/// Source of time.
#[async_trait]
pub trait Clock: Debug + Send + Sync {
    /// Milliseconds since the epoch.
    fn now_ms(&self) -> u64;

    /// A point of monotonic time.
    fn instant(&self) -> Instant;

    /// Waits.
    async fn sleep(&self, duration: Duration);
}

pub type SharedClock = Arc<dyn Clock>;

/// The clock of the machine. Waiting follows tokio's time, which tests can pause.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

#[async_trait]
impl Clock for SystemClock {
    fn now_ms(&self) -> u64 {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }

    fn instant(&self) -> Instant {
        Instant::now()
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}

/// A limit on the time that waiting for somebody else may take in total.
///
/// Only the time spent in [`Allowance::limit`] counts: a slow consumer of a stream does not use up
/// the time its producer was given.
#[derive(Debug)]
pub struct Allowance {
    clock: SharedClock,
    left: Duration,
}

impl Allowance {
    /// A total of `total`; zero means no limit.
    pub fn new(clock: SharedClock, total: Duration) -> Self {
        let left = if total.is_zero() {
            Duration::MAX
        } else {
            total
        };
        Self { clock, left }
    }

    /// Waits for `work`, at most `each` (zero: no limit of its own) and at most what is left.
    /// `None` when time ran out.
    pub async fn limit<T>(&mut self, each: Duration, work: impl Future<Output = T>) -> Option<T> {
        let each = if each.is_zero() { Duration::MAX } else { each };
        let start = self.clock.instant();
        let result = tokio::select! {
            biased;
            value = work => Some(value),
            () = self.clock.sleep(each.min(self.left)) => None,
        };
        self.left = self.left.saturating_sub(self.clock.instant() - start);
        result
    }

    /// Whether the total is used up.
    pub fn is_spent(&self) -> bool {
        self.left.is_zero()
    }
}

/// An ISO 8601 timestamp with milliseconds, UTC.
pub fn iso_timestamp(ms: u64) -> String {
    humantime::format_rfc3339_millis(UNIX_EPOCH + Duration::from_millis(ms)).to_string()
}

/// Milliseconds since the epoch of an ISO 8601 timestamp in UTC; the fraction may be missing.
pub fn parse_timestamp(text: &str) -> Option<u64> {
    let time = humantime::parse_rfc3339_weak(text).ok()?;
    let since = time.duration_since(UNIX_EPOCH).ok()?;
    u64::try_from(since.as_millis()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_iso_with_milliseconds() {
        assert_eq!(iso_timestamp(1_700_000_000_123), "2023-11-14T22:13:20.123Z");
        assert_eq!(
            parse_timestamp("2023-11-14T22:13:20.123Z"),
            Some(1_700_000_000_123)
        );
        assert_eq!(
            parse_timestamp("2023-11-14T22:13:20Z"),
            Some(1_700_000_000_000)
        );
        assert_eq!(parse_timestamp("yesterday"), None);
    }

    #[tokio::test(start_paused = true)]
    async fn only_waiting_uses_up_an_allowance() {
        let clock: SharedClock = Arc::new(SystemClock);
        let mut allowance = Allowance::new(clock.clone(), Duration::from_secs(10));
        let four = || tokio::time::sleep(Duration::from_secs(4));
        assert!(
            allowance
                .limit(Duration::from_secs(5), four())
                .await
                .is_some()
        );
        clock.sleep(Duration::from_mins(1)).await;
        assert!(
            allowance
                .limit(Duration::from_secs(5), four())
                .await
                .is_some()
        );
        assert!(
            allowance
                .limit(Duration::from_secs(5), four())
                .await
                .is_none()
        );
        assert!(allowance.is_spent());
    }
}
