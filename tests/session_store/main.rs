//! The behaviour suite of session stores, run against every driver.
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
mod postgres;
#[cfg(feature = "sqlite")]
mod sqlite;
