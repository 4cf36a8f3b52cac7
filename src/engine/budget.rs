//! What a run may use up.

use std::time::Duration;

use crate::protocol::{StopReason, Usage};

/// Limits of one run; zero or none means no limit.
#[derive(Clone, Copy, Debug, Default)]
pub struct RunLimits {
    /// Model requests.
    pub max_turns: u32,
    /// Tokens of all requests together: input, cache and output.
    pub max_tokens: u64,
    /// Time from the start of the run.
    pub max_time: Duration,
    /// Cost of all requests together, in the currency of the prices.
    pub max_cost: Option<f64>,
    pub prices: Prices,
}

/// Prices of a million tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Prices {
    pub input: f64,
    pub output: f64,
    pub cache_read: f64,
    pub cache_write: f64,
}

impl Prices {
    pub fn cost(&self, usage: &Usage) -> f64 {
        let part = |tokens: u64, price: f64| tokens as f64 * price / 1e6;
        part(usage.input_tokens, self.input)
            + part(usage.output_tokens, self.output)
            + part(usage.cache_read_input_tokens, self.cache_read)
            + part(usage.cache_creation_input_tokens, self.cache_write)
    }
}

impl RunLimits {
    /// Why no further request may be made after `requests` requests that used `usage`.
    pub fn exceeded(&self, requests: u32, usage: &Usage) -> Option<StopReason> {
        let over_turns = self.max_turns > 0 && requests >= self.max_turns;
        let over_tokens = self.max_tokens > 0 && usage.context_tokens() >= self.max_tokens;
        let over_cost = self
            .max_cost
            .is_some_and(|most| most > 0.0 && self.prices.cost(usage) >= most);
        if over_turns {
            Some(StopReason::MaxTurns)
        } else {
            (over_tokens || over_cost).then_some(StopReason::Budget)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USAGE: Usage = Usage {
        input_tokens: 1_000,
        output_tokens: 500,
        cache_creation_input_tokens: 0,
        cache_read_input_tokens: 2_000,
    };

    #[test]
    fn nothing_is_limited_by_default() {
        assert_eq!(RunLimits::default().exceeded(1_000, &USAGE), None);
    }

    #[test]
    fn each_limit_has_its_reason() {
        let turns = RunLimits {
            max_turns: 2,
            ..RunLimits::default()
        };
        assert_eq!(turns.exceeded(1, &USAGE), None);
        assert_eq!(turns.exceeded(2, &USAGE), Some(StopReason::MaxTurns));
        let tokens = RunLimits {
            max_tokens: 3_500,
            ..RunLimits::default()
        };
        assert_eq!(tokens.exceeded(1, &USAGE), Some(StopReason::Budget));
        let prices = Prices {
            input: 1.0,
            output: 4.0,
            cache_read: 0.1,
            cache_write: 0.0,
        };
        let cost = RunLimits {
            max_cost: Some(0.0032),
            prices,
            ..RunLimits::default()
        };
        assert_eq!(cost.exceeded(1, &USAGE), Some(StopReason::Budget));
        let cost = RunLimits {
            max_cost: Some(0.0033),
            prices,
            ..RunLimits::default()
        };
        assert_eq!(cost.exceeded(1, &USAGE), None);
    }
}
