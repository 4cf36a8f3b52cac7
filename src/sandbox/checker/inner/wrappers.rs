//! Commands whose operands are a command: `env`, `sudo`, `timeout`, `xargs` and others.

use super::wrapper_table::{KNOWN_FLAGS, LOOSE, SCRIPTED, WRAPPERS, Wrapper};
use super::{Call, dynamic, run, script_text, script_word};
use crate::sandbox::checker::shell::{Place, Reader, Word};

pub(super) fn look(reader: &mut Reader, call: &Call<'_>, place: &Place) -> bool {
    if call.name.starts_with("ld-linux") || call.name.starts_with("ld-musl") || call.name == "ld.so"
    {
        loose(reader, call, place);
        return true;
    }
    if let Some(wrapper) = WRAPPERS
        .iter()
        .find(|known| known.names.contains(&call.name))
    {
        precise(reader, call, place, wrapper);
        return true;
    }
    if call.name == "su" || LOOSE.contains(&call.name) {
        loose(reader, call, place);
        return true;
    }
    package_runner(reader, call, place)
}

/// `npm exec -- command`, `pnpm exec`, `yarn exec`, `bun x` and their like.
fn package_runner(reader: &mut Reader, call: &Call<'_>, place: &Place) -> bool {
    if !matches!(call.name, "npm" | "pnpm" | "yarn" | "bun" | "corepack") {
        return false;
    }
    let runs = ["exec", "x", "dlx", "create", "explore", "foreach"];
    let at = call
        .texts()
        .iter()
        .position(|text| text.as_deref().is_some_and(|text| runs.contains(&text)));
    let Some(at) = at else { return false };
    candidates(reader, call, place, &call.args[at + 1..], true);
    true
}

fn loose(reader: &mut Reader, call: &Call<'_>, place: &Place) {
    let scripted = SCRIPTED.contains(&call.name);
    candidates(reader, call, place, call.args, scripted);
}

/// Takes each operand for the command, and with `scripted` also for a script.
fn candidates(reader: &mut Reader, call: &Call<'_>, place: &Place, args: &[Word], scripted: bool) {
    let mut place = place.clone();
    if matches!(call.name, "parallel" | "sem" | "rush" | "entr") {
        place.appended = true;
        place.replaced.extend(["{", "/_"].map(str::to_owned));
    }
    for (at, word) in args.iter().enumerate() {
        let Some(text) = word.text() else {
            if at == 0 {
                dynamic(reader);
            }
            continue;
        };
        let value = option_value(&text);
        if scripted && value.contains([' ', ';', '|', '&', '\n', '$', '`', ':']) {
            script_text(reader, text_of_script(value), &place, call.name);
        }
        let is_option = text.starts_with('-') || text.starts_with('+');
        if is_option || text.is_empty() || !may_be_command(&text) {
            continue;
        }
        run(reader, &args[at..], call, &place, true);
    }
}

/// `EXEC:` and `SYSTEM:` addresses of `socat` are scripts after the colon.
fn text_of_script(value: &str) -> &str {
    let upper = value.to_ascii_uppercase();
    for prefix in ["EXEC:", "SYSTEM:", "SHELL:"] {
        if upper.starts_with(prefix) {
            return &value[prefix.len()..];
        }
    }
    value
}

fn option_value(text: &str) -> &str {
    if text.starts_with("--") {
        return text.split_once('=').map_or("", |(_, value)| value);
    }
    text.strip_prefix("-c").unwrap_or(text)
}

/// What cannot be the name of a program is not taken for one.
fn may_be_command(text: &str) -> bool {
    !text.contains([' ', '\n', ';', '|', '&', '{', '}', '=', '$', '`', ':', ',']) && text.is_ascii()
}

fn precise(reader: &mut Reader, call: &Call<'_>, place: &Place, wrapper: &Wrapper) {
    if call.name == "command" && asks_only(call) {
        return;
    }
    let mut place = place.clone();
    if matches!(call.name, "xargs" | "gxargs") {
        place.appended = true;
        place.replaced.extend(replacements(call));
    }
    let mut walk = Walk {
        at: 0,
        operands: 0,
        unknown: false,
    };
    while let Some(word) = call.args.get(walk.at) {
        let Some(text) = word.text() else {
            return dynamic(reader);
        };
        if text == "--" {
            walk.at += 1;
            walk.operands += usize::from(wrapper.skip > walk.operands && wrapper.skip == 0);
            walk.at += wrapper.skip - walk.operands.min(wrapper.skip);
            break;
        }
        if text.starts_with('-') && text.len() > 1 {
            if option(reader, call, &place, wrapper, &text, &mut walk) {
                return;
            }
            continue;
        }
        if wrapper.assigns && assignment(reader, call, word, &text) {
            walk.at += 1;
            continue;
        }
        if walk.operands < wrapper.skip {
            walk.operands += 1;
            walk.at += 1;
            continue;
        }
        break;
    }
    inner(reader, call, &place, &walk);
}

/// What `xargs -I text` replaces.
fn replacements(call: &Call<'_>) -> Vec<String> {
    let texts = call.texts();
    let mut found = vec!["{}".to_owned()];
    for (at, text) in texts.iter().enumerate() {
        let Some(text) = text else { continue };
        let glued = ["-I", "-i", "-J", "--replace="]
            .iter()
            .find_map(|option| text.strip_prefix(option));
        match glued {
            Some("") => found.extend(texts.get(at + 1).cloned().flatten()),
            Some(token) => found.push(token.to_owned()),
            None => {}
        }
    }
    found.retain(|token| !token.is_empty());
    found
}

struct Walk {
    at: usize,
    operands: usize,
    unknown: bool,
}

fn asks_only(call: &Call<'_>) -> bool {
    call.args
        .first()
        .and_then(Word::text)
        .is_some_and(|text| text.starts_with('-') && text.contains(['v', 'V']))
}

/// Passes an option. True when the whole command is dealt with.
fn option(
    reader: &mut Reader,
    call: &Call<'_>,
    place: &Place,
    wrapper: &Wrapper,
    text: &str,
    walk: &mut Walk,
) -> bool {
    walk.at += 1;
    if let Some(split) = split_string(call, text, walk.at) {
        split_command(reader, call, place, &split, walk.at);
        return true;
    }
    if let Some(long) = text.strip_prefix("--") {
        let (name, value) = text
            .split_once('=')
            .map_or((text, None), |(a, b)| (a, Some(b)));
        let takes = wrapper
            .long_values
            .iter()
            .any(|listed| name == *listed || (long.len() >= 2 && listed.starts_with(name)));
        if value.is_none() {
            walk.at += usize::from(takes);
            walk.unknown |= !takes && !KNOWN_FLAGS.contains(&name);
        }
        return false;
    }
    let mut letters = text[1..].chars();
    while let Some(letter) = letters.next() {
        if wrapper.values.contains(letter) {
            let optional = matches!(call.name, "xargs" | "gxargs") && "iel".contains(letter);
            walk.at += usize::from(letters.as_str().is_empty() && !optional);
            return false;
        }
        walk.unknown |= !wrapper.flags.contains(letter);
    }
    false
}

/// The text of `env -S text`, in each of its spellings.
fn split_string(call: &Call<'_>, text: &str, next: usize) -> Option<Word> {
    let following = || call.args.get(next).cloned().unwrap_or_else(Word::dynamic);
    if call.name != "env" {
        return None;
    }
    if let Some((name, value)) = text.split_once('=')
        && name.len() >= 4
        && "--split-string".starts_with(name)
    {
        return Some(Word::fixed(value));
    }
    let is_long = text.len() >= 4 && "--split-string".starts_with(text);
    let after = text
        .strip_prefix('-')
        .filter(|rest| !rest.starts_with('-'))
        .and_then(|rest| rest.split_once('S'))
        .filter(|(before, _)| before.chars().all(|letter| "i0v".contains(letter)));
    match after {
        Some((_, value)) if !value.is_empty() => Some(Word::fixed(value)),
        Some(_) => Some(following()),
        None => is_long.then(following),
    }
}

/// `env -S` splits its text into words and goes on with them: the same as `env` and those words.
fn split_command(reader: &mut Reader, call: &Call<'_>, place: &Place, text: &Word, next: usize) {
    let Some(text) = text.text() else {
        return dynamic(reader);
    };
    if text.contains(['\\', '$', '#']) {
        return dynamic(reader);
    }
    script_text(reader, &format!("env {text}"), place, call.name);
    for at in next..call.args.len() {
        run(reader, &call.args[at..], call, place, true);
    }
}

/// Notes `NAME=value` before the command.
fn assignment(reader: &mut Reader, call: &Call<'_>, word: &Word, text: &str) -> bool {
    let Some((name, _)) = text.split_once('=') else {
        return false;
    };
    let is_name = !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if is_name {
        reader.assigned(name, word.without_prefix(name.len() + 1), call.name);
    }
    is_name
}

fn inner(reader: &mut Reader, call: &Call<'_>, place: &Place, walk: &Walk) {
    let rest = call.args.get(walk.at..).unwrap_or_default();
    if walk.unknown {
        for at in walk.at + 1..call.args.len() {
            run(reader, &call.args[at..], call, place, true);
        }
    }
    if !rest.is_empty() {
        return run(reader, rest, call, place, false);
    }
    let starts_shell = matches!(call.name, "sudo" | "doas") && has_letter(call, &['s', 'i']);
    if starts_shell {
        return dynamic(reader);
    }
    if place.appended && !matches!(call.name, "xargs" | "gxargs") {
        // The words that come at run time would be the command.
        return dynamic(reader);
    }
    if matches!(call.name, "xargs" | "gxargs") && !place.via.is_empty() && place.via_appends() {
        dynamic(reader);
    }
    if call.name == "coproc" {
        script_word(reader, &Word::dynamic(), place, call.name);
    }
}

fn has_letter(call: &Call<'_>, letters: &[char]) -> bool {
    call.args.iter().filter_map(Word::text).any(|text| {
        let is_short = text.starts_with('-') && !text.starts_with("--");
        (is_short && text.contains(letters)) || text == "--shell" || text == "--login"
    })
}

impl Place {
    /// Whether an outer command appends words to the one at hand.
    fn via_appends(&self) -> bool {
        self.via
            .iter()
            .any(|via| matches!(via.as_str(), "xargs" | "gxargs" | "parallel"))
    }
}
