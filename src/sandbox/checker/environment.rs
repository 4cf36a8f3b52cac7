//! Where a command would run.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use crate::error::{KernelError, Result};

/// Systems that compare names in their own way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Platform {
    Linux,
    MacOs,
    Windows,
}

impl Platform {
    /// From the name that Node.js gives; unknown systems are taken for Linux.
    pub fn named(name: &str) -> Self {
        match name {
            "darwin" => Self::MacOs,
            "win32" => Self::Windows,
            _ => Self::Linux,
        }
    }

    /// Whether two spellings of a name may be one file.
    pub fn folds_case(self) -> bool {
        self != Self::Linux
    }
}

/// What relative paths, `~` and variables stand for.
#[derive(Clone, Debug)]
pub struct CheckerEnv {
    /// Absolute folder that commands run in.
    pub cwd: String,
    /// Home of the user; empty when there is none.
    pub home: String,
    pub platform: Platform,
    /// Variables of the command's environment; only paths and user names are looked at.
    pub variables: BTreeMap<String, String>,
}

impl CheckerEnv {
    /// Reads surroundings as JavaScript gives them. `cwd` must be absolute.
    pub fn from_json(json: &Json) -> Result<Self> {
        let object = json
            .as_object()
            .ok_or_else(|| KernelError::invalid("env must be an object"))?;
        let known = ["cwd", "home", "platform", "variables"];
        if let Some(key) = object.keys().find(|key| !known.contains(&key.as_str())) {
            return Err(KernelError::invalid(format!(
                "env.{key} is unknown: use cwd, home, platform, variables"
            )));
        }
        let text = |key: &str| {
            let text = object.get(key).and_then(Json::as_str);
            text.map(str::to_owned)
                .ok_or_else(|| KernelError::invalid(format!("env.{key} must be a string")))
        };
        let platform = Platform::named(&text("platform")?);
        let cwd = text("cwd")?;
        let is_drive = platform == Platform::Windows && cwd.get(1..2) == Some(":");
        if !cwd.starts_with('/') && !is_drive {
            return Err(KernelError::invalid("env.cwd must be an absolute path"));
        }
        Ok(Self {
            cwd,
            home: text("home")?,
            platform,
            variables: variables(object.get("variables"))?,
        })
    }

    /// The value of a variable that commands may rely on.
    pub(super) fn variable(&self, name: &str) -> Option<&str> {
        let known = ["HOME", "PWD", "TMPDIR", "USER", "LOGNAME"].contains(&name);
        match self.variables.get(name) {
            Some(value) if known => Some(value),
            _ if name == "HOME" && !self.home.is_empty() => Some(&self.home),
            _ if name == "PWD" => Some(&self.cwd),
            _ => None,
        }
    }
}

fn variables(json: Option<&Json>) -> Result<BTreeMap<String, String>> {
    let wrong = || KernelError::invalid("env.variables must be an object of strings");
    let object = json.and_then(Json::as_object).ok_or_else(wrong)?;
    object
        .iter()
        .map(|(name, value)| {
            let value = value.as_str().ok_or_else(wrong)?;
            Ok((name.clone(), value.to_owned()))
        })
        .collect()
}
