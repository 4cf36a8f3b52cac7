//! The Messages API client: one request, one stream.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_stream::try_stream;
use futures_util::StreamExt;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use url::Url;

use crate::base::clock::{Allowance, SharedClock};
use crate::base::http::{self, ProxyRules, body::read_bounded};
use crate::base::secret::Secret;
use crate::error::{ErrorKind, KernelError, Result};
use crate::model::sse::SseDecoder;
use crate::model::{Model, ModelEvent, ModelRequest, ModelStream};

use super::event::{Decoded, EventDecoder};
use super::{failure, request};

/// Bytes of an error body that are read.
const ERROR_BODY: usize = 64 << 10;
/// Bytes of an answer that comes as one JSON message.
const JSON_BODY: usize = 32 << 20;
/// Version of the Messages API.
const API_VERSION: &str = "2023-06-01";

/// Limits on waiting for the gateway; zero means none.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Until the headers of the answer.
    pub first_byte: Duration,
    /// Between two events; a ping does not count as one.
    pub idle: Duration,
    /// All waiting of one request together.
    pub request: Duration,
}

/// Where the gateway is and how to talk to it.
#[derive(Clone)]
pub struct MessagesConfig {
    /// Base address; `/v1/messages` is appended.
    pub base_url: Url,
    pub api_key: Secret,
    pub proxy: ProxyRules,
    pub limits: Limits,
    pub clock: SharedClock,
}

impl fmt::Debug for MessagesConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MessagesConfig")
            .field("base_url", &self.base_url.as_str())
            .finish_non_exhaustive()
    }
}

/// A model behind the Messages API.
#[derive(Clone, Debug)]
pub struct MessagesModel {
    config: MessagesConfig,
    endpoint: Url,
    /// The largest `max_tokens` that the gateway accepts, as far as it said so.
    ceiling: Arc<AtomicU32>,
}

impl MessagesModel {
    pub fn new(config: MessagesConfig) -> Self {
        let mut endpoint = config.base_url.clone();
        let path = format!("{}/v1/messages", endpoint.path().trim_end_matches('/'));
        endpoint.set_path(&path);
        Self {
            config,
            endpoint,
            ceiling: Arc::new(AtomicU32::new(u32::MAX)),
        }
    }

    /// Sends the request; a second time with fewer output tokens when the gateway names a limit.
    async fn open(
        &self,
        request: &ModelRequest,
        allowance: &mut Allowance,
    ) -> Result<reqwest::Response> {
        let asked = request.max_tokens.min(self.ceiling.load(Ordering::Relaxed));
        let error = match self.attempt(request, asked, allowance).await {
            Ok(response) => return Ok(response),
            Err(error) => error,
        };
        let Some(accepted) = failure::accepted_max_tokens(&error, asked) else {
            return Err(error);
        };
        self.ceiling.store(accepted, Ordering::Relaxed);
        self.attempt(request, accepted, allowance).await
    }

    async fn attempt(
        &self,
        request: &ModelRequest,
        max_tokens: u32,
        allowance: &mut Allowance,
    ) -> Result<reqwest::Response> {
        let body = request::body(request, max_tokens).map_err(|error| {
            KernelError::new(ErrorKind::Internal, "the request cannot be written as JSON")
                .with_source(error)
        })?;
        let response = self.send(body, allowance).await?;
        if response.status().is_success() {
            Ok(response)
        } else {
            Err(self.failure(response, &request.model).await)
        }
    }

    async fn send(&self, body: Vec<u8>, allowance: &mut Allowance) -> Result<reqwest::Response> {
        let client = http::client(&self.config.proxy)?;
        let mut key = HeaderValue::from_str(&format!("Bearer {}", self.config.api_key.expose()))
            .map_err(|_| {
                KernelError::invalid(
                    "config.model.apiKey holds characters that no HTTP header may carry",
                )
            })?;
        key.set_sensitive(true);
        let sending = client
            .post(self.endpoint.clone())
            .header(AUTHORIZATION, key)
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "text/event-stream")
            .header("anthropic-version", API_VERSION)
            .body(body)
            .send();
        match allowance
            .limit(self.config.limits.first_byte, sending)
            .await
        {
            Some(Ok(response)) => Ok(response),
            Some(Err(error)) => Err(self.transport(error)),
            None => Err(self.silence("sent no answer", self.config.limits.first_byte, allowance)),
        }
    }

    fn transport(&self, error: reqwest::Error) -> KernelError {
        http::transport_error(error, &self.endpoint, &self.config.proxy)
    }

    fn silence(&self, what: &str, each: Duration, allowance: &Allowance) -> KernelError {
        let (limit, name) = if allowance.is_spent() {
            (self.config.limits.request, "limits.requestMs")
        } else if what == "sent no answer" {
            (each, "limits.firstByteMs")
        } else {
            (each, "limits.idleMs")
        };
        let message = format!(
            "the gateway {what} within {} ms ({name})",
            limit.as_millis()
        );
        KernelError::new(ErrorKind::ModelTimeout, message)
    }

    /// The error for an answer that is no success, with a remedy where there is one.
    async fn failure(&self, mut response: reqwest::Response, model: &str) -> KernelError {
        let status = response.status().as_u16();
        let headers = response.headers().clone();
        let reading = read_bounded(&mut response, ERROR_BODY);
        // The status is known: a body that does not come must not hide it.
        let body = match tokio::time::timeout(Duration::from_secs(5), reading).await {
            Ok(Ok((body, _))) => String::from_utf8_lossy(&body).into_owned(),
            _ => String::new(),
        };
        let error = failure::from_response(status, &headers, &self.config.api_key.redact(&body));
        match status {
            401 | 403 => error.advise("check model.apiKey, or TCB_API_KEY in the environment"),
            404 => error.advise(format!("check model.id ({model}) and model.apiBaseUrl")),
            300..=399 => error.advise("check model.apiBaseUrl: redirects are not followed"),
            _ => error,
        }
    }
}

impl Model for MessagesModel {
    fn stream(&self, request: Arc<ModelRequest>) -> ModelStream {
        let this = self.clone();
        try_stream! {
            let limits = this.config.limits;
            let mut allowance = Allowance::new(this.config.clock.clone(), limits.request);
            let mut response = this.open(&request, &mut allowance).await?;
            let request_id = header(&response, "request-id").or_else(|| header(&response, "x-request-id"));
            let mut decoder = EventDecoder::new(request_id);
            match content_type(&response) {
                ContentType::Events => {}
                ContentType::Json => {
                    for event in this.read_json(&mut response, &mut decoder, &mut allowance).await? {
                        yield event;
                    }
                    return;
                }
                ContentType::Other(name) => {
                    Err(unexpected_type(&name))?;
                    return;
                }
            }
            let mut source = EventSource::new(&this, response, &mut allowance);
            while let Some(data) = source.next().await? {
                let Decoded::Events(events) = decoder.decode(&data)? else { continue };
                source.progressed();
                for event in events {
                    let finished = event == ModelEvent::Finished;
                    yield event;
                    if finished {
                        return;
                    }
                }
            }
            Err(KernelError::new(
                ErrorKind::ModelTruncated,
                "the gateway ended the answer before it was complete",
            ))?;
        }
        .boxed()
    }
}

impl MessagesModel {
    async fn read_json(
        &self,
        response: &mut reqwest::Response,
        decoder: &mut EventDecoder,
        allowance: &mut Allowance,
    ) -> Result<Vec<ModelEvent>> {
        let reading = read_bounded(response, JSON_BODY);
        let (body, more) = match allowance.limit(self.config.limits.idle, reading).await {
            Some(read) => read.map_err(|error| self.transport(error))?,
            None => {
                return Err(self.silence("sent nothing more", self.config.limits.idle, allowance));
            }
        };
        let message = if more {
            None
        } else {
            serde_json::from_slice(&body).ok()
        };
        let message = message.ok_or_else(|| {
            KernelError::new(
                ErrorKind::ModelProtocol,
                "the JSON answer of the gateway cannot be read",
            )
        })?;
        decoder.decode_message(&message)
    }
}

/// The events of a response body, each within the limits.
struct EventSource<'a> {
    model: &'a MessagesModel,
    response: reqwest::Response,
    allowance: &'a mut Allowance,
    sse: SseDecoder,
    waited: Duration,
    ended: bool,
}

impl<'a> EventSource<'a> {
    fn new(
        model: &'a MessagesModel,
        response: reqwest::Response,
        allowance: &'a mut Allowance,
    ) -> Self {
        let sse = SseDecoder::default();
        Self {
            model,
            response,
            allowance,
            sse,
            waited: Duration::ZERO,
            ended: false,
        }
    }

    /// The data of the next event; none at the end of the body.
    async fn next(&mut self) -> Result<Option<String>> {
        loop {
            if let Some(data) = self.sse.next_event() {
                return Ok(Some(data));
            }
            if self.ended {
                return Ok(None);
            }
            let Some(chunk) = self.chunk().await? else {
                self.ended = true;
                return Ok(self.sse.finish());
            };
            self.sse.push(&chunk).map_err(|_| {
                KernelError::new(
                    ErrorKind::ModelProtocol,
                    "an event of the gateway does not end",
                )
            })?;
        }
    }

    /// Starts the idle limit anew.
    fn progressed(&mut self) {
        self.waited = Duration::ZERO;
    }

    async fn chunk(&mut self) -> Result<Option<bytes::Bytes>> {
        let idle = self.model.config.limits.idle;
        let left = idle.saturating_sub(self.waited);
        let start = self.model.config.clock.instant();
        let exhausted = !idle.is_zero() && left.is_zero();
        let chunk = if exhausted {
            None
        } else {
            self.allowance.limit(left, self.response.chunk()).await
        };
        self.waited += self.model.config.clock.instant() - start;
        match chunk {
            Some(chunk) => chunk.map_err(|error| self.model.transport(error)),
            None => Err(self
                .model
                .silence("sent nothing more", idle, self.allowance)),
        }
    }
}

enum ContentType {
    Events,
    Json,
    Other(String),
}

/// What the body is. A missing type is taken for events: some gateways send none.
fn content_type(response: &reqwest::Response) -> ContentType {
    let Some(name) = header(response, CONTENT_TYPE.as_str()) else {
        return ContentType::Events;
    };
    let name = name
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    match name.as_str() {
        "" | "text/event-stream" | "application/octet-stream" => ContentType::Events,
        "application/json" => ContentType::Json,
        _ => ContentType::Other(name),
    }
}

fn unexpected_type(name: &str) -> KernelError {
    let message = format!(
        "the gateway answered with {name} instead of an event stream: check model.apiBaseUrl"
    );
    KernelError::new(ErrorKind::ModelProtocol, message).with_retryable(false)
}

fn header(response: &reqwest::Response, name: &str) -> Option<String> {
    response
        .headers()
        .get(name)?
        .to_str()
        .ok()
        .map(str::to_owned)
}
