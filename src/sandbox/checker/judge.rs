//! The verdict on a parsed command: rules of names, of the environment and of paths, in that order.

mod assignments;
mod copies;
mod names;

use super::denial::Denial;
use super::environment::CheckerEnv;
use super::operands;
use super::scope::Scope;
use super::settings::SandboxSettings;
use super::shell::ParsedCommand;

pub(super) fn judge(
    parsed: &ParsedCommand,
    settings: &SandboxSettings,
    env: &CheckerEnv,
    scope: &Scope,
) -> Result<(), Denial> {
    if settings.has_command_rules() {
        names::check(parsed, settings, env)?;
    }
    if let Some(finding) = parsed.findings.first() {
        return Err(Denial::finding(finding));
    }
    if settings.has_command_rules() {
        copies::check(parsed, settings, env)?;
        assignments::check(parsed, settings, env)?;
    }
    if scope.is_active() {
        operands::check(parsed, settings, env, scope)?;
    }
    Ok(())
}
