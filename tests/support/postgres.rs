//! A PostgreSQL server for tests: on a temporary folder and a free port, gone with the test process.
//!
//! Included with `#[path]`. One server a test binary, started by the first test that needs it; a test
//! takes tables of its own by [`prefix`].

use std::fs;
use std::io::Write;
use std::net::TcpListener;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// Longest start on a slow machine.
const START: Duration = Duration::from_mins(1);
const PAUSE: Duration = Duration::from_millis(20);
/// Waits for a word or the end of the test process, which closes the pipe however it ends, and stops
/// the server. `keep` leaves its folder.
const KEEPER: &str = r#"
trap '' INT HUP
"$1/postgres" -D "$2/data" -p "$3" -c listen_addresses=127.0.0.1 -c unix_socket_directories="$2" \
    -c fsync=off -c full_page_writes=off -c max_connections=200 -c shared_buffers=32MB \
    >>"$2/log" 2>&1 &
server=$!
read -r word
kill -INT "$server"
wait "$server"
[ "$word" = keep ] || rm -rf "$2"
"#;

/// A running server.
pub struct Server {
    programs: PathBuf,
    folder: PathBuf,
    port: u16,
    keeper: Child,
}

/// The server of this test binary; none when PostgreSQL is missing, which is told.
pub fn shared() -> Option<&'static Server> {
    static SHARED: LazyLock<Option<Server>> = LazyLock::new(Server::start);
    SHARED.as_ref()
}

/// A prefix that no other test has.
pub fn prefix() -> String {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    format!("t{}_", NEXT.fetch_add(1, Ordering::Relaxed))
}

impl Server {
    /// A server of its own; none when PostgreSQL is missing, which is told. Panics then when
    /// `OAK_TEST_REQUIRE` names `postgres`.
    pub fn start() -> Option<Self> {
        let Some(programs) = programs() else {
            let required = std::env::var("OAK_TEST_REQUIRE").unwrap_or_default();
            assert!(
                !required.contains("postgres"),
                "PostgreSQL is required and not installed"
            );
            // Past the capture of the test harness: a skip must be seen.
            let _ = writeln!(std::io::stderr(), "skipped: PostgreSQL is not installed");
            return None;
        };
        // The keeper removes it: nothing drops what is static.
        let folder = TempDir::new().unwrap().keep();
        if let Some((user, group)) = other_user() {
            chown(&folder, Some(user), Some(group)).unwrap();
        }
        make_data(&programs, &folder);
        let port = free_port();
        let keeper = keep(&programs, &folder, port);
        let server = Self {
            programs,
            folder,
            port,
            keeper,
        };
        server.wait_until_ready();
        Some(server)
    }

    /// Where it listens.
    pub fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }

    /// Stops it and starts it again on the same data and port.
    pub fn restart(&mut self) {
        let mut pipe = self.keeper.stdin.take().unwrap();
        pipe.write_all(b"keep\n").unwrap();
        self.keeper.wait().unwrap();
        self.keeper = keep(&self.programs, &self.folder, self.port);
        self.wait_until_ready();
    }

    fn wait_until_ready(&self) {
        let begun = Instant::now();
        let state = self.folder.join("data/postmaster.pid");
        loop {
            let lines = fs::read_to_string(&state).unwrap_or_default();
            if lines.lines().any(|line| line.trim() == "ready") {
                return;
            }
            if begun.elapsed() > START {
                let log = fs::read_to_string(self.folder.join("log")).unwrap_or_default();
                panic!("PostgreSQL does not start: {log}");
            }
            std::thread::sleep(PAUSE);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}

/// The folder of the programs.
fn programs() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let packaged = fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
    let mut packaged: Vec<_> = packaged
        .flatten()
        .map(|entry| entry.path().join("bin"))
        .collect();
    packaged.sort();
    folders.extend(packaged.into_iter().rev());
    let has_all = |folder: &PathBuf| {
        let named = |name: &str| folder.join(name).is_file();
        named("initdb") && named("postgres")
    };
    folders.into_iter().find(has_all)
}

/// PostgreSQL refuses to run as root: then it runs as `nobody`.
fn other_user() -> Option<(u32, u32)> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let users = fs::read_to_string("/etc/passwd").unwrap();
    let nobody = users
        .lines()
        .find(|line| line.starts_with("nobody:"))
        .unwrap();
    let fields: Vec<&str> = nobody.split(':').collect();
    Some((fields[2].parse().unwrap(), fields[3].parse().unwrap()))
}

fn command(program: &Path, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(folder).env("LC_ALL", "C");
    if let Some((user, group)) = other_user() {
        command.uid(user).gid(group);
    }
    command
}

fn make_data(programs: &Path, folder: &Path) {
    let mut make = command(&programs.join("initdb"), folder);
    make.args(["-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C"]);
    make.args(["--no-sync", "--no-instructions", "-D"]);
    let result = make.arg(folder.join("data")).output().unwrap();
    assert!(
        result.status.success(),
        "{}",
        String::from_utf8_lossy(&result.stderr)
    );
}

fn keep(programs: &Path, folder: &Path, port: u16) -> Child {
    let mut keep = command(Path::new("/bin/sh"), folder);
    keep.args(["-c", KEEPER, "keeper"])
        .arg(programs)
        .arg(folder)
        .arg(port.to_string());
    keep.stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    keep.spawn().unwrap()
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}
