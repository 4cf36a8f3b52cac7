//! What is configured for a server.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use url::Url;

use super::LinkFactory;
use crate::base::secret::Secret;

/// One server.
#[derive(Clone)]
pub struct ServerSettings {
    /// Key in `mcpServers`: part of the names of its tools.
    pub name: Arc<str>,
    pub target: Target,
    /// Limit on one call, which progress does not extend.
    pub timeout: Duration,
    /// Limit on starting, connecting and listing the tools.
    pub handshake: Duration,
    /// Whether the first request waits for the server as long as the handshake may take.
    pub always_load: bool,
    /// Whether what the server says of its tools counts for more than running them in parallel.
    pub trusted: bool,
    /// What may be done with single tools, by their own names.
    pub policies: HashMap<String, ToolPolicy>,
    /// A child that nobody used for this long is ended, and started again when it is needed; none:
    /// it stays.
    pub idle: Option<Duration>,
}

/// Where a server is.
#[derive(Clone)]
pub enum Target {
    Stdio(Program),
    Http {
        url: Url,
        headers: Vec<(String, Secret)>,
    },
    Sse {
        url: Url,
        headers: Vec<(String, Secret)>,
    },
    InProcess(Arc<dyn LinkFactory>),
}

/// What a child process runs.
#[derive(Clone, Debug)]
pub struct Program {
    /// Looked up in `PATH`, unless it has a slash.
    pub command: String,
    pub args: Vec<String>,
    /// Variables beside the few that every child gets.
    pub env: Vec<(String, Secret)>,
    /// None: that of this process.
    pub cwd: Option<PathBuf>,
}

/// What may be done with a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolPolicy {
    Allow,
    /// The model never sees it.
    Deny,
}

/// Shortest secret that is looked for in a server's output: shorter values are words.
const SECRET_LENGTH: usize = 8;

impl Target {
    /// Whether the server lives in this program.
    pub fn is_in_process(&self) -> bool {
        matches!(self, Self::InProcess(_))
    }

    /// Values that no message may show.
    pub(super) fn secrets(&self) -> Vec<Secret> {
        let (given, url) = match self {
            Self::Stdio(program) => (&program.env, None),
            Self::Http { headers, url } | Self::Sse { headers, url } => (headers, Some(url)),
            Self::InProcess(_) => return Vec::new(),
        };
        // Keys are also given in addresses, and errors of HTTP show those.
        let query = url.and_then(|url| url.query()).map(Secret::new);
        let values = given.iter().map(|(_, value)| value.clone());
        values
            .chain(query)
            .filter(|value| value.expose().len() >= SECRET_LENGTH)
            .collect()
    }
}
