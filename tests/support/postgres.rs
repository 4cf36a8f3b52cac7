//! A PostgreSQL server for tests: on a temporary folder and a free port, gone with the test process.
//!
//! Included with `#[path]`. One server a test binary, started by the first test that needs it; under
//! cargo-nextest, which makes a process of each test, one server a run. A test takes tables of its own
//! by [`prefix`].

use std::fs;
use std::io::Write;
use std::net::TcpListener;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// Longest start on a slow machine.
const START: Duration = Duration::from_mins(1);
const PAUSE: Duration = Duration::from_millis(20);
/// Starts the server and stops it when nobody needs it any longer: a server of one process when its
/// pipe ends, however the process ends (the word `keep` leaves the folder), a server of a run when no
/// process that signed in is alive for a while.
const KEEPER: &str = r#"
trap '' INT HUP
programs=$1 folder=$2 port=$3 whose=$4
"$programs/postgres" -D "$folder/data" -p "$port" -c listen_addresses=127.0.0.1 \
    -c unix_socket_directories="$folder" -c fsync=off -c full_page_writes=off \
    -c max_connections=200 -c shared_buffers=32MB >>"$folder/log" 2>&1 &
server=$!
is_alive() {
    if [ -d /proc/self ]; then [ -d "/proc/$1" ]; else ps -p "$1" >/dev/null 2>&1; fi
}
is_used() {
    used=1
    for user in "$folder"/users/*; do
        [ -e "$user" ] || continue
        if is_alive "${user##*/}"; then used=0; else rm -f "$user"; fi
    done
    return $used
}
until_unused() {
    idle=0
    while [ $idle -lt 10 ]; do
        sleep 1
        if is_used; then idle=0; else idle=$((idle + 1)); fi
    done
}
word=
if [ "$whose" = run ]; then
    until_unused
    # Nobody finds it any longer; who found it in this moment is waited for.
    mv "$folder" "$folder.gone" && folder=$folder.gone
    if is_used; then until_unused; fi
else
    read -r word
fi
kill -INT "$server"
wait "$server"
[ "$word" = keep ] || rm -rf "$folder"
"#;

/// A running server.
pub struct Server {
    programs: PathBuf,
    folder: PathBuf,
    port: u16,
    keeper: Option<Child>,
}

/// The server of this test binary, or of the run; none when PostgreSQL is missing, which is told.
pub fn shared() -> Option<&'static Server> {
    static SHARED: LazyLock<Option<Server>> =
        LazyLock::new(|| match std::env::var("NEXTEST_RUN_ID") {
            Ok(run) => Server::of_run(&run),
            Err(_) => Server::start(),
        });
    SHARED.as_ref()
}

/// A prefix that no other test has.
pub fn prefix() -> String {
    let random = uuid::Uuid::new_v4().simple().to_string();
    format!("t{}_", &random[..16])
}

impl Server {
    /// A server of its own; none when PostgreSQL is missing, which is told. Panics then when
    /// `OAK_TEST_REQUIRE` names `postgres`.
    pub fn start() -> Option<Self> {
        // The keeper removes it: nothing drops what is static.
        let folder = || TempDir::new().unwrap().keep();
        programs_or_skip().map(|programs| Self::start_in(programs, folder(), "process"))
    }

    /// The server of a run, started by the process that comes first.
    fn of_run(run: &str) -> Option<Self> {
        let programs = programs_or_skip()?;
        let folder = std::env::temp_dir().join(format!("oak-postgres-{run}"));
        let lock = Path::new(env!("CARGO_TARGET_TMPDIR")).join("postgres.lock");
        let lock = fs::File::create(lock).unwrap();
        lock.lock().unwrap();
        let me = std::process::id().to_string();
        let sign_in = || fs::write(folder.join("users").join(&me), "");
        let port = sign_in().and_then(|()| fs::read_to_string(folder.join("port")));
        if let Ok(port) = port {
            return Some(Self {
                programs,
                port: port.parse().unwrap(),
                folder,
                keeper: None,
            });
        }
        // Of a process that was killed while it started the server.
        let _ = fs::remove_dir_all(folder.join("data"));
        let users = folder.join("users");
        fs::create_dir_all(&users).unwrap();
        give_away(&users);
        sign_in().unwrap();
        let server = Self::start_in(programs, folder, "run");
        fs::write(server.folder.join("port"), server.port.to_string()).unwrap();
        Some(server)
    }

    fn start_in(programs: PathBuf, folder: PathBuf, whose: &str) -> Self {
        give_away(&folder);
        make_data(&programs, &folder);
        let port = free_port();
        let keeper = keep(&programs, &folder, port, whose);
        let server = Self {
            programs,
            folder,
            port,
            keeper: Some(keeper),
        };
        server.wait_until_ready();
        server
    }

    /// Where it listens.
    pub fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }

    /// Stops it and starts it again on the same data and port.
    pub fn restart(&mut self) {
        let mut keeper = self.keeper.take().unwrap();
        let mut pipe = keeper.stdin.take().unwrap();
        pipe.write_all(b"keep\n").unwrap();
        keeper.wait().unwrap();
        self.keeper = Some(keep(&self.programs, &self.folder, self.port, "process"));
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
        if let Some(mut keeper) = self.keeper.take() {
            drop(keeper.stdin.take());
            let _ = keeper.wait();
        }
    }
}

fn programs_or_skip() -> Option<PathBuf> {
    let found = programs();
    if found.is_none() {
        let required = std::env::var("OAK_TEST_REQUIRE").unwrap_or_default();
        let is_required = required.split(',').any(|part| part == "postgres");
        assert!(!is_required, "PostgreSQL is required and not installed");
        // Past the capture of the test harness: a skip must be seen.
        let _ = writeln!(std::io::stderr(), "skipped: PostgreSQL is not installed");
    }
    found
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

/// Gives a folder to the user that the server runs as.
fn give_away(folder: &Path) {
    if let Some((user, group)) = other_user() {
        chown(folder, Some(user), Some(group)).unwrap();
    }
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

fn keep(programs: &Path, folder: &Path, port: u16, whose: &str) -> Child {
    let mut keep = command(Path::new("/bin/sh"), Path::new("/"));
    keep.args(["-c", KEEPER, "keeper"]);
    keep.arg(programs)
        .arg(folder)
        .arg(port.to_string())
        .arg(whose);
    keep.stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    // What ends the process group of a test does not end the server of the run.
    keep.process_group(0).spawn().unwrap()
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}
