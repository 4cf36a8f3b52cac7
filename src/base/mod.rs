//! What every floor may use: clock, bounded channel, HTTP, children, environment, event streams, secrets,
//! text, telemetry.
//!
//! Knows nothing of agents, models or JavaScript.

pub mod cancel;
pub mod channel;
pub mod clock;
pub mod crash;
pub mod environment;
pub mod http;
pub mod id;
pub mod json;
pub mod process;
pub mod retry;
pub mod secret;
pub mod sse;
pub mod telemetry;
pub mod text;
