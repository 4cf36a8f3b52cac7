//! What is configured for a server.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use url::Url;

use crate::base::secret::Secret;

use super::LinkFactory;

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
    /// Whether what the server says of its tools counts for permission.
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
    Stdio {
        command: String,
        args: Vec<String>,
        /// Variables beside the few that every child gets.
        env: Vec<(String, String)>,
        cwd: Option<PathBuf>,
    },
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

/// What may be done with a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolPolicy {
    Allow,
    /// The model never sees it.
    Deny,
}
