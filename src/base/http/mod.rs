//! The HTTP client: one per proxy rule and process, built at its first use.

pub mod body;
mod proxy;

use std::collections::HashMap;
use std::error::Error as StdError;
use std::sync::{Mutex, Once, PoisonError};
use std::time::Duration;

use reqwest::redirect::Policy;
use url::Url;

pub use proxy::{ProxyRules, is_loopback};

use crate::error::{ErrorKind, KernelError, Result};

/// Limit on name look-up, TCP and TLS together.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);

static CLIENTS: Mutex<Option<HashMap<ProxyRules, reqwest::Client>>> = Mutex::new(None);
static TLS_PROVIDER: Once = Once::new();

/// The shared client for a set of proxy rules.
///
/// It follows no redirects: a credential never goes to an address that the user did not write.
pub fn client(rules: &ProxyRules) -> Result<reqwest::Client> {
    let mut clients = CLIENTS.lock().unwrap_or_else(PoisonError::into_inner);
    let clients = clients.get_or_insert_with(HashMap::new);
    if let Some(client) = clients.get(rules) {
        return Ok(client.clone());
    }
    let client = build(rules.clone())?;
    clients.insert(rules.clone(), client.clone());
    Ok(client)
}

fn build(rules: ProxyRules) -> Result<reqwest::Client> {
    TLS_PROVIDER.call_once(|| {
        // An error means that the host process installed a provider first: that one serves as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
    let builder = reqwest::Client::builder()
        .redirect(Policy::none())
        .connect_timeout(CONNECT_TIMEOUT)
        .user_agent(concat!(
            "@cloudbase/open-agent-kernel/",
            env!("CARGO_PKG_VERSION")
        ))
        .no_proxy();
    let proxied = match rules.into_proxy() {
        Some(proxy) => builder.proxy(proxy),
        None => builder,
    };
    proxied.build().map_err(|error| {
        KernelError::new(ErrorKind::Internal, "the HTTP client cannot be built").with_source(error)
    })
}

/// An error about a request that got no answer, or whose answer broke off. Names the proxy, if any.
pub fn transport_error(error: reqwest::Error, url: &Url, rules: &ProxyRules) -> KernelError {
    let kind = if error.is_timeout() {
        ErrorKind::ModelTimeout
    } else {
        ErrorKind::ModelNetwork
    };
    let via = match rules.describe(url) {
        Some(proxy) => format!(" through the proxy {proxy}"),
        None => String::new(),
    };
    let origin = url.origin().ascii_serialization();
    let action = if error.is_connect() {
        "cannot reach"
    } else {
        "lost the connection to"
    };
    KernelError::new(
        kind,
        format!("{action} {origin}{via}: {}", root_cause(&error)),
    )
    .with_source(error.without_url())
}

fn root_cause(error: &dyn StdError) -> String {
    let mut cause = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    cause.to_string()
}
