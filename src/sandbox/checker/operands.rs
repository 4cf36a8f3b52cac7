//! Paths that a command touches: its operands, options, redirections and program texts.

mod candidates;
mod kinds;
mod patterns;

use super::denial::{Denial, ListedPath};
use super::environment::CheckerEnv;
use super::normalize::normalize;
use super::resolve::{self, Value};
use super::scope::{Operation, Outside, Scope, is_under};
use super::settings::SandboxSettings;
use super::shell::{Base, ParsedCommand, RedirectKind, SimpleCommand, Word};
use candidates::{Candidate, Text};

/// Devices that every command may use.
const DEVICES: [&str; 9] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/stdin",
    "/dev/stdout",
    "/dev/stderr",
    "/dev/tty",
    "/dev/random",
    "/dev/urandom",
];
/// Commands that append to another one what they read.
const APPENDING: [&str; 6] = ["xargs", "gxargs", "parallel", "sem", "rush", "entr"];

/// Refuses a command that touches what it may not, or what cannot be told.
pub(super) fn check(
    parsed: &ParsedCommand,
    settings: &SandboxSettings,
    env: &CheckerEnv,
    scope: &Scope,
) -> Result<(), Denial> {
    let paths = Paths {
        parsed,
        settings,
        env,
        scope,
    };
    for command in &parsed.commands {
        paths.command(command)?;
    }
    for (redirect, bases) in &parsed.redirects {
        paths.word(&redirect.target, operation_of(redirect.kind), bases)?;
    }
    Ok(())
}

/// The paths that can be told, for people.
pub(super) fn list(parsed: &ParsedCommand, env: &CheckerEnv) -> Vec<ListedPath> {
    let mut listed: Vec<ListedPath> = Vec::new();
    let mut add = |text: &str, operation: Operation, bases: &[usize]| {
        for base in bases
            .iter()
            .filter_map(|base| folders(parsed, *base, env))
            .flatten()
        {
            let from = CheckerEnv {
                cwd: base,
                ..env.clone()
            };
            let Ok(path) = normalize(text, &from) else {
                continue;
            };
            let is_known = listed
                .iter()
                .any(|old| old.path == path && old.operation == operation);
            if !is_known {
                listed.push(ListedPath { path, operation });
            }
        }
    };
    for command in &parsed.commands {
        for candidate in candidates::of(command, parsed, env) {
            if let Text::Known(value) = &candidate.text
                && value.pattern.is_none()
                && candidate.looks_like_path
            {
                add(&value.text, candidate.operation, &command.bases);
            }
        }
        for redirect in &command.redirects {
            for value in resolve::values(&redirect.target, parsed, env)
                .into_iter()
                .flatten()
            {
                add(&value.text, operation_of(redirect.kind), &command.bases);
            }
        }
    }
    listed
}

fn operation_of(kind: RedirectKind) -> Operation {
    match kind {
        RedirectKind::Read => Operation::Read,
        RedirectKind::Write | RedirectKind::ReadWrite => Operation::Write,
    }
}

/// The folders that a base stands for; none when they are not known.
fn folders(parsed: &ParsedCommand, base: usize, env: &CheckerEnv) -> Option<Vec<String>> {
    match parsed.bases.get(base)? {
        Base::Start => Some(vec![env.cwd.clone()]),
        Base::Unknown => None,
        Base::Moved { from, to } => {
            let mut found = Vec::new();
            for folder in folders(parsed, *from, env)? {
                let from = CheckerEnv {
                    cwd: folder,
                    ..env.clone()
                };
                for value in resolve::values(to, parsed, env)? {
                    found.push(normalize(&value.text, &from).ok()?);
                }
            }
            Some(found)
        }
    }
}

fn unresolvable() -> Denial {
    Denial::bash(
        "unresolvable_path",
        "command has a path that is known only at run time",
    )
}

/// The verdict on a path as a refusal of the command.
fn refused(checked: Result<(), Outside>, path: &str, operation: Operation) -> Result<(), Denial> {
    let scope = match operation {
        Operation::Read => "read",
        Operation::Write => "write",
    };
    match checked {
        Ok(()) => Ok(()),
        Err(Outside::Denied) => Err(Denial::bash(
            "path_denied",
            format!("path '{path}' in command is denied by sandbox policy"),
        )),
        Err(Outside::NotAllowed) => Err(Denial::bash(
            "path_outside",
            format!("path '{path}' in command is outside allowed {scope} scope"),
        )),
        Err(Outside::Unresolved) => Err(unresolvable()),
    }
}

struct Paths<'a> {
    parsed: &'a ParsedCommand,
    settings: &'a SandboxSettings,
    env: &'a CheckerEnv,
    scope: &'a Scope,
}

impl Paths<'_> {
    fn command(&self, command: &SimpleCommand) -> Result<(), Denial> {
        for redirect in &command.redirects {
            self.word(
                &redirect.target,
                operation_of(redirect.kind),
                &command.bases,
            )?;
        }
        for program in &command.programs {
            self.program(program)?;
        }
        for file in &command.writes {
            self.known(&fixed(file), Operation::Write, &command.bases)?;
        }
        let Some(word) = command.word() else {
            return Ok(());
        };
        self.program_file(&word, &command.bases)?;
        let name = command.name().unwrap_or_default();
        if kinds::opens_nothing(&name) {
            return Ok(());
        }
        let appends = command
            .via
            .iter()
            .any(|via| APPENDING.contains(&via.as_str()));
        if appends {
            return Err(unresolvable());
        }
        for candidate in candidates::of(command, self.parsed, self.env) {
            self.candidate(&candidate, &name, command)?;
        }
        Ok(())
    }

    fn candidate(
        &self,
        candidate: &Candidate,
        name: &str,
        command: &SimpleCommand,
    ) -> Result<(), Denial> {
        match &candidate.text {
            Text::Unknown if name == "cd" || name == "pushd" => Ok(()),
            Text::Unknown => Err(unresolvable()),
            Text::Known(value) => {
                self.known(value, candidate.operation, &command.bases)?;
                if kinds::walks_folders(name, command) {
                    self.recursive(value, &command.bases)?;
                }
                Ok(())
            }
        }
    }

    fn word(&self, word: &Word, operation: Operation, bases: &[usize]) -> Result<(), Denial> {
        let values = resolve::values(word, self.parsed, self.env).ok_or_else(unresolvable)?;
        values
            .iter()
            .try_for_each(|value| self.known(value, operation, bases))
    }

    /// A path that is known, from every folder that it may start from.
    fn known(&self, value: &Value, operation: Operation, bases: &[usize]) -> Result<(), Denial> {
        let is_absolute = value.text.starts_with('/') || value.text.starts_with('~');
        if DEVICES.contains(&value.text.as_str()) && !self.scope.names(&value.text) {
            return Ok(());
        }
        if is_absolute {
            return self.from(value, operation, &self.env.cwd);
        }
        for base in bases {
            let folders = folders(self.parsed, *base, self.env).ok_or_else(unresolvable)?;
            for folder in folders {
                self.from(value, operation, &folder)?;
            }
        }
        Ok(())
    }

    fn from(&self, value: &Value, operation: Operation, folder: &str) -> Result<(), Denial> {
        let Some(pattern) = &value.pattern else {
            return refused(
                self.scope.check_operand(&value.text, folder, operation),
                &value.text,
                operation,
            );
        };
        let Some(pattern) = patterns::Pattern::new(pattern, folder) else {
            return Err(unresolvable());
        };
        if self
            .scope
            .denied
            .iter()
            .any(|entry| pattern.may_reach(entry, self.env.platform))
        {
            return refused(Err(Outside::Denied), &value.text, operation);
        }
        refused(
            self.scope
                .check_operand(&pattern.folder(), folder, operation),
            &value.text,
            operation,
        )
    }

    fn recursive(&self, value: &Value, bases: &[usize]) -> Result<(), Denial> {
        for base in bases {
            for folder in folders(self.parsed, *base, self.env).unwrap_or_default() {
                if self.scope.contains_denied(&value.text, &folder) {
                    return refused(Err(Outside::Denied), &value.text, Operation::Read);
                }
            }
        }
        Ok(())
    }

    /// Program text that names a denied folder.
    fn program(&self, text: &str) -> Result<(), Denial> {
        let given = self.settings.denied_paths.iter();
        let entries = given
            .chain(&self.scope.denied)
            .map(|entry| entry.trim_end_matches('/'));
        for entry in entries.filter(|entry| !entry.is_empty()) {
            let names = text.match_indices(entry).any(|(at, _)| {
                let after = text[at + entry.len()..].chars().next();
                !after.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '-')
            });
            if names {
                return refused(Err(Outside::Denied), entry, Operation::Read);
            }
        }
        Ok(())
    }

    /// A program given by its path.
    fn program_file(&self, word: &str, bases: &[usize]) -> Result<(), Denial> {
        if !word.contains('/') {
            return Ok(());
        }
        let folder = normalize(word, self.env).ok();
        let is_trusted = folder.as_deref().is_some_and(|path| {
            self.settings.trusted_exec_dirs.iter().any(|trusted| {
                is_under(path, trusted)
                    || normalize(trusted, self.env).is_ok_and(|trusted| is_under(path, &trusted))
            })
        });
        if is_trusted && self.scope.limits_reading() {
            // Denied folders count all the same.
            let denied = self
                .scope
                .check_operand(word, &self.env.cwd, Operation::Read);
            return match denied {
                Err(Outside::Denied) => refused(denied, word, Operation::Read),
                _ => Ok(()),
            };
        }
        self.known(&fixed(word), Operation::Read, bases)
    }
}

fn fixed(text: &str) -> Value {
    Value {
        text: text.to_owned(),
        pattern: None,
    }
}
