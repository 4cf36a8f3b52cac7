//! May this command run, may this path be touched: the decision, before anything is done.
//!
//! A command is parsed once ([`ParsedCommand`]) and judged by settings. What is not understood is
//! refused. The checker gives early and clear refusals; it is no protection against a program that
//! is allowed to run and then does something else.

mod denial;
mod environment;
mod inner;
mod judge;
mod normalize;
mod operands;
mod resolve;
mod scope;
mod settings;
mod shell;

pub use denial::{Denial, Explanation, ListedCommand, ListedPath};
pub use environment::{CheckerEnv, Platform};
pub use normalize::normalize;
pub use scope::Operation;
pub use settings::SandboxSettings;
pub use shell::{
    Assignment, Finding, ParsedCommand, Part, Redirect, RedirectKind, SimpleCommand, Stdin,
    Variables, Word,
};

use crate::base::telemetry;

use scope::Scope;

/// Decides for one set of settings. Cheap to make; keep it to resolve the configured paths once.
pub struct SandboxChecker<'a> {
    settings: &'a SandboxSettings,
    env: &'a CheckerEnv,
    scope: Scope,
}

impl<'a> SandboxChecker<'a> {
    pub fn new(settings: &'a SandboxSettings, env: &'a CheckerEnv) -> Self {
        let scope = Scope::new(settings, env);
        Self {
            settings,
            env,
            scope,
        }
    }

    /// Refuses a path that may not be read or written.
    pub fn check_path(&self, path: &str, operation: Operation) -> Result<(), Denial> {
        let checked = self.scope.check(path, operation);
        self.logged("path", checked.map_err(|_| Denial::path(path, operation)))
    }

    /// Refuses a command that is denied, not allowed, or not understood.
    pub fn check_command(&self, command: &str) -> Result<(), Denial> {
        if !self.settings.has_rules() {
            return Ok(());
        }
        self.check_parsed(&ParsedCommand::parse(command))
    }

    /// As [`SandboxChecker::check_command`], for a command that was parsed before.
    pub fn check_parsed(&self, parsed: &ParsedCommand) -> Result<(), Denial> {
        if !self.settings.has_rules() {
            return Ok(());
        }
        let judged = judge::judge(parsed, self.settings, self.env, &self.scope);
        self.logged("command", judged)
    }

    /// The verdict with everything that led to it.
    pub fn explain_command(&self, command: &str) -> Explanation {
        let parsed = ParsedCommand::parse(command);
        let denial = self.check_parsed(&parsed).err();
        Explanation {
            denial,
            commands: parsed
                .commands
                .iter()
                .filter(|command| !command.argv.is_empty())
                .map(|command| ListedCommand {
                    argv: command.shown(),
                    via: command.via.clone(),
                })
                .collect(),
            paths: operands::list(&parsed, self.env),
        }
    }

    /// Refusals are told to whoever listens; the text that was checked is not.
    fn logged(&self, what: &'static str, checked: Result<(), Denial>) -> Result<(), Denial> {
        if let Err(denial) = &checked {
            tracing::info!(
                target: telemetry::SANDBOX,
                what,
                code = denial.code,
                ignored = self.settings.ignores(what, &denial.reason),
                "the sandbox refused"
            );
        }
        checked
    }
}
