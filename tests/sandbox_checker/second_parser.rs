//! A second parser reads the same text. A command that it finds and the checker does not must not
//! be allowed: where two parsers differ, one of them is wrong.

use std::collections::BTreeSet;
use std::fs;

use open_agent_kernel::sandbox::checker::{ParsedCommand, SimpleCommand};
use serde_json::Value as Json;
use tree_sitter::{Node, Parser, Tree};

const TABLE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/fixtures/sandbox-checker-cases.json"
);

fn parse(text: &str) -> Tree {
    let mut parser = Parser::new();
    parser
        .set_language(&tree_sitter_bash::LANGUAGE.into())
        .unwrap();
    parser.parse(text, None).unwrap()
}

/// The command names of the tree that are plain text.
fn names(tree: &Tree, text: &str) -> BTreeSet<String> {
    fn walk(node: Node<'_>, text: &str, found: &mut BTreeSet<String>) {
        if node.kind() == "command_name" {
            let name = node.utf8_text(text.as_bytes()).unwrap();
            let is_plain = name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"_-./".contains(&byte));
            if is_plain {
                found.insert(name.rsplit('/').next().unwrap().to_owned());
            }
        }
        for at in 0..node.child_count() {
            walk(node.child(at).unwrap(), text, found);
        }
    }
    let mut found = BTreeSet::new();
    walk(tree.root_node(), text, &mut found);
    found
}

/// Keywords that the second parser takes for commands.
const KEYWORDS: [&str; 16] = [
    "time", "coproc", "then", "do", "done", "for", "if", "fi", "else", "elif", "case", "esac",
    "while", "until", "function", "in",
];

fn differences(command: &str) -> Vec<String> {
    let parsed = ParsedCommand::parse(command);
    if !parsed.is_understood() {
        return Vec::new();
    }
    // The second parser does not join continued lines inside a word.
    let joined = command.replace("\\\n", "");
    let tree = parse(&joined);
    let ours: BTreeSet<String> = parsed
        .commands
        .iter()
        .filter_map(SimpleCommand::name)
        .collect();
    names(&tree, &joined)
        .into_iter()
        .filter(|name| !ours.contains(name) && !KEYWORDS.contains(&name.as_str()))
        .collect()
}

fn check(commands: impl Iterator<Item = String>) -> usize {
    let mut seen = 0;
    for command in commands {
        seen += 1;
        let missed = differences(&command);
        assert!(
            missed.is_empty(),
            "the checker does not see {missed:?} in: {command}"
        );
    }
    seen
}

#[test]
fn the_table_is_read_as_the_second_parser_reads_it() {
    let table: Json = serde_json::from_str(&fs::read_to_string(TABLE).unwrap()).unwrap();
    let cases = table["cases"].as_array().unwrap();
    let commands = cases
        .iter()
        .filter(|case| case["kind"] == "command")
        .map(|case| case["input"].as_str().unwrap().to_owned());
    assert!(check(commands) > 300);
}

#[test]
fn everyday_commands_are_read_as_the_second_parser_reads_them() {
    let commands = crate::everyday::COMMANDS
        .iter()
        .map(|command| (*command).to_owned());
    check(commands);
}

/// Random scripts: where the two differ, the checker has found something that it refuses.
#[test]
fn random_scripts_that_are_understood_are_read_alike() {
    let pieces = [
        "aa ",
        "bb ",
        "cc;",
        "(dd)",
        "$(ee)",
        "\"$(ff)\"",
        "`gg`",
        "'hh ii'",
        "\"jj kk\"",
        "\\",
        "\n",
        " ",
        "; ",
        "| ",
        "&& ",
        "& ",
        "{ ll; } ",
        "if mm; then nn; fi\n",
        "x=1 ",
        "x=$(oo) ",
        ">f ",
        "<<A\npp\n$(qq)\nA\n",
        "<<'A'\nrr\nA\n",
        "<<<\"$(ss)\" ",
        "<(tt) ",
        "$((1+2)) ",
        "${x:-$(uu)} ",
        "for i in a; do vv; done\n",
        "case a in a) ww;; esac\n",
        "[[ -n $x ]] ",
        "! ",
        "# xx\n",
        "f() { yy; }\n",
        "$'\\n' ",
        "a\\\nb ",
    ];
    let mut rng = fastrand::Rng::with_seed(5);
    let commands = (0..4_000).map(|_| {
        let count = rng.usize(1..7);
        (0..count)
            .map(|_| *rng.choice(&pieces).unwrap())
            .collect::<String>()
    });
    let mut understood = 0;
    for command in commands.collect::<Vec<_>>() {
        let tree = parse(&command);
        // Where the second parser itself gives up, it has no opinion.
        if tree.root_node().has_error() {
            continue;
        }
        understood += usize::from(ParsedCommand::parse(&command).is_understood());
        let missed = differences(&command);
        assert!(
            missed.is_empty(),
            "the checker does not see {missed:?} in: {command:?}"
        );
    }
    assert!(understood > 500, "only {understood} were understood");
}
