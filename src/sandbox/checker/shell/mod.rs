//! What a shell command would run, read once and shared by the checker and by rules.
//!
//! The parser is `brush-parser`; [`read`] walks its tree and lists what it understands. Everything
//! else becomes a [`Finding`], and a command with a finding is refused. Nothing here knows settings.

mod guard;
mod nested;
mod output;
mod read;
mod redirect;
mod simple;
mod word;

use std::collections::{HashMap, HashSet};

pub(super) use read::{Place, Reader};
pub use word::{Part, Word};

/// More simple commands than this are refused.
pub(super) const MAX_COMMANDS: usize = 256;
/// Deeper nesting than this is refused.
pub(super) const MAX_DEPTH: usize = 16;
/// Longest text of a command, in bytes.
pub(super) const MAX_BYTES: usize = 32_768;

/// Something in a command that was not understood, or that is dangerous whatever the settings are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Stable name of the kind: `unparseable`, `too_complex`, `dynamic_command`, `unsafe_construct`.
    pub code: &'static str,
    /// For people.
    pub reason: String,
}

/// What a redirection does with its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedirectKind {
    Read,
    Write,
    ReadWrite,
}

/// A redirection to or from a file.
#[derive(Clone, Debug)]
pub struct Redirect {
    pub kind: RedirectKind,
    pub target: Word,
}

/// A variable that a command sets.
#[derive(Clone, Debug)]
pub struct Assignment {
    pub name: String,
    pub value: Word,
    /// The name of the command it stands before; empty when it stands alone.
    pub command: String,
}

/// Where the standard input of a command comes from.
#[derive(Clone, Debug)]
pub enum Stdin {
    /// Not said in the command.
    Inherited,
    /// A here-document or here-string.
    Text(Word),
    /// A file.
    File,
}

/// One command that the script may run, at any depth, with wrappers removed.
#[derive(Clone, Debug)]
pub struct SimpleCommand {
    /// The words after quote removal and brace expansion, the command word first.
    pub argv: Vec<Word>,
    pub redirects: Vec<Redirect>,
    pub stdin: Stdin,
    /// How the command is reached, from the outside: `$(…)`, `sudo`, `bash -c`.
    pub via: Vec<String>,
    /// The word is only perhaps a command: an unknown option of a wrapper may take it as value.
    pub is_maybe: bool,
    /// The word names a script that the shell looks up as it looks up commands.
    pub is_script: bool,
    /// Calls a function that the script has defined before.
    pub is_function: bool,
    /// Program text for an interpreter that the command carries.
    pub programs: Vec<String>,
    /// Files named inside program texts, which the command writes.
    pub writes: Vec<String>,
    /// Folders that relative operands may start from; see [`Base`].
    pub(super) bases: Vec<usize>,
}

impl SimpleCommand {
    /// The command word, when it is static text.
    pub fn word(&self) -> Option<String> {
        self.argv.first().and_then(Word::literal)
    }

    /// The last component of the command word.
    pub fn name(&self) -> Option<String> {
        self.word()
            .map(|word| word.rsplit('/').next().unwrap_or_default().to_owned())
    }

    /// The words as text; parts known only at run time are shown as the shell writes them.
    pub fn shown(&self) -> Vec<String> {
        self.argv.iter().map(Word::shown).collect()
    }
}

/// A folder that commands run in: the one given by the caller, moved by `cd`.
#[derive(Clone, Debug)]
pub(super) enum Base {
    Start,
    Moved { from: usize, to: Word },
    Unknown,
}

/// What variables of the script may hold.
#[derive(Clone, Debug, Default)]
pub struct Variables {
    known: HashMap<String, Vec<Word>>,
    unknown: HashSet<String>,
}

impl Variables {
    pub(super) fn assign(&mut self, name: &str, value: Word) {
        self.known.entry(name.to_owned()).or_default().push(value);
    }

    pub(super) fn forget(&mut self, name: &str) {
        self.unknown.insert(name.to_owned());
    }

    /// Whether the script sets the variable.
    pub fn is_set(&self, name: &str) -> bool {
        self.unknown.contains(name) || self.known.contains_key(name)
    }

    /// The values that the script gives to the variable; none when one of them is not known.
    pub fn values(&self, name: &str) -> Option<&[Word]> {
        if self.unknown.contains(name) {
            return None;
        }
        self.known.get(name).map(Vec::as_slice)
    }
}

/// A command that was parsed once.
#[derive(Clone, Debug, Default)]
pub struct ParsedCommand {
    /// Every simple command, in the order of the text; inner ones follow the outer.
    pub commands: Vec<SimpleCommand>,
    /// What was not understood. When there is any, `commands` may be incomplete.
    pub findings: Vec<Finding>,
    /// Every assignment, also those before `env` and after `export`.
    pub assignments: Vec<Assignment>,
    /// Redirections of compound commands.
    pub redirects: Vec<(Redirect, Vec<usize>)>,
    pub variables: Variables,
    pub(super) bases: Vec<Base>,
}

impl ParsedCommand {
    /// Parses a command as `bash -c` would read it. Never fails: see [`ParsedCommand::findings`].
    pub fn parse(text: &str) -> Self {
        Reader::read(text)
    }

    /// Whether everything in the command was understood.
    pub fn is_understood(&self) -> bool {
        self.findings.is_empty()
    }
}
