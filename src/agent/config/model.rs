//! `config.model`, `config.apiKey` and `config.endpoints`: which models, where, with which key.

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use url::{Host, Url};

use crate::base::environment::Environment;
use crate::base::http::is_loopback;
use crate::base::secret::Secret;
use crate::error::{KernelError, Result};
use crate::model::RequestSettings;
use crate::protocol::{Json, JsonMap};

use super::Fields;
use super::fields::pure_json;

const DEFAULT_MAX_TOKENS: u64 = 32_000;
const DEFAULT_CONTEXT_WINDOW: u64 = 200_000;
const MAX_TOKENS: std::ops::RangeInclusive<u64> = 1..=10_000_000;
/// Path of the gateway in every CloudBase environment.
const GATEWAY_PATH: &str = "v1/ai/cloudbase";
/// Fields of the request body that have a setting of their own, or that the kernel writes.
const OWN_FIELDS: [&str; 9] = [
    "model",
    "messages",
    "system",
    "tools",
    "stream",
    "stream_options",
    "max_tokens",
    "temperature",
    "thinking",
];
/// Headers that the kernel writes.
const OWN_HEADERS: [&str; 6] = [
    "authorization",
    "content-type",
    "content-length",
    "host",
    "accept",
    "transfer-encoding",
];

/// A checked model.
#[derive(Clone, Debug)]
pub struct ModelSettings {
    pub request: RequestSettings,
    pub protocol: WireProtocol,
    /// None: asked for at the first request.
    pub api_key: Option<Secret>,
    pub gateway: Gateway,
    pub headers: HeaderMap,
    pub context_window: u64,
    /// None: the default, which is lower for a model that has a fallback.
    pub max_retries: Option<u32>,
    /// Whether a request is repeated after text was shown.
    pub restart: bool,
}

/// How the gateway is talked to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WireProtocol {
    /// Anthropic Messages.
    #[default]
    Messages,
    /// OpenAI chat completions.
    Chat,
}

/// Where the gateway is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gateway {
    /// Base address; the path of the protocol is appended.
    At(Url),
    /// The hub of a local emulator knows.
    Hub(Url),
}

/// What holds for models that say nothing else.
#[derive(Clone, Debug)]
pub struct ModelDefaults {
    env_id: String,
    api_key: Option<Secret>,
    alias_key: Option<Secret>,
    gateway: Option<Gateway>,
}

impl ModelDefaults {
    pub fn check(config: &Fields<'_>, env_id: &str, environment: &Environment) -> Result<Self> {
        let alias_key = config
            .string("apiKey")?
            .filter(|key| !key.is_empty())
            .map(Secret::new);
        Ok(Self {
            env_id: env_id.to_owned(),
            api_key: environment.api_key.clone(),
            alias_key,
            gateway: shared_gateway(config, environment)?,
        })
    }

    fn gateway(&self) -> Result<Gateway> {
        self.gateway
            .clone()
            .map_or_else(|| default_gateway(&self.env_id).map(Gateway::At), Ok)
    }
}

/// The models of a configuration, primary first.
pub fn check(config: &Fields<'_>, defaults: &ModelDefaults) -> Result<Vec<ModelSettings>> {
    let value = config.get("model").ok_or_else(|| {
        KernelError::invalid("config.model is required: a model id, or an object with an id")
    })?;
    models(&config.path("model"), value, defaults)
}

/// One model, or a list of them.
pub fn models(path: &str, value: &Json, defaults: &ModelDefaults) -> Result<Vec<ModelSettings>> {
    let Some(list) = value.as_array() else {
        return Ok(vec![model(path, value, defaults)?]);
    };
    if list.is_empty() {
        return Err(KernelError::invalid(format!(
            "{path} must name at least one model"
        )));
    }
    let named = list.iter().enumerate();
    let models = named
        .map(|(at, value)| model(&format!("{path}[{at}]"), value, defaults))
        .collect::<Result<Vec<_>>>()?;
    Ok(models)
}

fn model(path: &str, value: &Json, defaults: &ModelDefaults) -> Result<ModelSettings> {
    if let Some(id) = value.as_str().filter(|id| !id.trim().is_empty()) {
        return settings(id, &Fields::optional(path, &Json::Null)?, defaults);
    }
    if !value.is_object() {
        return Err(super::fields::wrong(
            path,
            "a model id, or an object with an id",
            value,
        ));
    }
    let spec = Fields::of(path, value)?;
    let id = spec
        .text("id")?
        .ok_or_else(|| spec.wrong("id", "a non-empty string"))?;
    let settings = settings(id, &spec, defaults)?;
    match spec.unknown().first() {
        None => Ok(settings),
        Some(unknown) => Err(KernelError::invalid(format!(
            "{unknown} is not a setting of a model"
        ))),
    }
}

fn settings(id: &str, spec: &Fields<'_>, defaults: &ModelDefaults) -> Result<ModelSettings> {
    let protocol = match spec.choice("protocol", &["anthropic", "openai"])? {
        Some("openai") => WireProtocol::Chat,
        _ => WireProtocol::Messages,
    };
    let max_retries = spec.integer("maxRetries", 0..=1_000)?;
    let request = RequestSettings {
        model: id.to_owned(),
        max_tokens: max_tokens(spec)?
            .unwrap_or(u32::try_from(DEFAULT_MAX_TOKENS).unwrap_or(u32::MAX)),
        temperature: spec.number("temperature", 0.0..=2.0)?,
        thinking: thinking(spec, protocol)?,
        cache_marks: spec.boolean("cacheMarks")?.unwrap_or(true),
        extra: extra(spec)?,
    };
    Ok(ModelSettings {
        request,
        protocol,
        api_key: api_key(spec, defaults)?.or_else(|| defaults.api_key.clone()),
        gateway: match spec.string("apiBaseUrl")?.filter(|url| !url.is_empty()) {
            Some(address) => Gateway::At(base_url(&spec.path("apiBaseUrl"), address)?),
            None => defaults.gateway()?,
        },
        headers: headers(spec, protocol)?,
        context_window: spec
            .integer("contextWindow", 1_000..=100_000_000)?
            .unwrap_or(DEFAULT_CONTEXT_WINDOW),
        max_retries: max_retries.and_then(|retries| u32::try_from(retries).ok()),
        restart: spec.choice("restart", &["auto", "never"])? != Some("never"),
    })
}

/// Most tokens of an answer.
pub fn max_tokens(fields: &Fields<'_>) -> Result<Option<u32>> {
    Ok(fields
        .integer("maxTokens", MAX_TOKENS)?
        .and_then(|most| u32::try_from(most).ok()))
}

/// `model.apiKey`, or its alias `apiKey`. An empty string counts as absent.
fn api_key(spec: &Fields<'_>, defaults: &ModelDefaults) -> Result<Option<Secret>> {
    let own = spec
        .string("apiKey")?
        .filter(|key| !key.is_empty())
        .map(Secret::new);
    match (own, &defaults.alias_key) {
        (Some(own), Some(alias)) if own != *alias => Err(KernelError::invalid(format!(
            "config.apiKey and {} differ: they are one setting, give it once",
            spec.path("apiKey")
        ))),
        (own, alias) => Ok(own.or_else(|| alias.clone())),
    }
}

/// Reasoning: an object as the Messages API spells it.
fn thinking(spec: &Fields<'_>, protocol: WireProtocol) -> Result<Option<Json>> {
    let Some(value) = spec.get("thinking") else {
        return Ok(None);
    };
    if !value.is_object() {
        return Err(spec.wrong(
            "thinking",
            "an object such as {type: 'enabled', budget_tokens: 4096}",
        ));
    }
    if protocol == WireProtocol::Chat {
        return Err(KernelError::invalid(format!(
            "{} belongs to the protocol 'anthropic'; with 'openai' put the gateway's own field into options",
            spec.path("thinking")
        )));
    }
    pure_json(&spec.path("thinking"), value)?;
    Ok(Some(value.clone()))
}

/// Further fields of the request body.
fn extra(spec: &Fields<'_>) -> Result<JsonMap> {
    let Some(value) = spec.get("options") else {
        return Ok(JsonMap::new());
    };
    let Some(map) = value.as_object() else {
        return Err(spec.wrong("options", "an object of further fields of the request body"));
    };
    let options = Fields::of(spec.path("options"), value)?;
    pure_json(&spec.path("options"), value)?;
    for key in map.keys() {
        if OWN_FIELDS.contains(&key.as_str()) {
            return Err(KernelError::invalid(format!(
                "{} is written by the kernel: use the setting of the model, or of the agent",
                options.path(key)
            )));
        }
    }
    Ok(map.clone())
}

fn headers(spec: &Fields<'_>, protocol: WireProtocol) -> Result<HeaderMap> {
    let mut headers = HeaderMap::new();
    if let Some(value) = spec.get("headers") {
        let fields = Fields::of(spec.path("headers"), value)?;
        for (name, value) in value.as_object().into_iter().flatten() {
            let (name, value) = header(&fields, name, value)?;
            headers.insert(name, value);
        }
    }
    if let Some(value) = spec.get("betas") {
        let what = "a list of names of beta features, with the protocol 'anthropic'";
        let list = value
            .as_array()
            .filter(|_| protocol == WireProtocol::Messages);
        let names: Option<Vec<&str>> =
            list.and_then(|list| list.iter().map(Json::as_str).collect());
        let joined = names
            .map(|names| names.join(","))
            .and_then(|text| HeaderValue::from_str(&text).ok());
        headers.insert(
            "anthropic-beta",
            joined.ok_or_else(|| spec.wrong("betas", what))?,
        );
    }
    Ok(headers)
}

fn header(fields: &Fields<'_>, name: &str, value: &Json) -> Result<(HeaderName, HeaderValue)> {
    let lower = name.to_ascii_lowercase();
    if OWN_HEADERS.contains(&lower.as_str()) {
        return Err(KernelError::invalid(format!(
            "{} is written by the kernel",
            fields.path(name)
        )));
    }
    let value = value
        .as_str()
        .and_then(|value| HeaderValue::from_str(value).ok())
        .map(|mut value| {
            // Headers of users often carry keys.
            value.set_sensitive(true);
            value
        });
    HeaderName::try_from(lower).ok().zip(value).ok_or_else(|| {
        KernelError::invalid(format!("{} must be a valid HTTP header", fields.path(name)))
    })
}

/// The gateway that all models of an agent share: `endpoints.gateway`, else an emulator.
fn shared_gateway(config: &Fields<'_>, environment: &Environment) -> Result<Option<Gateway>> {
    let endpoints = config.object("endpoints")?;
    if let Some(endpoints) = &endpoints {
        for key in ["admin", "cloudApi", "cos", "download"] {
            endpoints.not_built(key, Json::is_null)?;
        }
    }
    let address = endpoints
        .as_ref()
        .map(|endpoints| endpoints.text("gateway"))
        .transpose()?
        .flatten();
    if let Some(address) = address {
        return base_url("config.endpoints.gateway", address)
            .map(Gateway::At)
            .map(Some);
    }
    let hub = environment.emulator_hub.as_deref();
    hub.map(|hub| emulator_hub(hub, environment.is_production).map(Gateway::Hub))
        .transpose()
}

/// A base address: http or https, without credentials, query or fragment.
fn base_url(path: &str, address: &str) -> Result<Url> {
    let url = Url::parse(address).ok().filter(|url| {
        matches!(url.scheme(), "http" | "https")
            && url.has_host()
            && url.username().is_empty()
            && url.password().is_none()
            && url.query().is_none()
            && url.fragment().is_none()
    });
    url.ok_or_else(|| {
        KernelError::invalid(format!(
            "{path} must be an http or https address without credentials, query or fragment, such as \
             https://gateway.example/v1/ai"
        ))
    })
}

fn default_gateway(env_id: &str) -> Result<Url> {
    let address = format!("https://{env_id}.api.tcloudbasegateway.com/{GATEWAY_PATH}");
    let is_label = env_id.len() <= 63
        && env_id
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '-');
    let url = Url::parse(&address).ok().filter(|_| is_label);
    url.filter(|url| matches!(url.host(), Some(Host::Domain(_))))
        .ok_or_else(|| {
            KernelError::invalid(
                "config.envId must be a CloudBase environment id (letters, digits and -) unless \
             config.model.apiBaseUrl is given",
            )
        })
}

/// The hub of an emulator: for development on this machine only.
fn emulator_hub(address: &str, is_production: bool) -> Result<Url> {
    if is_production {
        return Err(KernelError::invalid(
            "OAK_EMULATOR_HUB is set while NODE_ENV is production: unset one of them",
        ));
    }
    let url = base_url("OAK_EMULATOR_HUB", address)?;
    if is_loopback(&url) {
        Ok(url)
    } else {
        Err(KernelError::invalid(
            "OAK_EMULATOR_HUB must be a loopback address such as http://127.0.0.1:4000",
        ))
    }
}
