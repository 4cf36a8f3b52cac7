//! Sending a request to a gateway and reading its stream, whatever protocol it speaks.
//!
//! One request, one stream: the connection, the limits on waiting, what kind of body came back. How
//! a request is written and what an event means is the business of a [`Protocol`].

mod exchange;

use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_stream::try_stream;
use futures_util::StreamExt;
use reqwest::header::{HeaderMap, HeaderValue};
use url::Url;

use crate::base::clock::{Allowance, SharedClock};
use crate::base::http::ProxyRules;
use crate::base::secret::Secret;
use crate::error::{ErrorKind, KernelError, Result};
use crate::protocol::Json;

use super::{Model, ModelEvent, ModelRequest, ModelStream, failure};
use exchange::{Body, Exchange};

/// A wire protocol.
pub trait Protocol: Clone + Send + Sync + 'static {
    /// What is appended to the base address.
    fn path(&self) -> &'static str;

    /// Headers besides credential and content type.
    fn headers(&self) -> HeaderMap;

    /// The JSON text of a request, with this many output tokens.
    fn body(&self, request: &ModelRequest, max_tokens: u32) -> Result<Vec<u8>, serde_json::Error>;

    /// A decoder for one answer.
    fn decoder(&self, request_id: Option<String>) -> Box<dyn Decoder>;
}

/// Decodes one answer.
pub trait Decoder: Send {
    /// Decodes the data of one server-sent event. Unknown kinds are no events.
    fn decode(&mut self, data: &str) -> Result<Decoded>;

    /// The events of an answer that came as one JSON message instead of a stream.
    fn decode_message(&mut self, message: &Json) -> Result<Vec<ModelEvent>>;

    /// What the end of the body means: the rest of a complete answer, or nothing.
    fn end(&mut self) -> Vec<ModelEvent>;
}

/// What one event of the wire means.
#[derive(Debug, PartialEq)]
pub enum Decoded {
    /// One neutral event: the common case.
    Event(ModelEvent),
    /// Several neutral events, or none.
    Events(Vec<ModelEvent>),
    /// A sign of life that is no progress.
    Ping,
}

impl IntoIterator for Decoded {
    type Item = ModelEvent;
    type IntoIter =
        std::iter::Chain<std::option::IntoIter<ModelEvent>, std::vec::IntoIter<ModelEvent>>;

    fn into_iter(self) -> Self::IntoIter {
        let (one, several) = match self {
            Self::Event(event) => (Some(event), Vec::new()),
            Self::Events(events) => (None, events),
            Self::Ping => (None, Vec::new()),
        };
        one.into_iter().chain(several)
    }
}

/// Limits on waiting for the gateway; zero means none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
pub struct GatewayConfig {
    /// Base address; the path of the protocol is appended.
    pub base_url: Url,
    pub api_key: Secret,
    /// Headers that the user adds; their values are as secret as the key.
    pub headers: HeaderMap,
    pub proxy: ProxyRules,
    pub limits: Limits,
    pub clock: SharedClock,
}

impl fmt::Debug for GatewayConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GatewayConfig")
            .field("base_url", &self.base_url.as_str())
            .finish_non_exhaustive()
    }
}

/// A model behind a gateway.
#[derive(Clone, Debug)]
pub struct GatewayModel<P> {
    protocol: P,
    config: GatewayConfig,
    endpoint: Url,
    /// The largest number of output tokens that the gateway accepts, as far as it said so.
    ceiling: Arc<AtomicU32>,
}

impl<P: Protocol> GatewayModel<P> {
    pub fn new(protocol: P, config: GatewayConfig) -> Self {
        let mut endpoint = config.base_url.clone();
        let path = format!(
            "{}{}",
            endpoint.path().trim_end_matches('/'),
            protocol.path()
        );
        endpoint.set_path(&path);
        Self {
            protocol,
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
        let asked = request
            .settings
            .max_tokens
            .min(self.ceiling.load(Ordering::Relaxed));
        let error = match self.attempt(request, asked, allowance).await {
            Ok(response) => return Ok(response),
            Err(error) => error,
        };
        let Some(accepted) = failure::accepted_max_tokens(&error, asked) else {
            return Err(error);
        };
        let response = self
            .attempt(request, accepted.max_tokens, allowance)
            .await?;
        if accepted.is_lasting {
            self.ceiling.store(accepted.max_tokens, Ordering::Relaxed);
        }
        Ok(response)
    }

    async fn attempt(
        &self,
        request: &ModelRequest,
        max_tokens: u32,
        allowance: &mut Allowance,
    ) -> Result<reqwest::Response> {
        let body = self.protocol.body(request, max_tokens).map_err(|error| {
            KernelError::new(ErrorKind::Internal, "the request cannot be written as JSON")
                .with_source(error)
        })?;
        let response = self
            .exchange()
            .send(self.headers()?, body, allowance)
            .await?;
        if response.status().is_success() {
            Ok(response)
        } else {
            Err(self
                .exchange()
                .failure(response, &request.settings.model)
                .await)
        }
    }

    /// A text of the gateway without what the user keeps secret, should the gateway quote it.
    fn redact(&self, text: &str) -> String {
        let values = self
            .config
            .headers
            .values()
            .filter_map(|value| value.to_str().ok());
        let secrets = values.map(Secret::new).chain([self.config.api_key.clone()]);
        secrets.fold(text.to_owned(), |text, secret| secret.redact(&text))
    }

    fn exchange(&self) -> Exchange<'_> {
        Exchange {
            config: &self.config,
            endpoint: &self.endpoint,
        }
    }

    fn headers(&self) -> Result<HeaderMap> {
        let mut headers = self.protocol.headers();
        headers.extend(self.config.headers.clone());
        let bearer = format!("Bearer {}", self.config.api_key.expose());
        let mut key = HeaderValue::from_str(&bearer).map_err(|_| {
            KernelError::invalid(
                "config.model.apiKey holds characters that no HTTP header may carry",
            )
        })?;
        key.set_sensitive(true);
        headers.insert(reqwest::header::AUTHORIZATION, key);
        Ok(headers)
    }
}

impl<P: Protocol> Model for GatewayModel<P> {
    fn stream(&self, request: Arc<ModelRequest>) -> ModelStream {
        let this = self.clone();
        let redacting = self.clone();
        let request_id = Arc::new(OnceLock::new());
        let answered = request_id.clone();
        let events = try_stream! {
            let mut allowance = Allowance::new(this.config.clock.clone(), this.config.limits.request);
            let response = this.open(&request, &mut allowance).await?;
            if let Some(id) = exchange::request_id(&response) {
                answered.get_or_init(|| id);
            }
            let mut decoder = this.protocol.decoder(answered.get().cloned());
            let mut source = match this.exchange().body(response, &mut allowance).await? {
                Body::Events(source) => source,
                Body::Message(message) => {
                    for event in decoder.decode_message(&message)? {
                        yield event;
                    }
                    return;
                }
            };
            while let Some(data) = source.next().await? {
                let read = match decoder.decode(&data) {
                    Ok(read) => read,
                    // The body broke off in this event.
                    Err(_) if source.is_at_end() => Err(super::truncated())?,
                    Err(error) => Err(error)?,
                };
                if read != Decoded::Ping {
                    source.progressed();
                }
                for event in read {
                    if event == ModelEvent::Finished {
                        source.read_rest();
                        yield event;
                        return;
                    }
                    yield event;
                }
            }
            let rest = decoder.end();
            if rest.is_empty() {
                Err(super::truncated())?;
            }
            for event in rest {
                yield event;
            }
        };
        events
            .map(move |event| {
                event.map_err(|error: KernelError| {
                    error
                        .or_request_id(request_id.get())
                        .redact(|text| redacting.redact(text))
                })
            })
            .boxed()
    }
}
