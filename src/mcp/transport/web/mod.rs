//! What the transports over HTTP share: requests that stay at one origin, failures in words, and
//! event streams with limits.

mod endpoint;
mod events;
mod failure;
mod inbox;
#[cfg(test)]
pub mod peer;

use std::time::Duration;

pub use endpoint::{Ask, Endpoint};
pub use events::{Events, read_body};
pub use failure::{Asked, SESSION_ENDED};
pub use inbox::{Inbox, Incoming, Outlet, inbox, messages, messages_in};

use crate::base::retry::Backoff;

/// Largest message of a server.
pub const MOST_BYTES: usize = 64 << 20;
/// Content types.
pub const EVENT_STREAM: &str = "text/event-stream";
pub const JSON: &str = "application/json";

/// How long a server may be silent, and how soon it is asked again.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Between two pieces of a whole body, or of a stream that nobody waits for.
    pub stall: Duration,
    /// From a request to the headers of an answer that needs no work.
    pub headers: Duration,
    /// Before a stream that ended is opened again.
    pub backoff: Backoff,
    /// Attempts in a row that bring nothing, before the answer to a request is given up.
    pub attempts: u32,
}

/// Silence of five minutes, a plain answer within 30 s; a stream is opened again after
/// 1 s doubling to 60 s, or when the server says.
impl Default for Limits {
    fn default() -> Self {
        Self {
            stall: Duration::from_mins(5),
            headers: Duration::from_secs(30),
            backoff: Backoff {
                first: Duration::from_secs(1),
                most: Duration::from_mins(1),
                jitter: 0.1,
                asked_most: Duration::from_mins(1),
            },
            attempts: 5,
        }
    }
}

/// The content type of an answer without its parameters, in lower case.
pub fn content_type(response: &reqwest::Response) -> String {
    let value = response.headers().get(reqwest::header::CONTENT_TYPE);
    let text = value
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let essence = text.split(';').next().unwrap_or_default();
    essence.trim().to_ascii_lowercase()
}
