//! The OpenAI chat completions protocol.
//!
//! Reasoning is shown and not sent back: the protocol has no place for it. Everything else of a
//! conversation has its counterpart.

mod event;
mod request;

use reqwest::header::HeaderMap;

pub use event::ChunkDecoder;
pub use request::body;

use super::ModelRequest;
use super::gateway::{Decoder, Protocol};

/// The chat completions API.
#[derive(Clone, Debug, Default)]
pub struct Chat;

impl Protocol for Chat {
    fn path(&self) -> &'static str {
        "/chat/completions"
    }

    fn headers(&self) -> HeaderMap {
        HeaderMap::new()
    }

    fn body(&self, request: &ModelRequest, max_tokens: u32) -> Result<Vec<u8>, serde_json::Error> {
        body(request, max_tokens)
    }

    fn decoder(&self, request_id: Option<String>) -> Box<dyn Decoder> {
        Box::new(ChunkDecoder::new(request_id))
    }
}
