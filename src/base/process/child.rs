//! A child process and everything that it starts.

use std::path::PathBuf;
use std::time::Duration;

use tokio::net::unix::pipe;

use super::Helper;
use crate::error::{KernelError, Result};

/// What to start.
#[derive(Clone, Debug)]
pub struct ChildSpec {
    /// Looked up in `PATH` of `env`, unless it has a slash.
    pub program: String,
    pub args: Vec<String>,
    /// The whole environment: nothing is inherited.
    pub env: Vec<(String, String)>,
    /// None: that of this process.
    pub cwd: Option<PathBuf>,
    pub limits: Limits,
    /// Time between SIGTERM and SIGKILL.
    pub grace: Duration,
}

/// Limits on each process of the child's tree; none: no limit of our own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    pub memory_bytes: Option<u64>,
    pub cpu_seconds: Option<u64>,
    pub open_files: Option<u64>,
    pub file_bytes: Option<u64>,
    pub processes: Option<u64>,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitStatus {
    Code(i32),
    Signal(i32),
    /// Nobody saw it end.
    Unknown,
}

/// A running child. When it is dropped, its whole tree is ended.
#[derive(Debug)]
pub struct Child {
    pub stdin: Option<pipe::Sender>,
    pub stdout: Option<pipe::Receiver>,
    pub stderr: Option<pipe::Receiver>,
}

impl Helper {
    /// Starts a child with pipes as its standard streams. Needs a tokio runtime.
    pub async fn start(&self, spec: ChildSpec) -> Result<Child> {
        let _ = spec;
        Err(KernelError::not_built("starting children"))
    }
}

impl Child {
    /// Process id of the program itself, not of the helper.
    pub fn id(&self) -> u32 {
        0
    }

    /// Waits until the program has ended. What it left running is ended then as well.
    pub async fn wait(&self) -> ExitStatus {
        ExitStatus::Unknown
    }

    /// Ends the tree: SIGTERM to all of it, SIGKILL after the grace. Resolves when nothing is left.
    pub async fn end(self) -> ExitStatus {
        ExitStatus::Unknown
    }
}
