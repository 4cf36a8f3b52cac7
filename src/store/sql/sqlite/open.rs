//! Opens a database file: creation, settings, tables.

use std::fs::{DirBuilder, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rusqlite::{Connection, OpenFlags, OptionalExtension, TransactionBehavior};

use super::failure::{Failure, refused};
use super::{BUSY_TIMEOUT, Tables};
use crate::error::Result;
use crate::store::session::Durability;
use crate::store::sql::schema::{self, Dialect};

/// More than the statements of both stores.
const STATEMENTS_KEPT: usize = 64;
const DIALECT: Dialect = Dialect {
    text: "TEXT",
    id: "INTEGER PRIMARY KEY",
};

/// Where a database is and how it is used.
pub struct Place {
    pub path: PathBuf,
    pub tables: Tables,
    pub durability: Durability,
}

impl Place {
    /// A connection to the database, whose tables exist.
    pub fn open(&self) -> Result<Connection, Failure> {
        create(&self.path)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags(&self.path, flags)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS_KEPT);
        // Before anything is written: the file may be somebody else's, or of a newer kernel.
        let version = self.version(&connection)?;
        if connection.is_readonly("main")? {
            return Err(refused("the database is read-only: allow writing to it", false).into());
        }
        self.configure(&connection)?;
        if version != schema::VERSION {
            self.migrate(&mut connection)?;
        }
        Ok(connection)
    }

    fn configure(&self, connection: &Connection) -> Result<(), Failure> {
        let set = "PRAGMA journal_mode = WAL";
        let mode: String = connection.query_row(set, [], |row| row.get(0))?;
        if mode != "wal" {
            let what = "the file system of the database cannot hold a write-ahead log";
            return Err(refused(what, false).into());
        }
        let synchronous = match self.durability {
            Durability::Process => "NORMAL",
            Durability::Fsync => "FULL",
        };
        connection.pragma_update(None, "synchronous", synchronous)?;
        Ok(())
    }

    /// The version of the tables; 0 when there are none.
    fn version(&self, connection: &Connection) -> Result<i64, Failure> {
        let named = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = $1";
        let mut exists = connection.prepare(named)?;
        if !exists.exists([self.tables.sql("{p}meta")])? {
            return Ok(0);
        }
        let read = self.tables.sql(schema::READ_VERSION);
        let version = connection.query_row(&read, [], |row| row.get::<_, String>(0));
        let version = version.optional()?.and_then(|text| text.parse().ok());
        match version {
            Some(version @ 1..=schema::VERSION) => Ok(version),
            Some(schema::VERSION..) => {
                let what = "the database was written by a newer version of the kernel: update it";
                Err(refused(what, false).into())
            }
            _ => {
                let what = "the tables are not those of the kernel: choose a session.tablePrefix";
                Err(refused(what, false).into())
            }
        }
    }

    fn migrate(&self, connection: &mut Connection) -> Result<(), Failure> {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        // Another process may have been faster.
        let version = self.version(&transaction)?;
        for statement in schema::migration(version, &DIALECT) {
            transaction.execute_batch(&self.tables.sql(&statement))?;
        }
        Ok(transaction.commit()?)
    }
}

/// Makes a missing file and its folders, for the owner alone.
fn create(path: &Path) -> Result<(), Failure> {
    /// Closing a file ends the locks that other connections of the process hold on it: nobody else may
    /// open the new file before it is closed.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(folder) = path.parent() {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
        made.map_err(|error| cannot_create(&error))?;
    }
    let mut options = OpenOptions::new();
    match options.write(true).create_new(true).mode(0o600).open(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(cannot_create(&error)),
        _ => Ok(()),
    }
}

fn cannot_create(error: &io::Error) -> Failure {
    let what = format!("the database cannot be created: {}", error.kind());
    refused(&what, error.kind() == io::ErrorKind::StorageFull).into()
}
