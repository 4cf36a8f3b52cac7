//! Options of parts that are not built yet: checked like the others, then refused, so that nobody
//! takes a setting for granted that has no effect.

use crate::base::environment::Environment;
use crate::error::{ErrorKind, KernelError, Result};
use crate::protocol::Json;

use super::fields::{as_function, is_object, methods};
use super::{Fields, paths};

const SANDBOX_SETTINGS: [&str; 19] = [
    "provider",
    "workspaceRoot",
    "apiKey",
    "runtime",
    "scope",
    "ttl",
    "capabilities",
    "cloudbaseTools",
    "userCredentials",
    "workspaceSnapshot",
    "workspaceSnapshotTimeoutMs",
    "workspaceInitTimeoutMs",
    "settings",
    "toolNames",
    "require",
    "uid",
    "snapshotStore",
    "snapshotMode",
    "cwd",
];
const MODES: [&str; 6] = [
    "default",
    "acceptEdits",
    "bypassPermissions",
    "plan",
    "dontAsk",
    "auto",
];

/// Checks; tells whether CloudBase credentials were given.
pub fn check(config: &Fields<'_>, environment: &Environment) -> Result<bool> {
    let credentials = credentials(config)?;
    cwd(config, environment)?;
    sandbox(config, environment)?;
    storage(config, credentials)?;
    permissions(config)?;
    #[cfg(not(feature = "mcp"))]
    config.not_built("mcpServers", |value| {
        value.as_object().is_some_and(serde_json::Map::is_empty)
    })?;
    memory(config, environment, credentials)?;
    runtime(config)?;
    for key in ["agents", "outputFormat", "attachments", "records"] {
        config.not_built(key, |value| value == &Json::Bool(false))?;
    }
    for key in ["hookRegistry", "memoryKey"] {
        config.not_built(key, Json::is_null)?;
    }
    config.not_built("handoffs", |value| {
        value.as_array().is_some_and(Vec::is_empty)
    })?;
    Ok(credentials)
}

/// Whether usable credentials were given: an access key, or both halves of a key pair.
fn credentials(config: &Fields<'_>) -> Result<bool> {
    let Some(fields) = config.object("credentials")? else {
        return Ok(false);
    };
    let has = |key| Ok::<_, KernelError>(fields.string(key)?.is_some_and(|text| !text.is_empty()));
    for key in ["envId", "sessionToken", "region"] {
        fields.string(key)?;
    }
    let (access_key, id, key) = (has("accessKey")?, has("secretId")?, has("secretKey")?);
    if access_key || (id && key) {
        return Ok(true);
    }
    Err(KernelError::invalid(
        "config.credentials must hold accessKey, or both secretId and secretKey; leave it out to run \
         without CloudBase",
    ))
}

fn cwd(config: &Fields<'_>, environment: &Environment) -> Result<()> {
    let Some(cwd) = config.text("cwd")? else {
        return Ok(());
    };
    paths::refuse_claude_home(cwd, environment.home.as_deref())?;
    let sandbox = config.object("sandbox")?;
    let root = sandbox
        .as_ref()
        .map(|sandbox| sandbox.text("workspaceRoot"))
        .transpose()?
        .flatten();
    if root.is_some_and(|root| !paths::is_same(root, cwd)) {
        return Err(KernelError::new(
            ErrorKind::Config,
            "config.cwd and config.sandbox.workspaceRoot must be the same directory: give one of them",
        ));
    }
    Err(KernelError::not_built(
        "config.cwd (skills and project memory)",
    ))
}

fn sandbox(config: &Fields<'_>, environment: &Environment) -> Result<()> {
    let Some(sandbox) = config.object("sandbox")? else {
        return Ok(());
    };
    sandbox.know(&SANDBOX_SETTINGS);
    if sandbox.boolean("enabled")? == Some(false) {
        return Ok(());
    }
    let scope = sandbox.choice("scope", &["session", "shared"])?;
    let snapshot = sandbox.choice("workspaceSnapshot", &["auto", "enabled", "disabled"])?;
    let is_remote = sandbox_is_remote(&sandbox, environment)?;
    if snapshot == Some("enabled") && !is_remote && sandbox.get("snapshotStore").is_none() {
        return Err(KernelError::new(
            ErrorKind::Config,
            "config.sandbox.workspaceSnapshot is 'enabled', but this sandbox does not support snapshot",
        ));
    }
    if is_remote && snapshot != Some("disabled") && scope == Some("session") {
        return Err(KernelError::new(
            ErrorKind::Config,
            "workspace snapshots need config.sandbox.scope='shared'; set it, or workspaceSnapshot: 'disabled'",
        ));
    }
    Err(KernelError::not_built("config.sandbox"))
}

/// Whether the sandbox is an AGS one.
fn sandbox_is_remote(sandbox: &Fields<'_>, environment: &Environment) -> Result<bool> {
    if let Some(runtime) = sandbox.get("runtime") {
        if !is_object(runtime) || !methods(runtime).contains(&"acquire") {
            return Err(sandbox.wrong("runtime", "an object with the function acquire"));
        }
        return Ok(runtime["backend"] == "ags-stateful");
    }
    let provider = sandbox.string("provider")?.unwrap_or("ags-stateful");
    match provider {
        "local" => Ok(false),
        "ags-stateful" => {
            let own = sandbox.string("apiKey")?.filter(|key| !key.is_empty());
            let key = own.is_some()
                || environment.api_key.is_some()
                || environment.sandbox_api_key.is_some();
            if key {
                return Ok(true);
            }
            Err(KernelError::invalid(
                "config.sandbox.apiKey is required for the provider 'ags-stateful' (or TCB_API_KEY, \
                 CLOUDBASE_APIKEY or OAK_SANDBOX_API_KEY in the environment)",
            ))
        }
        other => Err(KernelError::invalid(format!(
            "config.sandbox.provider '{}' is not supported yet: use 'ags-stateful' or 'local'",
            crate::base::text::excerpt(other, 40)
        ))),
    }
}

fn storage(config: &Fields<'_>, has_credentials: bool) -> Result<()> {
    let Some(value) = config.get("storage") else {
        return Ok(());
    };
    if !is_object(value) {
        return Err(config.wrong(
            "storage",
            "a storage configuration or an object with resolveAttachment",
        ));
    }
    if !methods(value).contains(&"resolveAttachment") {
        let Some(fields) = config.object("storage")? else {
            return Ok(());
        };
        fields.know(&["provider", "pathPrefix", "urlExpiresIn"]);
        if fields.boolean("enabled")? == Some(false) {
            return Ok(());
        }
        if fields
            .string("provider")?
            .is_some_and(|provider| provider != "cloudbase")
        {
            return Err(KernelError::invalid(
                "config.storage.provider is not supported yet: use 'cloudbase', or give an object with \
                 resolveAttachment",
            ));
        }
        if !has_credentials {
            return Err(KernelError::invalid(
                "config.storage requires AgentConfig.credentials",
            ));
        }
    }
    Err(KernelError::not_built("config.storage"))
}

fn permissions(config: &Fields<'_>) -> Result<()> {
    let fields = config.object("permissions")?;
    let outer = config.choice("permissionMode", &MODES)?;
    let inner = fields
        .as_ref()
        .map(|fields| fields.choice("mode", &MODES))
        .transpose()?
        .flatten();
    if outer.is_some() && inner.is_some() && outer != inner {
        return Err(KernelError::invalid(
            "config.permissionMode and config.permissions.mode differ: they are one setting, give it once",
        ));
    }
    if inner
        .or(outer)
        .is_some_and(|mode| mode != "bypassPermissions")
    {
        return Err(KernelError::not_built(
            "a permission mode other than 'bypassPermissions'",
        ));
    }
    config.function("canUseTool")?;
    config.not_built("canUseTool", Json::is_null)?;
    let Some(fields) = fields else { return Ok(()) };
    if let Some(rule) = fields.get("requireApproval") {
        let is_list = rule
            .as_array()
            .is_some_and(|list| list.iter().all(Json::is_string));
        if !(rule.is_string() || is_list || as_function(rule).is_some()) {
            return Err(fields.wrong(
                "requireApproval",
                "a string, a list of strings or a function",
            ));
        }
    }
    for key in [
        "requireApproval",
        "store",
        "canUseTool",
        "allow",
        "deny",
        "ask",
        "onPermissionUpdate",
    ] {
        fields.not_built(key, |value| value.as_array().is_some_and(Vec::is_empty))?;
    }
    fields.string("tablePrefix")?;
    fields.integer("approvalTimeoutMs", 0..=u64::from(u32::MAX))?;
    fields.integer("canUseToolTimeoutMs", 0..=u64::from(u32::MAX))?;
    match fields.unknown().first() {
        None => Ok(()),
        Some(unknown) => Err(KernelError::invalid(format!(
            "{unknown} is not a permission setting"
        ))),
    }
}

fn memory(config: &Fields<'_>, environment: &Environment, has_credentials: bool) -> Result<()> {
    let memory = match config.get("userMemory") {
        None | Some(Json::Bool(false)) => false,
        Some(Json::Bool(true)) => true,
        Some(_) => match config.object("userMemory")? {
            Some(fields) => fields.boolean("enabled")?.unwrap_or(false),
            None => false,
        },
    };
    if memory && !has_credentials && environment.api_key.is_none() {
        return Err(KernelError::invalid(
            "config.userMemory needs config.credentials, or TCB_API_KEY in the environment",
        ));
    }
    if memory {
        return Err(KernelError::not_built("config.userMemory"));
    }
    let Some(skills) = config.object("skills")? else {
        return Ok(());
    };
    match skills.get("enabled") {
        None => Ok(()),
        Some(Json::String(word)) if word == "all" => Err(KernelError::not_built("config.skills")),
        Some(Json::Array(names)) if names.iter().all(Json::is_string) => {
            Err(KernelError::not_built("config.skills"))
        }
        Some(_) => Err(skills.wrong("enabled", "'all' or a list of skill names")),
    }
}

fn runtime(config: &Fields<'_>) -> Result<()> {
    config.not_built("runtime", |value| value == "native")?;
    config.not_built("allowHostTools", |value| value == &Json::Bool(false))?;
    config.not_built("runtimeFallback", |value| value == "error")
}
