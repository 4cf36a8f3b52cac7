//! Agents and sessions: configuration, wiring, life cycle.
//!
//! Knows every floor below and nothing of JavaScript: what the host program gave as a function is
//! called through [`Host`].

pub mod config;
mod core;
mod endpoint;
mod hooks;
mod host;
mod host_tool;
mod input;
mod observe;
mod run;
mod session;

pub use core::{Agent, PromptRequest, StartOptions};
pub use host::{FunctionId, Host, HostFailure};
pub use input::SendOptions;
pub use run::RunHandle;
pub use session::{PromptResult, Session};
