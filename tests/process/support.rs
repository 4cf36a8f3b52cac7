//! Children for tests, and how tests look at processes.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use open_agent_kernel::base::process::{Child, ChildSpec, Helper, Limits};
use tokio::io::AsyncReadExt;
use tokio::time::{Instant, sleep};

/// Longest wait for what must happen.
const LIMIT: Duration = Duration::from_secs(20);
const MARK: &str = "OAK_TEST_MARK";
const ALONE: &str = "OAK_TEST_ALONE";

pub fn helper() -> Helper {
    Helper::at(env!("CARGO_BIN_EXE_oak-helper"))
}

/// A program with nothing in its environment but PATH.
pub fn spec(program: &str, args: &[&str]) -> ChildSpec {
    ChildSpec {
        program: program.to_owned(),
        args: args.iter().map(|&arg| arg.to_owned()).collect(),
        env: vec![("PATH".to_owned(), std::env::var("PATH").unwrap())],
        cwd: None,
        limits: Limits::default(),
        grace: Duration::from_secs(5),
    }
}

pub fn shell(script: &str) -> ChildSpec {
    spec("sh", &["-c", script])
}

pub async fn start(spec: ChildSpec) -> Child {
    helper().start(spec).await.unwrap()
}

/// Everything that the child writes on its standard output.
pub async fn output(child: &mut Child) -> String {
    let mut text = String::new();
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_to_string(&mut text).await.unwrap();
    text
}

/// The next line, however slowly it comes.
pub async fn line(child: &mut Child) -> String {
    let stdout = child.stdout.as_mut().unwrap();
    let mut bytes = Vec::new();
    while bytes.last() != Some(&b'\n') {
        bytes.push(stdout.read_u8().await.unwrap());
    }
    bytes.pop();
    String::from_utf8(bytes).unwrap()
}

/// A word in the environment of a child and of all that it starts, by which they are found.
pub struct Mark(String);

impl Mark {
    pub fn new() -> Self {
        Self(format!("mark-{}", uuid::Uuid::new_v4()))
    }

    pub fn named(name: String) -> Self {
        Self(name)
    }

    pub fn name(&self) -> &str {
        &self.0
    }

    pub fn on(&self, mut spec: ChildSpec) -> ChildSpec {
        spec.env.push((MARK.to_owned(), self.0.clone()));
        spec
    }

    /// Pids of the processes that run with it.
    pub fn processes(&self) -> Vec<u32> {
        let wanted = format!("{MARK}={}", self.0);
        let has = |pid: &u32| {
            fs::read(format!("/proc/{pid}/environ")).is_ok_and(|environ| {
                environ
                    .split(|&byte| byte == 0)
                    .any(|entry| entry == wanted.as_bytes())
            })
        };
        pids().filter(has).collect()
    }

    /// Nothing runs with it now.
    pub fn is_gone(&self) {
        let left = self.processes();
        assert!(left.is_empty(), "still running: {left:?}");
    }

    /// Waits until so many processes run with it.
    pub async fn counts(&self, count: usize) {
        eventually(&format!("{count} marked processes"), || {
            self.processes().len() == count
        })
        .await;
    }
}

pub fn pids() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").unwrap();
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

/// Fields of `stat` behind the name: state, parent, group, session.
pub fn stat(pid: u32) -> Option<Vec<String>> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = text.rsplit_once(')')?;
    Some(fields.split_ascii_whitespace().map(str::to_owned).collect())
}

/// The helper of a child that runs.
pub fn helper_of(child: &Child) -> u32 {
    stat(child.id()).unwrap()[1].parse().unwrap()
}

/// Whether there is a process, be it as a zombie.
pub fn exists(pid: u32) -> bool {
    stat(pid).is_some()
}

/// Children of this process, zombies too.
pub fn children() -> Vec<u32> {
    let own = std::process::id().to_string();
    let is_child = |pid: &u32| stat(*pid).is_some_and(|stat| stat[1] == own);
    pids().filter(is_child).collect()
}

pub async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < LIMIT, "did not happen: {what}");
        sleep(Duration::from_millis(5)).await;
    }
}

/// Runs a test in a process of its own, where no other test opens files or starts children.
pub fn alone(name: &str, body: impl Future<Output = ()>) {
    if std::env::var_os(ALONE).is_none() {
        let status = itself(name).env(ALONE, "1").status().unwrap();
        assert!(status.success(), "{status}");
        return;
    }
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
        .block_on(body);
}

/// This test program, with one test.
pub fn itself(name: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "--nocapture", name]);
    command
}

/// A script that is run in place of the helper.
pub fn script(folder: &tempfile::TempDir, text: &str, mode: u32) -> PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let path = folder.path().join("oak-helper");
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    path
}
