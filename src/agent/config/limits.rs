//! `config.limits`: what a run may use up, and how long the kernel waits.

use std::time::Duration;

use crate::engine::{Prices, RunLimits};
use crate::error::{KernelError, Result};

use super::Fields;

/// Largest time limit: a week.
const MAX_MS: u64 = 7 * 24 * 3_600 * 1_000;
const MAX_COUNT: u64 = 1_000_000;

const DEFAULT_MAX_TURNS: u64 = 250;
const DEFAULT_FIRST_BYTE_MS: u64 = 120_000;
const DEFAULT_IDLE_MS: u64 = 120_000;
const DEFAULT_REQUEST_MS: u64 = 600_000;
const DEFAULT_TOOL_CONCURRENCY: u64 = 10;

/// How long the kernel waits; zero means for ever.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    pub first_byte: Duration,
    pub idle: Duration,
    pub request: Duration,
    /// For tools without a limit of their own.
    pub tool: Duration,
    /// Most read-only tools that run at once.
    pub tool_concurrency: usize,
}

/// What a run may use up.
pub fn run_limits(config: &Fields<'_>) -> Result<RunLimits> {
    let limits = config.object("limits")?;
    let inner = limits
        .as_ref()
        .map(|limits| limits.integer("maxTurns", 0..=MAX_COUNT))
        .transpose()?
        .flatten();
    let outer = config.integer("maxTurns", 0..=MAX_COUNT)?;
    if let (Some(inner), Some(outer)) = (inner, outer)
        && inner != outer
    {
        return Err(KernelError::invalid(
            "config.maxTurns and config.limits.maxTurns differ: they are one setting, give it once",
        ));
    }
    let max_turns = inner.or(outer).unwrap_or(DEFAULT_MAX_TURNS);
    let mut run = RunLimits {
        max_turns: u32::try_from(max_turns).unwrap_or(u32::MAX),
        ..RunLimits::default()
    };
    let Some(limits) = limits else { return Ok(run) };
    run.max_tokens = limits
        .integer("maxTokensPerTurn", 0..=u64::from(u32::MAX))?
        .unwrap_or(0);
    run.max_time = Duration::from_millis(limits.integer("maxMs", 0..=MAX_MS)?.unwrap_or(0));
    run.max_cost = limits.number("maxCost", 0.0..=1e12)?;
    let prices = limits
        .object("prices")?
        .map(|fields| prices(&fields))
        .transpose()?;
    if run.max_cost.is_some() && prices.is_none() {
        return Err(KernelError::invalid(
            "config.limits.maxCost needs config.limits.prices: {input, output, cacheRead, cacheWrite} \
             for a million tokens",
        ));
    }
    run.prices = prices.unwrap_or_default();
    Ok(run)
}

fn prices(fields: &Fields<'_>) -> Result<Prices> {
    let price = |key| fields.number(key, 0.0..=1e9);
    let required =
        |key| price(key)?.ok_or_else(|| fields.wrong(key, "a price for a million tokens"));
    let (input, output) = (required("input")?, required("output")?);
    Ok(Prices {
        input,
        output,
        cache_read: price("cacheRead")?.unwrap_or(input),
        cache_write: price("cacheWrite")?.unwrap_or(input),
    })
}

/// How long the kernel waits.
pub fn timeouts(config: &Fields<'_>) -> Result<Timeouts> {
    let limits = config.object("limits")?;
    let ms = |key, default| -> Result<Duration> {
        let given = limits
            .as_ref()
            .map(|limits| limits.integer(key, 0..=MAX_MS))
            .transpose()?
            .flatten();
        Ok(Duration::from_millis(given.unwrap_or(default)))
    };
    let concurrency = limits
        .as_ref()
        .map(|limits| limits.integer("toolConcurrency", 1..=1_000));
    let timeouts = Timeouts {
        first_byte: ms("firstByteMs", DEFAULT_FIRST_BYTE_MS)?,
        idle: ms("idleMs", DEFAULT_IDLE_MS)?,
        request: ms("requestMs", DEFAULT_REQUEST_MS)?,
        tool: ms("toolTimeoutMs", 0)?,
        tool_concurrency: usize::try_from(
            concurrency
                .transpose()?
                .flatten()
                .unwrap_or(DEFAULT_TOOL_CONCURRENCY),
        )
        .unwrap_or(usize::MAX),
    };
    Ok(timeouts)
}
