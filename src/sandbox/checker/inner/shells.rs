//! Shells: a script in `-c`, in a here-document, in a file, or from somewhere that cannot be known.

use super::{Call, dynamic, is_stream, run_script, script_text, stdin_text};
use crate::sandbox::checker::shell::{Place, Reader, Stdin, Word};

/// Shells whose scripts the parser reads as they do.
const BASH: &[&str] = &["bash", "rbash"];
/// Shells that know less than bash; what they read differently is refused.
const POSIX: &[&str] = &["sh", "dash", "ash", "ksh", "ksh93", "mksh", "posh", "yash"];
/// Shells with a language of their own; their scripts are refused.
const FOREIGN: &[&str] = &[
    "zsh",
    "fish",
    "csh",
    "tcsh",
    "nu",
    "xonsh",
    "elvish",
    "pwsh",
    "powershell",
    "rc",
    "es",
    "oil",
    "osh",
    "ysh",
    "cmd",
];

pub(super) fn look(reader: &mut Reader, call: &Call<'_>, place: &Place) -> bool {
    let posix = POSIX.contains(&call.name);
    let foreign = FOREIGN.contains(&call.name);
    if !posix && !foreign && !BASH.contains(&call.name) {
        return false;
    }
    let mut own = place.clone();
    own.posix |= posix;
    match arguments(call) {
        Arguments::Asks => {}
        Arguments::Unknown => dynamic(reader),
        Arguments::Script(script) => given(reader, call, &own, script.as_ref(), foreign),
        Arguments::File(word) => {
            file(reader, &word);
            run_script(reader, &word, call, place);
        }
        Arguments::Stdin => stdin(reader, call, &own, foreign),
    }
    true
}

enum Arguments {
    /// `--version`, `--help`, `-n`.
    Asks,
    /// An argument that decides is known only at run time.
    Unknown,
    Script(Option<Word>),
    File(Word),
    Stdin,
}

fn arguments(call: &Call<'_>) -> Arguments {
    let mut has_script = false;
    let mut from_stdin = false;
    let mut args = call.args.iter();
    while let Some(word) = args.next() {
        let Some(text) = word.text() else {
            // A file name that begins with static text is no option.
            let is_file = !has_script && (word.is_process || !word.prefix().is_empty());
            return if is_file {
                Arguments::File(word.clone())
            } else {
                Arguments::Unknown
            };
        };
        match text.as_str() {
            "--version" | "--help" => return Arguments::Asks,
            "--" | "-" => return operand(args.next(), has_script, from_stdin),
            "--rcfile" | "--init-file" | "-O" | "+O" | "-o" | "+o" => {
                args.next();
            }
            long if long.starts_with("--command") => {
                let value = long.split_once('=').map(|(_, value)| Word::fixed(value));
                return Arguments::Script(value.or_else(|| args.next().cloned()));
            }
            option if option.starts_with(['-', '+']) && option.len() > 1 => {
                let letters = option.trim_start_matches(['-', '+']);
                if !option.starts_with("--") {
                    has_script |= letters.contains(['c', 'C']);
                    from_stdin |= letters.contains('s');
                    if letters.ends_with(['o', 'O']) {
                        args.next();
                    }
                }
            }
            _ => return operand(Some(word), has_script, from_stdin),
        }
    }
    operand(None, has_script, from_stdin)
}

fn operand(word: Option<&Word>, has_script: bool, from_stdin: bool) -> Arguments {
    match word {
        _ if has_script => Arguments::Script(word.cloned()),
        Some(word) if !from_stdin => Arguments::File(word.clone()),
        _ => Arguments::Stdin,
    }
}

fn given(
    reader: &mut Reader,
    call: &Call<'_>,
    place: &Place,
    script: Option<&Word>,
    foreign: bool,
) {
    if place.in_shell {
        return reader.refuse("unsafe_construct", "a shell command is nested in another");
    }
    let Some(text) = script.and_then(Word::text) else {
        return dynamic(reader);
    };
    if foreign {
        // What bash reads in it is still shown, so that rules may match.
        reader.refuse(
            "unparseable",
            format!("the language of '{}' is not understood", call.name),
        );
    }
    let mut own = place.clone();
    own.in_shell = true;
    script_text(reader, &text, &own, &format!("{} -c", call.name));
}

/// The content of a script file is the business of the operating system's sandbox.
fn file(reader: &mut Reader, word: &Word) {
    if word.is_process || word.text().is_some_and(|text| is_stream(&text)) {
        dynamic(reader);
    }
}

fn stdin(reader: &mut Reader, call: &Call<'_>, place: &Place, foreign: bool) {
    if let Some(script) = stdin_text(call) {
        return given(reader, call, place, Some(script), foreign);
    }
    if !matches!(call.command.stdin, Stdin::File) || call.has(&["-s"]) {
        reader.refuse(
            "dynamic_command",
            format!("'{}' reads its script from its input", call.name),
        );
    }
}
