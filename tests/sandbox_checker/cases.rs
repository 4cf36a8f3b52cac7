//! Every case of the table, with the names of all that differ.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use open_agent_kernel::sandbox::checker::{CheckerEnv, Operation, Platform, SandboxChecker};
use serde_json::Value as Json;

use crate::support::settings;

const TABLE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/fixtures/sandbox-checker-cases.json"
);

#[test]
fn every_case_has_its_verdict() {
    let table: Json = serde_json::from_str(&fs::read_to_string(TABLE).unwrap()).unwrap();
    let cases = table["cases"].as_array().unwrap();
    assert!(cases.len() > 370, "the table is incomplete");
    let wrong: Vec<String> = cases
        .iter()
        .filter_map(|case| difference(case, &table["defaults"]))
        .collect();
    assert!(
        wrong.is_empty(),
        "{} of {} cases differ:\n{}",
        wrong.len(),
        cases.len(),
        wrong.join("\n")
    );
}

/// What is wrong with the verdict on a case.
fn difference(case: &Json, defaults: &Json) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(folder.path()).unwrap();
    build(&case["setup"], &root);
    let text = case.to_string().replace("${ROOT}", root.to_str().unwrap());
    let case: Json = serde_json::from_str(&text).unwrap();
    let get = |key: &str| case.get(key).unwrap_or(&defaults[key]).as_str().unwrap();
    let variables: BTreeMap<String, String> =
        serde_json::from_value(defaults["env"].clone()).unwrap();
    let env = CheckerEnv {
        cwd: get("cwd").to_owned(),
        home: get("home").to_owned(),
        platform: Platform::named(get("platform")),
        variables,
    };
    let settings = settings(&case["settings"]);
    let checker = SandboxChecker::new(&settings, &env);
    let input = case["input"].as_str().unwrap();
    let verdict = if case["kind"] == "path" {
        let operation = match get("operation") {
            "write" => Operation::Write,
            _ => Operation::Read,
        };
        checker.check_path(input, operation)
    } else {
        let verdict = checker.check_command(input);
        assert_eq!(checker.explain_command(input).denial, verdict.clone().err());
        verdict
    };
    let expected = case["expected"] == "allow";
    (verdict.is_ok() != expected).then(|| {
        let shown: String = input.chars().take(100).collect();
        format!(
            "{} {}: expected {}, got {:?}\n     {shown}\n     {}",
            case["id"].as_str().unwrap(),
            case["class"].as_str().unwrap(),
            case["expected"].as_str().unwrap(),
            verdict.map_err(|denial| (denial.code, denial.reason)),
            case["why"].as_str().unwrap(),
        )
    })
}

/// Makes the folders, files and links of a case.
fn build(setup: &Json, root: &Path) {
    for folder in setup["dirs"].as_array().into_iter().flatten() {
        fs::create_dir_all(root.join(folder.as_str().unwrap())).unwrap();
    }
    for file in setup["files"].as_array().into_iter().flatten() {
        fs::write(root.join(file.as_str().unwrap()), "x").unwrap();
    }
    for (link, target) in setup["symlinks"].as_object().into_iter().flatten() {
        let target = target
            .as_str()
            .unwrap()
            .replace("${ROOT}", root.to_str().unwrap());
        symlink(target, root.join(link)).unwrap();
    }
}
