//! `config.mcpServers`.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{HeaderName, HeaderValue};
use url::Url;

use crate::agent::host::Host;
use crate::agent::host_link::link_factory;
use crate::base::secret::Secret;
use crate::base::text::excerpt;
use crate::error::{KernelError, Result};
use crate::mcp::{Program, ServerSettings, Target, ToolPolicy};
use crate::protocol::Json;

use super::Fields;

/// Names that the kernel uses itself.
const RESERVED: [&str; 3] = ["sandbox", "cloudbase", "custom"];
const MAX_SERVERS: usize = 1_000;
/// Longest name, in bytes.
const NAME_LENGTH: usize = 256;
const CALL_TIME: Duration = Duration::from_mins(1);
/// A smaller limit on calls is ignored.
const LEAST_CALL_MS: f64 = 1_000.0;
const HANDSHAKE_TIME: Duration = Duration::from_secs(30);
const IDLE_MS: u64 = 300_000;
/// Largest time limit: a week.
const MAX_MS: u64 = 7 * 24 * 3_600 * 1_000;
const POLICIES: [&str; 3] = ["always_allow", "always_ask", "always_deny"];

/// The servers of an agent.
pub fn check<'a>(config: &Fields<'a>, host: &Arc<dyn Host>) -> Result<Vec<ServerSettings>> {
    let Some(value) = config.get("mcpServers") else {
        return Ok(Vec::new());
    };
    // The names are the user's own: none of them is unknown.
    let servers = Fields::of("config.mcpServers", value)?;
    let named: Vec<(&'a String, &'a Json)> = value.as_object().into_iter().flatten().collect();
    if named.len() > MAX_SERVERS {
        return Err(KernelError::invalid(format!(
            "config.mcpServers has {} servers; at most {MAX_SERVERS} are supported",
            named.len()
        )));
    }
    let servers = named.into_iter().map(|(name, server)| {
        check_name(&servers, name)?;
        let fields = config.element(servers.path(name), server)?;
        settings(name, &fields, host)
    });
    servers.collect()
}

fn check_name(servers: &Fields<'_>, name: &str) -> Result<()> {
    if RESERVED.contains(&name) {
        return Err(KernelError::invalid(format!(
            "{}: the name \"{name}\" is used by the kernel; choose another",
            servers.path(name)
        )));
    }
    if name.trim().is_empty() || name.len() > NAME_LENGTH || name.chars().any(char::is_control) {
        return Err(KernelError::invalid(format!(
            "{}: a name has 1 to {NAME_LENGTH} bytes and no control characters",
            servers.path(&excerpt(name, 80))
        )));
    }
    Ok(())
}

fn settings(name: &str, fields: &Fields<'_>, host: &Arc<dyn Host>) -> Result<ServerSettings> {
    let target = target(fields, host)?;
    let idle = match target {
        Target::Stdio(_) => fields.integer("idleMs", 0..=MAX_MS)?.unwrap_or(IDLE_MS),
        _ => 0,
    };
    #[expect(
        clippy::cast_precision_loss,
        reason = "a week has far fewer milliseconds"
    )]
    let timeout = fields
        .number("timeout", 0.0..=MAX_MS as f64)?
        .filter(|ms| *ms >= LEAST_CALL_MS);
    Ok(ServerSettings {
        name: name.into(),
        target,
        timeout: timeout.map_or(CALL_TIME, |ms| Duration::from_secs_f64(ms / 1_000.0)),
        handshake: HANDSHAKE_TIME,
        always_load: fields.boolean("alwaysLoad")?.unwrap_or(false),
        trusted: fields.boolean("trusted")?.unwrap_or(false),
        policies: policies(fields)?,
        idle: (idle > 0).then(|| Duration::from_millis(idle)),
    })
}

fn target(fields: &Fields<'_>, host: &Arc<dyn Host>) -> Result<Target> {
    match fields.string("type")?.unwrap_or("stdio") {
        "stdio" => program(fields).map(Target::Stdio),
        "http" => Ok(Target::Http {
            url: address(fields)?,
            headers: headers(fields)?,
        }),
        "sse" => Ok(Target::Sse {
            url: address(fields)?,
            headers: headers(fields)?,
        }),
        "sdk" => {
            needed(fields, "name")?;
            let instance = fields.get("instance").unwrap_or(&Json::Null);
            let factory = link_factory(&fields.path("instance"), instance, host)?;
            Ok(Target::InProcess(factory))
        }
        _ => Err(fields.wrong("type", "one of stdio, http, sse, sdk")),
    }
}

fn needed<'a>(fields: &Fields<'a>, key: &'a str) -> Result<&'a str> {
    fields
        .text(key)?
        .ok_or_else(|| fields.wrong(key, "a non-empty string"))
}

fn program(fields: &Fields<'_>) -> Result<Program> {
    let command = needed(fields, "command")?;
    let is_whole = |text: &str| !text.contains('\0');
    let args = fields.array("args")?.into_iter().flatten();
    let args = args.map(|arg| arg.as_str().filter(|arg| is_whole(arg)).map(str::to_owned));
    let args: Option<Vec<_>> = args.collect();
    let args = args.ok_or_else(|| fields.wrong("args", "an array of strings without NUL"))?;
    let cwd = fields.text("cwd")?;
    for (key, text) in [("command", Some(command)), ("cwd", cwd)] {
        if !text.is_none_or(is_whole) {
            return Err(fields.wrong(key, "a string without NUL"));
        }
    }
    Ok(Program {
        command: command.to_owned(),
        args,
        env: variables(fields)?,
        cwd: cwd.map(PathBuf::from),
    })
}

fn variables(fields: &Fields<'_>) -> Result<Vec<(String, Secret)>> {
    let given = strings(fields, "env")?;
    let variable = |(name, value): (&str, Option<&str>)| {
        let is_name = !name.is_empty() && !name.contains(['=', '\0']);
        match value.filter(|value| is_name && !value.contains('\0')) {
            Some(value) => Ok((name.to_owned(), Secret::new(value))),
            None => Err(KernelError::invalid(format!(
                "{}.{} must be a string without NUL, under the name of a variable",
                fields.path("env"),
                excerpt(name, 80)
            ))),
        }
    };
    given.into_iter().map(variable).collect()
}

fn address(fields: &Fields<'_>) -> Result<Url> {
    let text = needed(fields, "url")?;
    let url = Url::parse(text).ok();
    let url = url.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    // The text itself is not shown: it may hold a key.
    let path = fields.path("url");
    let url = url.ok_or_else(|| {
        KernelError::invalid(format!(
            "{path} must be an address that begins with http:// or https://"
        ))
    })?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(KernelError::invalid(format!(
            "{path} must not hold a user name or password: give them as a header"
        )));
    }
    Ok(url)
}

fn headers(fields: &Fields<'_>) -> Result<Vec<(String, Secret)>> {
    let given = strings(fields, "headers")?;
    let header = |(name, value): (&str, Option<&str>)| {
        let value = value.filter(|value| HeaderValue::from_str(value).is_ok());
        let header = HeaderName::try_from(name).ok().zip(value);
        header.map_or_else(
            || {
                Err(KernelError::invalid(format!(
                    "{}.{} must be a valid HTTP header",
                    fields.path("headers"),
                    excerpt(name, 80)
                )))
            },
            |(name, value)| Ok((name.as_str().to_owned(), Secret::new(value))),
        )
    };
    given.into_iter().map(header).collect()
}

/// The fields of an object whose values should be strings; none for a value that is not.
fn strings<'a>(fields: &Fields<'a>, key: &'a str) -> Result<Vec<(&'a str, Option<&'a str>)>> {
    let Some(value) = fields.get(key) else {
        return Ok(Vec::new());
    };
    Fields::of(fields.path(key), value)?;
    let pairs = value.as_object().into_iter().flatten();
    Ok(pairs
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect())
}

fn policies(fields: &Fields<'_>) -> Result<HashMap<String, ToolPolicy>> {
    let mut policies = HashMap::new();
    for (at, value) in fields.array("tools")?.into_iter().flatten().enumerate() {
        let path = format!("{}[{at}]", fields.path("tools"));
        let tool = fields.element(path, value)?;
        let name = needed(&tool, "name")?;
        let policy = match tool.choice("permission_policy", &POLICIES)? {
            Some("always_deny") => ToolPolicy::Deny,
            Some("always_ask") => {
                return Err(KernelError::not_built(format!(
                    "{}: 'always_ask'",
                    tool.path("permission_policy")
                )));
            }
            _ => ToolPolicy::Allow,
        };
        policies.insert(name.to_owned(), policy);
    }
    Ok(policies)
}
