//! Clients of servers that speak the Model Context Protocol, and their tools.
//!
//! Knows nothing of agents, sessions or JavaScript: a server in the program is reached through
//! [`Link`]. One connection a server, shared by all who use its tools; [`Pool`] holds them.

mod connection;
mod diagnosis;
mod link;
mod listing;
mod names;
mod output;
mod pool;
mod server;
mod settings;
#[cfg(test)]
mod tests;
mod tool;
mod transport;
mod wire;

pub use link::{Link, LinkFactory};
pub use pool::{Failure, Offering, Pool, PoolHold};
pub use settings::{Program, ServerSettings, Target, ToolPolicy};
pub use transport::Surroundings;
