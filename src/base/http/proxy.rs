//! Which requests go through a proxy.
//!
//! The environment names one proxy per scheme and the hosts that go direct; an explicit address in
//! the configuration replaces it. Loopback addresses always go direct.

use std::net::IpAddr;

use url::{Host, Url};

use crate::base::environment::Environment;
use crate::error::{KernelError, Result};

/// Proxies by scheme, and who is exempt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ProxyRules {
    http: Option<Url>,
    https: Option<Url>,
    exempt: Vec<Exemption>,
}

/// One element of `NO_PROXY`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Exemption {
    /// Host name or address; empty stands for every host.
    host: String,
    port: Option<u16>,
}

impl ProxyRules {
    /// No proxy at all.
    pub fn direct() -> Self {
        Self::default()
    }

    /// The rules of the proxy variables.
    pub fn from_environment(environment: &Environment) -> Result<Self> {
        let parse = |name: &str, address: &Option<String>| {
            address
                .as_deref()
                .map(|address| parse_proxy(name, address))
                .transpose()
        };
        Ok(Self {
            http: parse("HTTP_PROXY (or ALL_PROXY)", &environment.http_proxy)?,
            https: parse("HTTPS_PROXY (or ALL_PROXY)", &environment.https_proxy)?,
            exempt: environment
                .no_proxy
                .as_deref()
                .map(parse_exemptions)
                .unwrap_or_default(),
        })
    }

    /// One proxy for everything but loopback.
    pub fn explicit(address: &str) -> Result<Self> {
        let proxy = parse_proxy("config.proxy", address)?;
        Ok(Self {
            http: Some(proxy.clone()),
            https: Some(proxy),
            exempt: Vec::new(),
        })
    }

    /// Whether a proxy itself is reached by TLS.
    pub fn uses_tls(&self) -> bool {
        [&self.http, &self.https]
            .into_iter()
            .flatten()
            .any(|proxy| proxy.scheme() == "https")
    }

    /// The proxy for an address, without its credentials, for messages.
    pub fn describe(&self, url: &Url) -> Option<String> {
        let proxy = self.proxy_for(url)?;
        Some(format!("{}://{}", proxy.scheme(), authority(proxy)))
    }

    /// The proxy for an address.
    fn proxy_for(&self, url: &Url) -> Option<&Url> {
        let proxy = if url.scheme() == "https" {
            &self.https
        } else {
            &self.http
        };
        proxy
            .as_ref()
            .filter(|_| !is_loopback(url) && !self.is_exempt(url))
    }

    pub(super) fn into_proxy(self) -> Option<reqwest::Proxy> {
        let is_direct = self.http.is_none() && self.https.is_none();
        (!is_direct).then(|| reqwest::Proxy::custom(move |url| self.proxy_for(url).cloned()))
    }

    fn is_exempt(&self, url: &Url) -> bool {
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
        let port = url.port_or_known_default();
        self.exempt
            .iter()
            .any(|exemption| exemption.matches(host, port))
    }
}

impl Exemption {
    /// `*`, a host, a host suffix (with or without a leading dot), each with an optional port.
    fn matches(&self, host: &str, port: Option<u16>) -> bool {
        if self.port.is_some() && self.port != port {
            return false;
        }
        let Some(prefix) = host
            .to_ascii_lowercase()
            .strip_suffix(self.host.as_str())
            .map(str::len)
        else {
            return false;
        };
        let is_name = host.parse::<IpAddr>().is_err();
        self.host.is_empty() || prefix == 0 || (is_name && host.as_bytes()[prefix - 1] == b'.')
    }
}

fn parse_exemptions(list: &str) -> Vec<Exemption> {
    list.split(',')
        .map(str::trim)
        .filter(|item| !item.is_empty())
        .map(parse_exemption)
        .collect()
}

fn parse_exemption(item: &str) -> Exemption {
    let item = item.to_ascii_lowercase();
    let (host, port) = match item.rsplit_once(':') {
        // A bare IPv6 address has more than one colon.
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => {
            (host.to_owned(), port.parse().ok())
        }
        _ => (item, None),
    };
    let host = host
        .trim_matches(['[', ']'])
        .trim_start_matches('*')
        .trim_start_matches('.');
    Exemption {
        host: host.to_owned(),
        port,
    }
}

fn parse_proxy(name: &str, address: &str) -> Result<Url> {
    const SCHEMES: [&str; 4] = ["http", "https", "socks5", "socks5h"];
    let text = if address.contains("://") {
        address.to_owned()
    } else {
        format!("http://{address}")
    };
    let url = Url::parse(&text)
        .ok()
        .filter(|url| SCHEMES.contains(&url.scheme()) && url.has_host());
    url.ok_or_else(|| {
        KernelError::invalid(format!(
            "{name} must be the address of a proxy such as http://proxy.example:8080; \
             http, https, socks5 and socks5h proxies are supported"
        ))
    })
}

fn authority(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port()
        .map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// Whether an address is on this machine.
pub fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(no_proxy: &str) -> ProxyRules {
        ProxyRules::from_environment(&Environment {
            https_proxy: Some("http://user:pass@tls.proxy:1".into()),
            http_proxy: Some("plain.proxy:2".into()),
            no_proxy: Some(no_proxy.into()),
            ..Environment::default()
        })
        .unwrap()
    }

    fn via(rules: &ProxyRules, url: &str) -> Option<String> {
        rules.describe(&Url::parse(url).unwrap())
    }

    #[test]
    fn the_scheme_chooses_the_proxy_and_credentials_stay_hidden() {
        let rules = rules("");
        assert_eq!(
            via(&rules, "https://a.example/x").as_deref(),
            Some("http://tls.proxy:1")
        );
        assert_eq!(
            via(&rules, "http://a.example/x").as_deref(),
            Some("http://plain.proxy:2")
        );
    }

    #[test]
    fn loopback_goes_direct() {
        for url in [
            "http://127.0.0.1:80",
            "http://localhost",
            "https://[::1]:9",
            "http://a.localhost",
        ] {
            assert_eq!(via(&rules(""), url), None, "{url}");
        }
    }

    #[test]
    fn exemptions_match_hosts_suffixes_and_ports() {
        let cases = [
            ("a.example", "https://a.example", true),
            ("a.example", "https://b.a.example", true),
            ("a.example", "https://ba.example", false),
            (".example", "https://a.example", true),
            ("*.example", "https://a.example", true),
            ("A.Example", "https://a.example", true),
            ("*", "https://anything.test", true),
            ("a.example:8443", "https://a.example:8443", true),
            ("a.example:8443", "https://a.example", false),
            ("a.example:443", "https://a.example", true),
            ("10.0.0.1", "https://10.0.0.1", true),
            ("0.0.1", "https://10.0.0.1", false),
            ("x, b.test ,y", "https://b.test", true),
        ];
        for (list, url, exempt) in cases {
            assert_eq!(via(&rules(list), url).is_none(), exempt, "{list} {url}");
        }
    }

    #[test]
    fn an_explicit_proxy_serves_both_schemes() {
        let rules = ProxyRules::explicit("http://p:3").unwrap();
        assert_eq!(
            via(&rules, "https://a.example").as_deref(),
            Some("http://p:3")
        );
        assert_eq!(
            via(&rules, "http://a.example").as_deref(),
            Some("http://p:3")
        );
    }

    #[test]
    fn an_unusable_proxy_is_refused_by_name() {
        let error = ProxyRules::explicit("ftp://p").unwrap_err();
        assert!(error.message().starts_with("config.proxy must be"));
    }
}
