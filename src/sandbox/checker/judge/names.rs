//! Command names against the lists of allowed and denied commands.

use crate::sandbox::checker::denial::Denial;
use crate::sandbox::checker::environment::{CheckerEnv, Platform};
use crate::sandbox::checker::normalize::normalize;
use crate::sandbox::checker::settings::SandboxSettings;
use crate::sandbox::checker::shell::{ParsedCommand, SimpleCommand, Word};

/// Builtins that do nothing, allowed without an entry.
const FREE: [&str; 3] = [":", "true", "false"];

/// Options before a sub-command that take the next word.
const GLOBAL_VALUES: &[(&str, &[&str])] = &[
    (
        "git",
        &[
            "-C",
            "-c",
            "--git-dir",
            "--work-tree",
            "--namespace",
            "--config-env",
            "--exec-path",
            "--super-prefix",
            "--attr-source",
        ],
    ),
    (
        "npm",
        &[
            "--prefix",
            "-C",
            "-w",
            "--workspace",
            "--loglevel",
            "--registry",
        ],
    ),
    (
        "docker",
        &[
            "-H",
            "--host",
            "--context",
            "-c",
            "--config",
            "-l",
            "--log-level",
        ],
    ),
    (
        "kubectl",
        &[
            "-n",
            "--namespace",
            "--context",
            "--kubeconfig",
            "--cluster",
            "--user",
            "-s",
            "--server",
        ],
    ),
];

pub(super) fn check(
    parsed: &ParsedCommand,
    settings: &SandboxSettings,
    env: &CheckerEnv,
) -> Result<(), Denial> {
    let rules = Rules { settings, env };
    for command in parsed
        .commands
        .iter()
        .filter(|command| !command.argv.is_empty())
    {
        rules.check(command)?;
    }
    if parsed
        .commands
        .iter()
        .all(|command| command.argv.is_empty())
        && settings.allowed_commands.is_some()
        && parsed.findings.is_empty()
        && parsed.assignments.is_empty()
    {
        return Err(Denial::bash(
            "command_denied",
            "an empty command is not allowed",
        ));
    }
    Ok(())
}

struct Rules<'a> {
    settings: &'a SandboxSettings,
    env: &'a CheckerEnv,
}

impl Rules<'_> {
    fn check(&self, command: &SimpleCommand) -> Result<(), Denial> {
        let Some(word) = command.word() else {
            // Refused as a finding.
            return Ok(());
        };
        let name = program_name(&word, self.env.platform);
        let is_refused = match &self.settings.allowed_commands {
            // A script is a file; the entry of its shell allows it.
            Some(_) if command.is_script => false,
            Some(allowed) => !self.is_allowed(command, &word, &name, allowed),
            None => self.is_denied(command, &name) || self.hides_denied(command),
        };
        if is_refused {
            return Err(denied(command, &name));
        }
        Ok(())
    }

    fn is_denied(&self, command: &SimpleCommand, name: &str) -> bool {
        let mut entries = self.settings.denied_commands.iter();
        entries.any(|entry| self.matches(command, name, entry))
    }

    /// A denied name in program text that also calls something.
    fn hides_denied(&self, command: &SimpleCommand) -> bool {
        command.programs.iter().any(|text| {
            let calls = text.contains('(') || text.contains('`');
            calls
                && self.settings.denied_commands.iter().any(|entry| {
                    let name = entry_name(entry, self.env.platform);
                    has_word(text, &name)
                })
        })
    }

    /// Whether an entry covers the command: a name, or a name and leading arguments.
    fn matches(&self, command: &SimpleCommand, name: &str, entry: &str) -> bool {
        let mut words = entry.split_whitespace();
        let first = words.next().unwrap_or_default();
        if program_name(first, self.env.platform) != name {
            return false;
        }
        let wanted: Vec<&str> = words.collect();
        wanted.is_empty() || has_leading(name, &command.argv[1..], &wanted, !self.denies_unknown())
    }

    /// In a denylist, an argument known only later may be the denied one.
    fn denies_unknown(&self) -> bool {
        self.settings.allowed_commands.is_none()
    }

    fn is_allowed(
        &self,
        command: &SimpleCommand,
        word: &str,
        name: &str,
        allowed: &[String],
    ) -> bool {
        if command.is_function || FREE.contains(&word) {
            return true;
        }
        allowed.iter().any(|entry| {
            let first = entry.split_whitespace().next().unwrap_or_default();
            let in_place = if word.contains('/') {
                word == first || (!first.contains('/') && self.is_trusted(word))
            } else {
                !first.contains('/')
            };
            in_place && self.matches(command, name, entry)
        })
    }

    fn is_trusted(&self, word: &str) -> bool {
        let Ok(path) = normalize(
            word.rsplit_once('/').map_or("/", |(folder, _)| folder),
            self.env,
        ) else {
            return false;
        };
        self.settings.trusted_exec_dirs.iter().any(|trusted| {
            trusted.trim_end_matches('/') == path
                || normalize(trusted, self.env).is_ok_and(|trusted| trusted == path)
        })
    }
}

fn denied(command: &SimpleCommand, name: &str) -> Denial {
    let nested = command.via.iter().any(|via| via.contains('('));
    let suffix = if nested {
        " (detected in substitution)"
    } else {
        ""
    };
    Denial::bash(
        "command_denied",
        format!("command '{name}' is denied by sandbox policy{suffix}"),
    )
}

fn entry_name(entry: &str, platform: Platform) -> String {
    program_name(
        entry.split_whitespace().next().unwrap_or_default(),
        platform,
    )
}

/// The name of a program: the last component, in the spelling that the system compares.
pub(super) fn program_name(word: &str, platform: Platform) -> String {
    let name = word.rsplit('/').next().unwrap_or_default();
    if !platform.folds_case() {
        return name.to_owned();
    }
    let name = name.to_lowercase();
    if platform != Platform::Windows {
        return name;
    }
    let name = name.rsplit('\\').next().unwrap_or_default();
    let ends = [".exe", ".cmd", ".bat", ".com"];
    let stem = ends.iter().find_map(|end| name.strip_suffix(end));
    stem.unwrap_or(name).to_owned()
}

/// Whether the arguments begin with the wanted words, options before them passed over.
fn has_leading(name: &str, args: &[Word], wanted: &[&str], strict: bool) -> bool {
    let values = GLOBAL_VALUES
        .iter()
        .find(|(program, _)| *program == name)
        .map_or(&[][..], |(_, values)| values);
    let mut wanted = wanted.iter();
    let mut next = wanted.next();
    let mut args = args.iter();
    while let (Some(word), Some(arg)) = (next, args.next()) {
        let Some(text) = arg.text() else {
            return !strict;
        };
        if text == *word {
            next = wanted.next();
        } else if text.starts_with('-') {
            if values.contains(&text.as_str()) {
                args.next();
            }
        } else {
            return false;
        }
    }
    next.is_none()
}

fn has_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        !word.is_empty() && !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}
