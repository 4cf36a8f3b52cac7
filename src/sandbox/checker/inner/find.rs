//! `find` and `fd`: actions that run commands or remove files.

use super::{Call, dynamic, run};
use crate::sandbox::checker::shell::{Part, Place, Reader, Word};

pub(super) fn look(reader: &mut Reader, call: &Call<'_>, place: &Place) -> bool {
    match call.name {
        "find" | "gfind" => find(reader, call, place),
        "fd" | "fdfind" => fd(reader, call, place),
        _ => return false,
    }
    true
}

fn find(reader: &mut Reader, call: &Call<'_>, place: &Place) {
    if place.appended {
        return dynamic(reader);
    }
    let mut inner = place.clone();
    inner.appended = true;
    inner.replaced.push("{}".to_owned());
    let mut at = 0;
    while let Some(word) = call.args.get(at) {
        at += 1;
        match word.text().as_deref() {
            Some("-exec" | "-execdir" | "-ok" | "-okdir") => {
                let rest = &call.args[at..];
                let end = rest.iter().enumerate().position(|(index, word)| {
                    match word.text().as_deref() {
                        Some(";") => true,
                        Some("+") => index > 0 && rest[index - 1].text().as_deref() == Some("{}"),
                        _ => false,
                    }
                });
                let words = &rest[..end.unwrap_or(rest.len())];
                run(reader, words, call, &inner, false);
                at += words.len() + 1;
            }
            Some("-delete") => {
                for name in ["rm", "unlink"] {
                    run(reader, &[Word::fixed(name)], call, place, false);
                }
            }
            // Unquoted and from anywhere, such a word may be an action.
            None if word.prefix().is_empty() && is_made_here(reader, word) => {
                dynamic(reader);
            }
            _ => {}
        }
    }
}

/// Whether a word begins with text that the script itself makes at run time, so that it may be an
/// option. A variable of the environment is not made by the script.
pub(super) fn is_made_here(reader: &Reader, word: &Word) -> bool {
    let is_empty = |part: &&Part| matches!(part, Part::Text { text, .. } if text.is_empty());
    match word.parts.iter().find(|part| !is_empty(part)) {
        Some(Part::Variable { name, .. }) if reader.out.variables.is_set(name) => {
            match reader.out.variables.values(name) {
                Some(values) => values.iter().any(may_be_option),
                None => true,
            }
        }
        Some(Part::Dynamic) => true,
        _ => false,
    }
}

fn may_be_option(value: &Word) -> bool {
    let is_empty = |part: &&Part| matches!(part, Part::Text { text, .. } if text.is_empty());
    match value.parts.iter().find(|part| !is_empty(part)) {
        Some(Part::Text { text, .. }) => text.starts_with('-'),
        Some(Part::Output | Part::Tilde(_)) | None => false,
        Some(Part::Variable { .. } | Part::Dynamic) => true,
    }
}

fn fd(reader: &mut Reader, call: &Call<'_>, place: &Place) {
    let mut inner = place.clone();
    inner.appended = true;
    inner.replaced.push("{}".to_owned());
    for (at, word) in call.args.iter().enumerate() {
        let Some(text) = word.text() else { continue };
        let (name, glued) = text
            .split_once('=')
            .map_or((text.as_str(), None), |(a, b)| (a, Some(b)));
        let is_long =
            name.len() > 3 && ("--exec".starts_with(name) || "--exec-batch".starts_with(name));
        let short = text
            .strip_prefix('-')
            .filter(|rest| !rest.starts_with('-'))
            .and_then(|rest| rest.find(['x', 'X']).map(|at| &rest[at + 1..]));
        let first = match (is_long, glued, short) {
            (true, Some(value), _) => Some(Word::fixed(value)),
            (_, _, Some(rest)) if !rest.is_empty() => Some(Word::fixed(rest)),
            (true, None, _) | (_, _, Some(_)) => None,
            _ => continue,
        };
        let rest = &call.args[at + 1..];
        let words: Vec<Word> = first.into_iter().chain(rest.iter().cloned()).collect();
        run(reader, &words, call, &inner, false);
    }
}
