//! The program `oak-helper`, by which children are started.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use tokio::time::timeout;

use super::link::Link;
use super::reaper::HelperProcess;
use super::wire::{PROTOCOL, Report, VERSION};
use crate::error::{ErrorKind, KernelError, Result};

/// Longest wait for the first word of a helper.
const HELLO_LIMIT: Duration = Duration::from_secs(5);
const REMEDY: &str =
    "reinstall the package, or let OAK_HELPER_PATH name the oak-helper of this version";

/// Where `oak-helper` is.
#[derive(Clone, Debug)]
pub struct Helper {
    path: PathBuf,
}

impl Helper {
    /// Nothing is checked before the first child is started. A relative path starts at the working
    /// directory.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Runs the program, which then waits for its first order.
    pub(super) fn run(&self) -> Result<(Link, HelperProcess)> {
        // Without a slash the name would be looked up in PATH.
        let path = std::path::absolute(&self.path).map_err(|error| self.failed(&error))?;
        let (link, theirs) = Link::new().map_err(|error| self.failed(&error))?;
        let helper = spawn(&path, theirs).map_err(|error| self.failed(&error))?;
        Ok((link, HelperProcess::new(helper)))
    }

    /// Waits until the program has said that it is the one of this package.
    pub(super) async fn greet(&self, link: &mut Link) -> Result<()> {
        let Ok(report) = timeout(HELLO_LIMIT, link.report()).await else {
            let seconds = HELLO_LIMIT.as_secs();
            return Err(self.wrong(format!("has said nothing for {seconds} s")));
        };
        match report {
            Ok(Some(Report::Hello { protocol, version })) => {
                let is_ours = protocol == PROTOCOL && version == VERSION;
                if is_ours {
                    return Ok(());
                }
                Err(self.wrong(format!(
                    "is of version {version:.40}, the kernel of {VERSION}"
                )))
            }
            Ok(Some(_)) => Err(self.wrong("does not greet")),
            Ok(None) => Err(self.wrong("ended before it said anything")),
            Err(_) => Err(self.wrong("does not speak the language of the kernel")),
        }
    }

    /// An error about the program, with what to do.
    pub(super) fn wrong(&self, what: impl std::fmt::Display) -> KernelError {
        let path = self.path.display();
        KernelError::new(ErrorKind::Helper, format!("oak-helper at {path} {what}")).advise(REMEDY)
    }

    fn failed(&self, error: &io::Error) -> KernelError {
        match error.kind() {
            io::ErrorKind::NotFound => self.wrong("is missing"),
            io::ErrorKind::PermissionDenied => {
                self.wrong("may not be executed: it needs the executable bit (chmod +x)")
            }
            _ => {
                let transient = is_transient(error);
                self.wrong(format!("cannot be started: {error}"))
                    .with_retryable(transient)
            }
        }
    }
}

/// Whether the system is short of something that comes back: memory, processes, descriptors.
pub(super) fn is_transient(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let Some(code) = error.raw_os_error() else {
        return false;
    };
    let short = [
        Errno::AGAIN,
        Errno::NOMEM,
        Errno::MFILE,
        Errno::NFILE,
        Errno::TXTBSY,
    ];
    short.iter().any(|errno| errno.raw_os_error() == code)
}

/// The command is dropped at the end, and with it the last copy of the helper's end of the socket.
fn spawn(path: &Path, socket: OwnedFd) -> io::Result<std::process::Child> {
    Command::new(path)
        .env_clear()
        .stdin(socket)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
}
