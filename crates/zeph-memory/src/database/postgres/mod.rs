//! PostgreSQL: one connection that is opened again when it is lost, with a limit for every wait.
//!
//! No state of a connection is used: no `SET`, no `LISTEN`, no advisory lock outside a transaction. With a pooler in transaction
//! mode there are no prepared statements either: a statement is parsed and executed in one transaction, because the pooler may
//! choose another connection between two of them.

mod error;
mod server;
mod tables;

use std::future::Future;
use std::time::Duration;

use async_trait::async_trait;
use sqlx::postgres::{PgArguments, PgConnectOptions, PgConnection, PgRow};
use sqlx::query::Query;
use sqlx::{
    AssertSqlSafe, ConnectOptions as _, Connection as _, Executor as _, Postgres, Row as _,
    SqlSafeStr as _, query, raw_sql,
};
use sqlx_core::transaction::TransactionManager as _;
use tokio::sync::{MappedMutexGuard, Mutex, MutexGuard};
use tokio::time::Instant;
use zeph_backoff::Policy;

use super::conflict::FailedAttempts;
use super::statement::Value;
use super::{Database, Dialect, EachRow, Row, Statement, Transaction, nul};
use crate::error::StoreError;

pub use server::Server;

/// The shortest limit for the creation of the tables.
const MIN_TABLES_WAIT: Duration = Duration::from_secs(30);
/// Between two attempts to reach the server.
const PAUSE: Duration = Duration::from_millis(100);

/// The attempts of a statement that conflicts with other ones, within the wait for the server.
const CONFLICTS: Policy = Policy {
    max_attempts: u32::MAX,
    first_ceiling: Duration::from_millis(5),
    last_ceiling: Duration::from_millis(50),
    budget: Duration::ZERO,
};

type Manager = <Postgres as sqlx::Database>::TransactionManager;
type ConnectionGuard<'a> = MappedMutexGuard<'a, PgConnection>;

/// A database on a server.
#[derive(Debug)]
pub(crate) struct PostgresDatabase {
    options: PgConnectOptions,
    name: String,
    /// The longest wait for the server: to connect again, and for a statement.
    wait: Duration,
    slot: Mutex<Slot>,
    /// Whether a pooler in transaction mode may be between this process and the server.
    is_pooled: bool,
    /// Milliseconds by which the clock of the server is ahead of ours.
    pub(crate) clock_offset: i64,
}

/// The connection, which is lost now and then.
#[derive(Debug)]
enum Slot {
    Open(Box<PgConnection>),
    Lost,
    Closed,
}

impl PostgresDatabase {
    /// Connects to a server, and creates or upgrades the tables.
    ///
    /// # Errors
    /// [`StoreError`] if the server cannot be reached, refuses the user, or has tables of a newer version.
    pub(crate) async fn connect(server: &Server) -> Result<Self, StoreError> {
        let mut database = Self {
            options: server.options.clone(),
            name: server.name.clone(),
            wait: server.wait,
            slot: Mutex::new(Slot::Lost),
            is_pooled: server.is_pooled,
            clock_offset: 0,
        };
        let until = Instant::now() + server.wait;
        let mut connection = database.open(until, error::is_starting).await?;
        let ready = tables::ready(&mut connection, &server.name);
        let until = Instant::now() + server.wait.max(MIN_TABLES_WAIT);
        database.clock_offset = database.limited(until, ready).await??;
        database.slot = Mutex::new(Slot::Open(Box::new(connection)));
        Ok(database)
    }

    /// Opens a connection. Errors that fit `is_transient` are retried until `until`.
    async fn open(
        &self,
        until: Instant,
        is_transient: fn(&sqlx::Error) -> bool,
    ) -> Result<PgConnection, StoreError> {
        loop {
            match self.limited(until, self.options.connect()).await? {
                Ok(connection) => return Ok(connection),
                Err(error) if is_transient(&error) && Instant::now() + PAUSE < until => {
                    tokio::time::sleep(PAUSE).await;
                }
                Err(error) => return Err(error::connecting(&self.name, error)),
            }
        }
    }

    /// The result of a wait for the server, if it comes before `until`.
    async fn limited<T>(
        &self,
        until: Instant,
        wait: impl Future<Output = T>,
    ) -> Result<T, StoreError> {
        tokio::time::timeout_at(until, wait)
            .await
            .map_err(|_| StoreError::ServerUnreachable {
                server: self.name.clone(),
                reason: format!("it did not respond within {} s", self.wait.as_secs_f32()),
            })
    }

    /// The connection; a lost one is opened again.
    async fn connection(&self, until: Instant) -> Result<ConnectionGuard<'_>, StoreError> {
        let mut slot = self.slot.lock().await;
        if let Slot::Lost = *slot {
            let connection = self.open(until, error::is_lost).await?;
            *slot = Slot::Open(Box::new(connection));
        }
        MutexGuard::try_map(slot, |slot| match slot {
            Slot::Open(connection) => Some(connection.as_mut()),
            Slot::Lost | Slot::Closed => None,
        })
        .map_err(|_| StoreError::ServerClosed {
            server: self.name.clone(),
        })
    }

    async fn drop_connection(&self) {
        let mut slot = self.slot.lock().await;
        if let Slot::Open(_) = *slot {
            *slot = Slot::Lost;
        }
    }

    /// The rows of one attempt.
    async fn attempt(&self, statement: &Statement<'_>) -> Result<Vec<PgRow>, Failure> {
        let until = Instant::now() + self.wait;
        let mut connection = self.connection(until).await.map_err(Failure::Final)?;
        let rows = self.rows(&mut connection, statement);
        let fetched = tokio::time::timeout_at(until, rows).await;
        drop(connection);
        match fetched {
            Ok(Ok(rows)) => Ok(rows),
            Ok(Err(error)) if error::is_lost(&error) => {
                self.drop_connection().await;
                Err(Failure::Lost(error::is_unsent(&error)))
            }
            Ok(Err(error)) if error::is_conflict(&error) => Err(Failure::Conflict(error)),
            Ok(Err(error)) => Err(Failure::Final(self.error(error))),
            Err(_) => {
                self.drop_connection().await;
                Err(Failure::Lost(false))
            }
        }
    }

    async fn rows(
        &self,
        connection: &mut PgConnection,
        statement: &Statement<'_>,
    ) -> Result<Vec<PgRow>, sqlx::Error> {
        if !self.is_pooled {
            return connection.fetch_all(self.bound(statement)).await;
        }
        let mut transaction = connection.begin().await?;
        let rows = transaction.fetch_all(self.bound(statement)).await?;
        transaction.commit().await?;
        Ok(rows)
    }

    /// The statement with its values, as the driver takes it.
    fn bound<'q>(&self, statement: &'q Statement<'_>) -> Query<'q, Postgres, PgArguments> {
        let mut bound = query(AssertSqlSafe(statement.sql(Dialect::Postgres)).into_sql_str());
        for value in &statement.values {
            bound = match value {
                Value::Integer(value) => bound.bind(*value),
                Value::Boolean(value) => bound.bind(*value),
                Value::Text(value) => bound.bind(value.as_deref().map(nul::escaped)),
                Value::Bytes(value) => bound.bind(value.as_deref()),
            };
        }
        bound.persistent(statement.is_prepared && !self.is_pooled)
    }

    fn lost(&self) -> StoreError {
        StoreError::ConnectionLost {
            server: self.name.clone(),
        }
    }
}

/// Why an attempt failed.
enum Failure {
    /// The connection was lost. `true`: before the statement had an effect.
    Lost(bool),
    /// Another transaction was first. The statement had no effect.
    Conflict(sqlx::Error),
    Final(StoreError),
}

#[async_trait]
impl Database for PostgresDatabase {
    fn dialect(&self) -> Dialect {
        Dialect::Postgres
    }

    fn name(&self) -> String {
        self.name.clone()
    }

    fn clock_offset(&self) -> i64 {
        self.clock_offset
    }

    /// Retries a statement that had no effect. A lost connection leaves open whether a write had one, so only repeatable
    /// statements run again then.
    async fn run(&self, statement: Statement<'_>, each: EachRow<'_>) -> Result<(), StoreError> {
        let until = Instant::now() + self.wait;
        let mut conflicts = FailedAttempts::new(Policy {
            budget: self.wait,
            ..CONFLICTS
        });
        let rows = loop {
            match self.attempt(&statement).await {
                Ok(rows) => break rows,
                Err(Failure::Final(error)) => return Err(error),
                Err(Failure::Conflict(error)) => {
                    if !conflicts.wait().await {
                        return Err(self.error(error));
                    }
                }
                Err(Failure::Lost(is_unsent))
                    if (is_unsent || statement.is_repeatable) && Instant::now() < until => {}
                Err(Failure::Lost(_)) => return Err(self.lost()),
            }
        };
        for row in rows {
            each(Row::Postgres(row)).map_err(|error| self.error(error))?;
        }
        Ok(())
    }

    async fn begin(&self) -> Result<Box<dyn Transaction + '_>, StoreError> {
        let until = Instant::now() + self.wait;
        loop {
            let mut connection = self.connection(until).await?;
            let begun = tokio::time::timeout_at(until, Manager::begin(&mut connection, None)).await;
            match begun {
                Ok(Ok(())) => {
                    return Ok(Box::new(PostgresTransaction {
                        database: self,
                        connection: Some(connection),
                    }));
                }
                Ok(Err(error)) if error::is_lost(&error) && Instant::now() < until => {}
                Ok(Err(error)) => return Err(self.error(error)),
                Err(_) => {
                    drop(connection);
                    self.drop_connection().await;
                    return Err(self.lost());
                }
            }
            drop(connection);
            self.drop_connection().await;
        }
    }

    fn wrote(&self, _bytes: usize) {}

    fn error(&self, error: sqlx::Error) -> StoreError {
        error::running(&self.name, error)
    }

    async fn close(&self) -> Result<(), StoreError> {
        let slot = std::mem::replace(&mut *self.slot.lock().await, Slot::Closed);
        if let Slot::Open(connection) = slot {
            // The server notices the end of the connection in any case.
            let _ = tokio::time::timeout(self.wait, connection.close()).await;
        }
        Ok(())
    }
}

/// A transaction, which is rolled back when it is dropped.
struct PostgresTransaction<'d> {
    database: &'d PostgresDatabase,
    /// `None` after the end.
    connection: Option<ConnectionGuard<'d>>,
}

impl PostgresTransaction<'_> {
    /// The result of a step. After a lost connection the transaction has no effect, unless the step was its commit.
    async fn step<T>(
        &mut self,
        result: Result<Result<T, sqlx::Error>, tokio::time::error::Elapsed>,
    ) -> Result<T, StoreError> {
        match result {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) if !error::is_lost(&error) => Err(self.database.error(error)),
            Ok(Err(_)) | Err(_) => {
                self.connection = None;
                self.database.drop_connection().await;
                Err(self.database.lost())
            }
        }
    }
}

#[async_trait]
impl Transaction for PostgresTransaction<'_> {
    async fn fetch(&mut self, statement: Statement<'_>) -> Result<Vec<Row>, StoreError> {
        let connection = self
            .connection
            .as_mut()
            .ok_or_else(|| self.database.lost())?;
        let wait = self.database.wait;
        let statement = self.database.bound(&statement);
        let fetched = tokio::time::timeout(wait, connection.fetch_all(statement)).await;
        let rows = self.step(fetched).await?;
        Ok(rows.into_iter().map(Row::Postgres).collect())
    }

    async fn commit(mut self: Box<Self>) -> Result<(), StoreError> {
        let connection = self
            .connection
            .as_mut()
            .ok_or_else(|| self.database.lost())?;
        let committed = tokio::time::timeout(self.database.wait, Manager::commit(connection)).await;
        self.step(committed).await?;
        self.connection = None;
        Ok(())
    }
}

impl Drop for PostgresTransaction<'_> {
    fn drop(&mut self) {
        if let Some(connection) = &mut self.connection {
            Manager::start_rollback(connection);
        }
    }
}

/// The value in the first column of the first row of a query without parameters, which is not prepared.
async fn first<T>(connection: &mut PgConnection, sql: &'static str) -> Result<T, sqlx::Error>
where
    T: for<'r> sqlx::Decode<'r, Postgres> + sqlx::Type<Postgres>,
{
    connection.fetch_one(raw_sql(sql)).await?.try_get(0)
}
