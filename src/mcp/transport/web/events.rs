//! The events of a body, each within the limits.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use reqwest::Response;

use crate::base::sse::{SseDecoder, SseEvent};
use crate::error::Result;

use super::{Endpoint, MOST_BYTES};

/// An event stream that is being read.
pub struct Events {
    endpoint: Arc<Endpoint>,
    response: Response,
    decoder: SseDecoder,
    /// Longest silence; none: it may be silent for as long as it likes.
    stall: Option<Duration>,
}

impl Events {
    pub fn new(endpoint: Arc<Endpoint>, response: Response, stall: Option<Duration>) -> Self {
        Self {
            endpoint,
            response,
            decoder: SseDecoder::with_limit(MOST_BYTES),
            stall,
        }
    }

    /// The next event; none at the end of the stream. What it broke off in is dropped.
    pub async fn next(&mut self) -> Result<Option<SseEvent>> {
        loop {
            if let Some(event) = self.decoder.next_with_fields() {
                return Ok(Some(event));
            }
            let read = chunk(&self.endpoint, &mut self.response, self.stall).await?;
            let Some(chunk) = read else {
                return Ok(None);
            };
            self.decoder.push(&chunk).map_err(|_| {
                let error = self.endpoint.misread("sends an event that does not end");
                error.with_retryable(false)
            })?;
        }
    }
}

/// Reads a whole body.
pub async fn read_body(
    endpoint: &Endpoint,
    mut response: Response,
    stall: Duration,
) -> Result<BytesMut> {
    let mut body = BytesMut::new();
    while let Some(chunk) = chunk(endpoint, &mut response, Some(stall)).await? {
        if body.len() + chunk.len() > MOST_BYTES {
            let error = endpoint.misread(&format!("answered with more than {MOST_BYTES} bytes"));
            return Err(error.with_retryable(false));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

async fn chunk(
    endpoint: &Endpoint,
    response: &mut Response,
    stall: Option<Duration>,
) -> Result<Option<Bytes>> {
    let reading = response.chunk();
    let read = match stall {
        Some(limit) => tokio::time::timeout(limit, reading)
            .await
            .map_err(|_| endpoint.silent(limit))?,
        None => reading.await,
    };
    read.map_err(|error| endpoint.lost(error))
}
