//! Tables in the documentation, compared with the source.
#![allow(clippy::unwrap_used, reason = "a failing helper fails its test")]

use std::fs;
use std::path::Path;

use open_agent_kernel::base::environment::variables;
use open_agent_kernel::error::ErrorKind;

/// The rows of the Markdown tables of a file, as trimmed cells without code marks.
fn rows(name: &str) -> Vec<Vec<String>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("docs")
        .join(name);
    let text = fs::read_to_string(path).unwrap();
    let cells = |line: &str| {
        let inner = line.trim().trim_matches('|');
        inner
            .split('|')
            .map(|cell| cell.trim().trim_matches('`').to_owned())
            .collect()
    };
    text.lines()
        .filter(|line| line.starts_with("| `"))
        .map(cells)
        .collect()
}

#[test]
fn every_error_is_documented() {
    let documented: Vec<_> = rows("errors.md")
        .into_iter()
        .map(|row| row[..3].to_vec())
        .collect();
    let raised: Vec<_> = ErrorKind::ALL
        .iter()
        .map(|kind| {
            let retryable = if kind.is_retryable() { "yes" } else { "no" };
            vec![
                kind.code().to_owned(),
                kind.class().to_owned(),
                retryable.to_owned(),
            ]
        })
        .collect();
    assert_eq!(documented, raised);
}

#[test]
fn every_variable_is_documented() {
    let documented: Vec<_> = rows("environment.md")
        .into_iter()
        .map(|row| row[0].clone())
        .collect();
    assert_eq!(documented, variables());
}
