//! The Anthropic Messages protocol.
//!
//! Plain Messages API: no beta features unless asked for, so that any gateway that knows the
//! classic protocol works.

mod client;
mod event;
mod failure;
mod request;

pub use client::{Limits, MessagesConfig, MessagesModel};
pub use event::{Decoded, EventDecoder};
pub use request::body;
