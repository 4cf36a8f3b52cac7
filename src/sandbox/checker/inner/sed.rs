//! Scripts of sed: which files they name, and whether they run commands.

use std::iter::Peekable;
use std::str::Chars;

use super::{Call, Found, dynamic};
use crate::sandbox::checker::shell::{Reader, Word};

const RUNS: &str = "sed script runs commands";
const UNKNOWN: &str = "sed script is not understood";

pub(super) fn look(reader: &mut Reader, call: &Call<'_>, found: &mut Found) {
    let mut args = call.args.iter();
    let mut scripts = Vec::new();
    let mut has_file = false;
    let mut first = None;
    while let Some(word) = args.next() {
        let Some(text) = word.text() else {
            if scripts.is_empty() && !has_file && first.is_none() {
                return dynamic(reader);
            }
            continue;
        };
        let long_value = text.split_once('=').map(|(_, value)| Word::fixed(value));
        let name = text.split('=').next().unwrap_or_default();
        if name.len() > 2 && "--expression".starts_with(name) {
            scripts.push(long_value.or_else(|| args.next().cloned()));
        } else if name.len() > 2 && "--file".starts_with(name) {
            has_file = true;
            super::program_file(reader, long_value.as_ref().or_else(|| args.next()));
        } else if text.starts_with("--") || !text.starts_with('-') || text.len() == 1 {
            if !text.starts_with("--") && first.is_none() {
                first = Some(word.clone());
            }
        } else if let Some(at) = text.find(['e', 'f', 'i', 'l']) {
            let rest = Some(&text[at + 1..]).filter(|rest| !rest.is_empty());
            match &text[at..=at] {
                "e" => scripts.push(rest.map(Word::fixed).or_else(|| args.next().cloned())),
                "f" => {
                    has_file = true;
                    let glued = rest.map(Word::fixed);
                    super::program_file(reader, glued.as_ref().or_else(|| args.next()));
                }
                "l" if rest.is_none() => {
                    args.next();
                }
                // What follows `-i` is a suffix.
                _ => {}
            }
        }
    }
    if scripts.is_empty() && !has_file {
        scripts.push(first);
    }
    read_all(reader, scripts, found);
}

fn read_all(reader: &mut Reader, scripts: Vec<Option<Word>>, found: &mut Found) {
    let texts: Option<Vec<String>> = scripts
        .into_iter()
        .map(|script| script.and_then(|word| word.text()))
        .collect();
    let Some(texts) = texts else {
        return dynamic(reader);
    };
    match files(&texts.join("\n")) {
        Ok(files) => found.writes.extend(files),
        Err(reason) => reader.refuse("unsafe_construct", reason),
    }
}

/// The files that a script reads or writes, or why it is refused.
fn files(script: &str) -> Result<Vec<String>, &'static str> {
    let mut reader = Script {
        chars: script.chars().peekable(),
        files: Vec::new(),
    };
    while reader.chars.peek().is_some() {
        reader.command()?;
    }
    Ok(reader.files)
}

struct Script<'a> {
    chars: Peekable<Chars<'a>>,
    files: Vec<String>,
}

impl Script<'_> {
    fn command(&mut self) -> Result<(), &'static str> {
        self.skip(|c| c.is_whitespace() || c == ';');
        self.address()?;
        self.skip(|c| c == ' ' || c == '\t' || c == '!');
        let Some(command) = self.chars.next() else {
            return Ok(());
        };
        match command {
            '{' => Ok(()),
            '}' | '=' | 'd' | 'D' | 'g' | 'G' | 'h' | 'H' | 'n' | 'N' | 'p' | 'P' | 'x' | 'F'
            | 'z' => self.end(),
            'q' | 'Q' | 'l' | 'L' => {
                self.skip(|c| c == ' ' || c.is_ascii_digit());
                self.end()
            }
            'a' | 'i' | 'c' => {
                self.text();
                Ok(())
            }
            '#' => {
                self.line();
                Ok(())
            }
            ':' | 'b' | 't' | 'T' => {
                self.skip(|c| c != '\n' && c != ';' && c != '}');
                Ok(())
            }
            'r' | 'R' | 'w' | 'W' => {
                let file = self.line();
                self.files.push(file.trim_start().to_owned());
                Ok(())
            }
            's' => self.substitute(),
            'y' => {
                let delimiter = self.delimiter()?;
                self.delimited(delimiter)?;
                self.delimited(delimiter)?;
                self.end()
            }
            'e' => Err(RUNS),
            _ => Err(UNKNOWN),
        }
    }

    fn substitute(&mut self) -> Result<(), &'static str> {
        let delimiter = self.delimiter()?;
        self.delimited(delimiter)?;
        self.delimited(delimiter)?;
        while let Some(&flag) = self.chars.peek() {
            match flag {
                'g' | 'p' | 'i' | 'I' | 'm' | 'M' | '0'..='9' => {
                    self.chars.next();
                }
                'e' => return Err(RUNS),
                'w' => {
                    self.chars.next();
                    let file = self.line();
                    self.files.push(file.trim_start().to_owned());
                    return Ok(());
                }
                _ => break,
            }
        }
        self.end()
    }

    /// After a command: a blank, a separator, a closing brace or a comment.
    fn end(&mut self) -> Result<(), &'static str> {
        self.skip(|c| c == ' ' || c == '\t');
        match self.chars.peek() {
            None | Some('\n' | ';' | '}' | '#') => Ok(()),
            Some(_) => Err(UNKNOWN),
        }
    }

    fn address(&mut self) -> Result<(), &'static str> {
        loop {
            match self.chars.peek().copied() {
                Some('0'..='9' | '$' | ',' | '~' | '+' | ' ' | '\t') => {
                    self.chars.next();
                }
                Some('/') => {
                    self.chars.next();
                    self.delimited('/')?;
                    self.skip(|c| c == 'I' || c == 'M');
                }
                Some('\\') => {
                    self.chars.next();
                    let delimiter = self.delimiter()?;
                    self.delimited(delimiter)?;
                    self.skip(|c| c == 'I' || c == 'M');
                }
                _ => return Ok(()),
            }
        }
    }

    fn delimiter(&mut self) -> Result<char, &'static str> {
        match self.chars.next() {
            Some(c) if c != '\\' && c != '\n' => Ok(c),
            _ => Err(UNKNOWN),
        }
    }

    /// Passes text up to the delimiter. Inside brackets sed does not end a text, other versions do:
    /// a delimiter there is refused.
    fn delimited(&mut self, delimiter: char) -> Result<(), &'static str> {
        let mut in_brackets = false;
        while let Some(c) = self.chars.next() {
            match c {
                '\\' => {
                    self.chars.next();
                }
                _ if c == delimiter && in_brackets => return Err(UNKNOWN),
                _ if c == delimiter => return Ok(()),
                '[' => in_brackets = true,
                ']' => in_brackets = false,
                _ => {}
            }
        }
        Err(UNKNOWN)
    }

    /// The text of `a`, `i`, `c`: to the end of the line, further when the line ends in a backslash.
    fn text(&mut self) {
        while let Some(c) = self.chars.next() {
            match c {
                '\\' => {
                    self.chars.next();
                }
                '\n' => return,
                _ => {}
            }
        }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        for c in self.chars.by_ref() {
            if c == '\n' {
                break;
            }
            line.push(c);
        }
        line
    }

    fn skip(&mut self, wanted: impl Fn(char) -> bool) {
        while self.chars.peek().is_some_and(|&c| wanted(c)) {
            self.chars.next();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn harmless_scripts_pass() {
        for script in [
            "s/foo/bar/g",
            "1,5p",
            "/^#/d",
            "$!N;s/\\n/ /;ta",
            "s|/usr|/opt|",
            "/start/,/end/{/x/d;p}",
            "a\\\nrm x",
            "s/[0-9]\\{3\\}/N/2p",
            "y/abc/xyz/",
            "0~3 d",
            ":a;N;$!ba;s/\\n/,/g",
        ] {
            assert_eq!(files(script), Ok(Vec::new()), "{script}");
        }
    }

    #[test]
    fn files_are_found_and_commands_refused() {
        assert_eq!(files("w /tmp/x"), Ok(vec!["/tmp/x".to_owned()]));
        assert_eq!(files("s/a/b/w out"), Ok(vec!["out".to_owned()]));
        assert_eq!(files("r /etc/passwd"), Ok(vec!["/etc/passwd".to_owned()]));
        for script in [
            "1e rm x",
            "s/.*/rm x/e",
            "s/a/b/ge",
            "/x/ e",
            "e",
            "$!{e rm\n}",
        ] {
            assert!(files(script).is_err(), "{script}");
        }
    }
}
