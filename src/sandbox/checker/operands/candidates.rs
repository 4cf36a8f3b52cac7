//! Which parts of the words of a command may be paths.

use super::kinds;
use crate::sandbox::checker::environment::CheckerEnv;
use crate::sandbox::checker::resolve::{self, Value};
use crate::sandbox::checker::scope::Operation;
use crate::sandbox::checker::shell::{ParsedCommand, SimpleCommand, Word};

/// Text that may be a path.
pub(super) enum Text {
    Known(Value),
    Unknown,
}

pub(super) struct Candidate {
    pub text: Text,
    pub operation: Operation,
    /// Whether it is written as a path, and is not just any word.
    pub looks_like_path: bool,
}

/// The parts of the arguments that may be paths.
pub(super) fn of(
    command: &SimpleCommand,
    parsed: &ParsedCommand,
    env: &CheckerEnv,
) -> Vec<Candidate> {
    let name = command.name().unwrap_or_default();
    let roles = kinds::roles(&name, command);
    let mut found = Vec::new();
    for (word, operation) in command.argv.iter().skip(1).zip(roles) {
        let Some(operation) = operation else { continue };
        match resolve::values(word, parsed, env) {
            Some(values) => {
                for value in values {
                    of_value(&value, operation, &mut found);
                }
            }
            None => of_unknown(word, operation, &mut found),
        }
    }
    found
}

fn of_unknown(word: &Word, operation: Operation, found: &mut Vec<Candidate>) {
    let start = word.prefix();
    let is_url = start.contains("://") && !start.starts_with("file:");
    if is_url || word.is_process {
        return;
    }
    found.push(Candidate {
        text: Text::Unknown,
        operation,
        looks_like_path: true,
    });
}

fn of_value(value: &Value, operation: Operation, found: &mut Vec<Candidate>) {
    let text = value.text.as_str();
    if let Some(path) = text.strip_prefix("file://") {
        let path = path.strip_prefix("localhost").unwrap_or(path);
        return found.push(part(value, path, operation));
    }
    if has_scheme(text) {
        return;
    }
    if text.starts_with('-') {
        return of_option(value, operation, found);
    }
    if !text.is_empty() {
        found.push(part(value, text, operation));
    }
    if let Some((_, after)) = text.split_once('=') {
        of_value_after(value, after, operation, found);
    }
    if let Some((_, after)) = text
        .split_once('@')
        .filter(|(before, _)| !before.contains('/'))
    {
        of_value_after(value, after, operation, found);
    }
}

/// `name=text`, `@text`: a URL there is no path either.
fn of_value_after(value: &Value, after: &str, operation: Operation, found: &mut Vec<Candidate>) {
    if let Some(path) = after.strip_prefix("file://") {
        found.push(part(value, path, operation));
    } else if !after.is_empty() && !has_scheme(after) && !after.contains(char::is_whitespace) {
        found.push(part(value, after, operation));
    }
}

/// `--name=text`, and text glued to a short option.
fn of_option(value: &Value, operation: Operation, found: &mut Vec<Candidate>) {
    let text = value.text.as_str();
    if let Some((_, after)) = text.split_once('=') {
        of_value_after(value, after, operation, found);
    }
    let glued = text.trim_start_matches('-').find(['/', '~', '.', '@']);
    if let Some(at) = glued {
        let skipped = text.len() - text.trim_start_matches('-').len();
        let after = &text[skipped + at..];
        of_value_after(value, after.trim_start_matches('@'), operation, found);
    }
}

fn has_scheme(text: &str) -> bool {
    text.split_once("://").is_some_and(|(scheme, _)| {
        !scheme.is_empty()
            && scheme
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
    })
}

fn part(value: &Value, text: &str, operation: Operation) -> Candidate {
    let cut = value.text.len() - text.len();
    // The pattern is the text with escapes; what is cut off holds none in practice, and when it
    // does the whole is kept.
    let pattern = value
        .pattern
        .as_ref()
        .map(|pattern| match pattern.get(cut..) {
            Some(rest) if pattern[..cut] == value.text[..cut] => rest.to_owned(),
            _ => pattern.clone(),
        });
    Candidate {
        looks_like_path: text.contains('/') || text.starts_with(['~', '.']),
        text: Text::Known(Value {
            text: text.to_owned(),
            pattern,
        }),
        operation,
    }
}
