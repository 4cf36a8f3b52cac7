//! Other tools with options that name a program, and copies of programs.

use super::{Call, dynamic, is_long, script_text};
use crate::sandbox::checker::shell::{Place, Reader, Word};

/// Options of a tool whose value is run.
struct Tool {
    names: &'static [&'static str],
    short: &'static str,
    long: &'static [&'static str],
}

const fn tool(
    names: &'static [&'static str],
    short: &'static str,
    long: &'static [&'static str],
) -> Tool {
    Tool { names, short, long }
}

const TOOLS: &[Tool] = &[
    tool(
        &["tar", "gtar", "bsdtar"],
        "IF",
        &[
            "--checkpoint-action",
            "--to-command",
            "--use-compress-program",
            "--info-script",
            "--new-volume-script",
            "--rsh-command",
            "--rmt-command",
        ],
    ),
    tool(&["rg", "ripgrep"], "", &["--pre", "--hostname-bin"]),
    tool(&["sort", "gsort"], "", &["--compress-program"]),
    tool(&["split", "gsplit"], "", &["--filter"]),
    tool(&["zip"], "", &["-TT", "--unzip-command"]),
    tool(&["man"], "PH", &["--pager", "--html", "--preprocessor"]),
    tool(&["scp", "sftp"], "SD", &[]),
    tool(&["rsync"], "e", &["--rsh", "--rsync-path"]),
    tool(
        &["go"],
        "",
        &["-exec", "-toolexec", "-vettool", "--exec", "--toolexec"],
    ),
    tool(&["wget"], "", &["--use-askpass"]),
    tool(&["tcpdump"], "z", &[]),
    tool(&["ctags"], "", &["--filter-terminator"]),
    tool(&["make", "gmake"], "", &["--eval"]),
    tool(&["less", "more", "most"], "", &[]),
    tool(
        &["crash", "dpkg", "pip"],
        "",
        &["--pre-invoke", "--post-invoke"],
    ),
    tool(&["cargo"], "", &["--config"]),
    tool(&["jest", "vitest"], "", &["--testRunnerCommand"]),
];

/// Editors: an argument may be a command of theirs.
const EDITORS: &[&str] = &[
    "vim",
    "vi",
    "ex",
    "nvim",
    "view",
    "gvim",
    "ed",
    "emacsclient",
    "nano",
    "less",
    "more",
    "most",
];

pub(super) fn look(reader: &mut Reader, call: &Call<'_>, place: &Place) {
    if EDITORS.contains(&call.name) {
        editor(reader, call);
    }
    if matches!(
        call.name,
        "ed" | "ex" | "dc" | "m4" | "gnuplot" | "octave" | "stap" | "bpftrace"
    ) {
        // Their language runs commands, and they read it from their input.
        refuse(reader, call);
    }
    let is_database = matches!(call.name, "sqlite3" | "psql" | "mysql" | "mariadb");
    if is_database
        && [
            ".shell",
            ".system",
            "\\!",
            "\\copy",
            "to program",
            "from program",
            "system ",
        ]
        .iter()
        .any(|text| words_contain(call, text))
    {
        refuse(reader, call);
    }
    if call.name == "ssh" {
        ssh(reader, call, place);
    }
    if matches!(call.name, "make" | "gmake") {
        make(reader, call, place);
    }
    if matches!(call.name, "apt" | "apt-get") && words_contain(call, "invoke") {
        refuse(reader, call);
    }
    if let Some(tool) = TOOLS.iter().find(|tool| tool.names.contains(&call.name)) {
        options(reader, call, place, tool);
    }
}

fn words_contain(call: &Call<'_>, wanted: &str) -> bool {
    call.args
        .iter()
        .filter_map(Word::text)
        .any(|text| text.to_lowercase().contains(wanted))
}

fn refuse(reader: &mut Reader, call: &Call<'_>) {
    reader.refuse(
        "unsafe_construct",
        format!("'{}' is told to run another program", call.name),
    );
}

fn options(reader: &mut Reader, call: &Call<'_>, place: &Place, tool: &Tool) {
    for (at, word) in call.args.iter().enumerate() {
        let Some(text) = word.text() else {
            unknown(reader, word, tool);
            continue;
        };
        if text == "--" {
            return;
        }
        let next = || call.args.get(at + 1).and_then(Word::text);
        if at == 0 && is_old_tar(call, &text) {
            return refuse(reader, call);
        }
        let (name, glued) = text
            .split_once('=')
            .map_or((text.as_str(), None), |(a, b)| (a, Some(b)));
        if tool.long.iter().any(|listed| is_long(name, listed)) {
            match glued.map(str::to_owned).or_else(next) {
                Some(value) => value_of(reader, call, place, &value),
                None => dynamic(reader),
            }
            continue;
        }
        let cluster = text.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
        let Some(letter) = cluster.and_then(|rest| rest.find(|c| tool.short.contains(c))) else {
            continue;
        };
        let rest = &text[letter + 2..];
        let value = if rest.is_empty() {
            next()
        } else {
            Some(rest.to_owned())
        };
        match value {
            Some(value) => value_of(reader, call, place, &value),
            None => dynamic(reader),
        }
    }
}

/// A word known only later: refused when it may be one of the options.
fn unknown(reader: &mut Reader, word: &Word, tool: &Tool) {
    let start = word.prefix();
    let name = start.split('=').next().unwrap_or_default();
    let may_be = if start.is_empty() {
        super::find::is_made_here(reader, word)
    } else {
        start.starts_with('-') && tool.long.iter().any(|listed| is_long(name, listed))
    };
    let glued = start.len() == 2 && start.starts_with('-') && tool.short.contains(&start[1..]);
    if may_be || glued {
        dynamic(reader);
    }
}

/// `tar cIf program x`: letters without a dash.
fn is_old_tar(call: &Call<'_>, text: &str) -> bool {
    call.name.ends_with("tar") && !text.starts_with('-') && text.contains(['I', 'F'])
}

fn value_of(reader: &mut Reader, call: &Call<'_>, place: &Place, value: &str) {
    if call.name.ends_with("tar") {
        let is_harmless = ["dot", "echo", "sleep", "ttyout", "bell", "totals"]
            .iter()
            .any(|action| value == *action || value.starts_with(&format!("{action}=")));
        if is_harmless {
            return;
        }
    }
    if call.name == "cargo" {
        return refuse(reader, call);
    }
    let script = value.strip_prefix("exec=").unwrap_or(value);
    script_text(reader, script, place, call.name);
}

fn editor(reader: &mut Reader, call: &Call<'_>) {
    for word in call.args {
        let Some(text) = word.text() else {
            if word.prefix().starts_with(['-', '+']) {
                dynamic(reader);
            }
            continue;
        };
        let lower = text.to_lowercase();
        let runs = text.contains('!')
            || [
                "system(",
                "term",
                "shell",
                "job_start",
                "jobstart",
                "eval",
                "execute",
                "python",
                "lua",
                "|",
            ]
            .iter()
            .any(|word| lower.contains(word) && text.contains([' ', '(', ':', '+']));
        if runs {
            return refuse(reader, call);
        }
    }
}

/// The remote command is read as a script, and so are commands that run here.
fn ssh(reader: &mut Reader, call: &Call<'_>, place: &Place) {
    let mut args = call.args.iter();
    let mut host = None;
    while let Some(word) = args.next() {
        let text = word.text().unwrap_or_default();
        let option = text.strip_prefix('-').filter(|rest| !rest.is_empty());
        match option {
            Some(rest) if rest.starts_with('o') => {
                let value = if rest.len() > 1 {
                    Some(rest[1..].to_owned())
                } else {
                    args.next().and_then(Word::text)
                };
                ssh_option(reader, call, place, value.as_deref());
            }
            Some(rest) if rest.len() == 1 && "BbcDEeFIiJLlmOPpQRSWw".contains(rest) => {
                args.next();
            }
            Some(_) => {}
            None => {
                host = Some(word);
                break;
            }
        }
    }
    let words: Option<Vec<String>> = args.map(Word::text).collect();
    match words {
        Some(words) if host.is_some() => script_text(reader, &words.join(" "), place, "ssh"),
        Some(_) => {}
        None => dynamic(reader),
    }
}

fn ssh_option(reader: &mut Reader, call: &Call<'_>, place: &Place, value: Option<&str>) {
    let Some(value) = value else {
        return dynamic(reader);
    };
    let (key, script) = value.split_once(['=', ' ']).unwrap_or((value, ""));
    if key.to_lowercase().contains("command") || key.eq_ignore_ascii_case("pkcs11provider") {
        script_text(reader, script.trim_start_matches('='), place, call.name);
    }
}

/// `SHELL=…` and `VARIABLE=$(shell …)`.
fn make(reader: &mut Reader, call: &Call<'_>, place: &Place) {
    for word in call.args {
        let text = word.text().unwrap_or_default();
        if text == "-" || text == "-f-" || super::is_stream(&text) {
            dynamic(reader);
        }
        if text.contains("$(shell") || text.contains("${shell") || text.contains("!=") {
            refuse(reader, call);
        }
        if let Some(shell) = text.strip_prefix("SHELL=") {
            script_text(reader, shell, place, "make");
        }
    }
}
