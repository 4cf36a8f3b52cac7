//! Configuration: from what the user wrote to what the kernel works with.
//!
//! Everything is checked here, when the agent is created. Options of parts that do not exist yet
//! are checked as well and then refused, never ignored.

mod fields;
mod later;
mod limits;
#[cfg(feature = "mcp")]
mod mcp;
pub mod model;
mod paths;
pub mod session;
pub mod store;
mod tools;

use std::sync::Arc;

pub use fields::{Fields, pure_json};
pub use limits::{Limits, Timeouts};
use model::{ModelDefaults, ModelSettings};
use session::SessionSettings;
pub use session::Wiring;

use crate::agent::hooks::HookTable;
use crate::agent::host::FunctionId;
use crate::agent::observe::ObserverTable;
use crate::base::environment::Environment;
use crate::base::http::ProxyRules;
use crate::error::{KernelError, Result};
#[cfg(feature = "mcp")]
use crate::mcp::ServerSettings;
use crate::protocol::Json;
use crate::render::{Format, RenderOptions};
use crate::tool::{ASK_USER_HINT, ToolSet};

/// A checked configuration.
pub struct AgentConfig {
    pub name: Option<String>,
    pub env_id: Arc<str>,
    /// The models, primary first; the others take over when it is not available.
    pub models: Vec<ModelSettings>,
    pub model_defaults: ModelDefaults,
    pub system_prompt: Option<String>,
    /// Whether text is told as it grows.
    pub stream_text: bool,
    pub render: RenderOptions,
    pub limits: Limits,
    pub tools: ToolSet,
    #[cfg(feature = "mcp")]
    pub servers: Vec<ServerSettings>,
    pub hooks: HookTable,
    pub observers: ObserverTable,
    pub proxy: ProxyRules,
    pub session: SessionSettings,
}

/// A configuration and what should be said about it.
pub struct Checked {
    pub config: AgentConfig,
    /// Keys that have no meaning.
    pub unknown: Vec<String>,
}

/// Checks a configuration. `config` is what the user wrote, with marks in place of functions.
pub fn check(config: &Json, wiring: &Wiring<'_>) -> Result<Checked> {
    let Wiring {
        environment, host, ..
    } = *wiring;
    let fields = Fields::of("config", config)?;
    let env_id = fields.text("envId")?.ok_or_else(|| {
        KernelError::invalid("config.envId is required and must be a non-empty string")
    })?;
    let limits = limits::check(&fields)?;
    let format = format(&fields)?;
    let model_defaults = ModelDefaults::check(&fields, env_id, environment)?;
    let models = model::check(&fields, &model_defaults)?;
    #[cfg(feature = "mcp")]
    let servers = mcp::check(&fields, host)?;
    let (asks, has_hint) = tools::ask_user(&fields)?;
    let tools = tools::check(&fields, asks, host)?;
    let mut hooks = hooks(&fields)?;
    hooks.on_unknown_outcome = fields.function("onUnknownOutcome")?;
    let observers = ObserverTable {
        logger: observer(
            &fields,
            "logger",
            "a function, or an object with methods debug, info, warn, error",
        )?,
        on_metric: fields.function("onMetric")?,
        telemetry: observer(
            &fields,
            "telemetry",
            "a function, or an object with the method span",
        )?,
        debug: environment.debug,
    };
    let proxy = proxy(&fields, environment)?;
    let has_credentials = later::check(&fields, environment)?;
    let session = session::check(&fields, env_id, has_credentials, wiring)?;
    for label in ["name", "description"] {
        fields.string(label)?;
    }
    if let Some(metadata) = fields.get("metadata") {
        // Its keys are the user's own: none of them is unknown.
        Fields::of("config.metadata", metadata)?;
    }
    let config = AgentConfig {
        name: fields.string("name")?.map(str::to_owned),
        env_id: env_id.into(),
        models,
        model_defaults,
        system_prompt: system_prompt(&fields, has_hint)?,
        stream_text: fields.boolean("stream")?.unwrap_or(true),
        render: RenderOptions {
            format,
            extras: fields.boolean("streamExtras")?.unwrap_or(true),
        },
        limits,
        tools,
        #[cfg(feature = "mcp")]
        servers,
        hooks,
        observers,
        proxy,
        session,
    };
    Ok(Checked {
        config,
        unknown: fields.all_unknown(),
    })
}

/// The instructions for the model; `asks`: whether it is told that it may ask the user.
fn system_prompt(fields: &Fields<'_>, asks: bool) -> Result<Option<String>> {
    let given = fields
        .string("systemPrompt")?
        .filter(|text| !text.trim().is_empty());
    let parts: Vec<&str> = given
        .into_iter()
        .chain(asks.then_some(ASK_USER_HINT))
        .collect();
    Ok((!parts.is_empty()).then(|| parts.join("\n\n")))
}

/// The format; a custom adapter reads messages of the Claude Agent SDK and decides the rest.
fn format(fields: &Fields<'_>) -> Result<Format> {
    let name = fields.choice("streamFormat", &Format::NAMES)?;
    let Some(adapter) = fields.get("streamAdapter") else {
        return Ok(name.and_then(Format::from_name).unwrap_or_default());
    };
    if !fields::methods(adapter).contains(&"adapt") {
        return Err(fields.wrong("streamAdapter", "an object with the function adapt"));
    }
    if name.is_some() {
        return Err(KernelError::invalid(
            "config.streamFormat and config.streamAdapter exclude each other: the adapter makes the elements",
        ));
    }
    Ok(Format::Sdk)
}

/// A function; the binding has made one of an object with methods.
fn observer<'a>(fields: &Fields<'a>, key: &'a str, what: &str) -> Result<Option<FunctionId>> {
    fields.function(key).map_err(|_| fields.wrong(key, what))
}

fn hooks(fields: &Fields<'_>) -> Result<HookTable> {
    let Some(hooks) = fields.object("hooks")? else {
        return Ok(HookTable::default());
    };
    let get = |name| -> Result<Option<FunctionId>> { hooks.function(name) };
    let table = HookTable {
        on_session_start: get("onSessionStart")?,
        on_session_end: get("onSessionEnd")?,
        on_user_message: get("onUserMessage")?,
        on_tool_start: get("onToolStart")?,
        on_tool_end: get("onToolEnd")?,
        on_agent_message: get("onAgentMessage")?,
        on_unknown_outcome: None,
    };
    match hooks.unknown().first() {
        None => Ok(table),
        Some(unknown) => Err(KernelError::not_built(format!(
            "{unknown} is no hook that is known (built: onSessionStart, onSessionEnd, onUserMessage, onToolStart, onToolEnd, \
             onAgentMessage)"
        ))),
    }
}

fn proxy(fields: &Fields<'_>, environment: &Environment) -> Result<ProxyRules> {
    match fields.get("proxy") {
        None => ProxyRules::from_environment(environment),
        Some(Json::Bool(false)) => Ok(ProxyRules::direct()),
        Some(Json::String(address)) => ProxyRules::explicit(address),
        Some(_) => Err(fields.wrong("proxy", "the address of a proxy, or false")),
    }
}
