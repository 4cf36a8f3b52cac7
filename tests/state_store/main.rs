//! The behaviour suite of state stores, run against every driver.
#![allow(
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    clippy::too_many_lines,
    clippy::unused_async,
    reason = "a failing helper fails its test"
)]

#[macro_use]
mod suite;

mod file;
mod memory;
#[cfg(feature = "pgsql")]
mod pgsql;
#[cfg(feature = "pgsql")]
#[path = "../support/postgres.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod postgres;
mod race;
#[cfg(feature = "sqlite")]
mod sqlite;
