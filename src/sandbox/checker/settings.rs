//! `SandboxSettings`: rules of paths and commands, and the settings of enforcement.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json};

use crate::base::telemetry;
use crate::error::{KernelError, Result};

/// Folders in which a program that is allowed by name may live.
const TRUSTED: [&str; 7] = [
    "/bin",
    "/sbin",
    "/usr/bin",
    "/usr/sbin",
    "/usr/local/bin",
    "/usr/local/sbin",
    "/opt/homebrew/bin",
];

/// What is allowed. Empty path lists mean no limit of that kind.
#[derive(Clone, Debug)]
pub struct SandboxSettings {
    /// Folders that may be read; default empty, which allows all.
    pub allowed_read_paths: Vec<String>,
    /// Folders that may be written; default empty, which allows all.
    pub allowed_write_paths: Vec<String>,
    /// Folders that may never be touched; wins over both lists.
    pub denied_paths: Vec<String>,
    /// Commands that may never run; not used when `allowed_commands` is given.
    pub denied_commands: Vec<String>,
    /// The only commands that may run; an empty list allows none. Default: no such limit.
    pub allowed_commands: Option<Vec<String>>,
    /// Folders of programs that `allowed_commands` names.
    pub trusted_exec_dirs: Vec<String>,
    /// Refusals that are not reported, as texts by category (`file`, `network`, `command`).
    pub ignore_violations: BTreeMap<String, Vec<String>>,
}

impl Default for SandboxSettings {
    fn default() -> Self {
        Self {
            allowed_read_paths: Vec::new(),
            allowed_write_paths: Vec::new(),
            denied_paths: Vec::new(),
            denied_commands: Vec::new(),
            allowed_commands: None,
            trusted_exec_dirs: TRUSTED.map(str::to_owned).to_vec(),
            ignore_violations: BTreeMap::new(),
        }
    }
}

/// Settings that are checked for their type here and used by enforcement.
const BOOLEANS: [&str; 4] = [
    "allowNestedSandbox",
    "autoAllowBashIfSandboxed",
    "allowUnsandboxedCommands",
    "enableWeakerNestedSandbox",
];

impl SandboxSettings {
    /// Reads settings as JavaScript gives them. A wrong type, or a key that no setting has, is an
    /// error: a rule with a typing error would protect nothing.
    pub fn from_json(json: &Json) -> Result<Self> {
        let object = json
            .as_object()
            .ok_or_else(|| KernelError::invalid("settings must be an object"))?;
        let mut settings = Self::default();
        for (key, value) in object {
            settings.set(key, value)?;
        }
        settings.warn_about_open_writes();
        Ok(settings)
    }

    fn set(&mut self, key: &str, value: &Json) -> Result<()> {
        match key {
            "allowedReadPaths" => self.allowed_read_paths = paths(key, value)?,
            "allowedWritePaths" => self.allowed_write_paths = paths(key, value)?,
            "deniedPaths" => self.denied_paths = paths(key, value)?,
            "deniedCommands" => self.denied_commands = commands(key, value)?,
            "allowedCommands" if value.is_null() => self.allowed_commands = None,
            "allowedCommands" => self.allowed_commands = Some(commands(key, value)?),
            "trustedExecDirs" => self.trusted_exec_dirs = paths(key, value)?,
            "ignoreViolations" => self.ignore_violations = violations(value)?,
            "network" => network(value)?,
            "ripgrep" => ripgrep(value)?,
            "enforcement" => {
                let known = ["auto", "required", "off"];
                if !value.as_str().is_some_and(|text| known.contains(&text)) {
                    return Err(wrong(key, "'auto', 'required' or 'off'"));
                }
            }
            _ if BOOLEANS.contains(&key) => {
                value.as_bool().ok_or_else(|| wrong(key, "a boolean"))?;
            }
            _ => {
                return Err(KernelError::invalid(format!(
                    "settings.{key} is not a setting of the sandbox: check its spelling"
                )));
            }
        }
        Ok(())
    }

    fn warn_about_open_writes(&self) {
        if !self.allowed_read_paths.is_empty() && self.allowed_write_paths.is_empty() {
            tracing::warn!(
                target: telemetry::SANDBOX,
                "allowedReadPaths is set and allowedWritePaths is empty: every path may be written"
            );
        }
    }

    pub(super) fn has_command_rules(&self) -> bool {
        self.allowed_commands.is_some() || !self.denied_commands.is_empty()
    }

    pub(super) fn has_path_rules(&self) -> bool {
        let lists = [
            &self.allowed_read_paths,
            &self.allowed_write_paths,
            &self.denied_paths,
        ];
        lists.iter().any(|list| !list.is_empty())
    }

    pub(super) fn has_rules(&self) -> bool {
        self.has_command_rules() || self.has_path_rules()
    }

    pub(super) fn ignores(&self, what: &str, reason: &str) -> bool {
        let category = if what == "path" { "file" } else { what };
        self.ignore_violations
            .get(category)
            .is_some_and(|texts| texts.iter().any(|text| reason.contains(text.as_str())))
    }
}

fn wrong(key: &str, expected: &str) -> KernelError {
    KernelError::invalid(format!("settings.{key} must be {expected}"))
}

fn strings(key: &str, value: &Json) -> Result<Vec<String>> {
    let list = value
        .as_array()
        .ok_or_else(|| wrong(key, "an array of strings"))?;
    list.iter()
        .enumerate()
        .map(|(at, entry)| {
            let text = entry.as_str().filter(|text| !text.trim().is_empty());
            text.map(str::to_owned)
                .ok_or_else(|| wrong(&format!("{key}[{at}]"), "a string that is not empty"))
        })
        .collect()
}

fn paths(key: &str, value: &Json) -> Result<Vec<String>> {
    let paths = strings(key, value)?;
    match paths.iter().position(|path| path.contains('\0')) {
        Some(at) => Err(wrong(&format!("{key}[{at}]"), "a path without NUL bytes")),
        None => Ok(paths),
    }
}

fn commands(key: &str, value: &Json) -> Result<Vec<String>> {
    strings(key, value)
}

fn object<'a>(key: &str, value: &'a Json) -> Result<&'a Map<String, Json>> {
    value.as_object().ok_or_else(|| wrong(key, "an object"))
}

fn violations(value: &Json) -> Result<BTreeMap<String, Vec<String>>> {
    object("ignoreViolations", value)?
        .iter()
        .map(|(category, list)| {
            let key = format!("ignoreViolations.{category}");
            Ok((category.clone(), strings(&key, list)?))
        })
        .collect()
}

fn network(value: &Json) -> Result<()> {
    for (name, value) in object("network", value)? {
        let key = format!("network.{name}");
        match name.as_str() {
            "allowedDomains" => {
                strings(&key, value)?;
            }
            "allowUnixSockets" if value.is_array() => {
                strings(&key, value)?;
            }
            "allowManagedDomainsOnly"
            | "allowLocalBinding"
            | "allowUnixSockets"
            | "allowAllUnixSockets" => {
                value.as_bool().ok_or_else(|| wrong(&key, "a boolean"))?;
            }
            "httpProxyPort" | "socksProxyPort" => {
                let port = value.as_u64().filter(|port| (1..=65_535).contains(port));
                port.ok_or_else(|| wrong(&key, "a port from 1 to 65535"))?;
            }
            _ => return Err(wrong(&key, "a known setting: check its spelling")),
        }
    }
    Ok(())
}

fn ripgrep(value: &Json) -> Result<()> {
    let settings = object("ripgrep", value)?;
    let command = settings.get("command").and_then(Json::as_str);
    command.ok_or_else(|| wrong("ripgrep.command", "a string"))?;
    match settings.get("args") {
        Some(args) => strings("ripgrep.args", args).map(|_| ()),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn message(settings: Json) -> String {
        SandboxSettings::from_json(&settings)
            .unwrap_err()
            .message()
            .to_owned()
    }

    #[test]
    fn wrong_values_are_named() {
        assert_eq!(message(json!(3)), "settings must be an object");
        assert_eq!(
            message(json!({ "deniedPaths": "/etc" })),
            "settings.deniedPaths must be an array of strings"
        );
        assert_eq!(
            message(json!({ "deniedCommands": ["rm", 1] })),
            "settings.deniedCommands[1] must be a string that is not empty"
        );
        assert_eq!(
            message(json!({ "deniedComands": ["rm"] })),
            "settings.deniedComands is not a setting of the sandbox: check its spelling"
        );
        assert_eq!(
            message(json!({ "network": { "httpProxyPort": 0 } })),
            "settings.network.httpProxyPort must be a port from 1 to 65535"
        );
    }

    #[test]
    fn null_is_no_allowlist_and_empty_is_one() {
        let none = SandboxSettings::from_json(&json!({ "allowedCommands": null })).unwrap();
        assert!(!none.has_rules());
        let empty = SandboxSettings::from_json(&json!({ "allowedCommands": [] })).unwrap();
        assert!(empty.has_command_rules());
    }
}
