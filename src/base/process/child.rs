//! A child process and everything that it starts.

use std::fmt;
use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;

use tokio::net::unix::pipe;
use tokio::sync::{mpsc, watch};

use super::wire::{ExitStatus, Limits};

/// What to start.
#[derive(Clone)]
pub struct ChildSpec {
    /// Looked up in `PATH` of `env`, unless it has a slash; then a relative path starts at `cwd`.
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

/// Arguments and values of the environment may be secrets.
impl fmt::Debug for ChildSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChildSpec")
            .field("program", &self.program)
            .field("cwd", &self.cwd)
            .field("limits", &self.limits)
            .field("grace", &self.grace)
            .finish_non_exhaustive()
    }
}

/// A running child. When it is dropped, its whole tree is ended.
#[derive(Debug)]
pub struct Child {
    pub stdin: Option<pipe::Sender>,
    pub stdout: Option<pipe::Receiver>,
    pub stderr: Option<pipe::Receiver>,
    pub(super) handle: Handle,
}

/// What a child and the task that watches it share. The task ends the tree when this is dropped.
#[derive(Debug)]
pub(super) struct Handle {
    pub(super) id: u32,
    pub(super) grace: Duration,
    /// Graces of ends that are wished.
    pub(super) ends: mpsc::UnboundedSender<Duration>,
    pub(super) life: watch::Receiver<Life>,
}

/// How far a child is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Life {
    Running,
    /// The program has ended; what it left is being ended.
    Ended(ExitStatus),
    /// Nothing is left.
    Gone(ExitStatus),
}

impl Life {
    /// The status, when the program has ended.
    pub(super) fn status(self) -> Option<ExitStatus> {
        match self {
            Self::Running => None,
            Self::Ended(status) | Self::Gone(status) => Some(status),
        }
    }
}

impl Child {
    /// Process id of the program itself, not of the helper.
    pub fn id(&self) -> u32 {
        self.handle.id
    }

    /// Waits until the program has ended. What it left running is ended then as well.
    pub async fn wait(&self) -> ExitStatus {
        self.handle.reach(|life| life.status().is_some()).await
    }

    /// Ends the tree: SIGTERM to all of it, SIGKILL after the grace. Resolves when nothing is left, at
    /// the latest a few seconds after the grace. Standard input is closed first, if it is still here;
    /// what comes on the streams that are here is read and lost.
    pub async fn end(self) -> ExitStatus {
        let grace = self.handle.grace;
        self.end_within(grace).await
    }

    /// Ends the tree with SIGKILL at once. Resolves when nothing is left.
    pub async fn kill(self) -> ExitStatus {
        self.end_within(Duration::ZERO).await
    }

    async fn end_within(self, grace: Duration) -> ExitStatus {
        let Self {
            stdin,
            stdout,
            stderr,
            handle,
        } = self;
        drop(stdin);
        // A task that is gone has nothing to end.
        let _ = handle.ends.send(grace);
        let mut gone = pin!(handle.reach(|life| matches!(life, Life::Gone(_))));
        // A program that has something to say at its end must meet neither a full nor a closed pipe.
        let discard = async { tokio::join!(discard(stdout), discard(stderr)) };
        tokio::select! {
            status = &mut gone => status,
            _ = discard => gone.await,
        }
    }
}

async fn discard(stream: Option<pipe::Receiver>) {
    if let Some(mut stream) = stream {
        let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
    }
}

impl Handle {
    async fn reach(&self, stage: impl Fn(Life) -> bool) -> ExitStatus {
        let mut life = self.life.clone();
        // An error: the runtime was shut down, and the task with it.
        let _ = life.wait_for(|life| stage(*life)).await;
        let status = life.borrow().status();
        status.unwrap_or(ExitStatus::Unknown)
    }
}
