//! Names under which the kernel reports what it does, through `tracing`.
//!
//! Nothing is printed unless a subscriber is installed. Messages are fixed texts; fields are ids,
//! counts, durations and codes, never content.

/// Requests to the model gateway: attempts, waits, failures.
pub const MODEL: &str = "oak::model";
/// The turn loop: requests, repairs, tool calls.
pub const ENGINE: &str = "oak::engine";
/// Sessions: start, end, hooks that observers failed in.
pub const SESSION: &str = "oak::session";
