//! Programs of awk.

use super::{Call, Found, dynamic};
use crate::sandbox::checker::shell::{Reader, Word};

pub(super) fn look(reader: &mut Reader, call: &Call<'_>, found: &mut Found) {
    let mut args = call.args.iter();
    let mut has_file = false;
    while let Some(word) = args.next() {
        let Some(text) = word.text() else {
            if !has_file {
                dynamic(reader);
            }
            return;
        };
        let name = text.split('=').next().unwrap_or_default();
        match name {
            "-F" | "-v" | "--field-separator" | "--assign" => {
                args.next_if_separate(&text);
            }
            "-f" | "--file" | "-E" | "--exec" => {
                has_file = true;
                let glued = text.split_once('=').map(|(_, value)| Word::fixed(value));
                super::program_file(reader, glued.as_ref().or_else(|| args.next()));
            }
            "-e" | "--source" | "-i" | "--include" | "-l" | "--load" => return dynamic(reader),
            "--" => {
                if !has_file {
                    awk_text(reader, args.next(), found);
                }
                return;
            }
            _ if text.starts_with("-f") => {
                has_file = true;
                super::program_file(reader, Some(&Word::fixed(&text[2..])));
            }
            _ if text.starts_with("--l") || text.starts_with("--i") || text.starts_with("--s") => {
                return dynamic(reader);
            }
            _ if text.starts_with('-') && text.len() > 1 => {
                if text.starts_with("-e") || text.starts_with("-i") || text.starts_with("-l") {
                    return dynamic(reader);
                }
            }
            _ => {
                if !has_file {
                    awk_text(reader, Some(word), found);
                }
                return;
            }
        }
    }
}

/// Skips the value of an option that stands in a word of its own.
trait NextIfSeparate {
    fn next_if_separate(&mut self, text: &str);
}

impl NextIfSeparate for std::slice::Iter<'_, Word> {
    fn next_if_separate(&mut self, text: &str) {
        if !text.contains('=') {
            self.next();
        }
    }
}

fn awk_text(reader: &mut Reader, program: Option<&Word>, found: &mut Found) {
    let Some(text) = program.and_then(Word::text) else {
        return dynamic(reader);
    };
    let runs = text.contains("system")
        || text.contains("|&")
        || text.contains('@')
        || (text.contains("getline") && text.contains('|'))
        || has_awk_pipe(&text);
    if runs {
        reader.refuse("unsafe_construct", "awk program may start processes");
    }
    found.programs.push(text);
}

/// Whether a `|` stands outside of strings and regular expressions.
fn has_awk_pipe(text: &str) -> bool {
    let mut chars = text.chars().peekable();
    let mut before = ' ';
    let mut word = String::new();
    while let Some(c) = chars.next() {
        match c {
            '"' => skip_until(&mut chars, '"'),
            '/' if starts_regex(before, &word) => skip_until(&mut chars, '/'),
            '|' if chars.peek() == Some(&'|') => {
                chars.next();
            }
            '|' => return true,
            _ => {}
        }
        if c.is_alphanumeric() || c == '_' {
            word.push(c);
        } else if !c.is_whitespace() {
            word.clear();
        }
        if !c.is_whitespace() || c == '\n' {
            before = if c == '/' { '"' } else { c };
        }
    }
    false
}

/// Where awk expects an operand, a slash begins a regular expression.
fn starts_regex(before: char, word: &str) -> bool {
    const KEYWORDS: [&str; 9] = [
        "print", "printf", "return", "in", "case", "delete", "else", "do", "exit",
    ];
    " (,;{}~!&|\n?:=+-*%<>^".contains(before) || KEYWORDS.iter().any(|key| word.ends_with(key))
}

fn skip_until(chars: &mut std::iter::Peekable<std::str::Chars<'_>>, end: char) {
    while let Some(c) = chars.next() {
        if c == '\\' {
            chars.next();
        } else if c == end {
            return;
        }
    }
}
