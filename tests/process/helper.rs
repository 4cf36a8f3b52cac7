//! Helpers that are missing or wrong.

use open_agent_kernel::base::process::Helper;
use open_agent_kernel::error::{ErrorKind, KernelError};
use tempfile::tempdir;

use crate::support::{alone, children, eventually, script, spec};

async fn refused(helper: &Helper) -> KernelError {
    let error = helper.start(spec("true", &[])).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Helper);
    let path = helper.path().to_str().unwrap();
    assert!(error.message().contains(path), "{error}");
    assert!(error.message().contains("OAK_HELPER_PATH"), "{error}");
    error
}

/// A script that runs in place of the helper.
async fn refused_script(text: &str, reason: &str) {
    let folder = tempdir().unwrap();
    let path = script(&folder, text, 0o755);
    let error = refused(&Helper::at(path)).await;
    assert!(error.message().contains(reason), "{error}");
}

/// A message in the form of the helper, from a shell.
fn says(json: &str) -> String {
    let length = u32::try_from(json.len()).unwrap();
    let [a, b, c, d] = length.to_le_bytes();
    let prefix = format!("\\{a:03o}\\{b:03o}\\{c:03o}\\{d:03o}");
    format!("#!/bin/sh\nexec >&0\nprintf '{prefix}'\nprintf '%s' '{json}'\nexec sleep 300\n")
}

#[tokio::test]
async fn one_that_is_missing() {
    let folder = tempdir().unwrap();
    let error = refused(&Helper::at(folder.path().join("oak-helper"))).await;
    assert!(error.message().contains("is missing"), "{error}");
}

#[tokio::test]
async fn one_without_the_executable_bit() {
    let folder = tempdir().unwrap();
    let path = script(&folder, "#!/bin/sh\n", 0o644);
    let error = refused(&Helper::at(path)).await;
    assert!(error.message().contains("chmod +x"), "{error}");
}

#[tokio::test]
async fn one_for_another_machine() {
    let folder = tempdir().unwrap();
    let path = script(&folder, "\u{7f}ELF of something else", 0o755);
    let error = refused(&Helper::at(path)).await;
    assert!(error.message().contains("cannot be started"), "{error}");
}

#[tokio::test]
async fn one_that_ends_at_once() {
    refused_script("#!/bin/sh\n", "ended before it said anything").await;
}

#[tokio::test]
async fn one_that_babbles() {
    let script = "#!/bin/sh\nexec >&0\nwhile :; do echo hello; done\n";
    refused_script(script, "language").await;
}

#[tokio::test]
async fn one_of_another_version() {
    let hello = r#"{"type":"hello","protocol":1,"version":"0.0.1"}"#;
    refused_script(&says(hello), "is of version 0.0.1, the kernel of ").await;
    let hello = format!(
        r#"{{"type":"hello","protocol":2,"version":"{}"}}"#,
        env!("CARGO_PKG_VERSION")
    );
    refused_script(&says(&hello), "is of version").await;
}

#[tokio::test]
async fn one_that_does_not_greet() {
    refused_script(&says(r#"{"type":"done"}"#), "does not greet").await;
}

#[tokio::test(start_paused = true)]
async fn one_that_says_nothing() {
    refused_script("#!/bin/sh\nexec sleep 300\n", "has said nothing for 5 s").await;
}

#[test]
fn a_wrong_helper_is_not_left_running() {
    alone("helper::a_wrong_helper_is_not_left_running", async {
        refused_script(&says(r#"{"type":"done"}"#), "does not greet").await;
        eventually("no child is left", || children().is_empty()).await;
    });
}
