//! From a description of a store to the store. No I/O: a driver opens at its first call.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use super::{FileStore, MemoryStore, SharedSessionStore};
use crate::base::clock::SharedClock;
use crate::error::Result;

/// When an append counts as done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// It survives the end of the process.
    #[default]
    Process,
    /// It survives the end of the machine.
    Fsync,
}

/// A store that the kernel has a driver for.
#[derive(Clone, PartialEq, Eq)]
pub enum StoreSpec {
    Memory,
    File {
        root: PathBuf,
        durability: Durability,
    },
    Sqlite {
        path: PathBuf,
        /// In front of the names of tables.
        prefix: String,
        durability: Durability,
    },
    Pgsql {
        url: String,
        prefix: String,
    },
}

/// The word for the driver: a url holds a password.
impl fmt::Debug for StoreSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Memory => "Memory",
            Self::File { .. } => "File",
            Self::Sqlite { .. } => "Sqlite",
            Self::Pgsql { .. } => "Pgsql",
        })
    }
}

/// The store of a description.
pub fn open(spec: &StoreSpec, clock: SharedClock) -> Result<SharedSessionStore> {
    match spec {
        StoreSpec::Memory => Ok(Arc::new(MemoryStore::new(clock))),
        StoreSpec::File { root, durability } => {
            Ok(Arc::new(FileStore::new(root.clone(), *durability, clock)))
        }
        #[cfg(feature = "sqlite")]
        StoreSpec::Sqlite {
            path,
            prefix,
            durability,
        } => Ok(Arc::new(super::SqliteStore::new(
            path,
            prefix,
            *durability,
            clock,
        )?)),
        #[cfg(not(feature = "sqlite"))]
        StoreSpec::Sqlite { .. } => Err(not_in_this_build("sqlite")),
        #[cfg(feature = "pgsql")]
        StoreSpec::Pgsql { url, prefix } => {
            Ok(Arc::new(super::PgsqlStore::new(url, prefix, clock)?))
        }
        #[cfg(not(feature = "pgsql"))]
        StoreSpec::Pgsql { .. } => Err(not_in_this_build("pgsql")),
    }
}

#[cfg(not(all(feature = "sqlite", feature = "pgsql")))]
fn not_in_this_build(database: &str) -> crate::error::KernelError {
    crate::error::KernelError::new(
        crate::error::ErrorKind::NotImplemented,
        format!("session.database '{database}': this build of the kernel has no such driver"),
    )
}
