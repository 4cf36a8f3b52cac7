//! Starts one program for the kernel, and ends its whole tree when it, or the kernel, ends.
//!
//! Its standard input is a socket to the kernel; `wire` has what is said there. It reads neither
//! arguments nor environment. It is not part of what it starts: it has a session of its own, the
//! program a process group of its own, and orphans of the tree become its children.

#[path = "../../base/process/tree.rs"]
#[allow(dead_code, reason = "the kernel uses the rest")]
mod tree;
#[path = "../../base/process/wire.rs"]
#[allow(dead_code, reason = "the kernel uses the rest")]
mod wire;

mod ending;
mod keeper;
mod line;
mod program;
mod system;

use std::io;
use std::process::ExitCode;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

use keeper::Keeper;
use line::{Line, say};
use program::Refusal;
use wire::{Launch, Order, PROTOCOL, Report, VERSION};

fn main() -> ExitCode {
    // The first step, before anything is opened.
    system::close_inherited();
    system::ignore_signals();
    // Fails when a shell starts it, from where it does not come further than to the greeting.
    let _ = rustix::process::setsid();
    adopt_orphans();
    say(&Report::Hello {
        protocol: PROTOCOL,
        version: VERSION.to_owned(),
    });
    let mut line = Line::default();
    let Some(Order::Start(launch)) = line.hear() else {
        return ExitCode::FAILURE;
    };
    match start(launch, line) {
        Ok(keeper) => keeper.run(),
        Err(Refusal { step, errno }) => {
            say(&Report::Refused { step, errno });
            ExitCode::FAILURE
        }
    }
}

/// Starts the program and the watch over it.
fn start(launch: Launch, mut line: Line) -> Result<Keeper, Refusal> {
    let grace = Duration::from_millis(launch.grace_ms);
    let pid = program::start(launch, line.take_streams())?;
    let keeper = Keeper::new(line, pid, grace).map_err(|error| unwatched(pid, &error))?;
    say(&Report::Started {
        pid: pid.as_raw_pid().unsigned_abs(),
    });
    Ok(keeper)
}

/// Nothing runs without a watch.
fn unwatched(program: Pid, error: &io::Error) -> Refusal {
    let _ = kill_process_group(program, Signal::KILL);
    Refusal::program(error)
}

/// Without it, what forks twice would become a child of PID 1 and be lost.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn adopt_orphans() {
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn adopt_orphans() {}
