//! What a command runs besides itself: wrappers, shells, interpreters, options that name programs.
//!
//! Each file knows one family. Whatever they find goes back to the reader, which looks inside again.

mod awk;
mod builtins;
mod find;
mod git;
mod programs;
mod sed;
mod shells;
mod tools;
mod wrapper_table;
mod wrappers;

use super::shell::{Place, Reader, SimpleCommand, Stdin, Word};

/// What a command carries that settings are needed to judge.
#[derive(Default)]
pub(super) struct Found {
    /// Program text of an interpreter.
    pub programs: Vec<String>,
    /// Files that such text writes.
    pub writes: Vec<String>,
}

/// Looks inside a command that was just read.
pub(super) fn look(reader: &mut Reader, command: &SimpleCommand, place: &mut Place) -> Found {
    let mut found = Found::default();
    let Some(name) = command.name() else {
        return found;
    };
    let call = Call {
        name: &name,
        command,
        args: command.argv.get(1..).unwrap_or_default(),
    };
    let known = builtins::look(reader, &call, place)
        || wrappers::look(reader, &call, place)
        || shells::look(reader, &call, place)
        || programs::look(reader, &call, place, &mut found)
        || find::look(reader, &call, place)
        || git::look(reader, &call, place);
    if !known {
        tools::look(reader, &call, place);
    }
    found
}

/// A command under inspection.
pub(super) struct Call<'a> {
    /// Last component of the command word.
    pub name: &'a str,
    pub command: &'a SimpleCommand,
    /// The words after the command word.
    pub args: &'a [Word],
}

impl Call<'_> {
    /// The static text of each argument.
    pub fn texts(&self) -> Vec<Option<String>> {
        self.args.iter().map(Word::text).collect()
    }

    pub fn has(&self, options: &[&str]) -> bool {
        self.args
            .iter()
            .filter_map(Word::text)
            .any(|text| options.contains(&text.as_str()))
    }
}

/// Reads a word as a script of its own.
fn script_word(reader: &mut Reader, word: &Word, place: &Place, via: &str) {
    match word.text() {
        Some(text) => script_text(reader, &text, place, via),
        None => dynamic(reader),
    }
}

fn script_text(reader: &mut Reader, text: &str, place: &Place, via: &str) {
    if place.replaced.iter().any(|token| text.contains(token)) {
        // What is put in may end a quotation.
        return dynamic(reader);
    }
    let mut own = place.inside(via);
    own.certain = false;
    own.direct = false;
    reader.script(text, &mut own);
}

/// Adds the words as a command that `via` runs.
fn run(reader: &mut Reader, words: &[Word], call: &Call<'_>, place: &Place, maybe: bool) {
    let mut own = place.inside(call.name);
    own.certain = false;
    own.direct = false;
    reader.emit(
        SimpleCommand {
            argv: words.to_vec(),
            redirects: Vec::new(),
            stdin: call.command.stdin.clone(),
            via: Vec::new(),
            is_maybe: maybe,
            is_script: false,
            is_function: false,
            programs: Vec::new(),
            writes: Vec::new(),
            bases: Vec::new(),
        },
        &mut own,
    );
}

/// Adds a script file that is named without a folder: the shell also looks for it among programs.
fn run_script(reader: &mut Reader, word: &Word, call: &Call<'_>, place: &Place) {
    if word.shown().contains('/') {
        return;
    }
    if word.text().is_none() {
        return dynamic(reader);
    }
    let first = reader.out.commands.len();
    run(reader, std::slice::from_ref(word), call, place, true);
    if let Some(added) = reader.out.commands.get_mut(first) {
        added.is_script = true;
    }
}

fn dynamic(reader: &mut Reader) {
    reader.refuse(
        "dynamic_command",
        "command runs text that is known only at run time",
    );
}

/// The text of a here-document or here-string.
fn stdin_text<'a>(call: &Call<'a>) -> Option<&'a Word> {
    match &call.command.stdin {
        Stdin::Text(word) => Some(word),
        Stdin::Inherited | Stdin::File => None,
    }
}

/// A program in a file is the business of the operating system's sandbox; one from a stream is text
/// that something else makes.
fn program_file(reader: &mut Reader, file: Option<&Word>) {
    let is_file = file.is_some_and(|word| {
        let is_plain = |text: String| text != "-" && !is_stream(&text);
        !word.is_process && word.text().map_or(!word.prefix().is_empty(), is_plain)
    });
    if !is_file {
        dynamic(reader);
    }
}

/// Whether a file may be a stream that something else writes into.
pub(super) fn is_stream(path: &str) -> bool {
    let leaves = path.starts_with('/') || path.split('/').any(|part| part == "..");
    leaves && path.split('/').any(|part| part == "dev" || part == "proc")
}

/// Whether a long option is the listed one, spelled out or cut short.
fn is_long(given: &str, listed: &str) -> bool {
    given == listed || (given.len() >= 5 && listed.starts_with(given))
}
