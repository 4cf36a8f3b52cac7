//! Patterns of file names, matched against folders component by component.

use crate::sandbox::checker::environment::Platform;
use crate::sandbox::checker::scope::fold;

/// An absolute pattern.
pub(super) struct Pattern {
    parts: Vec<String>,
}

impl Pattern {
    /// None when it climbs with `..` after a pattern, which cannot be followed.
    pub(super) fn new(pattern: &str, folder: &str) -> Option<Self> {
        let whole = if pattern.starts_with('/') {
            pattern.to_owned()
        } else {
            format!("{}/{pattern}", escaped(folder))
        };
        let mut parts: Vec<String> = Vec::new();
        for part in whole
            .split('/')
            .filter(|part| !part.is_empty() && *part != ".")
        {
            if part != ".." {
                parts.push(part.to_owned());
                continue;
            }
            if parts.iter().any(|part| is_pattern(part)) {
                return None;
            }
            parts.pop();
        }
        Some(Self { parts })
    }

    /// The folder before the first pattern.
    pub(super) fn folder(&self) -> String {
        let plain = self.parts.iter().take_while(|part| !is_pattern(part));
        let names: Vec<String> = plain.map(|part| unescaped(part)).collect();
        format!("/{}", names.join("/"))
    }

    /// Whether a name that matches may be the folder or lie in it.
    pub(super) fn may_reach(&self, folder: &str, platform: Platform) -> bool {
        let names: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
        names.len() <= self.parts.len()
            && names.iter().zip(&self.parts).all(|(name, part)| {
                let part = fold(part, platform);
                matches(
                    &part.chars().collect::<Vec<_>>(),
                    &name.chars().collect::<Vec<_>>(),
                )
            })
    }
}

fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        if matches!(c, '*' | '?' | '[' | ']' | '\\') {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

fn unescaped(text: &str) -> String {
    let mut plain = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        plain.push(if c == '\\' {
            chars.next().unwrap_or(c)
        } else {
            c
        });
    }
    plain
}

fn is_pattern(part: &str) -> bool {
    let mut chars = part.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => {
                chars.next();
            }
            '*' | '?' | '[' => return true,
            _ => {}
        }
    }
    false
}

/// Matches one component. A bracket list is taken for any character: too much is refused, not too
/// little. Linear in the length of both but for `*`, where only the last one is tried again.
fn matches(pattern: &[char], name: &[char]) -> bool {
    let (mut at, mut from) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while from < name.len() {
        let step = step(pattern, at, name[from]);
        match step {
            Step::Star => {
                star = Some((at + 1, from));
                at += 1;
            }
            Step::Match(next) => {
                at = next;
                from += 1;
            }
            Step::Differs => match star {
                Some((after, start)) => {
                    star = Some((after, start + 1));
                    at = after;
                    from = start + 1;
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|&c| c == '*')
}

enum Step {
    Star,
    Match(usize),
    Differs,
}

fn step(pattern: &[char], at: usize, c: char) -> Step {
    match pattern.get(at) {
        Some('*') => Step::Star,
        Some('?') => Step::Match(at + 1),
        Some('[') => {
            let rest = &pattern[at + 1..];
            // A `]` right after the opening is a member.
            let skip = rest.iter().take_while(|c| matches!(c, '!' | '^')).count() + 1;
            match rest.iter().skip(skip).position(|&c| c == ']') {
                Some(end) => Step::Match(at + 1 + skip + end + 1),
                None if c == '[' => Step::Match(at + 1),
                None => Step::Differs,
            }
        }
        Some('\\') if pattern.get(at + 1) == Some(&c) => Step::Match(at + 2),
        Some(&plain) if plain == c && plain != '\\' => Step::Match(at + 1),
        _ => Step::Differs,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reaches(pattern: &str, folder: &str) -> bool {
        let pattern = Pattern::new(pattern, "/project").unwrap();
        pattern.may_reach(folder, Platform::Linux)
    }

    #[test]
    fn patterns_reach_what_the_shell_would_find() {
        assert!(reaches("/e??/passwd", "/etc"));
        assert!(reaches("/[e]tc/*", "/etc"));
        assert!(reaches("/*/passwd", "/etc"));
        assert!(reaches("/*t*/x", "/etc"));
        assert!(reaches("*", "/project/secret"));
        assert!(!reaches("src/*.ts", "/etc"));
        assert!(!reaches("/etc*x/y", "/etc"));
        assert!(!reaches(r"/e\*c/x", "/etc"));
    }

    #[test]
    fn climbing_after_a_pattern_is_not_followed() {
        assert!(Pattern::new("*/../../etc/passwd", "/project").is_none());
        assert_eq!(
            Pattern::new("../a*", "/project/b").unwrap().folder(),
            "/project"
        );
    }
}
