//! `limits`: what a run may use up, and how long the kernel waits.

use std::time::Duration;

use crate::engine::{Prices, RunLimits};
use crate::error::{KernelError, Result};

use super::Fields;

/// Largest time limit: a week.
const MAX_MS: u64 = 7 * 24 * 3_600 * 1_000;
const MAX_COUNT: u64 = 1_000_000;

/// All limits of a run.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub run: RunLimits,
    pub timeouts: Timeouts,
}

/// How long the kernel waits; zero means for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    pub first_byte: Duration,
    pub idle: Duration,
    pub request: Duration,
    /// For tools without a limit of their own.
    pub tool: Duration,
    /// Most read-only tools that run at once.
    pub tool_concurrency: usize,
}

impl Timeouts {
    /// Whether waiting for the gateway is limited in the same way.
    pub fn same_network(&self, other: &Self) -> bool {
        let network = |limits: &Self| (limits.first_byte, limits.idle, limits.request);
        network(self) == network(other)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            run: RunLimits {
                max_turns: 250,
                ..RunLimits::default()
            },
            timeouts: Timeouts {
                first_byte: Duration::from_mins(2),
                idle: Duration::from_mins(2),
                request: Duration::from_mins(10),
                tool: Duration::ZERO,
                tool_concurrency: 10,
            },
        }
    }
}

/// The limits of a configuration; `maxTurns` beside `limits` is an alias.
pub fn check(config: &Fields<'_>) -> Result<Limits> {
    let alias = config.integer("maxTurns", 0..=MAX_COUNT)?;
    let inner = config.object("limits")?;
    let inner = inner
        .map(|limits| limits.integer("maxTurns", 0..=MAX_COUNT))
        .transpose()?
        .flatten();
    if alias.is_some() && inner.is_some() && alias != inner {
        return Err(KernelError::invalid(
            "config.maxTurns and config.limits.maxTurns differ: they are one setting, give it once",
        ));
    }
    let mut limits = Limits::default().changed_by(config)?;
    if let Some(max_turns) = alias {
        limits.run.max_turns = count(max_turns);
    }
    Ok(limits)
}

impl Limits {
    /// These limits, with those that the object `limits` of `fields` names.
    pub fn changed_by(self, fields: &Fields<'_>) -> Result<Self> {
        let Some(given) = fields.object("limits")? else {
            return Ok(self);
        };
        let ms = |key, old| -> Result<Duration> {
            Ok(given
                .integer(key, 0..=MAX_MS)?
                .map_or(old, Duration::from_millis))
        };
        let Self { run, timeouts } = self;
        let prices = given
            .object("prices")?
            .map(|fields| prices(&fields))
            .transpose()?;
        let max_cost = given
            .number("maxCost", 0.0..=1e12)?
            .or(run.max_cost)
            .filter(|cost| *cost > 0.0);
        if max_cost.is_some() && prices.is_none() && run.prices == Prices::default() {
            return Err(KernelError::invalid(format!(
                "{} needs {}: {{input, output, cacheRead, cacheWrite}} for a million tokens",
                given.path("maxCost"),
                given.path("prices")
            )));
        }
        let width = given.integer("toolConcurrency", 1..=1_000)?;
        let changed = Self {
            run: RunLimits {
                max_turns: given
                    .integer("maxTurns", 0..=MAX_COUNT)?
                    .map_or(run.max_turns, count),
                max_tokens: given
                    .integer("maxTokensPerTurn", 0..=u64::from(u32::MAX))?
                    .unwrap_or(run.max_tokens),
                max_time: ms("maxMs", run.max_time)?,
                max_cost,
                prices: prices.unwrap_or(run.prices),
            },
            timeouts: Timeouts {
                first_byte: ms("firstByteMs", timeouts.first_byte)?,
                idle: ms("idleMs", timeouts.idle)?,
                request: ms("requestMs", timeouts.request)?,
                tool: ms("toolTimeoutMs", timeouts.tool)?,
                tool_concurrency: width
                    .and_then(|width| usize::try_from(width).ok())
                    .unwrap_or(timeouts.tool_concurrency),
            },
        };
        match given.unknown().first() {
            None => Ok(changed),
            Some(unknown) => Err(KernelError::invalid(format!("{unknown} is not a limit"))),
        }
    }
}

fn count(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn prices(fields: &Fields<'_>) -> Result<Prices> {
    let price = |key| fields.number(key, 0.0..=1e9);
    let required =
        |key| price(key)?.ok_or_else(|| fields.wrong(key, "a price for a million tokens"));
    let (input, output) = (required("input")?, required("output")?);
    let prices = Prices {
        input,
        output,
        cache_read: price("cacheRead")?.unwrap_or(input),
        cache_write: price("cacheWrite")?.unwrap_or(input),
    };
    match fields.unknown().first() {
        None => Ok(prices),
        Some(unknown) => Err(KernelError::invalid(format!("{unknown} is not a price"))),
    }
}
