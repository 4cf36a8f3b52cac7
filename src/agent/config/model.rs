//! `config.model`, `config.apiKey` and `config.endpoints`: which model, where, with which key.

use url::{Host, Url};

use crate::base::environment::Environment;
use crate::base::http::is_loopback;
use crate::base::secret::Secret;
use crate::error::{KernelError, Result};
use crate::protocol::Json;

use super::Fields;

const DEFAULT_MAX_TOKENS: u64 = 32_000;
const DEFAULT_CONTEXT_WINDOW: u64 = 200_000;
const DEFAULT_MAX_RETRIES: u64 = 10;
/// Path of the gateway in every `CloudBase` environment.
const GATEWAY_PATH: &str = "v1/ai/cloudbase";

/// A checked model.
#[derive(Clone, Debug)]
pub struct ModelSettings {
    pub id: String,
    /// None: asked for at the first request.
    pub api_key: Option<Secret>,
    pub gateway: Gateway,
    pub max_tokens: u32,
    pub context_window: u64,
    pub temperature: Option<f64>,
    pub max_retries: u32,
    /// Whether a request is repeated after text was shown.
    pub restart: bool,
    pub cache_marks: bool,
}

/// Where the gateway is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gateway {
    /// Base address; the path of the protocol is appended.
    At(Url),
    /// The hub of a local emulator knows.
    Hub(Url),
}

pub fn check(
    config: &Fields<'_>,
    env_id: &str,
    environment: &Environment,
) -> Result<ModelSettings> {
    let value = config.get("model").ok_or_else(|| {
        KernelError::invalid("config.model is required: a model id, or an object with an id")
    })?;
    let spec = match value {
        Json::String(id) if !id.trim().is_empty() => {
            return settings(
                id,
                &Fields::optional("config.model", &Json::Null)?,
                config,
                env_id,
                environment,
            );
        }
        Json::Array(_) => {
            return Err(KernelError::not_built(
                "config.model as a list of fallbacks",
            ));
        }
        Json::Object(_) => Fields::of("config.model", value)?,
        _ => return Err(config.wrong("model", "a model id, or an object with an id")),
    };
    let id = spec
        .text("id")?
        .ok_or_else(|| spec.wrong("id", "a non-empty string"))?;
    let settings = settings(id, &spec, config, env_id, environment)?;
    match spec.unknown().first() {
        None => Ok(settings),
        Some(unknown) => Err(KernelError::invalid(format!(
            "{unknown} is not a setting of a model"
        ))),
    }
}

fn settings(
    id: &str,
    spec: &Fields<'_>,
    config: &Fields<'_>,
    env_id: &str,
    environment: &Environment,
) -> Result<ModelSettings> {
    if spec.choice("protocol", &["anthropic", "openai"])? == Some("openai") {
        return Err(KernelError::not_built("config.model.protocol 'openai'"));
    }
    for key in ["thinking", "headers", "betas", "options"] {
        spec.not_built(key, Json::is_null)?;
    }
    let max_tokens = spec
        .integer("maxTokens", 1..=10_000_000)?
        .unwrap_or(DEFAULT_MAX_TOKENS);
    let max_retries = spec
        .integer("maxRetries", 0..=1_000)?
        .unwrap_or(DEFAULT_MAX_RETRIES);
    Ok(ModelSettings {
        id: id.to_owned(),
        api_key: api_key(spec, config)?.or_else(|| environment.api_key.clone()),
        gateway: gateway(spec, config, env_id, environment)?,
        max_tokens: u32::try_from(max_tokens).unwrap_or(u32::MAX),
        context_window: spec
            .integer("contextWindow", 1_000..=100_000_000)?
            .unwrap_or(DEFAULT_CONTEXT_WINDOW),
        temperature: spec.number("temperature", 0.0..=2.0)?,
        max_retries: u32::try_from(max_retries).unwrap_or(u32::MAX),
        restart: spec.choice("restart", &["auto", "never"])? != Some("never"),
        cache_marks: spec.boolean("cacheMarks")?.unwrap_or(true),
    })
}

/// `model.apiKey`, or its alias `apiKey`. An empty string counts as absent.
fn api_key(spec: &Fields<'_>, config: &Fields<'_>) -> Result<Option<Secret>> {
    let inner = spec.string("apiKey")?.filter(|key| !key.is_empty());
    let outer = config.string("apiKey")?.filter(|key| !key.is_empty());
    match (inner, outer) {
        (Some(inner), Some(outer)) if inner != outer => Err(KernelError::invalid(
            "config.apiKey and config.model.apiKey differ: they are one setting, give it once",
        )),
        (key, alias) => Ok(key.or(alias).map(Secret::new)),
    }
}

fn gateway(
    spec: &Fields<'_>,
    config: &Fields<'_>,
    env_id: &str,
    environment: &Environment,
) -> Result<Gateway> {
    let own = spec.string("apiBaseUrl")?.filter(|url| !url.is_empty());
    let endpoints = config.object("endpoints")?;
    if let Some(endpoints) = &endpoints {
        for key in ["admin", "cloudApi", "cos", "download"] {
            endpoints.not_built(key, Json::is_null)?;
        }
    }
    let shared = endpoints
        .as_ref()
        .map(|endpoints| endpoints.text("gateway"))
        .transpose()?
        .flatten();
    if let Some(address) = own {
        return base_url("config.model.apiBaseUrl", address).map(Gateway::At);
    }
    if let Some(address) = shared {
        return base_url("config.endpoints.gateway", address).map(Gateway::At);
    }
    if let Some(hub) = &environment.emulator_hub {
        return emulator_hub(hub, environment.is_production).map(Gateway::Hub);
    }
    default_gateway(env_id).map(Gateway::At)
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
