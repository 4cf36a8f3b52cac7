//! The HTTP client: one per proxy rule and process, built at its first use.

pub mod body;
mod proxy;

use std::collections::HashMap;
use std::error::Error as StdError;
use std::sync::{Mutex, Once, PoisonError};
use std::time::Duration;

use reqwest::Certificate;
use reqwest::redirect::Policy;
use url::Url;

pub use proxy::{ProxyRules, is_loopback};

use crate::error::{ErrorKind, KernelError, Result};

/// Limit on name look-up, TCP and TLS together.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);
/// A connection without a request is closed after this time: balancers drop older ones without a word,
/// and a server that shuts down waits for those that never carried a request.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

static CLIENTS: Mutex<Option<HashMap<Key, reqwest::Client>>> = Mutex::new(None);
static TLS_PROVIDER: Once = Once::new();

/// What clients differ in.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    rules: ProxyRules,
    /// Reading certificates takes milliseconds: a client for plain addresses has none.
    tls: bool,
}

/// The shared client for an address and a set of proxy rules.
///
/// It follows no redirects: a credential never goes to an address that the user did not write.
pub fn client(url: &Url, rules: &ProxyRules) -> Result<reqwest::Client> {
    let tls = url.scheme() == "https" || rules.uses_tls();
    let key = Key {
        rules: rules.clone(),
        tls,
    };
    let mut clients = CLIENTS.lock().unwrap_or_else(PoisonError::into_inner);
    let clients = clients.get_or_insert_with(HashMap::new);
    if let Some(client) = clients.get(&key) {
        return Ok(client.clone());
    }
    let client = build(&key)?;
    clients.insert(key, client.clone());
    Ok(client)
}

fn build(key: &Key) -> Result<reqwest::Client> {
    TLS_PROVIDER.call_once(|| {
        // An error means that the host process installed a provider first: that one serves as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
    let plain = || builder(&key.rules).tls_certs_only([]);
    let built = if key.tls {
        // A machine without certificates of its own, such as a slim container, gets the bundled ones.
        builder(&key.rules)
            .build()
            .or_else(|_| builder(&key.rules).tls_certs_only(bundled()).build())
    } else {
        plain().build()
    };
    built.map_err(|error| {
        let cause = root_cause(&error);
        KernelError::new(
            ErrorKind::Internal,
            format!("the HTTP client cannot be built: {cause}"),
        )
        .advise("install ca-certificates, or set SSL_CERT_FILE")
        .with_source(error)
    })
}

fn builder(rules: &ProxyRules) -> reqwest::ClientBuilder {
    let builder = reqwest::Client::builder()
        .redirect(Policy::none())
        .connect_timeout(CONNECT_TIMEOUT)
        .pool_idle_timeout(IDLE_TIMEOUT)
        .user_agent(concat!(
            "@cloudbase/open-agent-kernel/",
            env!("CARGO_PKG_VERSION")
        ))
        .no_proxy();
    match rules.clone().into_proxy() {
        Some(proxy) => builder.proxy(proxy),
        None => builder,
    }
}

/// The certificate authorities that Mozilla trusts.
fn bundled() -> Vec<Certificate> {
    let roots = webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter();
    roots
        .filter_map(|der| Certificate::from_der(der).ok())
        .collect()
}

/// An error about a request that got no answer, or whose answer broke off. Names the proxy, if any.
pub fn transport_error(
    kind: ErrorKind,
    error: reqwest::Error,
    url: &Url,
    rules: &ProxyRules,
) -> KernelError {
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
