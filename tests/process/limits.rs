//! Limits of the operating system on children.

use open_agent_kernel::base::process::{ExitStatus, Limits};

use crate::support::{output, shell, start};

async fn limited(script: &str, limits: Limits) -> (String, ExitStatus) {
    let mut spec = shell(script);
    spec.limits = limits;
    let mut child = start(spec).await;
    let text = output(&mut child).await;
    (text, child.wait().await)
}

#[tokio::test]
async fn open_files_are_limited() {
    let limits = Limits {
        open_files: Some(16),
        ..Limits::default()
    };
    let script =
        "ulimit -n; ulimit -Hn; exec 15</dev/null && echo 15; (exec 16</dev/null) || echo no";
    let script = format!("exec bash -c '{script}' 2>/dev/null");
    let (text, _) = limited(&script, limits).await;
    assert_eq!(text, "16\n16\n15\nno\n");
}

#[tokio::test]
async fn the_size_of_files_is_limited() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    let limits = Limits {
        file_bytes: Some(100_000),
        ..Limits::default()
    };
    let script = format!("exec dd if=/dev/zero of={} bs=64k count=4", file.display());
    let (_, status) = limited(&script, limits).await;
    assert_eq!(status, ExitStatus::Signal(25));
    assert_eq!(file.metadata().unwrap().len(), 100_000);
}

#[tokio::test]
async fn memory_is_limited() {
    let limits = Limits {
        memory_bytes: Some(64 << 20),
        ..Limits::default()
    };
    let script = "head -c 200000000 /dev/zero | tail -n 1 >/dev/null 2>&1 || echo no";
    let (text, _) = limited(script, limits).await;
    assert_eq!(text, "no\n");
}

#[tokio::test]
async fn time_on_a_processor_is_limited() {
    let limits = Limits {
        cpu_seconds: Some(1),
        ..Limits::default()
    };
    let (_, status) = limited("while :; do :; done", limits).await;
    assert_eq!(status, ExitStatus::Signal(24));
}

#[tokio::test]
async fn processes_are_limited() {
    let limits = Limits {
        processes: Some(77),
        ..Limits::default()
    };
    let (text, _) = limited("exec bash -c 'ulimit -u; ulimit -Hu'", limits).await;
    assert_eq!(text, "77\n77\n");
}

#[tokio::test]
async fn a_limit_above_that_of_the_system_has_no_effect() {
    let limits = Limits {
        open_files: Some(u64::MAX - 1),
        cpu_seconds: Some(u64::MAX),
        ..Limits::default()
    };
    let (text, status) = limited("ulimit -Hn", limits).await;
    let (plain, _) = limited("ulimit -Hn", Limits::default()).await;
    assert_eq!((text, status), (plain, ExitStatus::Code(0)));
}
