//! One SQLite file: two connections, short transactions on the blocking pool.
//!
//! The writer takes the write lock at the start of a transaction, so that nothing fails in the middle
//! of one because another process was faster. In WAL mode readers never wait for writers.

mod failure;
mod open;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rusqlite::{CachedStatement, Connection, TransactionBehavior};
use tokio::sync::Mutex;

pub use failure::Failure;

use super::Tables;
use crate::error::{ErrorKind, KernelError, Result};
use crate::store::session::Durability;
use open::Place;

/// How long SQLite itself waits for a lock.
const BUSY_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a call that met a lock is begun again.
const PATIENCE: Duration = Duration::from_secs(3);
/// Longest pause before it is begun again.
const PAUSE_MOST_MS: u64 = 50;

type Slot = Arc<Mutex<Option<Connection>>>;

/// A database file, opened at the first call and made when it is missing.
pub struct SqliteDatabase {
    place: Arc<Place>,
    writer: Slot,
    reader: Slot,
}

/// The statements of a transaction.
pub struct Work<'a> {
    connection: &'a Connection,
    tables: &'a Tables,
}

impl Work<'_> {
    /// A statement from its template.
    pub fn prepare(&self, template: &str) -> rusqlite::Result<CachedStatement<'_>> {
        self.connection.prepare_cached(&self.tables.sql(template))
    }
}

impl SqliteDatabase {
    /// The database at a path. Fails with [`ErrorKind::InvalidConfig`] for an empty path or a prefix
    /// that is no word.
    pub fn new(path: &Path, prefix: &str, durability: Durability) -> Result<Self> {
        let place = Place {
            // Not to be one of the names that SQLite takes for something else, like `:memory:`.
            path: std::path::absolute(path)
                .map_err(|_| KernelError::invalid("session.path must not be empty"))?,
            tables: Tables::new(prefix)?,
            durability,
        };
        Ok(Self {
            place: Arc::new(place),
            writer: Slot::default(),
            reader: Slot::default(),
        })
    }

    /// Does work that changes nothing, on one state of the database. It may be begun several times.
    pub async fn read<T: Send + 'static>(
        &self,
        work: impl FnMut(&Work<'_>) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T> {
        self.run(&self.reader, TransactionBehavior::Deferred, work)
            .await
    }

    /// Does work of which all or nothing stays. It may be begun several times.
    pub async fn write<T: Send + 'static>(
        &self,
        work: impl FnMut(&Work<'_>) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T> {
        self.run(&self.writer, TransactionBehavior::Immediate, work)
            .await
    }

    async fn run<T: Send + 'static>(
        &self,
        slot: &Slot,
        behavior: TransactionBehavior,
        mut work: impl FnMut(&Work<'_>) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T> {
        let mut slot = slot.clone().lock_owned().await;
        let place = self.place.clone();
        tokio::task::spawn_blocking(move || {
            patiently(|| place.attempt(&mut slot, behavior, &mut work))
        })
        .await
        .map_err(|_| KernelError::new(ErrorKind::Internal, "a call of the database panicked"))?
    }
}

impl Place {
    /// One transaction, from its begin to its end.
    fn attempt<T>(
        &self,
        slot: &mut Option<Connection>,
        behavior: TransactionBehavior,
        work: &mut impl FnMut(&Work<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        // A connection that failed is not used again: its file may have been replaced.
        let mut connection = match slot.take() {
            Some(connection) => connection,
            None => self.open()?,
        };
        let result = self.transaction(&mut connection, behavior, work);
        let is_sound = result.as_ref().err().is_none_or(Failure::leaves_sound);
        *slot = is_sound.then_some(connection);
        result
    }

    fn transaction<T>(
        &self,
        connection: &mut Connection,
        behavior: TransactionBehavior,
        work: &mut impl FnMut(&Work<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let transaction = connection.transaction_with_behavior(behavior)?;
        let value = work(&Work {
            connection: &transaction,
            tables: &self.tables,
        })?;
        transaction.commit()?;
        Ok(value)
    }
}

/// Begins again, for a while, what met a lock of another writer.
fn patiently<T>(mut attempt: impl FnMut() -> Result<T, Failure>) -> Result<T> {
    let begun = Instant::now();
    loop {
        match attempt() {
            Err(failure) if failure.is_busy() && begun.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_millis(fastrand::u64(1..=PAUSE_MOST_MS)));
            }
            other => return other.map_err(KernelError::from),
        }
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::params;

    use super::*;
    use crate::store::sql::statements;

    fn database(folder: &tempfile::TempDir) -> SqliteDatabase {
        let path = folder.path().join("a/b/oak.db");
        SqliteDatabase::new(&path, "oak_", Durability::Process).unwrap()
    }

    /// Runs a statement on the writer, outside of a transaction.
    async fn pragma(database: &SqliteDatabase, statement: &'static str) {
        let slot = database.writer.clone().lock_owned().await;
        slot.as_ref().unwrap().execute_batch(statement).unwrap();
    }

    async fn put(database: &SqliteDatabase, bytes: usize) -> Result<()> {
        let put = move |work: &Work<'_>| {
            let name = fastrand::u64(..).to_string();
            let mut insert = work.prepare("INSERT INTO \"{p}meta\" VALUES ($1, $2)")?;
            insert.execute(params![name, "x".repeat(bytes)])?;
            Ok(())
        };
        database.write(put).await
    }

    #[tokio::test]
    async fn a_full_disk_and_a_read_only_file_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let database = database(&folder);
        put(&database, 10).await.unwrap();
        pragma(&database, "PRAGMA max_page_count = 25").await;
        let full = put(&database, 1_000_000).await.unwrap_err();
        assert_eq!(full.kind(), ErrorKind::Store);
        assert!(full.message().contains("full"), "{full}");
        put(&database, 1_000_000).await.unwrap();
        pragma(&database, "PRAGMA query_only = 1").await;
        let refused = put(&database, 10).await.unwrap_err();
        assert_eq!(
            (refused.kind(), refused.is_retryable()),
            (ErrorKind::Store, false)
        );
        assert!(refused.message().contains("read-only"), "{refused}");
    }

    #[tokio::test]
    async fn files_and_folders_are_of_their_owner_alone() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let database = database(&folder);
        put(&database, 10).await.unwrap();
        let mode = |name: &str| {
            let metadata = std::fs::metadata(folder.path().join(name)).unwrap();
            metadata.permissions().mode() & 0o777
        };
        assert_eq!((mode("a"), mode("a/b")), (0o700, 0o700));
        assert_eq!((mode("a/b/oak.db"), mode("a/b/oak.db-wal")), (0o600, 0o600));
    }

    #[tokio::test]
    async fn a_failed_transaction_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let database = database(&folder);
        let count = |work: &Work<'_>| {
            let mut count = work.prepare("SELECT count(*) FROM \"{p}meta\"")?;
            Ok(count.query_row([], |row| row.get::<_, i64>(0))?)
        };
        let before = database.read(count).await.unwrap();
        let twice = |work: &Work<'_>| {
            let mut insert = work.prepare("INSERT INTO \"{p}meta\" VALUES ('a', 'b')")?;
            insert.execute([])?;
            insert.execute([])?;
            Ok(())
        };
        let error = database.write(twice).await.unwrap_err();
        assert_eq!(
            (error.kind(), error.is_retryable()),
            (ErrorKind::Store, false)
        );
        assert_eq!(database.read(count).await.unwrap(), before);
    }

    #[tokio::test]
    async fn durability_decides_what_a_commit_waits_for() {
        for (durability, level) in [(Durability::Process, 1), (Durability::Fsync, 2)] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("oak.db");
            let database = SqliteDatabase::new(&path, "oak_", durability).unwrap();
            let read = |work: &Work<'_>| {
                let setting = |name: &str| -> rusqlite::Result<rusqlite::types::Value> {
                    let mut read = work.prepare(&format!("PRAGMA {name}"))?;
                    read.query_row([], |row| row.get(0))
                };
                Ok((setting("synchronous")?, setting("journal_mode")?))
            };
            let (synchronous, journal) = database.write(read).await.unwrap();
            assert_eq!(synchronous, i64::into(level));
            assert_eq!(journal, "wal".to_owned().into());
        }
    }

    #[tokio::test]
    async fn no_statement_reads_more_than_it_gives() {
        let folder = tempfile::tempdir().unwrap();
        let database = database(&folder);
        let plans = |work: &Work<'_>| {
            let mut plans = Vec::new();
            for (name, template) in statements::ALL {
                let mut plan = work.prepare(&format!("EXPLAIN QUERY PLAN {template}"))?;
                let mut steps = plan.raw_query();
                while let Some(step) = steps.next()? {
                    plans.push((*name, step.get::<_, String>("detail")?));
                }
            }
            Ok(plans)
        };
        let plans = database.read(plans).await.unwrap();
        assert!(plans.len() > 20);
        for (name, step) in plans {
            let is_whole = step.starts_with("SCAN") || step.contains("TEMP B-TREE");
            assert!(!is_whole, "{name}: {step}");
        }
    }
}
