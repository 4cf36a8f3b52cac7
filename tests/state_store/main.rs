//! The behaviour suite of state stores, run against every driver.
#![allow(
    clippy::unwrap_used,
    clippy::too_many_lines,
    reason = "a failing helper fails its test"
)]

#[macro_use]
mod suite;

mod memory;
