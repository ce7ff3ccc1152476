//! The versions of the tables on a server.

use jiff::Timestamp;
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, raw_sql};

use super::{error, first};
use crate::error::StoreError;

/// The scripts that make the tables; the n-th upgrades version n - 1 to n (`zeph_schema`).
const MIGRATIONS: &[&str] = &[
    include_str!("../../../migrations/postgres/0001_tables.sql"),
    include_str!("../../../migrations/postgres/0002_session_choices.sql"),
    include_str!("../../../migrations/postgres/0003_approvals.sql"),
];
/// The oldest supported version of the server, as `server_version_num`.
const MIN_SERVER: i32 = 130_000;
/// The number of our lock while tables are made: "ZEPH".
const LOCK: i64 = 0x5A45_5048;

/// Checks the server, and creates or upgrades the tables. Returns the milliseconds by which its clock is ahead of ours.
///
/// # Errors
/// [`StoreError`] for a server that is too old, tables of a newer version, or missing rights.
pub(super) async fn ready(connection: &mut PgConnection, server: &str) -> Result<i64, StoreError> {
    let failed = |error| error::running(server, error);
    let version = "SELECT CAST(current_setting('server_version_num') AS INTEGER)";
    let found: i32 = first(connection, version).await.map_err(failed)?;
    if found < MIN_SERVER {
        return Err(StoreError::ServerTooOld {
            server: server.to_owned(),
            found: found / 10_000,
            min: MIN_SERVER / 10_000,
        });
    }
    if current(connection).await.map_err(failed)? != MIGRATIONS.len() {
        migrate(connection, server).await?;
    }
    let clock = "SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)";
    let before = Timestamp::now().as_millisecond();
    let theirs: i64 = first(connection, clock).await.map_err(failed)?;
    let after = Timestamp::now().as_millisecond();
    Ok(theirs - i64::midpoint(before, after))
}

/// The version of the tables; 0 without tables.
async fn current(connection: &mut PgConnection) -> Result<usize, sqlx::Error> {
    // `to_regclass` may return the cached result of an earlier call, from before another process made the tables.
    let exists = "SELECT EXISTS (SELECT FROM pg_class WHERE relname = 'zeph_schema' AND pg_table_is_visible(oid))";
    if !first::<bool>(connection, exists).await? {
        return Ok(0);
    }
    let version = "SELECT coalesce(max(version), 0) FROM zeph_schema";
    let version: i64 = first(connection, version).await?;
    Ok(usize::try_from(version).unwrap_or(usize::MAX))
}

/// Runs the scripts that are missing, all or none. Other processes wait meanwhile.
async fn migrate(connection: &mut PgConnection, server: &str) -> Result<(), StoreError> {
    let failed = |error| error::running(server, error);
    let mut transaction = connection.begin().await.map_err(failed)?;
    // Poolers pass simple queries of one transaction to the same connection.
    let lock = format!("SELECT pg_advisory_xact_lock({LOCK})");
    let lock = transaction.execute(raw_sql(AssertSqlSafe(lock)));
    lock.await.map_err(failed)?;
    let version = current(&mut transaction).await.map_err(failed)?;
    if version > MIGRATIONS.len() {
        return Err(StoreError::ServerNewer {
            server: server.to_owned(),
            found: version,
            known: MIGRATIONS.len(),
        });
    }
    for (number, script) in (1_i64..).zip(MIGRATIONS).skip(version) {
        transaction
            .execute(raw_sql(*script))
            .await
            .map_err(failed)?;
        let applied = format!("INSERT INTO zeph_schema (version) VALUES ({number})");
        let applied = transaction.execute(raw_sql(AssertSqlSafe(applied)));
        applied.await.map_err(failed)?;
    }
    transaction.commit().await.map_err(failed)
}
