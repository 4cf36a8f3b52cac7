//! `git`: configuration keys, options and sub-commands that run programs.

use super::{Call, dynamic, is_long, run, script_text};
use crate::sandbox::checker::shell::{Place, Reader, Word};

/// Keys of `-c` that run nothing, or their start.
const HARMLESS: &[&str] = &[
    "user.",
    "color.",
    "core.quotepath",
    "core.autocrlf",
    "core.eol",
    "core.safecrlf",
    "core.filemode",
    "core.ignorecase",
    "core.longpaths",
    "core.abbrev",
    "advice.",
    "init.defaultbranch",
    "commit.gpgsign",
    "tag.gpgsign",
    "gc.auto",
    "log.",
    "diff.algorithm",
    "diff.renames",
    "diff.noprefix",
    "diff.context",
    "diff.mnemonicprefix",
    "pull.rebase",
    "pull.ff",
    "push.default",
    "push.autosetupremote",
    "fetch.prune",
    "merge.ff",
    "merge.conflictstyle",
    "rebase.autosquash",
    "rebase.autostash",
    "protocol.version",
    "http.",
    "submodule.recurse",
    "status.",
    "column.",
    "safe.directory",
    "index.",
    "pack.",
    "feature.",
    "branch.autosetup",
    "rerere.",
    "help.autocorrect",
    "checkout.",
    "clean.requireforce",
];

/// Ends and beginnings of keys whose value is run.
const RUNS: &[&str] = &[
    "sshcommand",
    "pager",
    "editor",
    "external",
    "command",
    "cmd",
    "helper",
    "fsmonitor",
    "program",
    "textconv",
    "driver",
    "clean",
    "smudge",
    "process",
    "askpass",
    "hookspath",
    "gitproxy",
    "uploadpack",
    "receivepack",
    "difftool",
    "mergetool",
    "path",
    "sendmail",
    "tool",
    "filter",
];

/// Long options of sub-commands whose value is run.
const OPTIONS: &[&str] = &[
    "--upload-pack",
    "--receive-pack",
    "--exec",
    "--open-files-in-pager",
    "--extcmd",
    "--env-filter",
    "--tree-filter",
    "--index-filter",
    "--parent-filter",
    "--msg-filter",
    "--commit-filter",
    "--tag-name-filter",
    "--subdirectory-filter",
    "--setup",
    "--smtp-server",
    "--sendmail-cmd",
    "--to-cmd",
    "--cc-cmd",
    "--use-mailmap-program",
];

pub(super) fn look(reader: &mut Reader, call: &Call<'_>, place: &Place) -> bool {
    if call.name != "git" {
        return false;
    }
    let mut at = 0;
    while let Some(word) = call.args.get(at) {
        let text = match word.text() {
            Some(text) => text,
            None => word.prefix(),
        };
        at += 1;
        match text.as_str() {
            "-c" | "--config" => {
                setting_word(reader, call.args.get(at), place);
                at += 1;
            }
            "-C" | "--git-dir" | "--work-tree" | "--namespace" | "--super-prefix" => at += 1,
            long if long.starts_with("--exec-path=") || long.starts_with("--config-env") => {
                refuse(reader);
            }
            glued if glued.starts_with("-c") => setting(reader, &glued[2..], place),
            option if option.starts_with('-') => {}
            "" => {
                dynamic(reader);
                return true;
            }
            subcommand => {
                let rest = call.args.get(at..).unwrap_or_default();
                subcommand_of(reader, call, place, subcommand, rest);
                return true;
            }
        }
    }
    if place.appended {
        dynamic(reader);
    }
    true
}

fn refuse(reader: &mut Reader) {
    reader.refuse("unsafe_construct", "git is told to run another program");
}

fn setting_word(reader: &mut Reader, word: Option<&Word>, place: &Place) {
    let Some(word) = word else { return };
    match word.text() {
        Some(text) => setting(reader, &text, place),
        None if is_harmless(&word.prefix().to_lowercase()) && word.prefix().contains('=') => {}
        None => dynamic(reader),
    }
}

fn is_harmless(key: &str) -> bool {
    let is_proxy = key.contains("proxy") || key.contains("askpass");
    !is_proxy && HARMLESS.iter().any(|known| key.starts_with(known))
}

/// `key=value` of `-c`.
fn setting(reader: &mut Reader, text: &str, place: &Place) {
    let (key, value) = text.split_once('=').unwrap_or((text, ""));
    let key = key.to_lowercase();
    if is_harmless(&key) {
        return;
    }
    if !value_is_run(reader, &key, value, place) {
        reader.refuse(
            "unsafe_construct",
            format!("git setting '{key}' is not known to be harmless"),
        );
    }
}

/// Reads the value of a key that git runs. False when the key is not one.
fn value_is_run(reader: &mut Reader, key: &str, value: &str, place: &Place) -> bool {
    if key.starts_with("alias.") {
        let script = value
            .strip_prefix('!')
            .map_or_else(|| format!("git {value}"), str::to_owned);
        script_text(reader, &script, place, "git alias");
        return true;
    }
    let last = key.rsplit('.').next().unwrap_or(key);
    let is_run = key.starts_with("pager.") || RUNS.iter().any(|known| last.contains(known));
    if is_run {
        let script = value.strip_prefix('!').unwrap_or(value);
        if last == "hookspath" {
            refuse(reader);
        }
        script_text(reader, script, place, "git setting");
    }
    is_run
}

fn subcommand_of(
    reader: &mut Reader,
    call: &Call<'_>,
    place: &Place,
    subcommand: &str,
    rest: &[Word],
) {
    match subcommand {
        "bisect" if first_is(rest, "run") => run(reader, &rest[1..], call, place, false),
        "submodule" => submodule(reader, place, rest),
        "config" => return config(reader, place, rest),
        "for-each-repo" | "credential" | "daemon" | "shell" | "instaweb" | "web--browse" => {
            refuse(reader);
        }
        _ => {}
    }
    options(reader, place, subcommand, rest);
}

fn first_is(rest: &[Word], wanted: &str) -> bool {
    rest.first().and_then(Word::text).as_deref() == Some(wanted)
}

/// `foreach` takes a script: its words joined, or one word.
fn submodule(reader: &mut Reader, place: &Place, rest: &[Word]) {
    let texts: Vec<Option<String>> = rest.iter().map(Word::text).collect();
    let Some(at) = texts
        .iter()
        .position(|text| text.as_deref() == Some("foreach"))
    else {
        return;
    };
    let words: Option<Vec<String>> = texts
        .into_iter()
        .skip(at + 1)
        .skip_while(|text| text.as_deref().is_some_and(|text| text.starts_with("--")))
        .collect();
    match words {
        Some(words) => script_text(reader, &words.join(" "), place, "git submodule foreach"),
        None => dynamic(reader),
    }
}

/// `git config key value` writes a setting that a later call runs.
fn config(reader: &mut Reader, place: &Place, rest: &[Word]) {
    let operands: Vec<&Word> = rest
        .iter()
        .filter(|word| !word.prefix().starts_with('-'))
        .filter(|word| {
            !matches!(
                word.text().as_deref(),
                Some("set" | "get" | "list" | "unset")
            )
        })
        .collect();
    for pair in operands.windows(2) {
        let Some(key) = pair[0].text() else {
            dynamic(reader);
            continue;
        };
        let key = key.to_lowercase();
        if !key.contains('.') || is_harmless(&key) {
            continue;
        }
        match pair[1].text() {
            Some(value) => {
                value_is_run(reader, &key, &value, place);
            }
            None => dynamic(reader),
        }
    }
}

fn options(reader: &mut Reader, place: &Place, subcommand: &str, rest: &[Word]) {
    let mut at = 0;
    while let Some(word) = rest.get(at) {
        at += 1;
        let Some(text) = word.text() else {
            let start = word.prefix();
            if start.is_empty() && super::find::is_made_here(reader, word) {
                dynamic(reader);
            }
            let cut = start.split('=').next().unwrap_or_default();
            if start.starts_with("--") && OPTIONS.iter().any(|known| is_option(cut, known)) {
                dynamic(reader);
            }
            continue;
        };
        if text == "--" {
            return;
        }
        if text.contains("ext::") {
            refuse(reader);
        }
        let value = |offset: usize| rest.get(offset).and_then(Word::text);
        if text.starts_with("--") {
            let (name, glued) = text
                .split_once('=')
                .map_or((text.as_str(), None), |(a, b)| (a, Some(b)));
            if name == "--config" {
                setting_word(
                    reader,
                    glued.map(Word::fixed).as_ref().or(rest.get(at)),
                    place,
                );
            } else if OPTIONS.iter().any(|known| is_option(name, known)) {
                let optional = is_option(name, "--open-files-in-pager");
                let text = glued
                    .map(str::to_owned)
                    .or_else(|| if optional { None } else { value(at) });
                match text {
                    Some(text) => script_text(reader, &text, place, "git"),
                    None if optional => {}
                    None => dynamic(reader),
                }
            }
            continue;
        }
        short(reader, place, subcommand, &text, value(at), rest.get(at));
    }
}

/// Options of two letters stay as they are: `--ex` may be more than one option, git refuses it.
fn is_option(given: &str, listed: &str) -> bool {
    is_long(given, listed)
}

fn short(
    reader: &mut Reader,
    place: &Place,
    subcommand: &str,
    text: &str,
    next: Option<String>,
    next_word: Option<&Word>,
) {
    let letter = match subcommand {
        "grep" => 'O',
        "rebase" | "difftool" => 'x',
        "clone" | "ls-remote" | "fetch-pack" => 'u',
        "diff" | "log" | "show" => return,
        _ => 'c',
    };
    let Some(cluster) = text.strip_prefix('-').filter(|rest| !rest.starts_with('-')) else {
        return;
    };
    if subcommand == "clone" && cluster.starts_with('c') {
        let glued = Some(&cluster[1..])
            .filter(|rest| !rest.is_empty())
            .map(Word::fixed);
        return setting_word(reader, glued.as_ref().or(next_word), place);
    }
    if letter == 'c' {
        return;
    }
    let Some(at) = cluster.find(letter) else {
        return;
    };
    let rest = &cluster[at + 1..];
    let value = if rest.is_empty() && letter != 'O' {
        next
    } else {
        Some(rest.to_owned())
    };
    match value {
        Some(value) => script_text(reader, &value, place, "git"),
        None => dynamic(reader),
    }
}
