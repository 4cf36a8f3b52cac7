//! What must survive a process: transcripts of sessions, and small records of state.
//!
//! Each room is a trait and one file (or folder) a driver. Drivers know nothing of agents or engines;
//! they get the clock passed in and do no I/O before their first call.

pub mod disk;
pub mod session;
#[cfg(any(feature = "sqlite", feature = "pgsql"))]
pub mod sql;
pub mod state;
