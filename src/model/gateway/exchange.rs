//! One HTTP exchange with a gateway, within limits.

use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap};
use url::Url;

use crate::base::clock::Allowance;
use crate::base::http::{self, body::read_bounded};
use crate::base::sse::SseDecoder;
use crate::error::{ErrorKind, KernelError, Result};
use crate::model::failure;
use crate::protocol::Json;

use super::GatewayConfig;

/// Bytes of an error body that are read.
const ERROR_BODY: usize = 64 << 10;
/// Time that the body of an error may take: its status is known already.
const ERROR_TIME: Duration = Duration::from_secs(5);
/// What may come after the end of an answer, and how long it may take.
const REST_BODY: usize = 64 << 10;
const REST_TIME: Duration = Duration::from_secs(2);
/// Bytes of an answer that comes as one JSON message.
const JSON_BODY: usize = 32 << 20;

/// What a gateway was waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    Headers,
    Body,
}

/// Where an exchange goes.
#[derive(Clone, Copy)]
pub struct Exchange<'a> {
    pub config: &'a GatewayConfig,
    pub endpoint: &'a Url,
}

/// The body of a successful answer.
pub enum Body<'a> {
    Events(Box<EventSource<'a>>),
    Message(Json),
}

impl<'a> Exchange<'a> {
    /// Sends a request and waits for the headers of the answer.
    pub async fn send(
        self,
        headers: HeaderMap,
        body: Vec<u8>,
        allowance: &mut Allowance,
    ) -> Result<reqwest::Response> {
        let sending = http::client(self.endpoint, &self.config.proxy)?
            .post(self.endpoint.clone())
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "text/event-stream")
            .headers(headers)
            .body(body)
            .send();
        match allowance
            .limit(self.config.limits.first_byte, sending)
            .await
        {
            Some(Ok(response)) => Ok(response),
            Some(Err(error)) => Err(self.transport(error)),
            None => Err(self.silence(Wait::Headers, allowance)),
        }
    }

    /// The body of a successful answer, by its content type.
    pub async fn body(
        self,
        mut response: reqwest::Response,
        allowance: &'a mut Allowance,
    ) -> Result<Body<'a>> {
        let name = header(&response, CONTENT_TYPE.as_str()).unwrap_or_default();
        let name = name
            .split(';')
            .next()
            .unwrap_or_default()
            .trim()
            .to_ascii_lowercase();
        match name.as_str() {
            // A missing type is taken for events: some gateways send none.
            "" | "text/event-stream" | "application/octet-stream" => {
                {
                let source = EventSource::new(self, response, allowance);
                Ok(Body::Events(Box::new(source)))
            }
            }
            "application/json" => self.message(&mut response, allowance).await.map(Body::Message),
            _ => Err(KernelError::new(
                ErrorKind::ModelProtocol,
                format!(
                    "the gateway answered with {name} instead of an event stream: check model.apiBaseUrl"
                ),
            )
            .with_retryable(false)),
        }
    }

    async fn message(
        self,
        response: &mut reqwest::Response,
        allowance: &mut Allowance,
    ) -> Result<Json> {
        let reading = read_bounded(response, JSON_BODY);
        let (body, more) = match allowance.limit(self.config.limits.idle, reading).await {
            Some(read) => read.map_err(|error| self.transport(error))?,
            None => return Err(self.silence(Wait::Body, allowance)),
        };
        let message = if more {
            None
        } else {
            serde_json::from_slice(&body).ok()
        };
        message.ok_or_else(|| {
            KernelError::new(
                ErrorKind::ModelProtocol,
                "the JSON answer of the gateway cannot be read",
            )
        })
    }

    /// The error for an answer that is no success, with a remedy where there is one.
    pub async fn failure(self, mut response: reqwest::Response, model: &str) -> KernelError {
        let status = response.status().as_u16();
        let headers = response.headers().clone();
        let reading = read_bounded(&mut response, ERROR_BODY);
        // The status is known: a body that does not come must not hide it.
        let body = tokio::select! {
            biased;
            read = reading => read.map(|(body, _)| String::from_utf8_lossy(&body).into_owned()).unwrap_or_default(),
            () = self.config.clock.sleep(ERROR_TIME) => String::new(),
        };
        let error = failure::from_response(status, &headers, &body);
        match status {
            401 | 403 => error.advise("check model.apiKey, or TCB_API_KEY in the environment"),
            404 => error.advise(format!("check model.id ({model}) and model.apiBaseUrl")),
            300..=399 => error.advise("check model.apiBaseUrl: redirects are not followed"),
            _ => error,
        }
    }

    fn transport(self, error: reqwest::Error) -> KernelError {
        let kind = if error.is_timeout() {
            ErrorKind::ModelTimeout
        } else {
            ErrorKind::ModelNetwork
        };
        http::transport_error(kind, error, self.endpoint, &self.config.proxy)
    }

    fn silence(self, wait: Wait, allowance: &Allowance) -> KernelError {
        let limits = &self.config.limits;
        let (limit, name) = match wait {
            _ if allowance.is_spent() => (limits.request, "limits.requestMs"),
            Wait::Headers => (limits.first_byte, "limits.firstByteMs"),
            Wait::Body => (limits.idle, "limits.idleMs"),
        };
        let what = if wait == Wait::Headers {
            "sent no answer"
        } else {
            "sent nothing more"
        };
        let message = format!(
            "the gateway {what} within {} ms ({name})",
            limit.as_millis()
        );
        KernelError::new(ErrorKind::ModelTimeout, message)
    }
}

/// The events of a response body, each within the limits.
pub struct EventSource<'a> {
    exchange: Exchange<'a>,
    response: reqwest::Response,
    allowance: &'a mut Allowance,
    sse: SseDecoder,
    waited: Duration,
    ended: bool,
}

impl<'a> EventSource<'a> {
    fn new(
        exchange: Exchange<'a>,
        response: reqwest::Response,
        allowance: &'a mut Allowance,
    ) -> Self {
        let sse = SseDecoder::default();
        Self {
            exchange,
            response,
            allowance,
            sse,
            waited: Duration::ZERO,
            ended: false,
        }
    }

    /// The data of the next event; none at the end of the body.
    pub async fn next(&mut self) -> Result<Option<String>> {
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

    /// Whether the body is over.
    pub fn is_at_end(&self) -> bool {
        self.ended
    }

    /// Reads what comes after the answer, in the background: a connection is used again only when its
    /// body was read to the end.
    pub fn read_rest(self) {
        let (mut response, clock) = (self.response, self.exchange.config.clock.clone());
        tokio::spawn(async move {
            let rest = read_bounded(&mut response, REST_BODY);
            tokio::select! {
                biased;
                _ = rest => {}
                () = clock.sleep(REST_TIME) => {}
            }
        });
    }

    /// Starts the idle limit anew.
    pub fn progressed(&mut self) {
        self.waited = Duration::ZERO;
    }

    async fn chunk(&mut self) -> Result<Option<Bytes>> {
        let idle = self.exchange.config.limits.idle;
        let left = idle.saturating_sub(self.waited);
        let start = self.exchange.config.clock.instant();
        let exhausted = !idle.is_zero() && left.is_zero();
        let chunk = if exhausted {
            None
        } else {
            self.allowance.limit(left, self.response.chunk()).await
        };
        self.waited += self.exchange.config.clock.instant() - start;
        match chunk {
            Some(chunk) => chunk.map_err(|error| self.exchange.transport(error)),
            None => Err(self.exchange.silence(Wait::Body, self.allowance)),
        }
    }
}

/// The gateway's id of the request.
pub fn request_id(response: &reqwest::Response) -> Option<String> {
    header(response, "request-id").or_else(|| header(response, "x-request-id"))
}

fn header(response: &reqwest::Response, name: &str) -> Option<String> {
    response
        .headers()
        .get(name)?
        .to_str()
        .ok()
        .map(str::to_owned)
}
