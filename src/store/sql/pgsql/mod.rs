//! A PostgreSQL database: a small pool of connections and transactions with a deadline.
//!
//! Every call is a transaction. Its `BEGIN` shows whether a pooled connection still lives, at a time
//! when beginning again with another one cannot do anything twice.

mod connection;
mod failure;
mod migrate;
mod text;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OnceCell, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tokio_postgres::config::SslMode;
use tokio_postgres::{Config, Row};

pub use connection::Value;
pub use text::{encoded, plain};

use super::Tables;
use crate::base::clock::SharedClock;
use crate::error::{KernelError, Result};
use connection::Connection;
use failure::unavailable;

/// Most connections of a pool.
const CONNECTIONS_MOST: usize = 8;
/// Longest wait for a connection that others use.
const POOL_WAIT: Duration = Duration::from_secs(3);
/// Longest wait for a new connection.
const CONNECT_WAIT: Duration = Duration::from_secs(4);
/// Longest transaction, with all waiting.
const CALL_WAIT: Duration = Duration::from_secs(8);
const FORM: &str = "session.url must be postgres://<user>:<password>@<host>:<port>/<database>";
const NO_TLS: &str =
    "session.url: this driver has no TLS: leave sslmode out, or reach the server through a tunnel";

/// A database, connected at the first call; its tables are made when they are missing.
pub struct PgsqlDatabase {
    config: Config,
    tables: Tables,
    clock: SharedClock,
    permits: Arc<Semaphore>,
    idle: Mutex<Vec<Connection>>,
    has_tables: OnceCell<()>,
}

/// A transaction. Dropped without [`Transaction::commit`] it closes its connection, and nothing of it
/// stays.
pub struct Transaction<'a> {
    database: &'a PgsqlDatabase,
    connection: Connection,
    deadline: Instant,
    _permit: OwnedSemaphorePermit,
}

impl PgsqlDatabase {
    /// The database of a url. Fails with
    /// [`ErrorKind::InvalidConfig`](crate::error::ErrorKind::InvalidConfig) when the url has another
    /// form or asks for TLS, or when the prefix is no word.
    pub fn new(url: &str, prefix: &str, clock: SharedClock) -> Result<Self> {
        let tables = Tables::new(prefix)?;
        if url.contains("sslmode=verify") {
            return Err(KernelError::invalid(NO_TLS));
        }
        // What is wrong with a url may hold a part of the password: it is not told.
        let mut config: Config = url.parse().map_err(|_| KernelError::invalid(FORM))?;
        if config.get_ssl_mode() == SslMode::Require {
            return Err(KernelError::invalid(NO_TLS));
        }
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(KernelError::invalid(FORM));
        }
        if config.get_application_name().is_none() {
            config.application_name("open-agent-kernel");
        }
        Ok(Self {
            config,
            tables,
            clock,
            permits: Arc::new(Semaphore::new(CONNECTIONS_MOST)),
            idle: Mutex::default(),
            has_tables: OnceCell::new(),
        })
    }

    /// Begins a transaction.
    pub async fn begin(&self) -> Result<Transaction<'_>> {
        let deadline = self.clock.instant() + CALL_WAIT;
        let permit = self.permit().await?;
        let connection = loop {
            let Some(mut connection) = self.pooled() else {
                break self.begun(deadline).await?;
            };
            if connection.run("BEGIN", &self.clock, deadline).await.is_ok() {
                break connection;
            }
        };
        Ok(Transaction {
            database: self,
            connection,
            deadline,
            _permit: permit,
        })
    }

    async fn permit(&self) -> Result<OwnedSemaphorePermit> {
        tokio::select! {
            biased;
            permit = self.permits.clone().acquire_owned() => {
                permit.map_err(|_| unavailable("the store was closed"))
            }
            () = self.clock.sleep(POOL_WAIT) => {
                Err(unavailable("every connection was in use for too long"))
            }
        }
    }

    /// A new connection, in a transaction.
    async fn begun(&self, deadline: Instant) -> Result<Connection> {
        let until = deadline.min(self.clock.instant() + CONNECT_WAIT);
        let mut connection = Connection::open(&self.config, &self.clock, until).await?;
        let migrate = migrate::migrate(&mut connection, &self.tables, &self.clock, deadline);
        self.has_tables.get_or_try_init(|| migrate).await?;
        connection.run("BEGIN", &self.clock, deadline).await?;
        Ok(connection)
    }

    fn pooled(&self) -> Option<Connection> {
        let mut idle = self.idle();
        idle.retain(Connection::is_open);
        idle.pop()
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        // A list of connections: whole after every statement.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Transaction<'_> {
    /// The rows of a statement.
    pub async fn query(&mut self, template: &str, values: &[Value<'_>]) -> Result<Vec<Row>> {
        let statement = self.database.tables.sql(template);
        let (clock, deadline) = (&self.database.clock, self.deadline);
        self.connection
            .query(&statement, values, clock, deadline)
            .await
    }

    /// The first row of a statement, if there is one.
    pub async fn first(&mut self, template: &str, values: &[Value<'_>]) -> Result<Option<Row>> {
        Ok(self.query(template, values).await?.into_iter().next())
    }

    /// Runs a statement; how many rows it changed.
    pub async fn execute(&mut self, template: &str, values: &[Value<'_>]) -> Result<u64> {
        let statement = self.database.tables.sql(template);
        let (clock, deadline) = (&self.database.clock, self.deadline);
        self.connection
            .execute(&statement, values, clock, deadline)
            .await
    }

    /// Ends the transaction. When this fails, it is not known whether its changes stayed.
    pub async fn commit(self) -> Result<()> {
        let Self {
            database,
            mut connection,
            deadline,
            _permit,
        } = self;
        connection.run("COMMIT", &database.clock, deadline).await?;
        database.idle().push(connection);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::clock::SystemClock;
    use crate::error::ErrorKind;

    fn refusal(url: &str) -> String {
        let database = PgsqlDatabase::new(url, "oak_", Arc::new(SystemClock));
        let error = database.err().unwrap();
        assert_eq!(error.kind(), ErrorKind::InvalidConfig);
        assert!(!error.message().contains("hunter2"), "{error}");
        error.message().to_owned()
    }

    #[test]
    fn a_url_is_checked_and_never_quoted() {
        for url in [
            "",
            "postgres://",
            "mysql://u:hunter2@h/d",
            "postgres://u:hunter2@h:x/d",
            "postgres://u@h/d?hunter2=1",
        ] {
            assert!(refusal(url).starts_with("session.url must be"), "{url}");
        }
        for mode in ["require", "verify-ca", "verify-full"] {
            let message = refusal(&format!("postgres://u:hunter2@h/d?sslmode={mode}"));
            assert!(message.contains("TLS"), "{message}");
        }
    }
}
