//! Agents and sessions: configuration, wiring, life cycle.
//!
//! Knows every floor below and nothing of JavaScript: what the host program gave as a function is
//! called through [`Host`].

pub mod config;
mod core;
mod endpoint;
mod fork;
pub mod history;
mod hooks;
mod host;
#[cfg(feature = "mcp")]
mod host_link;
mod host_state;
mod host_store;
mod host_tool;
mod input;
mod observe;
mod opening;
mod run;
mod session;
mod sessions;
mod storage;
#[cfg(feature = "mcp")]
mod toolbox;

pub use core::{Agent, PromptRequest};
pub use fork::ForkOptions;
pub use history::HistoryQuery;
pub use host::{FunctionId, Host, HostFailure};
pub use host_state::HostState;
pub use host_store::HostStore;
pub use input::{Respond, SendOptions};
pub use opening::{ResumeOptions, StartOptions};
pub use run::RunHandle;
pub use session::{PromptResult, Session};
pub use sessions::{ListOptions, SessionStatus, SessionSummary};
