//! How a child is started: the helper, its streams, its first order.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::pipe::{PipeFlags, pipe_with};
use tokio::net::unix::pipe;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;
use tracing::instrument::WithSubscriber;

use super::child::{Child, ChildSpec, Handle, Life};
use super::helper::{Helper, is_transient};
use super::link::Link;
use super::reaper::HelperProcess;
use super::watch::Watch;
use super::wire::{Launch, Order, Report, STREAMS, Step};
use crate::error::{ErrorKind, KernelError, Result};

/// Longest wait for the start of a program, behind the greeting.
const START_LIMIT: Duration = Duration::from_secs(10);

/// The kernel's ends of the standard streams.
struct Streams {
    stdin: pipe::Sender,
    stdout: pipe::Receiver,
    stderr: pipe::Receiver,
}

impl Helper {
    /// Starts a child with pipes as its standard streams. Needs a tokio runtime.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Helper`] when `oak-helper` is missing or does not work, [`ErrorKind::Resource`] when
    /// the program cannot be started, [`ErrorKind::InvalidConfig`] when a name, a value or a path cannot
    /// be given to a program. None of them holds arguments or values of the environment.
    pub async fn start(&self, spec: ChildSpec) -> Result<Child> {
        check(&spec)?;
        let (streams, theirs) = streams().map_err(|error| not_started(&spec, &error))?;
        let (link, process) = self.run()?;
        let (answer, started) = oneshot::channel();
        let start = Start {
            helper: self.clone(),
            link,
            process,
            spec,
        };
        // A task of its own: the helper is seen to its end, also when this future is dropped.
        tokio::spawn(start.run(theirs, answer).with_current_subscriber());
        let handle = started
            .await
            .unwrap_or_else(|_| Err(self.wrong("was left: the runtime is shut down")))?;
        Ok(Child {
            stdin: Some(streams.stdin),
            stdout: Some(streams.stdout),
            stderr: Some(streams.stderr),
            handle,
        })
    }
}

/// A helper that has not started its program yet.
struct Start {
    helper: Helper,
    link: Link,
    process: HelperProcess,
    spec: ChildSpec,
}

impl Start {
    /// Starts the program, answers, and watches it to its end.
    async fn run(
        mut self,
        theirs: [OwnedFd; STREAMS],
        mut answer: oneshot::Sender<Result<Handle>>,
    ) {
        let started = tokio::select! {
            started = self.order(theirs) => Some(started),
            () = answer.closed() => None,
        };
        let Self {
            link,
            mut process,
            spec,
            ..
        } = self;
        match started {
            Some(Ok(id)) => {
                let (ends, wishes) = mpsc::unbounded_channel();
                let (sender, life) = watch::channel(Life::Running);
                let grace = spec.grace;
                let handle = Handle {
                    id,
                    grace,
                    ends,
                    life,
                };
                // When nobody waits any more, the handle is dropped, which ends the tree.
                drop(answer.send(Ok(handle)));
                Watch::new(link, process, wishes, sender, grace).run().await;
            }
            Some(Err(error)) => {
                process.destroy().await;
                drop(link);
                process.reap().await;
                // Behind the end: who is told of the failure finds nothing left.
                drop(answer.send(Err(error)));
            }
            None => {
                process.destroy().await;
                process.reap().await;
            }
        }
    }

    /// The pid of the program.
    async fn order(&mut self, theirs: [OwnedFd; STREAMS]) -> Result<u32> {
        self.helper.greet(&mut self.link).await?;
        let order = Order::Start(Launch {
            program: self.spec.program.clone(),
            args: self.spec.args.clone(),
            env: self.spec.env.clone(),
            cwd: self.spec.cwd.clone(),
            limits: self.spec.limits,
            grace_ms: milliseconds(self.spec.grace),
        });
        let link = &mut self.link;
        let exchange = async {
            link.start(&order, &theirs).await?;
            // Copies of the program's ends would keep its readers from seeing the end.
            drop(theirs);
            link.report().await
        };
        match timeout(START_LIMIT, exchange).await {
            Ok(Ok(Some(Report::Started { pid }))) => Ok(pid),
            Ok(Ok(Some(Report::Refused { step, errno }))) => Err(refused(&self.spec, step, errno)),
            Ok(Err(error)) if error.kind() == io::ErrorKind::ArgumentListTooLong => {
                Err(not_started(&self.spec, &error))
            }
            Ok(Ok(_) | Err(_)) => Err(self.helper.wrong("ended before the program was started")),
            Err(_) => {
                let program = &self.spec.program;
                let seconds = START_LIMIT.as_secs();
                let message = format!("`{program}` did not start within {seconds} s");
                Err(KernelError::new(ErrorKind::Resource, message).with_retryable(true))
            }
        }
    }
}

pub(super) fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Pipes: ours do not block, theirs do.
fn streams() -> io::Result<(Streams, [OwnedFd; STREAMS])> {
    let (stdin_read, stdin_write) = pipe_with(PipeFlags::CLOEXEC)?;
    let (stdout_read, stdout_write) = pipe_with(PipeFlags::CLOEXEC)?;
    let (stderr_read, stderr_write) = pipe_with(PipeFlags::CLOEXEC)?;
    let streams = Streams {
        stdin: pipe::Sender::from_owned_fd(stdin_write)?,
        stdout: pipe::Receiver::from_owned_fd(stdout_read)?,
        stderr: pipe::Receiver::from_owned_fd(stderr_read)?,
    };
    Ok((streams, [stdin_read, stdout_write, stderr_write]))
}

/// What the system would cut short or misread.
fn check(spec: &ChildSpec) -> Result<()> {
    let program = &spec.program;
    if program.is_empty() || program.contains('\0') {
        return Err(KernelError::invalid("the program to start has no name"));
    }
    if spec.args.iter().any(|arg| arg.contains('\0')) {
        let message = format!("arguments of `{program}` must not contain NUL characters");
        return Err(KernelError::invalid(message));
    }
    for (name, value) in &spec.env {
        if name.is_empty() || name.contains(['=', '\0']) {
            let message = format!(
                "environment of `{program}`: {name:?} is no name of a variable: it must not be empty or \
                 contain `=` or NUL"
            );
            return Err(KernelError::invalid(message));
        }
        if value.contains('\0') {
            let message = format!("environment of `{program}`: {name} must not contain NUL");
            return Err(KernelError::invalid(message));
        }
    }
    if let Some(cwd) = &spec.cwd
        && cwd.to_str().is_none_or(|path| path.contains('\0'))
    {
        let message = format!("working directory of `{program}`: its path must be valid Unicode");
        return Err(KernelError::invalid(message));
    }
    Ok(())
}

/// The answer of the helper, as an error that says what to do.
fn refused(spec: &ChildSpec, step: Step, errno: i32) -> KernelError {
    let error = io::Error::from_raw_os_error(errno);
    if step == Step::Folder {
        let cwd = spec.cwd.clone().unwrap_or_default();
        let message = format!(
            "`{}` cannot be started in the folder {}: {error}",
            spec.program,
            cwd.display()
        );
        return KernelError::new(ErrorKind::Resource, message);
    }
    not_started(spec, &error)
}

fn not_started(spec: &ChildSpec, error: &io::Error) -> KernelError {
    let program = &spec.program;
    let reason = match error.kind() {
        io::ErrorKind::NotFound if program.contains('/') => {
            "there is no such file, or no interpreter of the name in its first line".to_owned()
        }
        io::ErrorKind::NotFound => {
            let has_path = spec.env.iter().any(|(name, _)| name == "PATH");
            let place = if has_path {
                "PATH of its environment"
            } else {
                "the default folders, for its environment has no PATH"
            };
            format!("it was not found in {place}: install it, or give its full path")
        }
        io::ErrorKind::PermissionDenied => "it may not be executed".to_owned(),
        io::ErrorKind::ArgumentListTooLong => {
            "its arguments and environment are too large".to_owned()
        }
        _ => error.to_string(),
    };
    KernelError::new(
        ErrorKind::Resource,
        format!("`{program}` cannot be started: {reason}"),
    )
    .with_retryable(is_transient(error))
}
