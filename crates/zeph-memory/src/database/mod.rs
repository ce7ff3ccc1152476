//! The database behind a store: SQLite in a file, or a PostgreSQL server.
//!
//! Statements are written once, in the SQL that both understand, with parameters `?1`, `?2`, … Where the dialects differ,
//! [`Statement::per_dialect`] takes both texts. A value of [`Dialect`] decides nothing else.

mod conflict;
#[cfg(feature = "postgres")]
mod nul;
#[cfg(feature = "postgres")]
pub(crate) mod postgres;
mod row;
pub(crate) mod sqlite;
mod statement;

use std::fmt::Debug;

use async_trait::async_trait;

use crate::error::StoreError;

pub(crate) use conflict::repeated;
pub(crate) use row::Row;
pub(crate) use statement::{Statement, Value, query};

/// The SQL that a database understands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    Sqlite,
    #[cfg_attr(
        not(feature = "postgres"),
        allow(dead_code, reason = "a server is a feature")
    )]
    Postgres,
}

/// Receives the rows of a statement one by one.
pub(crate) type EachRow<'f> = &'f mut (dyn FnMut(Row) -> Result<(), sqlx::Error> + Send);

/// An open database.
#[async_trait]
pub(crate) trait Database: Debug + Send + Sync {
    fn dialect(&self) -> Dialect;

    /// The name of the database for messages: a path, or a URL without its password.
    fn name(&self) -> String;

    /// Milliseconds by which the clock of the database is ahead of ours.
    fn clock_offset(&self) -> i64 {
        0
    }

    /// Runs one statement to its end. It is one transaction.
    async fn run(&self, statement: Statement<'_>, each: EachRow<'_>) -> Result<(), StoreError>;

    /// Starts a transaction that writes. It changes nothing unless it is committed.
    async fn begin(&self) -> Result<Box<dyn Transaction + '_>, StoreError>;

    /// Notes that about `bytes` were written.
    fn wrote(&self, bytes: usize);

    /// The error of a statement of this database.
    fn error(&self, error: sqlx::Error) -> StoreError;

    /// Closes the database for all clones of the store. No written data is lost without this call.
    async fn close(&self) -> Result<(), StoreError>;
}

/// A transaction that writes.
#[async_trait]
pub(crate) trait Transaction: Send {
    /// Runs one statement to its end, and returns its rows.
    async fn fetch(&mut self, statement: Statement<'_>) -> Result<Vec<Row>, StoreError>;

    /// Makes all changes visible and durable.
    async fn commit(self: Box<Self>) -> Result<(), StoreError>;
}
