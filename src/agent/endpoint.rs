//! The models of an agent, once their addresses and keys are known.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use tokio::sync::OnceCell;
use url::Url;

use crate::base::clock::SharedClock;
use crate::base::http::{self, ProxyRules, body::read_bounded};
use crate::base::retry::Backoff;
use crate::base::secret::Secret;
use crate::error::{ErrorKind, KernelError, Result};
use crate::model::chat::Chat;
use crate::model::gateway::{GatewayConfig, GatewayModel, Limits};
use crate::model::messages::Messages;
use crate::model::{Fallback, Model, Retry, RetryPolicy, Target};

use super::config::model::{Gateway, ModelSettings, WireProtocol};
use crate::render::Format;

use super::config::{AgentConfig, Timeouts};

/// Time that a hub on this machine has to answer.
const HUB_TIME: Duration = Duration::from_secs(5);
const HUB_BYTES: usize = 64 << 10;
const DEFAULT_RETRIES: u32 = 10;
/// Retries of a model that has a fallback, unless it says otherwise.
const RETRIES_BEFORE_FALLBACK: u32 = 2;

/// Makes models at the first request.
pub struct ModelSource {
    clock: SharedClock,
    proxy: ProxyRules,
    /// Whether consumers see text grow.
    as_it_grows: bool,
    /// Whether the stream format can take text back.
    may_restart: bool,
    /// What the hub of an emulator said.
    hub: OnceCell<(Url, Option<Secret>)>,
    /// The models of the configuration; what the gateway said of its limits stays with them.
    configured: OnceCell<Arc<dyn Model>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HubAnswer {
    endpoints: HubEndpoints,
    api_key: Option<String>,
}

#[derive(Deserialize)]
struct HubEndpoints {
    gateway: String,
}

impl ModelSource {
    pub fn new(clock: SharedClock, config: &AgentConfig) -> Self {
        Self {
            clock,
            proxy: config.proxy.clone(),
            as_it_grows: config.stream_text,
            may_restart: !matches!(config.render.format, Format::Events | Format::Sdk),
            hub: OnceCell::new(),
            configured: OnceCell::new(),
        }
    }

    /// The models of the configuration, as one. Fails when there is no key.
    pub async fn configured(
        &self,
        models: &[ModelSettings],
        limits: &Timeouts,
    ) -> Result<Arc<dyn Model>> {
        self.configured
            .get_or_try_init(|| self.make(models, limits))
            .await
            .cloned()
    }

    /// One model that asks `models` in order. Fails when there is no key.
    pub async fn make(
        &self,
        models: &[ModelSettings],
        limits: &Timeouts,
    ) -> Result<Arc<dyn Model>> {
        let mut targets = Vec::with_capacity(models.len());
        let last = models.len() - 1;
        for (at, settings) in models.iter().enumerate() {
            let retries = if at < last {
                RETRIES_BEFORE_FALLBACK
            } else {
                DEFAULT_RETRIES
            };
            let policy = RetryPolicy {
                max_retries: settings.max_retries.unwrap_or(retries),
                restart: settings.restart && self.may_restart,
                as_it_grows: self.as_it_grows,
                backoff: Backoff::default(),
            };
            let model = self.one(settings, limits, policy).await?;
            targets.push(Target {
                model,
                settings: settings.request.clone(),
                policy,
            });
        }
        if targets.len() == 1 {
            return Ok(targets.remove(0).model);
        }
        Ok(Arc::new(Fallback::new(targets)))
    }

    async fn one(
        &self,
        settings: &ModelSettings,
        limits: &Timeouts,
        policy: RetryPolicy,
    ) -> Result<Arc<dyn Model>> {
        let (base_url, hub_key) = match &settings.gateway {
            Gateway::At(url) => (url.clone(), None),
            Gateway::Hub(hub) => self
                .hub
                .get_or_try_init(|| ask_hub(hub, &self.clock))
                .await?
                .clone(),
        };
        // A key belongs to its gateway: the hub's gateway gets the hub's key, never a real one.
        let api_key = hub_key
            .or_else(|| settings.api_key.clone())
            .ok_or_else(|| {
                KernelError::new(
                    ErrorKind::Resource,
                    "no API key found: set config.model.apiKey, or TCB_API_KEY in the environment",
                )
            })?;
        let gateway = GatewayConfig {
            base_url,
            api_key,
            headers: settings.headers.clone(),
            proxy: self.proxy.clone(),
            limits: Limits {
                first_byte: limits.first_byte,
                idle: limits.idle,
                request: limits.request,
            },
            clock: self.clock.clone(),
        };
        let model: Arc<dyn Model> = match settings.protocol {
            WireProtocol::Messages => Arc::new(GatewayModel::new(Messages, gateway)),
            WireProtocol::Chat => Arc::new(GatewayModel::new(Chat, gateway)),
        };
        Ok(Arc::new(Retry::new(model, policy, self.clock.clone())))
    }
}

/// Asks the hub of an emulator for its gateway and key.
async fn ask_hub(hub: &Url, clock: &SharedClock) -> Result<(Url, Option<Secret>)> {
    let unusable = |why: String| {
        KernelError::new(
            ErrorKind::ModelNetwork,
            format!("the emulator at OAK_EMULATOR_HUB ({hub}) cannot be used: {why}"),
        )
    };
    let direct = ProxyRules::direct();
    let lost = |error| http::transport_error(ErrorKind::ModelNetwork, error, hub, &direct);
    let asking = async {
        let client = http::client(hub, &direct)?;
        let mut response = client.get(hub.clone()).send().await.map_err(lost)?;
        read_bounded(&mut response, HUB_BYTES).await.map_err(lost)
    };
    let (body, _) = tokio::select! {
        biased;
        answer = asking => answer.map_err(|error| unusable(error.message().to_owned()))?,
        () = clock.sleep(HUB_TIME) => return Err(unusable("it does not answer".to_owned())),
    };
    let answer: HubAnswer =
        serde_json::from_slice(&body).map_err(|error| unusable(error.to_string()))?;
    let gateway =
        Url::parse(&answer.endpoints.gateway).map_err(|error| unusable(error.to_string()))?;
    if !http::is_loopback(&gateway) {
        return Err(unusable("its gateway is not on this machine".to_owned()));
    }
    Ok((gateway, answer.api_key.map(Secret::new)))
}
