//! One program: how it is started, what it gets, how its end is told.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use open_agent_kernel::base::process::{ChildSpec, ExitStatus};
use open_agent_kernel::error::{ErrorKind, KernelError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::{
    Mark, alone, children, eventually, exists, helper, helper_of, line, output, shell, spec, start,
    stat,
};

#[tokio::test]
async fn exit_codes_and_signals_are_told() {
    for (script, status) in [
        ("exit 0", ExitStatus::Code(0)),
        ("exit 7", ExitStatus::Code(7)),
        ("exit 255", ExitStatus::Code(255)),
        ("kill -KILL $$", ExitStatus::Signal(9)),
        ("kill -TERM $$", ExitStatus::Signal(15)),
        ("kill -SEGV $$", ExitStatus::Signal(11)),
    ] {
        let child = start(shell(script)).await;
        let (first, second) = tokio::join!(child.wait(), child.wait());
        assert_eq!((first, second), (status, status), "{script}");
        assert_eq!(child.wait().await, status);
        assert_eq!(child.end().await, status);
    }
}

#[tokio::test]
async fn the_environment_is_what_was_given() {
    let mut spec = shell("tr '\\0' '\\n' < /proc/self/environ");
    spec.env.push(("EMPTY".into(), String::new()));
    spec.env.push(("TEXT".into(), "a=b\nc ü".into()));
    let wanted: BTreeMap<_, _> = spec.env.iter().cloned().collect();
    let expected = wanted.iter().map(|(name, value)| format!("{name}={value}"));
    let mut expected: Vec<_> = expected
        .flat_map(|entry| entry.lines().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    let mut child = start(spec).await;
    let text = output(&mut child).await;
    let mut found: Vec<_> = text.lines().map(str::to_owned).collect();
    expected.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, expected);
}

#[tokio::test]
async fn the_helper_holds_no_secret_of_the_parent() {
    let mut child = start(shell("echo ready; read _")).await;
    assert_eq!(line(&mut child).await, "ready");
    let helper = helper_of(&child);
    assert_eq!(
        std::fs::read(format!("/proc/{helper}/environ")).unwrap(),
        b""
    );
    let arguments = std::fs::read(format!("/proc/{helper}/cmdline")).unwrap();
    assert_eq!(
        arguments.iter().position(|&byte| byte == 0),
        Some(arguments.len() - 1)
    );
    child.end().await;
}

#[tokio::test]
async fn the_folder_is_what_was_given() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap();
    std::fs::write(path.join("here"), "").unwrap();
    let mut given = shell("pwd -P; ls");
    given.cwd = Some(path.clone());
    let mut child = start(given).await;
    let expected = format!("{}\nhere\n", path.display());
    assert_eq!(output(&mut child).await, expected);

    let mut child = start(shell("pwd -P")).await;
    let own = std::env::current_dir().unwrap().canonicalize().unwrap();
    assert_eq!(output(&mut child).await.trim_end(), own.to_str().unwrap());
}

#[tokio::test]
async fn a_relative_path_starts_at_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("/bin/echo", folder.path().join("say")).unwrap();
    let mut spec = spec("./say", &["a b", "", "*"]);
    spec.cwd = Some(folder.path().to_owned());
    let mut child = start(spec).await;
    assert_eq!(output(&mut child).await, "a b  *\n");
}

#[tokio::test]
async fn the_program_has_three_descriptors_and_default_signals() {
    let child = start(spec("sleep", &["60"])).await;
    let of_child = PathBuf::from(format!("/proc/{}", child.id()));
    let open = std::fs::read_dir(of_child.join("fd")).unwrap();
    let mut open: Vec<_> = open.map(|entry| entry.unwrap().file_name()).collect();
    open.sort_unstable();
    assert_eq!(open, ["0", "1", "2"]);
    let status = std::fs::read_to_string(of_child.join("status")).unwrap();
    let signals = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        u64::from_str_radix(line.unwrap().trim(), 16).unwrap()
    };
    assert_eq!(signals("SigBlk:"), 0);
    // The C library keeps the signals 32 and 33 to itself.
    assert_eq!(signals("SigIgn:") & !(0b11 << 31), 0);
    child.end().await;
}

#[tokio::test]
async fn the_program_leads_a_group_in_a_session_of_its_own() {
    let child = start(spec("sleep", &["60"])).await;
    let helper = helper_of(&child);
    let stat = stat(child.id()).unwrap();
    assert_eq!(stat[2], child.id().to_string());
    assert_eq!(stat[3], helper.to_string());
    child.end().await;
    assert!(!exists(helper));
}

#[tokio::test]
async fn much_passes_through_the_streams() {
    const CHUNK: usize = 1 << 20;
    const CHUNKS: usize = 64;
    let mut child = start(spec("cat", &[])).await;
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let pattern: Vec<u8> = (0..=250).cycle().take(CHUNK).collect();
    let write = async {
        for _ in 0..CHUNKS {
            stdin.write_all(&pattern).await.unwrap();
        }
        drop(stdin);
    };
    let read = async {
        let mut chunk = vec![0; CHUNK];
        for _ in 0..CHUNKS {
            stdout.read_exact(&mut chunk).await.unwrap();
            assert!(chunk == pattern);
        }
        stdout.read(&mut chunk).await.unwrap()
    };
    let ((), rest) = tokio::join!(write, read);
    assert_eq!(rest, 0);
    assert_eq!(child.wait().await, ExitStatus::Code(0));
}

#[tokio::test]
async fn a_flood_on_one_stream_does_not_hold_up_the_other() {
    let script = "head -c 300000 /dev/zero >&2; echo told";
    let mut child = start(shell(script)).await;
    let mut stderr = child.stderr.take().unwrap();
    let mut flood = Vec::new();
    let (text, read) = tokio::join!(output(&mut child), stderr.read_to_end(&mut flood));
    assert_eq!((text.as_str(), read.unwrap()), ("told\n", 300_000));
}

async fn refused(spec: ChildSpec) -> KernelError {
    let error = helper().start(spec).await.unwrap_err();
    assert!(!error.is_retryable());
    error
}

#[tokio::test]
async fn a_program_that_cannot_be_started_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("data");
    std::fs::write(&file, "no program").unwrap();
    let file = file.to_str().unwrap();
    let mut lost = spec("true", &[]);
    lost.cwd = Some("/no/such/folder".into());
    let mut bare = spec("no-such-program", &[]);
    bare.env.clear();
    for (spec, name, reason) in [
        (
            spec("no-such-program", &[]),
            "no-such-program",
            "PATH of its environment",
        ),
        (bare, "no-such-program", "has no PATH"),
        (
            spec("/no/such/program", &[]),
            "/no/such/program",
            "no such file",
        ),
        (spec(file, &[]), file, "may not be executed"),
        (lost, "/no/such/folder", "No such file or directory"),
        (
            spec("echo", &["x".repeat(4 << 20).as_str()]),
            "echo",
            "too large",
        ),
        (
            spec("echo", &["x".repeat(17 << 20).as_str()]),
            "echo",
            "too large",
        ),
    ] {
        let error = refused(spec).await;
        assert_eq!(error.kind(), ErrorKind::Resource);
        assert!(error.message().contains(name), "{error}");
        assert!(error.message().contains(reason), "{error}");
        assert!(error.message().len() < 300);
    }
}

#[tokio::test]
async fn what_no_program_can_be_given_is_refused() {
    let with = |name: &str, value: &str| {
        let mut spec = spec("true", &[]);
        spec.env.push((name.to_owned(), value.to_owned()));
        spec
    };
    for spec in [
        spec("", &[]),
        spec("tr\0ue", &[]),
        spec("true", &["a\0secret"]),
        with("", "secret"),
        with("A=B", "secret"),
        with("A", "secret\0"),
    ] {
        let error = refused(spec).await;
        assert_eq!(error.kind(), ErrorKind::InvalidConfig);
        assert!(!error.message().contains("secret"), "{error}");
    }
}

#[test]
fn secrets_are_not_printed_for_debugging() {
    let mut spec = spec("true", &["secret"]);
    spec.env.push(("KEY".into(), "secret".into()));
    assert!(!format!("{spec:?}").contains("secret"));
}

#[test]
fn a_start_that_nobody_waits_for_leaves_nothing() {
    alone(
        "program::a_start_that_nobody_waits_for_leaves_nothing",
        async {
            let mark = Mark::new();
            for limit in [0, 1, 2, 3, 5, 8, 13] {
                let helper = helper();
                let start = helper.start(mark.on(spec("sleep", &["60"])));
                let _ = tokio::time::timeout(Duration::from_millis(limit), start).await;
            }
            eventually("no child is left", || children().is_empty()).await;
            mark.counts(0).await;
        },
    );
}
