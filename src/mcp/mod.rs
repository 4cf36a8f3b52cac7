//! Clients of servers that speak the Model Context Protocol, and their tools.
//!
//! Knows nothing of agents, sessions or JavaScript: a server in the program is reached through
//! [`Link`]. One connection a server, shared by all who use its tools.

mod link;
mod settings;

pub use link::{Link, LinkFactory};
pub use settings::{ServerSettings, Target, ToolPolicy};
