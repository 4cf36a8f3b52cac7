//! One connection. Whatever it does ends at a deadline.

use std::collections::HashMap;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Config, NoTls, Row, Statement};

use super::failure::{told, unavailable};
use crate::base::clock::SharedClock;
use crate::error::Result;

/// A value of a statement.
pub type Value<'a> = &'a (dyn ToSql + Sync);

/// A statement ends by itself, and so does a transaction that its client forgot.
const SETTINGS: &str =
    "SET statement_timeout = '5s'; SET idle_in_transaction_session_timeout = '15s'";

/// A connection and the statements that the server has prepared for it.
pub struct Connection {
    client: Client,
    /// Moves the bytes. A server that went silent would keep it for ever.
    mover: JoinHandle<()>,
    prepared: HashMap<String, Statement>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.mover.abort();
    }
}

impl Connection {
    pub async fn open(config: &Config, clock: &SharedClock, deadline: Instant) -> Result<Self> {
        let (client, connection) = until(deadline, clock, config.connect(NoTls)).await?;
        let mover = tokio::spawn(async move {
            // What went wrong is told to the calls that wait.
            let _ = connection.await;
        });
        let mut this = Self {
            client,
            mover,
            prepared: HashMap::new(),
        };
        this.run(SETTINGS, clock, deadline).await?;
        Ok(this)
    }

    pub fn is_open(&self) -> bool {
        !self.client.is_closed()
    }

    /// Runs statements without values.
    pub async fn run(
        &mut self,
        statements: &str,
        clock: &SharedClock,
        deadline: Instant,
    ) -> Result<()> {
        until(deadline, clock, self.client.batch_execute(statements)).await
    }

    pub async fn query(
        &mut self,
        statement: &str,
        values: &[Value<'_>],
        clock: &SharedClock,
        deadline: Instant,
    ) -> Result<Vec<Row>> {
        let prepared = self.prepared(statement, clock, deadline).await?;
        until(deadline, clock, self.client.query(&prepared, values)).await
    }

    pub async fn execute(
        &mut self,
        statement: &str,
        values: &[Value<'_>],
        clock: &SharedClock,
        deadline: Instant,
    ) -> Result<u64> {
        let prepared = self.prepared(statement, clock, deadline).await?;
        until(deadline, clock, self.client.execute(&prepared, values)).await
    }

    async fn prepared(
        &mut self,
        statement: &str,
        clock: &SharedClock,
        deadline: Instant,
    ) -> Result<Statement> {
        if let Some(prepared) = self.prepared.get(statement) {
            return Ok(prepared.clone());
        }
        let prepared = until(deadline, clock, self.client.prepare(statement)).await?;
        self.prepared.insert(statement.to_owned(), prepared.clone());
        Ok(prepared)
    }
}

async fn until<T>(
    deadline: Instant,
    clock: &SharedClock,
    work: impl Future<Output = Result<T, tokio_postgres::Error>>,
) -> Result<T> {
    let left: Duration = deadline.saturating_duration_since(clock.instant());
    tokio::select! {
        biased;
        done = work => done.map_err(|error| told(&error)),
        () = clock.sleep(left) => Err(unavailable("the server did not answer in time")),
    }
}
