//! Files in a folder.

use std::fs::{File, Metadata, Permissions};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::time::SystemTime;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::{FILE_MODE, Folder, IntoMode, PLAIN, failed, not_safe, own_uid};
use crate::error::Result;

/// Tells whether a file is still the one, and as long, as when it was looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileId {
    pub device: u64,
    pub inode: u64,
    pub length: u64,
    /// Nanoseconds since the epoch.
    modified: i128,
    /// Where the system tells it: numbers of removed files are given to new ones.
    created: Option<SystemTime>,
}

impl FileId {
    pub fn of(file: &File) -> Result<Self> {
        let facts = file.metadata();
        let facts = facts.map_err(|error| failed("look at a file", error))?;
        Ok(Self::from(&facts))
    }

    /// Milliseconds since the epoch of the last change.
    pub fn modified_ms(&self) -> u64 {
        u64::try_from(self.modified / 1_000_000).unwrap_or_default()
    }

    /// The same file, as if it were as long as that.
    #[must_use]
    pub fn with_length(self, length: u64) -> Self {
        Self { length, ..self }
    }

    /// Whether both are of one file.
    pub fn is_same_file(&self, other: &Self) -> bool {
        let facts = |id: &Self| (id.device, id.inode, id.created);
        facts(self) == facts(other)
    }
}

impl From<&Metadata> for FileId {
    fn from(facts: &Metadata) -> Self {
        Self {
            device: facts.dev(),
            inode: facts.ino(),
            length: facts.len(),
            created: facts.created().ok(),
            modified: i128::from(facts.mtime()) * 1_000_000_000 + i128::from(facts.mtime_nsec()),
        }
    }
}

impl Folder {
    /// A file to read; none when there is none.
    pub fn read_file(&self, name: &str) -> Result<Option<File>> {
        self.open(name, OFlags::RDONLY)
    }

    /// A file to read and to write at its end, made when there is none.
    pub fn append_file(&self, name: &str) -> Result<File> {
        let flags = OFlags::RDWR | OFlags::APPEND | OFlags::CREATE;
        self.open(name, flags)?
            .ok_or_else(|| failed("make a file", Errno::NOENT))
    }

    /// A file to read and change that exists.
    pub fn change_file(&self, name: &str) -> Result<Option<File>> {
        self.open(name, OFlags::RDWR)
    }

    /// A new file.
    pub(super) fn create(&self, name: &str) -> Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        self.open(name, flags)?
            .ok_or_else(|| failed("make a file", Errno::NOENT))
    }

    /// The content of a file; none when there is none.
    pub fn read(&self, name: &str) -> Result<Option<Vec<u8>>> {
        let Some(mut file) = self.read_file(name)? else {
            return Ok(None);
        };
        let mut content = Vec::new();
        let read = file.read_to_end(&mut content);
        read.map_err(|error| failed("read a file", error))?;
        Ok(Some(content))
    }

    /// What a file is; none when there is none.
    pub fn look(&self, name: &str) -> Result<Option<FileId>> {
        let file = self.read_file(name)?;
        file.as_ref().map(FileId::of).transpose()
    }

    pub(super) fn open(&self, name: &str, flags: OFlags) -> Result<Option<File>> {
        let mode = Mode::from_raw_mode(FILE_MODE.into_mode());
        let fd = match rustix::fs::openat(&self.0, name, flags | PLAIN, mode) {
            Ok(fd) => fd,
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP) => return Err(not_safe("a link stands in the place of a file")),
            Err(Errno::NXIO) => {
                return Err(not_safe("something else stands in the place of a file"));
            }
            Err(error) => return Err(failed("open a file", error)),
        };
        let file = File::from(fd);
        check(&file)?;
        Ok(Some(file))
    }
}

/// Refuses what is no plain file of this user and takes the rights of others away.
fn check(file: &File) -> Result<()> {
    let facts = file.metadata();
    let facts = facts.map_err(|error| failed("look at a file", error))?;
    if !facts.is_file() {
        return Err(not_safe("something else stands in the place of a file"));
    }
    if facts.uid() != own_uid() {
        return Err(not_safe("a file belongs to another user"));
    }
    if facts.mode() & 0o777 != FILE_MODE {
        let set = file.set_permissions(Permissions::from_mode(FILE_MODE));
        set.map_err(|error| failed("set the mode of a file", error))?;
    }
    Ok(())
}
