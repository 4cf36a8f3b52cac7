//! Interpreters with their program on the command line. The text is filtered, not understood: it may
//! compute, read and write, and what starts processes or hides text is refused.

use super::{Call, Found, dynamic, is_stream, stdin_text};
use super::{awk, sed};
use crate::sandbox::checker::shell::{Place, Reader, Stdin, Word};

/// An interpreter and its options.
struct Interpreter {
    /// Start of the name; digits and dots may follow, as in `python3.12`.
    name: &'static str,
    /// Short options with program text.
    text: &'static str,
    /// Long options with program text.
    long_text: &'static [&'static str],
    /// Short options that take the next word.
    values: &'static str,
    /// Options that name a module or file to run: the input is data then.
    module: &'static [&'static str],
    /// Whether backquotes or `%x` start a shell in this language.
    shell_quotes: bool,
}

const fn interpreter(
    name: &'static str,
    text: &'static str,
    long_text: &'static [&'static str],
    values: &'static str,
    module: &'static [&'static str],
    shell_quotes: bool,
) -> Interpreter {
    Interpreter {
        name,
        text,
        long_text,
        values,
        module,
        shell_quotes,
    }
}

const INTERPRETERS: &[Interpreter] = &[
    interpreter("python", "c", &[], "WXQ", &["-m"], false),
    interpreter("pypy", "c", &[], "WX", &["-m"], false),
    interpreter(
        "nodejs",
        "ep",
        &["--eval", "--print"],
        "rC",
        &["--test"],
        false,
    ),
    interpreter(
        "node",
        "ep",
        &["--eval", "--print"],
        "rC",
        &["--test"],
        false,
    ),
    interpreter("bun", "ep", &["--eval", "--print"], "r", &[], false),
    interpreter("deno", "", &[], "", &[], false),
    interpreter("tsx", "ep", &["--eval", "--print"], "r", &[], false),
    interpreter("ts-node", "ep", &["--eval", "--print"], "r", &[], false),
    interpreter("perl", "eE", &[], "", &[], true),
    interpreter("ruby", "e", &[], "IrEC", &[], true),
    interpreter("irb", "e", &[], "", &[], true),
    interpreter("php", "rBRE", &["--run"], "dcz", &["-f", "-S"], true),
    interpreter("luajit", "e", &[], "l", &[], false),
    interpreter("lua", "e", &[], "l", &[], false),
    interpreter("osascript", "e", &[], "l", &[], false),
    interpreter("Rscript", "e", &[], "", &[], false),
    interpreter("R", "e", &[], "f", &["-f"], false),
    interpreter("julia", "eE", &["--eval", "--print"], "LpJ", &[], true),
    interpreter("elixir", "e", &["--eval"], "rS", &[], false),
    interpreter("groovy", "e", &[], "", &[], false),
    interpreter("tclsh", "", &[], "", &[], true),
    interpreter("ocaml", "e", &[], "I", &[], false),
    interpreter("guile", "c", &[], "lL", &[], false),
    interpreter("emacs", "", &["--eval", "--execute"], "lf", &[], false),
];

/// What starts processes, or hides what a program does.
const DANGEROUS: &[&str] = &[
    "os.system",
    "subprocess",
    "popen",
    "exec",
    "spawn",
    "fork",
    "pty",
    "child_process",
    "deno.command",
    "deno.run",
    "bun.spawn",
    "bun.$",
    "shell_exec",
    "passthru",
    "proc_open",
    "pcntl",
    "system",
    "eval",
    "compile(",
    "__import__",
    "getattr(",
    "importlib",
    "base64",
    "fromcharcode",
    "atob",
    "ctypes",
    "__builtins__",
    "builtins",
    "globals(",
    "runpy",
    "codecs",
    "process.binding",
    "process.dlopen",
    "_linkedbinding",
    "vm.",
    "new function",
    "constructor.constructor",
    "reflect.",
    "worker_threads",
    "unescape",
    "open3",
    "io.popen",
    "do shell script",
    "shell-command",
    "call-process",
    "start-process",
    "make-process",
    "syscall",
    "posix",
    "unpack",
    "pack(",
    "chr(",
    "decode(",
    "bytes.from",
    "buffer.from",
    "loadstring",
    "kernel.",
    "__send__",
    "send(",
    "call_user_func",
    "create_function",
    "assert(",
    "instance_eval",
    "qx",
    "marshal",
    "pickle",
    "cffi",
    "ffi",
    "run(",
    "createrequire",
    "\\x",
    "\\u00",
    "\\1",
];

pub(super) fn look(reader: &mut Reader, call: &Call<'_>, place: &Place, found: &mut Found) -> bool {
    if matches!(call.name, "awk" | "gawk" | "mawk" | "nawk" | "original-awk") {
        awk::look(reader, call, found);
        return true;
    }
    if matches!(call.name, "sed" | "gsed" | "ssed") {
        sed::look(reader, call, found);
        return true;
    }
    if puts_input_into_text(call, place) {
        dynamic(reader);
    }
    let Some(known) = INTERPRETERS
        .iter()
        .find(|known| is_called(call.name, known.name))
    else {
        return false;
    };
    if call.name == "bun" && is_package_runner(call) {
        return super::wrappers::look(reader, call, place);
    }
    interpret(reader, call, known, found);
    true
}

/// Whether text that is known only at run time becomes a part of program text.
fn puts_input_into_text(call: &Call<'_>, place: &Place) -> bool {
    let is_text = |text: &String| text.contains([' ', '(', '"', '\'', ';']);
    let mut texts = call.args.iter().filter_map(Word::text).filter(is_text);
    texts.any(|text| place.replaced.iter().any(|token| text.contains(token)))
        && INTERPRETERS
            .iter()
            .any(|known| is_called(call.name, known.name))
}

fn is_package_runner(call: &Call<'_>) -> bool {
    call.has(&["x", "exec"])
}

fn is_called(name: &str, known: &str) -> bool {
    name.strip_prefix(known).is_some_and(|rest| {
        rest.bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.' || byte == b'-' || byte == b'w')
    })
}

fn interpret(reader: &mut Reader, call: &Call<'_>, known: &Interpreter, found: &mut Found) {
    let mut args = call.args.iter();
    let mut has_program = false;
    while let Some(word) = args.next() {
        let Some(text) = word.text() else {
            let is_file = !word.is_process && !word.prefix().is_empty();
            if !has_program && !is_file {
                dynamic(reader);
            }
            return;
        };
        if matches!(
            text.as_str(),
            "--version" | "-V" | "--help" | "-h" | "-v" | "-version"
        ) {
            return;
        }
        if text == "-" {
            break;
        }
        if !text.starts_with('-') {
            if call.name.starts_with("deno") {
                deno(reader, &text, args.next(), known, found);
            }
            return file(reader, has_program, &text);
        }
        if text == "--" {
            if args.next().is_some() || has_program {
                return;
            }
            break;
        }
        if known.module.contains(&text.as_str()) {
            return module(reader, known, &mut args, found);
        }
        if text.contains("data:") {
            return dynamic(reader);
        }
        if let Some(program) = program_of(known, &text, &mut args) {
            has_program = true;
            program_text(reader, known, Some(&program), found);
            continue;
        }
        if text.len() == 2 && known.values.contains(&text[1..]) {
            args.next();
        }
    }
    if !has_program {
        from_input(reader, call, known, found);
    }
}

fn file(reader: &mut Reader, has_program: bool, text: &str) {
    if !has_program && (is_stream(text) || text.starts_with("data:")) {
        dynamic(reader);
    }
}

/// Modules of the language read their input as data, but for those that run text.
fn module(
    reader: &mut Reader,
    known: &Interpreter,
    args: &mut std::slice::Iter<'_, Word>,
    found: &mut Found,
) {
    let name = args.next().and_then(Word::text);
    match name.as_deref() {
        Some("timeit" | "pdb" | "code" | "trace" | "profile" | "cProfile") => {
            for word in args {
                program_text(reader, known, Some(word), found);
            }
        }
        Some(_) => {}
        None => dynamic(reader),
    }
}

fn deno(
    reader: &mut Reader,
    subcommand: &str,
    next: Option<&Word>,
    known: &Interpreter,
    found: &mut Found,
) {
    if subcommand == "eval" {
        program_text(reader, known, next, found);
    }
}

/// The program that an option carries, when it is such an option. A missing one is a word of which
/// nothing is known.
fn program_of(
    known: &Interpreter,
    text: &str,
    args: &mut std::slice::Iter<'_, Word>,
) -> Option<Word> {
    let mut next = || args.next().cloned().unwrap_or_else(Word::dynamic);
    if text.starts_with("--") {
        let (name, value) = text
            .split_once('=')
            .map_or((text, None), |(a, b)| (a, Some(b)));
        let is_text = known
            .long_text
            .iter()
            .any(|listed| super::is_long(name, listed));
        return is_text.then(|| value.map_or_else(next, Word::fixed));
    }
    let letters = &text[1..];
    for (at, letter) in letters.char_indices() {
        if known.text.contains(letter) {
            let rest = &letters[at + letter.len_utf8()..];
            let clustered = known.text.contains(rest) || rest.is_empty();
            return Some(if clustered { next() } else { Word::fixed(rest) });
        }
        if known.values.contains(letter) || letter == 'M' || letter == 'm' {
            return None;
        }
    }
    None
}

fn program_text(
    reader: &mut Reader,
    known: &Interpreter,
    program: Option<&Word>,
    found: &mut Found,
) {
    match program.and_then(Word::text) {
        Some(text) => check_program(reader, known.shell_quotes, text, found),
        None => dynamic(reader),
    }
}

fn check_program(reader: &mut Reader, shell_quotes: bool, text: String, found: &mut Found) {
    let lower = text.to_lowercase();
    let is_dangerous = DANGEROUS.iter().any(|pattern| lower.contains(pattern));
    let quotes = shell_quotes && (text.contains('`') || lower.contains("%x") || text.contains('|'));
    if is_dangerous || quotes {
        reader.refuse(
            "unsafe_construct",
            "program text may start processes or hide what it does",
        );
    }
    found.programs.push(text);
}

/// A program without an argument comes from the input.
fn from_input(reader: &mut Reader, call: &Call<'_>, known: &Interpreter, found: &mut Found) {
    match (&call.command.stdin, stdin_text(call)) {
        (_, Some(word)) => program_text(reader, known, Some(word), found),
        (Stdin::File, None) => {}
        _ => reader.refuse(
            "dynamic_command",
            format!("'{}' reads its program from its input", call.name),
        ),
    }
}
