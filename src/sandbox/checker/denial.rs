//! Why something is refused, and what led to a verdict.

use serde::Serialize;

use super::scope::Operation;
use super::shell::Finding;

/// A refusal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Denial {
    /// The tool that the refusal is for: `Bash`, `Read` or `Write`.
    pub tool: &'static str,
    pub reason: String,
    /// Stable name of the kind of refusal.
    pub code: &'static str,
}

impl Denial {
    pub(super) fn path(path: &str, operation: Operation) -> Self {
        let (tool, scope) = match operation {
            Operation::Read => ("Read", "read"),
            Operation::Write => ("Write", "write"),
        };
        Self {
            tool,
            reason: format!("path '{path}' is outside allowed {scope} scope"),
            code: "path_denied",
        }
    }

    pub(super) fn bash(code: &'static str, reason: impl Into<String>) -> Self {
        Self {
            tool: "Bash",
            reason: reason.into(),
            code,
        }
    }

    pub(super) fn finding(finding: &Finding) -> Self {
        Self::bash(finding.code, finding.reason.clone())
    }

    /// The whole sentence.
    pub fn message(&self) -> String {
        format!("Permission denied for {}: {}", self.tool, self.reason)
    }
}

/// A command that would run.
#[derive(Clone, Debug, Serialize)]
pub struct ListedCommand {
    pub argv: Vec<String>,
    pub via: Vec<String>,
}

/// A path that a command would touch.
#[derive(Clone, Debug, Serialize)]
pub struct ListedPath {
    pub path: String,
    pub operation: Operation,
}

/// A verdict with what led to it.
#[derive(Clone, Debug)]
pub struct Explanation {
    pub denial: Option<Denial>,
    pub commands: Vec<ListedCommand>,
    pub paths: Vec<ListedPath>,
}
