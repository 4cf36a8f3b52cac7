//! Locks between processes.

use std::fs::{File, TryLockError};
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use rustix::fs::OFlags;

use super::{FileId, Folder, failed};
use crate::error::{ErrorKind, KernelError, Result};

/// Longest wait for another process.
const WAIT: Duration = Duration::from_secs(5);
/// Longest pause between two looks, in microseconds.
const PAUSE: u64 = 2_000;

/// A lock file that is held until this is dropped.
#[derive(Debug)]
pub struct Lock {
    /// The lock is that of the open file.
    _file: File,
}

impl Folder {
    /// Takes the lock of a folder, waiting for others; none when the folder or the lock file was
    /// removed meanwhile. Fails with [`ErrorKind::SessionLocked`].
    pub fn lock(&self, name: &str) -> Result<Option<Lock>> {
        let Some(file) = self.open(name, OFlags::RDWR | OFlags::CREATE)? else {
            return Ok(None);
        };
        wait_for(&file)?;
        let facts = file.metadata();
        let facts = facts.map_err(|error| failed("look at a file", error))?;
        // Whoever removed the file held the lock before: it guards nothing any more.
        let here = self.look(name)?;
        let is_here = here.is_some_and(|here| here.is_same_file(&FileId::from(&facts)));
        Ok((is_here && facts.nlink() > 0).then_some(Lock { _file: file }))
    }
}

fn wait_for(file: &File) -> Result<()> {
    let start = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) if start.elapsed() < WAIT => {
                // An uneven pause: two who wait do not fall into step.
                std::thread::sleep(Duration::from_micros(fastrand::u64(100..PAUSE)));
            }
            Err(TryLockError::WouldBlock) => return Err(locked()),
            Err(TryLockError::Error(error)) => return Err(failed("lock a file", error)),
        }
    }
}

fn locked() -> KernelError {
    KernelError::new(
        ErrorKind::SessionLocked,
        "the files of the session were held by another process for 5 s: try again",
    )
}
