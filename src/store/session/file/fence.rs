//! The oldest epoch that may still append, in a file of its own.

use super::super::fenced_out;
use crate::error::{ErrorKind, KernelError, Result};
use crate::store::disk::Folder;

const NAME: &str = ".fence";

/// Raises the fence. Under the lock of the session.
pub fn set(folder: &Folder, epoch: u64, sync: bool) -> Result<()> {
    // What cannot be read counts as none here: the lease gives each holder a newer epoch.
    let set = folder.read(NAME)?.as_deref().and_then(parse);
    match set {
        Some(set) if epoch < set => Err(fenced_out()),
        Some(set) if epoch == set => Ok(()),
        _ => folder.write(NAME, epoch.to_string().as_bytes(), sync),
    }
}

/// Refuses an older epoch. Under the lock of the session.
pub fn check(folder: &Folder, epoch: Option<u64>) -> Result<()> {
    let Some(epoch) = epoch else {
        return Ok(());
    };
    let Some(content) = folder.read(NAME)? else {
        return Ok(());
    };
    match parse(&content) {
        Some(set) if epoch < set => Err(fenced_out()),
        Some(_) => Ok(()),
        None => Err(KernelError::new(
            ErrorKind::Store,
            "the fence of the session cannot be read: open the session again",
        )),
    }
}

pub fn remove(folder: &Folder) -> Result<()> {
    folder.remove(NAME).map(|_| ())
}

fn parse(content: &[u8]) -> Option<u64> {
    std::str::from_utf8(content).ok()?.trim().parse().ok()
}
