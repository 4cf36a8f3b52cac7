//! Variables that change what later commands do.

use crate::sandbox::checker::denial::Denial;
use crate::sandbox::checker::environment::CheckerEnv;
use crate::sandbox::checker::settings::SandboxSettings;
use crate::sandbox::checker::shell::{Assignment, ParsedCommand, Part, Word};

use super::judge;
use crate::sandbox::checker::scope::Scope;

/// Names, and beginnings of names, that inject code.
const REFUSED: &[&str] = &[
    "BASH_ENV",
    "ENV",
    "SHELLOPTS",
    "BASHOPTS",
    "PS0",
    "PS4",
    "PROMPT_COMMAND",
    "GIT_EXEC_PATH",
    "GIT_TEMPLATE_DIR",
    "PERL5OPT",
    "PERL5LIB",
    "PERL5DB",
    "RUBYOPT",
    "PYTHONSTARTUP",
    "PYTHONHOME",
    "JAVA_TOOL_OPTIONS",
    "_JAVA_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "npm_config_script_shell",
    "NPM_CONFIG_SCRIPT_SHELL",
    "CDPATH",
    "GLOBIGNORE",
    "EXECIGNORE",
    "ZDOTDIR",
    "GCONV_PATH",
    "SHELL",
    "BASH_LOADABLES_PATH",
    "BASH_ALIASES",
    "BASH_CMDS",
    "TAR_OPTIONS",
];
const REFUSED_START: &[&str] = &[
    "LD_",
    "DYLD_",
    "BASH_FUNC_",
    "GIT_CONFIG",
    "GIT_PROXY_COMMAND",
];

/// Variables whose value is a command.
const COMMANDS: &[&str] = &[
    "PAGER",
    "MANPAGER",
    "GIT_PAGER",
    "EDITOR",
    "VISUAL",
    "GIT_EDITOR",
    "GIT_SEQUENCE_EDITOR",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_EXTERNAL_DIFF",
    "GIT_ASKPASS",
    "SSH_ASKPASS",
    "LESSOPEN",
    "LESSCLOSE",
    "BROWSER",
    "RSYNC_RSH",
    "CC",
    "CXX",
    "SUDO_ASKPASS",
    "SUDO_EDITOR",
    "FCEDIT",
    "LD",
    "AR",
    "CPP",
    "RUSTC",
    "RUSTC_WRAPPER",
    "SVN_SSH",
    "CVS_RSH",
    "MAKE",
];

const NODE_LOADERS: [&str; 8] = [
    "-r",
    "--require",
    "--import",
    "--loader",
    "--experimental-loader",
    "--env-file",
    "--eval",
    "--experimental-default-config-file",
];

pub(super) fn check(
    parsed: &ParsedCommand,
    settings: &SandboxSettings,
    env: &CheckerEnv,
) -> Result<(), Denial> {
    for assignment in &parsed.assignments {
        check_one(assignment, settings, env)?;
    }
    Ok(())
}

fn refused(name: &str) -> Denial {
    Denial::bash(
        "environment_denied",
        format!("variable '{name}' may not be set by a command"),
    )
}

fn check_one(
    assignment: &Assignment,
    settings: &SandboxSettings,
    env: &CheckerEnv,
) -> Result<(), Denial> {
    let name = assignment.name.as_str();
    let is_refused =
        REFUSED.contains(&name) || REFUSED_START.iter().any(|start| name.starts_with(start));
    let is_fine = match name {
        _ if is_refused => false,
        "IFS" => assignment.command == "read",
        "PATH" => settings.allowed_commands.is_none() && is_extension(&assignment.value),
        "NODE_OPTIONS" => loads_nothing(&assignment.value),
        _ if COMMANDS.contains(&name) => return check_command(assignment, settings, env),
        _ => true,
    };
    if is_fine { Ok(()) } else { Err(refused(name)) }
}

/// `$PATH` is kept, and every added folder is absolute or under `$HOME`, none open to all.
fn is_extension(value: &Word) -> bool {
    let mut kept = false;
    let mut entries = vec![String::new()];
    for part in &value.parts {
        let text = match part {
            Part::Text { text, .. } => text.clone(),
            Part::Tilde(user) if user.is_empty() => "/home".to_owned(),
            Part::Variable { name, .. } if name == "HOME" => "/home".to_owned(),
            Part::Variable { name, .. } if name == "PWD" => "/pwd".to_owned(),
            Part::Variable { name, .. } if name == "PATH" => {
                kept = true;
                "/path".to_owned()
            }
            _ => return false,
        };
        let mut pieces = text.split(':');
        if let (Some(last), Some(first)) = (entries.last_mut(), pieces.next()) {
            last.push_str(first);
        }
        entries.extend(pieces.map(str::to_owned));
    }
    let is_open = |entry: &String| {
        ["/tmp", "/var/tmp", "/dev/shm"]
            .iter()
            .any(|folder| crate::sandbox::checker::scope::is_under(entry, folder))
    };
    let is_plain = |entry: &String| {
        entry.starts_with('/') && !entry.split('/').any(|part| part == "..") && !is_open(entry)
    };
    kept && entries.iter().all(is_plain)
}

fn loads_nothing(value: &Word) -> bool {
    value.text().is_some_and(|text| {
        text.split_whitespace().all(|option| {
            let name = option.split('=').next().unwrap_or_default();
            !NODE_LOADERS.contains(&name) && !option.starts_with("-r")
        })
    })
}

/// The value is read as a script and must pass the same rules.
fn check_command(
    assignment: &Assignment,
    settings: &SandboxSettings,
    env: &CheckerEnv,
) -> Result<(), Denial> {
    let Some(text) = assignment.value.text() else {
        return Err(refused(&assignment.name));
    };
    if matches!(text.as_str(), "" | "cat" | "true" | ":") {
        return Ok(());
    }
    let script = text.trim_start_matches(['|', '-']).to_owned();
    let parsed = ParsedCommand::parse(&script);
    let is_nested = parsed
        .assignments
        .iter()
        .any(|inner| COMMANDS.contains(&inner.name.as_str()));
    if is_nested {
        return Err(refused(&assignment.name));
    }
    let scope = Scope::new(&SandboxSettings::default(), env);
    judge(&parsed, settings, env, &scope)
}
