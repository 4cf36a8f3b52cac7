//! Starts the program.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::{Pid, Resource, Rlimit, getrlimit, setrlimit};

use crate::system;
use crate::wire::{Launch, Limits, Step};

/// Why the program does not run.
pub struct Refusal {
    pub step: Step,
    pub errno: i32,
}

impl Refusal {
    /// The program cannot run.
    pub fn program(error: &io::Error) -> Self {
        Self::new(Step::Program, error)
    }

    fn new(step: Step, error: &io::Error) -> Self {
        let invalid = rustix::io::Errno::INVAL.raw_os_error();
        Self {
            step,
            errno: error.raw_os_error().unwrap_or(invalid),
        }
    }
}

/// Starts the program in a process group of its own, with the three streams and nothing else open.
/// Afterwards this process holds neither streams nor folder.
pub fn start(launch: Launch, streams: Vec<OwnedFd>) -> Result<Pid, Refusal> {
    if let Some(cwd) = &launch.cwd {
        std::env::set_current_dir(cwd).map_err(|error| Refusal::new(Step::Folder, &error))?;
    }
    let pid = spawn(launch, streams).map_err(|error| Refusal::program(&error))?;
    let _ = std::env::set_current_dir("/");
    Ok(pid)
}

fn spawn(launch: Launch, streams: Vec<OwnedFd>) -> io::Result<Pid> {
    let [stdin, stdout, stderr] =
        <[OwnedFd; 3]>::try_from(streams).map_err(|_| io::ErrorKind::InvalidInput)?;
    let mut command = Command::new(launch.program);
    command
        .args(launch.args)
        .env_clear()
        .envs(launch.env)
        .stdin(stdin)
        .stdout(stdout)
        .stderr(stderr)
        .process_group(0);
    let limits = launch.limits;
    system::before_exec(&mut command, move || {
        die_with_parent();
        apply(&limits)
    });
    let child = command.spawn()?;
    let pid = child.id().try_into().ok().and_then(Pid::from_raw);
    pid.ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// For the case that this process is killed together with the kernel. It covers the program alone, not
/// what that has started.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn die_with_parent() {
    use rustix::process::{Signal, set_parent_process_death_signal};
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn die_with_parent() {}

/// Children inherit the limits.
fn apply(limits: &Limits) -> io::Result<()> {
    let wanted = [
        (Resource::As, limits.memory_bytes, 0),
        (Resource::Cpu, limits.cpu_seconds, 1),
        (Resource::Nofile, limits.open_files, 0),
        (Resource::Fsize, limits.file_bytes, 0),
        (Resource::Nproc, limits.processes, 0),
    ];
    for (resource, limit, margin) in wanted {
        if let Some(limit) = limit {
            lower(resource, limit, margin)?;
        }
    }
    Ok(())
}

/// Sets a limit and, `margin` above it, the one to which a process may raise it. Never above the present.
fn lower(resource: Resource, limit: u64, margin: u64) -> io::Result<()> {
    let present = getrlimit(resource).maximum.unwrap_or(u64::MAX);
    let maximum = limit.saturating_add(margin).min(present);
    let new = Rlimit {
        current: Some(limit.min(maximum)),
        maximum: Some(maximum),
    };
    Ok(setrlimit(resource, new)?)
}
