//! Making a denied program available under another name.

use super::names::program_name;
use crate::sandbox::checker::denial::Denial;
use crate::sandbox::checker::environment::CheckerEnv;
use crate::sandbox::checker::resolve;
use crate::sandbox::checker::settings::SandboxSettings;
use crate::sandbox::checker::shell::{ParsedCommand, RedirectKind, SimpleCommand};

const COPIERS: [&str; 9] = [
    "cp", "ln", "mv", "install", "rsync", "dd", "link", "gcp", "tar",
];

pub(super) fn check(
    parsed: &ParsedCommand,
    settings: &SandboxSettings,
    env: &CheckerEnv,
) -> Result<(), Denial> {
    if settings.allowed_commands.is_some() {
        return Ok(());
    }
    for command in &parsed.commands {
        let copies = command
            .name()
            .is_some_and(|name| COPIERS.contains(&name.as_str()))
            || command
                .redirects
                .iter()
                .any(|redirect| redirect.kind == RedirectKind::Write);
        if !copies {
            continue;
        }
        if let Some(name) = source(command, parsed, settings, env) {
            return Err(Denial::bash(
                "command_denied",
                format!("command '{name}' is denied by sandbox policy (copied under another name)"),
            ));
        }
    }
    Ok(())
}

/// The denied program that an operand names.
fn source(
    command: &SimpleCommand,
    parsed: &ParsedCommand,
    settings: &SandboxSettings,
    env: &CheckerEnv,
) -> Option<String> {
    let operands = command.argv.iter().skip(1);
    let inputs = command
        .redirects
        .iter()
        .filter(|redirect| redirect.kind != RedirectKind::Write);
    let words = operands.chain(inputs.map(|redirect| &redirect.target));
    words
        .filter_map(|word| resolve::values(word, parsed, env))
        .flatten()
        .find_map(|value| {
            let text = value.text.rsplit('=').next().unwrap_or_default().to_owned();
            let (folder, _) = text.rsplit_once('/')?;
            let name = program_name(&text, env.platform);
            let in_programs = folder.ends_with("bin");
            let is_denied = settings.denied_commands.iter().any(|entry| {
                let first = entry.split_whitespace().next().unwrap_or_default();
                program_name(first, env.platform) == name
            });
            (in_programs && is_denied).then_some(name)
        })
}
