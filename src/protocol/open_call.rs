//! Calls that are answered outside of the run that made them.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use super::Json;

/// In front of the names that an older kernel gave to the tools of `config.tools` and to its own.
const OLDER_PREFIXES: [&str; 2] = ["mcp__custom__", "mcp__kernel__"];

/// What a call waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(rename = "PendingKind")]
pub enum OpenKind {
    /// A decision.
    Approval,
    /// The result of a tool that runs elsewhere.
    ClientTool,
    /// An answer.
    Question,
}

/// A call that waits for a person or another program.
#[derive(Clone, Debug, PartialEq, Serialize, TS)]
#[serde(rename_all = "camelCase")]
#[ts(rename = "PendingCall")]
pub struct OpenCall {
    pub tool_use_id: String,
    /// The bare name for tools of `config.tools`.
    pub tool_name: String,
    /// What would run.
    #[ts(type = "unknown")]
    pub input: Json,
    pub kind: OpenKind,
}

/// The name of a tool as programs know it.
pub fn bare_name(name: &str) -> &str {
    let mut stripped = OLDER_PREFIXES
        .iter()
        .filter_map(|prefix| name.strip_prefix(prefix));
    stripped.next().unwrap_or(name)
}
