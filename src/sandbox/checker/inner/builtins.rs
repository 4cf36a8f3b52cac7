//! Builtins of the shell that run text, or that would make other text mean something else.

use super::{Call, dynamic, is_stream, run_script, script_text, script_word};
use crate::sandbox::checker::shell::{Place, Reader, Word};

pub(super) fn look(reader: &mut Reader, call: &Call<'_>, place: &mut Place) -> bool {
    match call.name {
        "eval" => eval(reader, call, place),
        "source" | "." => source(reader, call, place),
        "trap" => trap(reader, call, place),
        "alias" => alias(reader, call, place),
        "export" | "declare" | "typeset" | "local" | "readonly" => declare(reader, call),
        "read" | "mapfile" | "readarray" | "getopts" | "unset" | "let" => {
            names(reader, call, place);
        }
        "printf" | "test" | "[" | "wait" => option_v(reader, call),
        "compgen" | "complete" => completion(reader, call, place),
        "hash" | "enable" | "fc" | "at" | "batch" | "crontab" | "bind" | "shopt" => {
            refused(reader, call);
        }
        "set" => set(reader, call),
        "case" | "select" => reader.unparseable(),
        _ => return false,
    }
    true
}

fn eval(reader: &mut Reader, call: &Call<'_>, place: &Place) {
    let texts: Option<Vec<String>> = call
        .texts()
        .into_iter()
        .skip_while(|text| text.as_deref() == Some("--"))
        .collect();
    match texts {
        Some(texts) if !place.appended => script_text(reader, &texts.join(" "), place, "eval"),
        _ => dynamic(reader),
    }
}

/// A file is the business of the operating system's sandbox; text made at run time is not a file.
fn source(reader: &mut Reader, call: &Call<'_>, place: &Place) {
    let mut args = call.args.iter();
    let Some(file) = args.find(|word| word.text().as_deref() != Some("--")) else {
        return;
    };
    if file.is_process || file.text().is_some_and(|text| is_stream(&text)) {
        return dynamic(reader);
    }
    run_script(reader, file, call, place);
}

fn trap(reader: &mut Reader, call: &Call<'_>, place: &Place) {
    let words: Vec<&Word> = call
        .args
        .iter()
        .filter(|word| !matches!(word.text().as_deref(), Some("--" | "-p" | "-l" | "-P")))
        .collect();
    if words.len() < 2 {
        return;
    }
    if words[0].text().as_deref() != Some("-") {
        script_word(reader, words[0], place, "trap");
    }
}

fn alias(reader: &mut Reader, call: &Call<'_>, place: &Place) {
    for word in call.args {
        let Some(text) = word.text() else {
            return dynamic(reader);
        };
        if let Some((_, value)) = text.split_once('=') {
            script_text(reader, value, place, "alias");
        }
    }
}

fn declare(reader: &mut Reader, call: &Call<'_>) {
    for word in call.args {
        let start = word.prefix();
        if start.starts_with(['-', '+']) {
            if start.contains('n') {
                reader.refuse("unsafe_construct", "command names a variable by another");
            }
            continue;
        }
        match start.split_once('=') {
            Some((name, _)) => {
                let name = name.trim_end_matches('+');
                let is_plain = name
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
                if !is_plain {
                    reader.variable_operand(&Word::dynamic());
                }
                let value = word.without_prefix(start.find('=').map_or(0, |at| at + 1));
                reader.assigned(name, value, call.name);
            }
            None => reader.variable_operand(word),
        }
    }
}

/// Operands that the shell evaluates as names of variables.
fn names(reader: &mut Reader, call: &Call<'_>, place: &Place) {
    let mut args = call.args.iter();
    let mut functions = false;
    while let Some(word) = args.next() {
        let text = word.text().unwrap_or_default();
        let is_callback = matches!(call.name, "mapfile" | "readarray") && text.starts_with("-C");
        if is_callback {
            let rest = &text[2..];
            let callback = if rest.is_empty() {
                args.next().cloned()
            } else {
                Some(Word::fixed(rest))
            };
            script_word(
                reader,
                &callback.unwrap_or_else(Word::dynamic),
                place,
                call.name,
            );
        } else if text.starts_with('-') && call.name != "let" {
            functions |= text.contains('f');
            let takes = match call.name {
                "read" => "adinNptu",
                "mapfile" | "readarray" => "dnOscu",
                _ => "",
            };
            if text.len() == 2 && takes.contains(&text[1..]) && args.len() > 0 {
                let value = args.next();
                if let (true, Some(value)) = (text == "-a", value) {
                    reader.variable_operand(value);
                }
            }
        } else if call.name == "getopts" || !is_arithmetic(call.name, &text, word) {
            reader.variable_operand_of(call.name, word);
        }
    }
    if functions {
        reader.forget_functions();
    }
}

/// `let` takes expressions: fine as long as nothing in them is a subscript or known only later.
fn is_arithmetic(name: &str, text: &str, word: &Word) -> bool {
    name == "let" && word.text().is_some() && !text.contains(['[', '$', '`'])
}

impl Reader {
    /// The first operand of `getopts` is text; all others are names.
    fn variable_operand_of(&mut self, command: &str, word: &Word) {
        if command != "getopts" {
            return self.variable_operand(word);
        }
        match word.text() {
            Some(text) if !text.contains(['[', '$', '`']) => self.out_forget(&text),
            _ => self.variable_operand(&Word::dynamic()),
        }
    }

    fn out_forget(&mut self, name: &str) {
        self.lost(name);
    }
}

/// `-v name` evaluates the name.
fn option_v(reader: &mut Reader, call: &Call<'_>) {
    let operands = call.args.len() - usize::from(call.name == "[" && !call.args.is_empty());
    let is_printf = call.name == "printf";
    let mut args = call.args.iter().enumerate().peekable();
    while let Some((at, word)) = args.next() {
        let text = word.text();
        match text.as_deref() {
            Some("-v" | "-R") if !(is_printf && text.as_deref() == Some("-R")) => {
                if let Some((_, name)) = args.peek() {
                    reader.variable_operand(name);
                }
            }
            Some(glued) if is_printf && glued.starts_with("-v") => {
                reader.variable_operand(&Word::fixed(&glued[2..]));
            }
            // An operand that may turn out to be `-v` evaluates the next one.
            None if !is_printf && at == 0 && starts_unknown(word) && operands == 2 => {
                reader.refuse("unsafe_construct", "command tests with a computed operator");
            }
            _ => {}
        }
        if is_printf && text.as_deref() != Some("--") && !word.prefix().starts_with('-') {
            return;
        }
    }
}

fn starts_unknown(word: &Word) -> bool {
    word.text().is_none() && word.prefix().is_empty()
}

fn completion(reader: &mut Reader, call: &Call<'_>, place: &Place) {
    for (at, word) in call.args.iter().enumerate() {
        let text = word.text().unwrap_or_default();
        if !text.starts_with('-') || !text.contains(['C', 'F', 'W']) {
            continue;
        }
        match call.args.get(at + 1) {
            Some(value) => script_word(reader, value, place, call.name),
            None => dynamic(reader),
        }
    }
}

fn refused(reader: &mut Reader, call: &Call<'_>) {
    let is_refused = match call.name {
        "hash" => call
            .args
            .iter()
            .any(|word| word.prefix().contains('p') || word.text().is_none()),
        "enable" => call.args.iter().any(|word| word.prefix().contains('f')),
        "shopt" => call.args.iter().any(|word| {
            word.text().is_none_or(|text| {
                matches!(text.as_str(), "extglob" | "expand_aliases" | "sourcepath")
            })
        }),
        "crontab" => !(call.args.len() == 1 && call.has(&["-l"])),
        "bind" => !call.args.is_empty(),
        _ => true,
    };
    if is_refused {
        reader.refuse(
            "unsafe_construct",
            format!(
                "command '{}' changes what later text means or runs it later",
                call.name
            ),
        );
    }
}

/// Positional parameters are not followed: a command that uses them is refused where it stands.
fn set(reader: &mut Reader, call: &Call<'_>) {
    for word in call.args {
        reader.check_literal(word);
    }
}
