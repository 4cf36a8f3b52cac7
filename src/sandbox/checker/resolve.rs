//! What a word may turn out to be: variables with known values put in, nothing guessed.

use super::environment::CheckerEnv;
use super::shell::{ParsedCommand, Part, Word};

/// Values that one word may have; more are not told apart.
const MAX_VALUES: usize = 64;
/// Variables that a value may go through.
const MAX_HOPS: usize = 8;

/// A value of a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Value {
    pub text: String,
    /// The text with quoted pattern characters escaped, when unquoted ones are in it.
    pub pattern: Option<String>,
}

/// Every value that the word may have; none when it may have others.
pub(super) fn values(word: &Word, parsed: &ParsedCommand, env: &CheckerEnv) -> Option<Vec<Value>> {
    expand(word, parsed, env, 0)
}

fn expand(
    word: &Word,
    parsed: &ParsedCommand,
    env: &CheckerEnv,
    hops: usize,
) -> Option<Vec<Value>> {
    if hops > MAX_HOPS || word.is_process {
        return None;
    }
    let mut made = vec![(String::new(), String::new(), false)];
    for part in &word.parts {
        let choices = choices(part, parsed, env, hops)?;
        if made.len() * choices.len() > MAX_VALUES {
            return None;
        }
        made = made
            .iter()
            .flat_map(|(text, pattern, glob)| {
                choices.iter().map(move |(more, escaped, globs)| {
                    (
                        format!("{text}{more}"),
                        format!("{pattern}{escaped}"),
                        glob | globs,
                    )
                })
            })
            .collect();
    }
    let value = |(text, pattern, glob): (String, String, bool)| Value {
        text,
        pattern: glob.then_some(pattern),
    };
    Some(made.into_iter().map(value).collect())
}

/// Text, the same as a pattern, and whether it is one.
type Choice = (String, String, bool);

fn choices(
    part: &Part,
    parsed: &ParsedCommand,
    env: &CheckerEnv,
    hops: usize,
) -> Option<Vec<Choice>> {
    match part {
        Part::Text { text, quoted } => Some(vec![choice(text, *quoted)]),
        Part::Tilde(user) if user.is_empty() => {
            Some(vec![choice(&env.home, true)]).filter(|_| !env.home.is_empty())
        }
        Part::Tilde(user) => Some(vec![choice(&format!("~{user}"), true)]),
        Part::Variable { name, quoted } => variable(name, *quoted, parsed, env, hops),
        Part::Output | Part::Dynamic => None,
    }
}

fn variable(
    name: &str,
    quoted: bool,
    parsed: &ParsedCommand,
    env: &CheckerEnv,
    hops: usize,
) -> Option<Vec<Choice>> {
    let mut found = Vec::new();
    if let Some(value) = env.variable(name) {
        found.push(choice(value, quoted));
    }
    if parsed.variables.is_set(name) {
        for word in parsed.variables.values(name)? {
            let values = expand(word, parsed, env, hops + 1)?;
            found.extend(values.into_iter().map(|value| choice(&value.text, quoted)));
        }
    }
    // An unquoted value with blanks is more than one word.
    let splits = |(text, _, _): &Choice| !quoted && text.contains([' ', '\t', '\n']);
    if found.is_empty() || found.len() > MAX_VALUES || found.iter().any(splits) {
        return None;
    }
    Some(found)
}

fn choice(text: &str, quoted: bool) -> Choice {
    if !quoted {
        let is_glob = text.contains(['*', '?', '[']);
        return (text.to_owned(), text.to_owned(), is_glob);
    }
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '*' | '?' | '[' | ']' | '\\') {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    (text.to_owned(), escaped, false)
}
