//! The environment variables that the kernel reads, once, when an agent is created.
//!
//! `docs/environment.md` lists them; a test compares. An empty value counts as absent.

use std::collections::HashMap;

use super::secret::Secret;

/// What the kernel reads for itself, in the order of `docs/environment.md`.
const FOR_ITSELF: [&str; 15] = [
    "TCB_API_KEY",
    "CLOUDBASE_APIKEY",
    "OAK_SANDBOX_API_KEY",
    "OAK_DEBUG",
    "OAK_EMULATOR_HUB",
    "NODE_ENV",
    "OAK_HELPER_PATH",
    "HTTPS_PROXY",
    "https_proxy",
    "HTTP_PROXY",
    "http_proxy",
    "ALL_PROXY",
    "all_proxy",
    "NO_PROXY",
    "no_proxy",
];

/// What child processes get, behind those: where programs and the user's files are, language, time zone,
/// terminal. No key, and no proxy with its password.
const FOR_CHILDREN: [&str; 16] = [
    "HOME",
    "PATH",
    "LANG",
    "LC_ALL",
    "LC_COLLATE",
    "LC_CTYPE",
    "LC_MESSAGES",
    "LC_MONETARY",
    "LC_NUMERIC",
    "LC_TIME",
    "LOGNAME",
    "SHELL",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
];

/// Every variable that is read, in the order of `docs/environment.md`.
pub fn variables() -> Vec<&'static str> {
    [&FOR_ITSELF[..], &FOR_CHILDREN[..]].concat()
}

/// What the environment said.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    /// Gateway key: `TCB_API_KEY`, else `CLOUDBASE_APIKEY`.
    pub api_key: Option<Secret>,
    /// Key of the sandbox service, when no other key is there.
    pub sandbox_api_key: Option<Secret>,
    /// Home directory of the user that the process runs as.
    pub home: Option<String>,
    /// Whether `OAK_DEBUG` is `1`.
    pub debug: bool,
    /// Address of a local emulator.
    pub emulator_hub: Option<String>,
    /// Whether `NODE_ENV` is `production`.
    pub is_production: bool,
    /// Where the program `oak-helper` is: `OAK_HELPER_PATH`, else where the package has it. None when the
    /// environment is not that of the JavaScript entry.
    pub helper_path: Option<String>,
    /// Proxy for `https` addresses.
    pub https_proxy: Option<String>,
    /// Proxy for `http` addresses.
    pub http_proxy: Option<String>,
    /// Hosts that are reached without a proxy.
    pub no_proxy: Option<String>,
    /// The variables that child processes get.
    pub children: Vec<(String, String)>,
}

impl Environment {
    /// Reads the variables from a snapshot of the process environment.
    pub fn read(variables: &HashMap<String, String>) -> Self {
        let get = |name: &str| {
            variables
                .get(name)
                .filter(|value| !value.is_empty())
                .cloned()
        };
        let first = |names: [&str; 2]| names.into_iter().find_map(get);
        let any_proxy = || first(["ALL_PROXY", "all_proxy"]);
        Self {
            api_key: first(["TCB_API_KEY", "CLOUDBASE_APIKEY"]).map(Secret::new),
            sandbox_api_key: get("OAK_SANDBOX_API_KEY").map(Secret::new),
            home: get("HOME"),
            debug: get("OAK_DEBUG").as_deref() == Some("1"),
            emulator_hub: get("OAK_EMULATOR_HUB"),
            is_production: get("NODE_ENV").as_deref() == Some("production"),
            https_proxy: first(["HTTPS_PROXY", "https_proxy"]).or_else(any_proxy),
            http_proxy: first(["HTTP_PROXY", "http_proxy"]).or_else(any_proxy),
            no_proxy: first(["NO_PROXY", "no_proxy"]),
            helper_path: get("OAK_HELPER_PATH"),
            children: FOR_CHILDREN
                .into_iter()
                .filter_map(|name| Some((name.to_owned(), get(name)?)))
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Environment {
        let owned = variables
            .iter()
            .map(|&(name, value)| (name.to_owned(), value.to_owned()));
        Environment::read(&owned.collect())
    }

    #[test]
    fn an_empty_key_is_absent() {
        let environment = read(&[("TCB_API_KEY", ""), ("CLOUDBASE_APIKEY", "second")]);
        assert_eq!(environment.api_key.unwrap().expose(), "second");
    }

    #[test]
    fn children_get_no_keys_and_no_proxies() {
        let environment = read(&[
            ("TCB_API_KEY", "secret"),
            ("HTTPS_PROXY", "http://me:secret@proxy"),
            ("AWS_SECRET_ACCESS_KEY", "secret"),
            ("PATH", "/bin"),
            ("LC_CTYPE", "C.UTF-8"),
            ("TZ", ""),
        ]);
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let expected = [pair("PATH", "/bin"), pair("LC_CTYPE", "C.UTF-8")];
        assert_eq!(environment.children, expected);
    }

    #[test]
    fn the_first_key_wins() {
        let environment = read(&[("TCB_API_KEY", "first"), ("CLOUDBASE_APIKEY", "second")]);
        assert_eq!(environment.api_key.unwrap().expose(), "first");
    }

    #[test]
    fn a_proxy_for_all_fills_what_is_missing() {
        let environment = read(&[("ALL_PROXY", "http://all"), ("https_proxy", "http://tls")]);
        assert_eq!(environment.https_proxy.as_deref(), Some("http://tls"));
        assert_eq!(environment.http_proxy.as_deref(), Some("http://all"));
    }
}
