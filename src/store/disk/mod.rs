//! Folders and files of the drivers that keep their data on disk.
//!
//! Everything is opened relative to a folder that is already open, without following links, and
//! belongs to this user: 0600 under 0700 whatever the umask. Knows nothing of what the files hold.

mod file;
mod lock;
mod names;

use std::fs::{DirBuilder, File};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::Path;

use rustix::fs::{AtFlags, Dir, Mode, OFlags};
use rustix::io::Errno;

pub use file::FileId;
pub use lock::Lock;
pub use names::file_name;

use crate::base::id;
use crate::error::{ErrorKind, KernelError, Result};

const FOLDER_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;
/// In front of the names of files that are being written.
const TEMPORARY: &str = ".tmp-";
const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);
// Without NONBLOCK a pipe in the place of a file would hold the caller.
const PLAIN: OFlags = OFlags::NOFOLLOW
    .union(OFlags::CLOEXEC)
    .union(OFlags::NONBLOCK);

/// A folder that is open.
#[derive(Debug)]
pub struct Folder(File);

impl Folder {
    /// The folder in which a driver lives; none when it does not exist. It may be reached over links,
    /// but must belong to this user or the administrator.
    pub fn root(path: &Path) -> Result<Option<Self>> {
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed("open the folder of the store", error)),
        };
        let facts = file
            .metadata()
            .map_err(|error| failed("look at the folder of the store", error))?;
        if !facts.is_dir() {
            return Err(KernelError::new(
                ErrorKind::Io,
                "the folder of the store is not a folder: give another one",
            ));
        }
        if facts.uid() != 0 && facts.uid() != own_uid() {
            return Err(not_safe("the folder of the store belongs to another user"));
        }
        Ok(Some(Self(file)))
    }

    /// The folder in which a driver lives, made when it does not exist.
    pub fn make_root(path: &Path) -> Result<Self> {
        if let Some(root) = Self::root(path)? {
            return Ok(root);
        }
        let mut builder = DirBuilder::new();
        let made = builder.recursive(true).mode(FOLDER_MODE).create(path);
        made.map_err(|error| failed("make the folder of the store", error))?;
        let root = Self::root(path)?.ok_or_else(|| vanished("the folder of the store"))?;
        root.close_to_others()?;
        Ok(root)
    }

    /// The same folder, open once more.
    pub fn again(&self) -> Result<Self> {
        let file = self.0.try_clone();
        file.map(Self)
            .map_err(|error| failed("open a folder", error))
    }

    /// A folder in this one; none when there is none.
    pub fn folder(&self, name: &str) -> Result<Option<Self>> {
        let fd = match rustix::fs::openat(&self.0, name, FOLDER, Mode::empty()) {
            Ok(fd) => fd,
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP | Errno::NOTDIR) => {
                return Err(not_safe("a link or file stands in the place of a folder"));
            }
            Err(error) => return Err(failed("open a folder", error)),
        };
        let folder = Self(File::from(fd));
        folder.close_to_others()?;
        Ok(Some(folder))
    }

    /// A folder in this one, made when there is none.
    pub fn make_folder(&self, name: &str) -> Result<Self> {
        // Another process may remove an empty folder just after it was made.
        for _ in 0..16 {
            if let Some(folder) = self.folder(name)? {
                return Ok(folder);
            }
            match rustix::fs::mkdirat(&self.0, name, Mode::from_raw_mode(FOLDER_MODE.into_mode())) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(failed("make a folder", error)),
            }
        }
        Err(vanished("a folder"))
    }

    /// Refuses a folder of another user and takes the rights of others away.
    fn close_to_others(&self) -> Result<()> {
        let facts = self.0.metadata();
        let facts = facts.map_err(|error| failed("look at a folder", error))?;
        if facts.uid() != own_uid() {
            return Err(not_safe("a folder belongs to another user"));
        }
        if facts.mode() & 0o777 != FOLDER_MODE {
            let mode = std::fs::Permissions::from_mode(FOLDER_MODE);
            let set = self.0.set_permissions(mode);
            set.map_err(|error| failed("set the mode of a folder", error))?;
        }
        Ok(())
    }

    /// Names of what is in the folder, in no order. Those that are not UTF-8 are nobody's.
    pub fn names(&self) -> Result<Vec<String>> {
        let read = |error| failed("read a folder", error);
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.0).map_err(read)? {
            let entry = entry.map_err(read)?;
            if let Ok(name) = entry.file_name().to_str()
                && !matches!(name, "." | "..")
            {
                names.push(name.to_owned());
            }
        }
        Ok(names)
    }

    /// Removes a file; whether there was one.
    pub fn remove(&self, name: &str) -> Result<bool> {
        match rustix::fs::unlinkat(&self.0, name, AtFlags::empty()) {
            Ok(()) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(error) => Err(failed("remove a file", error)),
        }
    }

    /// Removes a folder if it is empty.
    pub fn remove_folder(&self, name: &str) -> Result<()> {
        match rustix::fs::unlinkat(&self.0, name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT | Errno::NOTEMPTY | Errno::EXIST) => Ok(()),
            Err(error) => Err(failed("remove a folder", error)),
        }
    }

    /// Gives a file another name.
    pub fn rename(&self, from: &str, to: &str) -> Result<()> {
        let renamed = rustix::fs::renameat(&self.0, from, &self.0, to);
        renamed.map_err(|error| failed("rename a file", error))
    }

    /// Gives what was written under a temporary name its own, unless that is taken; whether it was
    /// free.
    pub fn publish(&self, temporary: &str, name: &str) -> Result<bool> {
        let linked = rustix::fs::linkat(&self.0, temporary, &self.0, name, AtFlags::empty());
        self.remove(temporary)?;
        match linked {
            Ok(()) => Ok(true),
            Err(Errno::EXIST) => Ok(false),
            Err(error) => Err(failed("name a file", error)),
        }
    }

    /// Puts whole content in the place of a file, at once for every reader.
    pub fn write(&self, name: &str, content: &[u8], sync: bool) -> Result<()> {
        let temporary = self.write_temporary(content, sync)?;
        if let Err(error) = self.rename(&temporary, name) {
            let _ = self.remove(&temporary);
            return Err(error);
        }
        if sync { self.sync() } else { Ok(()) }
    }

    /// Writes a file under a name that nobody knows, which it gives.
    pub fn write_temporary(&self, content: &[u8], sync: bool) -> Result<String> {
        let name = format!("{TEMPORARY}{}", id::random());
        let written = self.create(&name).and_then(|mut file| {
            let all = std::io::Write::write_all(&mut file, content);
            let all = all.and_then(|()| if sync { file.sync_data() } else { Ok(()) });
            all.map_err(|error| failed("write a file", error))
        });
        if let Err(error) = written {
            let _ = self.remove(&name);
            return Err(error);
        }
        Ok(name)
    }

    /// Removes files that a process left half-written, more than an hour ago.
    pub fn sweep(&self) -> Result<()> {
        for name in self.names()? {
            if name.starts_with(TEMPORARY) && self.is_older_than_an_hour(&name) {
                self.remove(&name)?;
            }
        }
        Ok(())
    }

    fn is_older_than_an_hour(&self, name: &str) -> bool {
        let file = self.read_file(name).ok().flatten();
        let changed = file.and_then(|file| file.metadata().ok()?.modified().ok());
        changed
            .and_then(|changed| changed.elapsed().ok())
            .is_some_and(|age| age.as_secs() > 3600)
    }

    /// Waits until names in the folder survive the end of the machine.
    pub fn sync(&self) -> Result<()> {
        let synced = self.0.sync_all();
        synced.map_err(|error| failed("sync a folder", error))
    }
}

/// The width of a mode differs between systems.
trait IntoMode {
    fn into_mode(self) -> rustix::fs::RawMode;
}

impl IntoMode for u32 {
    fn into_mode(self) -> rustix::fs::RawMode {
        rustix::fs::RawMode::try_from(self).unwrap_or_default()
    }
}

fn own_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// A call that the file system failed. Names no path.
pub fn failed(what: &str, error: impl Into<std::io::Error>) -> KernelError {
    let error: std::io::Error = error.into();
    KernelError::new(
        ErrorKind::Io,
        format!("the session store could not {what}: {}", error.kind()),
    )
    .with_source(error)
}

/// A file or folder that is not used.
pub fn not_safe(what: &str) -> KernelError {
    KernelError::new(
        ErrorKind::UnsafeFile,
        format!("{what}: nothing was read or written; remove it or give the store another folder"),
    )
}

fn vanished(what: &str) -> KernelError {
    KernelError::new(
        ErrorKind::Io,
        format!("{what} of the session store keeps vanishing"),
    )
}
