//! The model of an agent, once its address and key are known.

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::HeaderMap;
use serde::Deserialize;
use tokio::sync::OnceCell;
use url::Url;

use crate::base::clock::SharedClock;
use crate::base::http::{self, ProxyRules, body::read_bounded};
use crate::base::retry::Backoff;
use crate::base::secret::Secret;
use crate::error::{ErrorKind, KernelError, Result};
use crate::model::gateway::{GatewayConfig, GatewayModel, Limits};
use crate::model::messages::Messages;
use crate::model::{Model, Retry, RetryPolicy};

use super::config::AgentConfig;
use super::config::model::Gateway;

/// Time that a hub on this machine has to answer.
const HUB_TIME: Duration = Duration::from_secs(5);
const HUB_BYTES: usize = 64 << 10;

/// Makes the model at the first request.
pub struct ModelSource {
    clock: SharedClock,
    model: OnceCell<Arc<dyn Model>>,
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
    pub fn new(clock: SharedClock) -> Self {
        Self {
            clock,
            model: OnceCell::new(),
        }
    }

    /// The model, retry layer included. Fails when there is no key.
    pub async fn get(&self, config: &AgentConfig) -> Result<Arc<dyn Model>> {
        self.model
            .get_or_try_init(|| self.make(config))
            .await
            .cloned()
    }

    async fn make(&self, config: &AgentConfig) -> Result<Arc<dyn Model>> {
        let (base_url, hub_key) = match &config.model.gateway {
            Gateway::At(url) => (url.clone(), None),
            Gateway::Hub(hub) => ask_hub(hub).await?,
        };
        let key = config.model.api_key.clone().or(hub_key).ok_or_else(|| {
            KernelError::new(
                ErrorKind::Resource,
                "no API key found: set config.model.apiKey, or TCB_API_KEY in the environment",
            )
        })?;
        let messages = GatewayModel::new(
            Messages,
            GatewayConfig {
                base_url,
                api_key: key,
                headers: HeaderMap::new(),
                proxy: config.proxy.clone(),
                limits: Limits {
                    first_byte: config.timeouts.first_byte,
                    idle: config.timeouts.idle,
                    request: config.timeouts.request,
                },
                clock: self.clock.clone(),
            },
        );
        let policy = RetryPolicy {
            max_retries: config.model.max_retries,
            restart: config.model.restart,
            backoff: Backoff::default(),
        };
        Ok(Arc::new(Retry::new(
            Arc::new(messages),
            policy,
            self.clock.clone(),
        )))
    }
}

/// Asks the hub of an emulator for its gateway and key.
async fn ask_hub(hub: &Url) -> Result<(Url, Option<Secret>)> {
    let unusable = |why: String| {
        KernelError::new(
            ErrorKind::ModelNetwork,
            format!("the emulator at OAK_EMULATOR_HUB ({hub}) cannot be used: {why}"),
        )
    };
    let direct = ProxyRules::direct();
    let asking = async {
        let client = http::client(&direct)?;
        let mut response = client
            .get(hub.clone())
            .send()
            .await
            .map_err(|error| http::transport_error(error, hub, &direct))?;
        let read = read_bounded(&mut response, HUB_BYTES).await;
        read.map_err(|error| http::transport_error(error, hub, &direct))
    };
    let (body, _) = match tokio::time::timeout(HUB_TIME, asking).await {
        Ok(answer) => answer?,
        Err(_) => return Err(unusable("it does not answer".to_owned())),
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
