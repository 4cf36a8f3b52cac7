//! `config.session`: where conversations are kept, and which one an agent goes on with.

use std::sync::Arc;
use std::time::Duration;

use crate::agent::HostState;
use crate::agent::host::Host;
use crate::agent::host_store::HostStore;
use crate::base::clock::SharedClock;
use crate::base::environment::Environment;
use crate::error::{KernelError, Result};
use crate::protocol::Json;
use crate::store::session::{self, OpenStore, SharedSessionStore, StoreSpec};
use crate::store::state::SharedStateStore;

use super::{Fields, store};

/// Time that a run waits for its entries to be stored.
const STORE_TIMEOUT_MS: u64 = 10_000;
/// Time that a run waits for another process to release the session.
const BUSY_TIMEOUT_MS: u64 = 20_000;
/// Most milliseconds of a time limit.
const MAX_MS: u64 = u32::MAX as u64;

/// How the sessions of an agent are kept.
pub struct SessionSettings {
    /// None: a conversation lives as long as its Session object.
    pub store: Option<SharedSessionStore>,
    /// Tenant under which sessions are stored.
    pub project: Arc<str>,
    pub store_timeout: Duration,
    pub busy_timeout: Duration,
    /// Whether each entry is stored by itself.
    pub eager: bool,
    /// Whether a run goes on when the store fails.
    pub lenient: bool,
    /// Whether new entries are stored; otherwise a stored conversation is only read.
    pub persist: bool,
    pub resume: ResumeDefaults,
    /// Where the records of calls that wait for an answer are; none: beside the sessions.
    pub tool_store: Option<SharedStateStore>,
}

/// Which conversation `startSession` takes when its options do not say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResumeDefaults {
    pub session_id: Option<String>,
    pub continue_recent: bool,
    pub fork: bool,
    pub resume_at: Option<String>,
    /// Whether a `resume_at` that names no message is an error.
    pub strict: bool,
}

/// What the host program gives beside the configuration.
pub struct Wiring<'a> {
    pub environment: &'a Environment,
    pub host: &'a Arc<dyn Host>,
    pub clock: &'a SharedClock,
    /// The driver behind a store object that the kernel itself made.
    pub native_store: Option<OpenStore>,
}

/// Checks the settings. `has_credentials`: whether CloudBase credentials were given.
pub fn check(
    config: &Fields<'_>,
    env_id: &str,
    has_credentials: bool,
    wiring: &Wiring<'_>,
) -> Result<SessionSettings> {
    let fields = match config.object("session")? {
        Some(fields) => fields,
        None => Fields::optional("config.session", &Json::Null)?,
    };
    let is_enabled = fields.boolean("enabled")?;
    let given = given_store(config, &fields, wiring)?;
    let database = database(&fields, wiring)?;
    let store = match (given, database) {
        (Some(_), Some(_)) => {
            return Err(KernelError::invalid(
                "config.session.store and config.session.database exclude each other: give one of them",
            ));
        }
        (Some(store), None) => Some(store),
        (None, Some(spec)) => Some(session::open(&spec, wiring.clock.clone())?),
        (None, None) => {
            if is_enabled != Some(false) {
                cloudbase(config, is_enabled, has_credentials, wiring)?;
            }
            None
        }
    };
    let ms = |key, default| -> Result<Duration> {
        let ms = fields.integer(key, 0..=MAX_MS)?.unwrap_or(default);
        Ok(Duration::from_millis(ms))
    };
    let own = wiring.native_store.as_ref();
    let project = match (
        fields.text("projectKey")?,
        own.and_then(|open| open.project.clone()),
    ) {
        (Some(project), _) => project.into(),
        (None, Some(project)) => project,
        (None, None) => env_id.into(),
    };
    fields.choice("provider", &["cloudbase", "self"])?;
    Ok(SessionSettings {
        store: store.filter(|_| is_enabled != Some(false)),
        project,
        store_timeout: ms("storeTimeoutMs", STORE_TIMEOUT_MS)?,
        busy_timeout: ms("busyTimeoutMs", BUSY_TIMEOUT_MS)?,
        eager: fields.choice("flush", &["batched", "eager"])? == Some("eager"),
        lenient: fields.choice("onStoreFailure", &["fail", "continue"])? == Some("continue"),
        persist: config.boolean("persistSession")?.unwrap_or(true),
        resume: resume(config)?,
        tool_store: tool_store(config, wiring)?,
    })
}

fn resume(config: &Fields<'_>) -> Result<ResumeDefaults> {
    let flag = |key| Ok::<_, KernelError>(config.boolean(key)?.unwrap_or(false));
    let text = |key| Ok::<_, KernelError>(config.text(key)?.map(str::to_owned));
    Ok(ResumeDefaults {
        session_id: text("sessionId")?,
        continue_recent: flag("continueRecentSession")?,
        fork: flag("forkSession")?,
        resume_at: text("resumeSessionAt")?,
        strict: flag("strictResume")?,
    })
}

/// `toolStore`, an object of the program.
fn tool_store(config: &Fields<'_>, wiring: &Wiring<'_>) -> Result<Option<SharedStateStore>> {
    let Some(value) = config.get("toolStore") else {
        return Ok(None);
    };
    let (host, clock) = (wiring.host.clone(), wiring.clock.clone());
    let store = HostState::from_fields("config.toolStore", value, host, clock)?;
    Ok(Some(Arc::new(store)))
}

/// `session.store`, or its alias `sessionStore`.
fn given_store(
    config: &Fields<'_>,
    fields: &Fields<'_>,
    wiring: &Wiring<'_>,
) -> Result<Option<SharedSessionStore>> {
    let inner = fields
        .get("store")
        .map(|value| ("config.session.store", value));
    let outer = config
        .get("sessionStore")
        .map(|value| ("config.sessionStore", value));
    if inner.is_some() && outer.is_some() {
        return Err(KernelError::invalid(
            "config.session.store and config.sessionStore are one setting: give it once",
        ));
    }
    let Some((path, value)) = inner.or(outer) else {
        return Ok(None);
    };
    if let Some(open) = &wiring.native_store {
        return Ok(Some(open.store.clone()));
    }
    let store = HostStore::from_fields(path, value, wiring.host.clone(), wiring.clock.clone())?;
    Ok(Some(Arc::new(store)))
}

/// The database that `session.database` names; it must fit the provider.
fn database(fields: &Fields<'_>, wiring: &Wiring<'_>) -> Result<Option<StoreSpec>> {
    let provider = fields.choice("provider", &["cloudbase", "self"])?;
    let Some(database) = fields.string("database")? else {
        store::settings(fields)?;
        return Ok(None);
    };
    let own = if database == "flexdb" {
        "cloudbase"
    } else {
        "self"
    };
    let spec = store::spec(fields, wiring.environment.home.as_deref());
    if provider.is_some_and(|provider| provider != own) && store::is_known(database) {
        return Err(KernelError::invalid(format!(
            "config.session.database '{database}' belongs to provider '{own}': leave the provider out"
        )));
    }
    spec.map(Some)
}

/// Whether CloudBase should keep the sessions, which it cannot yet.
fn cloudbase(
    config: &Fields<'_>,
    is_enabled: Option<bool>,
    has_credentials: bool,
    wiring: &Wiring<'_>,
) -> Result<()> {
    let is_required = is_enabled == Some(true);
    let has_key = wiring.environment.api_key.is_some() || has_model_key(config);
    if is_required && !has_credentials && !has_key {
        return Err(KernelError::invalid(
            "config.session.enabled requires AgentConfig.credentials, an API key, or a database that \
             needs neither",
        ));
    }
    if is_required {
        return Err(KernelError::not_built(
            "config.session.enabled without a database (sessions in CloudBase)",
        ));
    }
    if has_credentials {
        return Err(KernelError::not_built(
            "config.credentials switches sessions in CloudBase on (set session: {enabled: false}, or a \
             session.database of your own, to go on without them), which",
        ));
    }
    Ok(())
}

fn has_model_key(config: &Fields<'_>) -> bool {
    let key = |value: Option<&Json>| {
        value
            .and_then(Json::as_str)
            .is_some_and(|key| !key.is_empty())
    };
    key(config.get("apiKey")) || key(config.get("model").map(|model| &model["apiKey"]))
}
