//! Which commands print text that can be no option, so that their output may stand anywhere.

use super::{SimpleCommand, Word};

/// Commands that print a name, a number, a folder or a time.
const PLAIN: [&str; 9] = [
    "date", "pwd", "nproc", "whoami", "hostname", "uname", "id", "mktemp", "arch",
];
/// Sub-commands of git that print names of branches, commits and tags.
const GIT: [&str; 5] = [
    "rev-parse",
    "branch",
    "merge-base",
    "describe",
    "symbolic-ref",
];
const GIT_OPTIONS: [&str; 10] = [
    "--abbrev-ref",
    "--short",
    "--show-toplevel",
    "--show-current",
    "--verify",
    "--tags",
    "--always",
    "--git-dir",
    "--abbrev=0",
    "--dirty",
];

pub(super) fn is_tame(command: &SimpleCommand) -> bool {
    let args: Option<Vec<String>> = command.argv.iter().skip(1).map(Word::text).collect();
    let (Some(name), Some(args)) = (command.word(), args) else {
        return false;
    };
    if PLAIN.contains(&name.as_str()) {
        return args
            .iter()
            .all(|arg| !arg.contains("+-") && !arg.contains(' '));
    }
    let is_git = name == "git"
        && args
            .first()
            .is_some_and(|first| GIT.contains(&first.as_str()));
    is_git
        && args[1..].iter().all(|arg| {
            GIT_OPTIONS.contains(&arg.as_str()) || (!arg.starts_with('-') && !arg.contains(' '))
        })
}
