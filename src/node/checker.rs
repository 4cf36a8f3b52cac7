//! The sandbox checker, behind the classes `SandboxChecker` and `SandboxPathNormalizer`.

use napi::Env;
use napi_derive::napi;
use serde_json::json;

use crate::error::{ErrorKind, KernelError, Result};
use crate::sandbox::checker::{
    CheckerEnv, Denial, Operation, SandboxChecker, SandboxSettings, normalize,
};

use super::error::to_js;
use super::session::json;

/// Settings and surroundings, read once for one call.
#[napi]
pub struct NativeChecker {
    settings: SandboxSettings,
    surroundings: CheckerEnv,
}

/// Reads settings and surroundings; both are JSON texts.
#[napi(catch_unwind)]
pub fn open_checker(
    env: &Env,
    settings: String,
    surroundings: String,
) -> napi::Result<NativeChecker> {
    let opened = || {
        Ok(NativeChecker {
            settings: SandboxSettings::from_json(&json(&settings)?)?,
            surroundings: CheckerEnv::from_json(&json(&surroundings)?)?,
        })
    };
    opened().map_err(|error| to_js(env, &error))
}

#[napi]
impl NativeChecker {
    /// Throws a `SandboxDeniedError`.
    #[napi(catch_unwind)]
    pub fn check_path(&self, env: &Env, path: String, operation: String) -> napi::Result<()> {
        let checked = operation_named(&operation)
            .and_then(|operation| refused(self.checker().check_path(&path, operation)));
        checked.map_err(|error| to_js(env, &error))
    }

    /// Throws a `SandboxDeniedError`.
    #[napi(catch_unwind)]
    pub fn check_command(&self, env: &Env, command: String) -> napi::Result<()> {
        refused(self.checker().check_command(&command)).map_err(|error| to_js(env, &error))
    }

    /// The explanation as JSON text.
    #[napi(catch_unwind)]
    pub fn explain_command(&self, command: String) -> String {
        let explained = self.checker().explain_command(&command);
        let mut text = json!({
            "verdict": if explained.denial.is_some() { "deny" } else { "allow" },
            "commands": explained.commands,
            "paths": explained.paths,
        });
        if let Some(denial) = explained.denial {
            text["code"] = denial.code.into();
            text["reason"] = denial.reason.into();
        }
        text.to_string()
    }

    /// The absolute path that a path leads to. Throws a `SandboxDeniedError` when it has none.
    #[napi(catch_unwind)]
    pub fn normalize_path(&self, env: &Env, path: String) -> napi::Result<String> {
        normalize(&path, &self.surroundings).map_err(|_| to_js(env, &error_of(&unresolved(&path))))
    }
}

impl NativeChecker {
    fn checker(&self) -> SandboxChecker<'_> {
        SandboxChecker::new(&self.settings, &self.surroundings)
    }
}

fn operation_named(name: &str) -> Result<Operation> {
    match name {
        "read" => Ok(Operation::Read),
        "write" => Ok(Operation::Write),
        _ => Err(KernelError::invalid("operation must be 'read' or 'write'")),
    }
}

fn unresolved(path: &str) -> Denial {
    Denial {
        tool: "Read",
        reason: format!("path '{path}' cannot be resolved"),
        code: "unresolvable_path",
    }
}

fn refused(checked: Result<(), Denial>) -> Result<()> {
    checked.map_err(|denial| error_of(&denial))
}

fn error_of(denial: &Denial) -> KernelError {
    KernelError::new(ErrorKind::SandboxDenied, denial.message())
        .with_detail("tool", denial.tool)
        .with_detail("reason", denial.reason.clone())
        .with_detail("code", denial.code)
}
