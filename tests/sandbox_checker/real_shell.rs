//! Random scripts, run by a real bash in an empty folder where `rm` is a program that leaves a mark.
//! What the checker allows leaves none.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use fastrand::Rng;

use crate::support::denying;

const ALLOWED_RUNS: usize = 400;
/// Scripts that run `rm`: the stage shows it.
const MARKED: [&str; 5] = [
    "rm x",
    "eval 'r''m x'",
    "echo $(rm)",
    "source rm",
    "a=rm; $a",
];

/// Text that bash reads in its own way. Nothing in it loops, waits, or names a path outside.
const PIECES: &[&str] = &[
    "rm x",
    "rm",
    " x",
    "r",
    "m",
    "''",
    "\"\"",
    "\\\n",
    "\\",
    "\n",
    " ",
    ";",
    "|",
    "&&",
    "||",
    "$(",
    ")",
    "(",
    "((",
    "))",
    "`",
    "'",
    "\"",
    "${y:-",
    "}",
    "{ ",
    "; }",
    "$((",
    "<<A\n",
    "\nA\n",
    "<<'A'\n",
    "<<-A\n\t",
    "<<<",
    ">f ",
    "<(",
    "[[ ",
    " ]]",
    "if :; then ",
    "; fi",
    "case a in a) ",
    ";; esac",
    "for i in a; do ",
    "; done",
    "f() { ",
    "}; f",
    "! ",
    "time ",
    "coproc ",
    "eval ",
    "command ",
    "exec ",
    "builtin eval ",
    "trap ",
    " EXIT",
    "a=",
    "$a",
    "\"$a\"",
    "a[",
    "]=1",
    "]",
    "$[",
    "+",
    "1",
    "$'",
    "\\x72",
    "\\155",
    "#",
    "echo ",
    ": ",
    "test -v ",
    "let ",
    "declare ",
    "printf -v ",
    "read b <<< ",
    "set -- ",
    "\"$@\"",
    "$1",
    "${a@P}",
    "${!a}",
    "{fd}>f ",
    "2>&1 ",
    "&>f ",
    ">&f ",
    "|& ",
    "-n ",
    "*",
    "~",
    "=",
    ",",
    "alias q=",
    "\nq\n",
    "bash",
    "source ",
    "unset ",
    "export ",
    "$\"",
    "{r,m}",
    "{rm,x}",
    "@(rm)",
    "?m",
];

fn script(rng: &mut Rng) -> String {
    let count = rng.usize(2..12);
    (0..count).map(|_| *rng.choice(PIECES).unwrap()).collect()
}

/// Whether the script runs `rm`.
fn leaves_a_mark(folder: &Path, script: &str) -> bool {
    // A folder of its own: what a script leaves in the background may come late.
    let own = tempfile::tempdir_in(folder).unwrap();
    let work = own.path().join("work");
    let mark = own.path().join("mark");
    fs::create_dir(&work).unwrap();
    let mut bash = Command::new("/bin/bash");
    bash.arg("-c")
        .arg(format!("exec 2>/dev/null\n{script}"))
        .current_dir(&work)
        .env_clear()
        .env("PATH", folder.join("bin"))
        .env("MARK", &mark)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    bash.status().unwrap();
    mark.exists()
}

/// A folder whose only program is `rm`.
fn stage() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let bin = folder.path().join("bin");
    fs::create_dir(&bin).unwrap();
    let program = bin.join("rm");
    fs::write(&program, "#!/bin/sh\n: > \"$MARK\"\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

#[test]
fn what_is_allowed_runs_no_denied_command() {
    if !Path::new("/bin/bash").exists() {
        eprintln!("skipped: this machine has no bash");
        return;
    }
    let stage = stage();
    let seed = std::env::var("CHECKER_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let mut rng = Rng::with_seed(seed.unwrap_or(3));
    for script in MARKED {
        assert!(leaves_a_mark(stage.path(), script), "{script}");
        assert!(denying(&["rm"], script).is_err(), "{script}");
    }
    let mut allowed = 0;
    while allowed < ALLOWED_RUNS {
        let script = script(&mut rng);
        if denying(&["rm"], &script).is_err() {
            continue;
        }
        allowed += 1;
        assert!(
            !leaves_a_mark(stage.path(), &script),
            "allowed, and runs rm: {script:?}"
        );
    }
}
