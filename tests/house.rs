//! The house plan, checked: imports only go down, and only `node` knows napi.
#![allow(clippy::unwrap_used, reason = "a failing helper fails its test")]

use std::fs;
use std::path::{Path, PathBuf};

/// The floors, from the top down. A module may import from itself and from those after it.
const FLOORS: &[&str] = &[
    "node",
    "agent",
    "runtime",
    "engine",
    "render",
    "snapshot",
    "permission",
    "hook",
    "mcp",
    "memory",
    "sandbox",
    "tool",
    "model",
    "store",
    "cloudbase",
    "base",
    "protocol",
    "error",
];
/// Longest file that is never right.
const MAX_LINES: usize = 1_000;

fn sources() -> Vec<PathBuf> {
    fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    walk(&root().join("src"), &mut found);
    assert!(found.len() > 20, "the sources were not found");
    found
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The floor that a source file belongs to; none for the crate root and the programs.
fn floor_of(path: &Path) -> Option<String> {
    let relative = path.strip_prefix(root().join("src")).unwrap();
    let first = relative
        .components()
        .next()
        .unwrap()
        .as_os_str()
        .to_str()
        .unwrap();
    let name = first.trim_end_matches(".rs");
    (name != "lib" && name != "bin").then(|| name.to_owned())
}

/// The floors named in `use crate::…` lines and in paths that begin with `crate::`.
fn imports(source: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (number, line) in source.lines().enumerate() {
        if line.trim_start().starts_with("//") {
            continue;
        }
        for (at, _) in line.match_indices("crate::") {
            // `open_agent_kernel::crate::` does not exist; `$crate` and `pub(crate)` have no `::`.
            let rest = &line[at + "crate::".len()..];
            let end = rest
                .find(|c: char| !c.is_alphanumeric() && c != '_')
                .unwrap_or(rest.len());
            found.push((number + 1, &rest[..end]));
        }
    }
    found
}

fn height(floor: &str) -> usize {
    FLOORS
        .iter()
        .position(|known| *known == floor)
        .unwrap_or_else(|| panic!("`{floor}` is no floor of the house: see docs/architecture.md"))
}

#[test]
fn imports_only_go_down() {
    let mut upward = Vec::new();
    for path in sources() {
        let Some(floor) = floor_of(&path) else {
            continue;
        };
        let source = fs::read_to_string(&path).unwrap();
        for (line, target) in imports(&source) {
            if height(target) < height(&floor) {
                upward.push(format!(
                    "{}:{line}: {floor} imports {target}",
                    path.display()
                ));
            }
        }
    }
    assert!(
        upward.is_empty(),
        "imports that go up:\n{}",
        upward.join("\n")
    );
}

#[test]
fn only_node_knows_napi() {
    for path in sources() {
        if floor_of(&path).as_deref() == Some("node") {
            continue;
        }
        let source = fs::read_to_string(&path).unwrap();
        let line = source
            .lines()
            .position(|line| line.contains("napi::") || line.contains("napi_derive"));
        assert_eq!(line, None, "{} knows napi", path.display());
    }
}

#[test]
fn protocol_is_pure_data() {
    for path in sources() {
        if floor_of(&path).as_deref() != Some("protocol") {
            continue;
        }
        let source = fs::read_to_string(&path).unwrap();
        for foreign in ["tokio::", "reqwest::", "std::fs", "std::net"] {
            assert!(
                !source.contains(foreign),
                "{} uses {foreign}",
                path.display()
            );
        }
    }
}

#[test]
fn no_file_is_too_long() {
    for path in sources() {
        let lines = fs::read_to_string(&path).unwrap().lines().count();
        assert!(
            lines <= MAX_LINES,
            "{} has {lines} lines: two things live there",
            path.display()
        );
    }
}

#[test]
fn every_room_says_what_it_is_for() {
    for path in sources() {
        let source = fs::read_to_string(&path).unwrap();
        assert!(
            source.starts_with("//!"),
            "{} does not say what it is for",
            path.display()
        );
    }
}
