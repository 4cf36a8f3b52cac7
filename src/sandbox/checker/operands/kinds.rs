//! What commands do with their operands.

use crate::sandbox::checker::scope::Operation;
use crate::sandbox::checker::shell::{SimpleCommand, Word};

/// Commands that open none of their operands.
const OPEN_NOTHING: &[&str] = &[
    "echo", "printf", "test", "[", "export", "return", "exit", ":", "true", "false", "declare",
    "local", "readonly", "typeset", "unset", "set", "shift", "wait", "kill", "sleep", "seq",
    "expr", "basename", "dirname", "type", "which", "alias", "trap", "break", "continue", "let",
    "read", "getopts", "umask", "ulimit", "eval",
];

/// Commands that write every operand.
const WRITERS: &[&str] = &[
    "rm", "rmdir", "unlink", "mv", "mkdir", "touch", "truncate", "tee", "chmod", "chown", "chgrp",
    "patch", "shred", "mkfifo", "mknod", "setfacl", "chattr", "unzip",
];
/// Commands that write their last operand.
const COPIERS: &[&str] = &["cp", "ln", "install", "rsync", "scp", "gcp", "link"];
/// Commands with `-o file`.
const OUTPUTS: &[&str] = &[
    "curl", "wget", "gcc", "cc", "g++", "clang", "clang++", "ld", "sort", "rustc", "pandoc",
];
/// Commands whose first operand is a program.
const PROGRAMS: &[&str] = &["sed", "gsed", "awk", "gawk", "mawk", "nawk"];

pub(super) fn opens_nothing(name: &str) -> bool {
    OPEN_NOTHING.contains(&name)
}

/// Whether the contents of whole folders are read or changed.
pub(super) fn walks_folders(name: &str, command: &SimpleCommand) -> bool {
    let flags = |letters: &[char]| {
        command
            .argv
            .iter()
            .skip(1)
            .filter_map(Word::text)
            .any(|text| {
                let is_short = text.starts_with('-') && !text.starts_with("--");
                (is_short && text.contains(letters)) || text == "--recursive" || text == "--archive"
            })
    };
    match name {
        "grep" | "egrep" | "fgrep" | "zgrep" | "cp" | "rm" | "chmod" | "chown" | "chgrp"
        | "scp" => flags(&['r', 'R', 'a']),
        "rg" | "ag" | "ack" | "tar" | "rsync" | "zip" | "mv" | "7z" => true,
        "find" => command.argv.iter().filter_map(Word::text).any(|text| {
            matches!(
                text.as_str(),
                "-exec" | "-execdir" | "-delete" | "-ok" | "-okdir"
            )
        }),
        _ => false,
    }
}

/// For each argument what is done with it; none for text that is no path.
pub(super) fn roles(name: &str, command: &SimpleCommand) -> Vec<Option<Operation>> {
    let texts: Vec<String> = command
        .argv
        .iter()
        .skip(1)
        .map(|word| word.text().unwrap_or_else(|| word.prefix()))
        .collect();
    let default = if WRITERS.contains(&name) {
        Operation::Write
    } else {
        Operation::Read
    };
    let mut roles = vec![Some(default); texts.len()];
    let operands: Vec<usize> = (0..texts.len())
        .filter(|&at| !texts[at].starts_with('-') || texts[at] == "-")
        .collect();
    if COPIERS.contains(&name) {
        copier(&texts, &operands, &mut roles);
    }
    if PROGRAMS.contains(&name) {
        program(name, &texts, &operands, &mut roles);
    }
    if OUTPUTS.contains(&name) {
        after(
            &texts,
            &["-o", "-O", "--output", "--output-document"],
            &mut roles,
        );
    }
    match name {
        "dd" => dd(&texts, &mut roles),
        "tar" | "gtar" | "bsdtar" => tar(&texts, &mut roles),
        "find" => find(&texts, &mut roles),
        "git" => git(&texts, &operands, &mut roles),
        _ => {}
    }
    roles
}

fn copier(texts: &[String], operands: &[usize], roles: &mut [Option<Operation>]) {
    let has_target = texts
        .iter()
        .any(|text| text.starts_with("-t") || text.starts_with("--t"));
    if has_target {
        return roles.fill(Some(Operation::Write));
    }
    if let Some(&last) = operands.last() {
        roles[last] = Some(Operation::Write);
    }
}

fn program(name: &str, texts: &[String], operands: &[usize], roles: &mut [Option<Operation>]) {
    let elsewhere = texts.iter().any(|text| {
        text.starts_with("-e")
            || text.starts_with("-f")
            || text.starts_with("--e")
            || text.starts_with("--f")
            || (text.starts_with('-') && !text.starts_with("--") && text.ends_with(['e', 'f']))
    });
    let in_place = texts.iter().any(|text| {
        text.starts_with("--in-place")
            || (text.starts_with('-') && !text.starts_with("--") && text.contains('i'))
    });
    if name.ends_with("sed") && in_place {
        roles.fill(Some(Operation::Write));
    }
    let values: Vec<usize> = (1..texts.len())
        .filter(|&at| matches!(texts[at - 1].as_str(), "-F" | "-v" | "-e" | "--expression"))
        .collect();
    for &at in &values {
        roles[at] = None;
    }
    if elsewhere {
        return;
    }
    if let Some(&first) = operands.iter().find(|at| !values.contains(at)) {
        roles[first] = None;
    }
}

fn after(texts: &[String], options: &[&str], roles: &mut [Option<Operation>]) {
    for at in 0..texts.len() {
        let name = texts[at].split('=').next().unwrap_or_default();
        if !options.contains(&name) {
            continue;
        }
        roles[at] = Some(Operation::Write);
        if let Some(next) = roles.get_mut(at + 1).filter(|_| !texts[at].contains('=')) {
            *next = Some(Operation::Write);
        }
    }
}

fn dd(texts: &[String], roles: &mut [Option<Operation>]) {
    for (text, role) in texts.iter().zip(roles) {
        if text.starts_with("of=") {
            *role = Some(Operation::Write);
        }
    }
}

fn tar(texts: &[String], roles: &mut [Option<Operation>]) {
    let letters = texts
        .first()
        .map_or("", |text| text.trim_start_matches('-'));
    let extracts = letters.contains('x')
        || texts
            .iter()
            .any(|text| text == "--extract" || text == "--get");
    let creates = letters.contains(['c', 'r', 'u']) || texts.iter().any(|text| text == "--create");
    if extracts {
        after(texts, &["-C", "--directory"], roles);
    }
    if creates {
        after(texts, &["-f", "--file"], roles);
        if letters.contains('f')
            && let Some(file) = roles.get_mut(1)
        {
            *file = Some(Operation::Write);
        }
    }
}

fn find(texts: &[String], roles: &mut [Option<Operation>]) {
    if texts.iter().any(|text| text == "-delete") {
        for (text, role) in texts.iter().zip(roles.iter_mut()) {
            if text.starts_with('-') {
                break;
            }
            *role = Some(Operation::Write);
        }
    }
    after(texts, &["-fprint", "-fprint0", "-fprintf", "-fls"], roles);
}

fn git(texts: &[String], operands: &[usize], roles: &mut [Option<Operation>]) {
    let Some(&first) = operands.first() else {
        return;
    };
    if matches!(texts[first].as_str(), "clone" | "init" | "clean")
        && let Some(&last) = operands.last().filter(|&&last| last != first)
    {
        roles[last] = Some(Operation::Write);
    }
}
