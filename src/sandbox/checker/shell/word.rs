//! Words after quote removal.

/// A piece of a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// Static text. `quoted` text is never a pattern.
    Text { text: String, quoted: bool },
    /// `~` or `~user` at the start.
    Tilde(String),
    /// The value of a variable.
    Variable { name: String, quoted: bool },
    /// What a command prints that prints no option: a branch, a date, a folder.
    Output,
    /// Known only when the command runs.
    Dynamic,
}

/// A word of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Word {
    pub parts: Vec<Part>,
    /// Stands for `<(…)` or `>(…)`.
    pub is_process: bool,
}

impl Word {
    /// A word of static, quoted text.
    pub fn fixed(text: impl Into<String>) -> Self {
        Self {
            parts: vec![Part::Text {
                text: text.into(),
                quoted: true,
            }],
            is_process: false,
        }
    }

    /// A word of which nothing is known.
    pub fn dynamic() -> Self {
        Self {
            parts: vec![Part::Dynamic],
            is_process: false,
        }
    }

    /// A word that names a process substitution.
    pub fn process() -> Self {
        Self {
            parts: vec![Part::Dynamic],
            is_process: true,
        }
    }

    /// The text, when it is known before the command runs. Patterns are not expanded.
    pub fn text(&self) -> Option<String> {
        let mut text = String::new();
        for part in &self.parts {
            match part {
                Part::Text { text: more, .. } => text.push_str(more),
                Part::Tilde(user) => {
                    text.push('~');
                    text.push_str(user);
                }
                Part::Variable { .. } | Part::Output | Part::Dynamic => return None,
            }
        }
        Some(text)
    }

    /// The text, when it is known and no pattern is in it.
    pub fn literal(&self) -> Option<String> {
        // A bracket alone is the command `[`.
        self.text().filter(|text| text == "[" || !self.is_pattern())
    }

    /// Whether unquoted pattern characters are in the word.
    pub fn is_pattern(&self) -> bool {
        self.parts.iter().any(|part| {
            matches!(part, Part::Text { text, quoted: false } if text.contains(['*', '?', '[']))
        })
    }

    /// The static text at the start.
    pub fn prefix(&self) -> String {
        let mut prefix = String::new();
        for part in &self.parts {
            match part {
                Part::Text { text, .. } => prefix.push_str(text),
                _ => break,
            }
        }
        prefix
    }

    /// The word without its first `count` bytes, which must be static text.
    #[must_use]
    pub fn without_prefix(&self, count: usize) -> Self {
        let mut left = count;
        let mut parts = Vec::new();
        for part in &self.parts {
            match part {
                Part::Text { text, quoted } if left > 0 => {
                    let cut = left.min(text.len());
                    left -= cut;
                    let rest = text.get(cut..).unwrap_or_default();
                    if !rest.is_empty() {
                        parts.extend(split_tilde(rest, *quoted));
                    }
                }
                other => parts.push(other.clone()),
            }
        }
        Self {
            parts,
            is_process: self.is_process,
        }
    }

    /// The word for people.
    pub fn shown(&self) -> String {
        if self.is_process {
            return "<(…)".to_owned();
        }
        let mut shown = String::new();
        for part in &self.parts {
            match part {
                Part::Text { text, .. } => shown.push_str(text),
                Part::Tilde(user) => {
                    shown.push('~');
                    shown.push_str(user);
                }
                Part::Variable { name, .. } => {
                    shown.push_str("${");
                    shown.push_str(name);
                    shown.push('}');
                }
                Part::Output | Part::Dynamic => shown.push_str("$(…)"),
            }
        }
        shown
    }
}

/// Text that has become the start of a word: an unquoted `~` stands for a home folder there.
fn split_tilde(text: &str, quoted: bool) -> Vec<Part> {
    let plain = |text: &str| Part::Text {
        text: text.to_owned(),
        quoted,
    };
    match text.strip_prefix('~').filter(|_| !quoted) {
        None => vec![plain(text)],
        Some(rest) => {
            let end = rest.find('/').unwrap_or(rest.len());
            vec![Part::Tilde(rest[..end].to_owned()), plain(&rest[end..])]
        }
    }
}

/// Decodes the text between `$'` and `'`. None when a byte of it is no text, or would end it.
pub(super) fn decode_ansi(text: &str) -> Option<String> {
    let mut decoded = String::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\\' {
            decoded.push(c);
            continue;
        }
        let escape = chars.next()?;
        let value = match escape {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            'a' => '\u{7}',
            'b' => '\u{8}',
            'e' | 'E' => '\u{1b}',
            'f' => '\u{c}',
            'v' => '\u{b}',
            '\\' | '\'' | '"' | '?' => escape,
            'x' => number(&mut chars, 16, 2, None).filter(char::is_ascii)?,
            'u' => number(&mut chars, 16, 4, None)?,
            'U' => number(&mut chars, 16, 8, None)?,
            '0'..='7' => number(&mut chars, 8, 2, escape.to_digit(8)).filter(char::is_ascii)?,
            'c' => return None,
            other => {
                decoded.push('\\');
                other
            }
        };
        if value == '\0' {
            return None;
        }
        decoded.push(value);
    }
    Some(decoded)
}

fn number(
    chars: &mut std::iter::Peekable<std::str::Chars<'_>>,
    radix: u32,
    most: usize,
    first: Option<u32>,
) -> Option<char> {
    let mut value = first;
    for _ in 0..most {
        let Some(digit) = chars.peek().and_then(|c| c.to_digit(radix)) else {
            break;
        };
        chars.next();
        value = Some(value.unwrap_or(0).checked_mul(radix)?.checked_add(digit)?);
    }
    char::from_u32(value?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ansi_quoting_is_decoded() {
        assert_eq!(decode_ansi(r"\x72\u006d").as_deref(), Some("rm"));
        assert_eq!(decode_ansi(r"\162\155").as_deref(), Some("rm"));
        assert_eq!(decode_ansi(r"r\0m"), None);
        assert_eq!(decode_ansi(r"\xff"), None);
        assert_eq!(decode_ansi(r"\q\'").as_deref(), Some("\\q'"));
    }

    #[test]
    fn a_cut_word_may_start_at_a_home_folder() {
        let word = Word {
            parts: vec![Part::Text {
                text: "of=~dev/x".to_owned(),
                quoted: false,
            }],
            is_process: false,
        };
        assert_eq!(
            word.without_prefix(3).parts[0],
            Part::Tilde("dev".to_owned())
        );
        assert_eq!(word.without_prefix(3).shown(), "~dev/x");
    }
}
