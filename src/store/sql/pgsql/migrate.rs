//! Makes the tables, once, however many clients begin at the same time.

use tokio::time::Instant;

use super::connection::Connection;
use super::failure::refused;
use crate::base::clock::SharedClock;
use crate::error::Result;
use crate::store::sql::Tables;
use crate::store::sql::schema::{self, Dialect};

const DIALECT: Dialect = Dialect {
    text: "TEXT COLLATE \"C\"",
    id: "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
};
/// Any number, the same for every client of the kernel.
const LOCK: &str = "SELECT pg_advisory_xact_lock(7136260981482104)";
/// Read from the table of tables: what `to_regclass` says may be older than the lock.
const HAS_TABLES: &str = "SELECT EXISTS (SELECT FROM pg_catalog.pg_class \
    WHERE relname = '{p}meta' AND pg_catalog.pg_table_is_visible(oid))";

/// Brings the tables to the version of this kernel.
pub async fn migrate(
    connection: &mut Connection,
    tables: &Tables,
    clock: &SharedClock,
    deadline: Instant,
) -> Result<()> {
    // First without the lock and without the right to make tables: mostly they are there.
    if version(connection, tables, clock, deadline).await? == schema::VERSION {
        return Ok(());
    }
    connection.run("BEGIN", clock, deadline).await?;
    connection.run(LOCK, clock, deadline).await?;
    let from = version(connection, tables, clock, deadline).await?;
    for statement in schema::migration(from, &DIALECT) {
        connection
            .run(&tables.sql(&statement), clock, deadline)
            .await?;
    }
    connection.run("COMMIT", clock, deadline).await
}

/// The version of the tables; 0 when there are none.
async fn version(
    connection: &mut Connection,
    tables: &Tables,
    clock: &SharedClock,
    deadline: Instant,
) -> Result<i64> {
    let exists = tables.sql(HAS_TABLES);
    let rows = connection.query(&exists, &[], clock, deadline).await?;
    if !rows.iter().any(|row| row.get(0)) {
        return Ok(0);
    }
    let read = tables.sql(schema::READ_VERSION);
    let rows = connection.query(&read, &[], clock, deadline).await?;
    let version = rows.first().map(|row| row.get::<_, String>(0));
    match version.and_then(|text| text.parse().ok()) {
        Some(version @ 1..=schema::VERSION) => Ok(version),
        Some(schema::VERSION..) => Err(refused(
            "the database was written by a newer version of the kernel: update it",
        )),
        _ => Err(refused(
            "the tables are not those of the kernel: choose a session.tablePrefix",
        )),
    }
}
