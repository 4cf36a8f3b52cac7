//! What the kernel tells of its own work: log records, metrics and spans.
//!
//! Log records go through `tracing`, and nowhere unless somebody asked: a logger of the host program
//! ([`log::dispatch`]) or standard error. Messages are fixed texts; fields are ids, counts, durations
//! and codes, never content.

pub mod log;
mod trace;

use serde::Serialize;

pub use trace::{OpenSpan, SpanKind, SpanRecord, Trace, TraceParent};

use crate::protocol::JsonMap;

/// Requests to the model gateway: attempts, waits, failures.
pub const MODEL: &str = "oak::model";
/// The turn loop: requests, repairs, tool calls.
pub const ENGINE: &str = "oak::engine";
/// Sessions: runs, hooks that observers failed in.
pub const SESSION: &str = "oak::session";
/// Servers of the Model Context Protocol: connections made and ended.
pub const MCP: &str = "oak::mcp";
/// Sandboxes: what was refused.
pub const SANDBOX: &str = "oak::sandbox";

/// Receives metrics and spans. Must not block.
pub trait Observer: Send + Sync {
    fn metric(&self, metric: &Metric);
    fn span(&self, span: &SpanRecord);
}

/// One measured value.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Metric {
    /// Name of the OpenTelemetry GenAI conventions where there is one.
    pub name: &'static str,
    pub value: f64,
    /// Unit as UCUM writes it: `s`, `{token}`.
    pub unit: &'static str,
    pub attributes: JsonMap,
}
