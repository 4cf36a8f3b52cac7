//! Requests to one server, at one origin.

use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue, LOCATION, RETRY_AFTER};
use reqwest::{Method, Response, StatusCode};
use url::Url;

use crate::base::http::{self, ProxyRules, body::read_bounded};
use crate::base::secret::Secret;
use crate::error::{ErrorKind, KernelError, Result};

use super::failure::{self, Asked};

/// Redirects of one request that are followed.
const MOST_REDIRECTS: usize = 5;
/// Bytes of the text of a failure that are read, and the time it may take: the status is known.
const TEXT_BYTES: usize = 64 << 10;
const TEXT_TIME: Duration = Duration::from_secs(5);
/// Headers that the connection itself decides.
const RESERVED: [&str; 5] = [
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "upgrade",
];

/// A server at its address, with what is sent to it alone.
pub struct Endpoint {
    url: Url,
    proxy: ProxyRules,
    client: reqwest::Client,
    headers: HeaderMap,
    /// Values of the headers, to be hidden in what the server says.
    secrets: Vec<Secret>,
}

/// One request.
pub struct Ask {
    pub method: Method,
    pub url: Url,
    pub headers: HeaderMap,
    pub body: Option<Bytes>,
}

impl Endpoint {
    /// The server at `url`. Fails when a header cannot be sent.
    pub fn new(url: &Url, headers: &[(String, Secret)], proxy: &ProxyRules) -> Result<Self> {
        Ok(Self {
            client: http::client(url, proxy)?,
            url: url.clone(),
            proxy: proxy.clone(),
            headers: header_map(headers)?,
            secrets: headers.iter().flat_map(|(_, value)| words(value)).collect(),
        })
    }

    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Sends a request and waits for the headers of the answer. Redirects inside the origin are
    /// followed; the configured headers never leave it.
    pub async fn send(&self, ask: Ask) -> Result<Response> {
        let Ask {
            mut method,
            mut url,
            headers,
            mut body,
        } = ask;
        for _ in 0..=MOST_REDIRECTS {
            let mut request = self
                .client
                .request(method.clone(), url.clone())
                .headers(self.headers.clone())
                .headers(headers.clone());
            if let Some(body) = &body {
                request = request.body(body.clone());
            }
            let response = request.send().await.map_err(|error| self.lost(error))?;
            let Some(target) = self.redirect(&url, &response)? else {
                return Ok(response);
            };
            let keeps_method = matches!(
                response.status(),
                StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT
            );
            if !keeps_method && method != Method::GET {
                return Err(self.unusable(&format!(
                    "answers {method} with a redirect that turns it into GET (HTTP {})",
                    response.status().as_u16()
                )));
            }
            if !keeps_method {
                (method, body) = (Method::GET, None);
            }
            url = target;
        }
        Err(self.unusable(&format!("redirects more than {MOST_REDIRECTS} times")))
    }

    /// An address that the server named. One of another origin is refused: the configured headers
    /// would go there.
    pub fn resolve(&self, base: &Url, address: &str, what: &str) -> Result<Url> {
        let Ok(target) = base.join(address) else {
            return Err(self.unusable(&format!("{what} an address that cannot be read")));
        };
        if target.origin() == self.url.origin() {
            return Ok(target);
        }
        let there = target.origin().ascii_serialization();
        Err(self.unusable(&format!(
            "{what} another origin, {there}, where the headers of this server must not go"
        )))
    }

    /// Like [`Endpoint::send`], for a request that is answered without work and with success.
    pub async fn send_soon(&self, ask: Ask, limit: Duration, asked: Asked) -> Result<Response> {
        let sent = tokio::time::timeout(limit, self.send(ask)).await;
        let response = sent.map_err(|_| self.silent(limit))??;
        if response.status().is_success() {
            return Ok(response);
        }
        Err(self.failure(response, asked).await)
    }

    /// The error for an answer that is no success.
    pub async fn failure(&self, response: Response, asked: Asked) -> KernelError {
        let (status, headers) = (response.status(), response.headers().clone());
        let body = self.text(response).await;
        self.refusal(status, &headers, &body, asked)
    }

    /// The text of a short answer; empty when it does not come.
    pub async fn text(&self, mut response: Response) -> String {
        let reading = read_bounded(&mut response, TEXT_BYTES);
        match tokio::time::timeout(TEXT_TIME, reading).await {
            Ok(Ok((body, _))) => String::from_utf8_lossy(&body).into_owned(),
            _ => String::new(),
        }
    }

    /// The error for an answer that is no success and was read.
    pub fn refusal(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
        body: &str,
        asked: Asked,
    ) -> KernelError {
        let retry_after = headers.get(RETRY_AFTER);
        failure::from_status(&self.place(), status, retry_after, body, asked)
            .redact(|text| self.hide(text))
    }

    /// The error for a request without an answer, or an answer that broke off.
    pub fn lost(&self, error: reqwest::Error) -> KernelError {
        http::transport_error(ErrorKind::McpServer, error, &self.url, &self.proxy)
            .redact(|text| self.hide(text))
    }

    /// The error for a server that does not answer.
    pub fn silent(&self, limit: Duration) -> KernelError {
        failure::server(format!(
            "{} sent nothing within {} ms",
            self.place(),
            limit.as_millis()
        ))
    }

    /// The error for an answer that is not the protocol.
    pub fn misread(&self, what: &str) -> KernelError {
        failure::server(self.hide(&format!("{} {what}", self.place())))
    }

    /// The error for an address that leads nowhere, however often it is tried.
    fn unusable(&self, what: &str) -> KernelError {
        self.misread(what)
            .advise("set url to the address that answers")
            .with_retryable(false)
    }

    /// The origin and the proxy before it, without path and query: these may hold keys.
    fn place(&self) -> String {
        let origin = self.url.origin().ascii_serialization();
        match self.proxy.describe(&self.url) {
            Some(proxy) => format!("{origin} through the proxy {proxy}"),
            None => origin,
        }
    }

    fn hide(&self, text: &str) -> String {
        let secrets = self.secrets.iter();
        secrets.fold(text.to_owned(), |text, secret| secret.redact(&text))
    }

    fn redirect(&self, from: &Url, response: &Response) -> Result<Option<Url>> {
        let is_redirect = matches!(response.status().as_u16(), 301..=303 | 307 | 308);
        let location = response.headers().get(LOCATION);
        let Some(location) = location.filter(|_| is_redirect) else {
            return Ok(None);
        };
        let address = String::from_utf8_lossy(location.as_bytes());
        self.resolve(from, &address, "redirects to").map(Some)
    }
}

fn header_map(headers: &[(String, Secret)]) -> Result<HeaderMap> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let refused = |why: &str| {
            Err(KernelError::invalid(format!(
                "the header {name:?} of an MCP server {why}"
            )))
        };
        let Ok(key) = HeaderName::try_from(name.as_str()) else {
            return refused("has a name that HTTP does not allow: use letters, digits and hyphens");
        };
        if RESERVED.contains(&key.as_str()) {
            return refused("cannot be set: the connection decides it");
        }
        let Ok(mut value) = HeaderValue::try_from(value.expose()) else {
            return refused(
                "has a value that HTTP does not allow: remove line ends and control characters",
            );
        };
        value.set_sensitive(true);
        map.append(key, value);
    }
    Ok(map)
}

/// The value as a whole and, for `Bearer abc`, the credential alone.
fn words(value: &Secret) -> Vec<Secret> {
    let text = value.expose();
    let parts = text
        .split_once(' ')
        .map(|(_, credential)| credential.trim());
    [Some(text), parts]
        .into_iter()
        .flatten()
        .map(Secret::new)
        .collect()
}
