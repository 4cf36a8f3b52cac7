//! The Anthropic Messages protocol.
//!
//! Plain Messages API: no beta features unless asked for, so that any gateway that knows the
//! classic protocol works.

mod event;
mod request;

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

pub use event::EventDecoder;
pub use request::body;

use super::ModelRequest;
use super::gateway::{Decoder, Protocol};

/// Version of the API.
const VERSION: (HeaderName, HeaderValue) = (
    HeaderName::from_static("anthropic-version"),
    HeaderValue::from_static("2023-06-01"),
);

/// The Messages API.
#[derive(Clone, Debug, Default)]
pub struct Messages;

impl Protocol for Messages {
    fn path(&self) -> &'static str {
        "/v1/messages"
    }

    fn headers(&self) -> HeaderMap {
        HeaderMap::from_iter([VERSION])
    }

    fn body(&self, request: &ModelRequest, max_tokens: u32) -> Result<Vec<u8>, serde_json::Error> {
        body(request, max_tokens)
    }

    fn decoder(&self, request_id: Option<String>) -> Box<dyn Decoder> {
        Box::new(EventDecoder::new(request_id))
    }
}
