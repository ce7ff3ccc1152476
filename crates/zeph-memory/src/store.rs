//! The open store of an agent.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::config::Synchronous;
use crate::database::sqlite::SqliteDatabase;
use crate::database::{Database, Dialect, Row, Statement, Transaction};
use crate::error::StoreError;
use crate::holder::Holder;

/// An open store: sessions, messages, the audit trail and all other persistent data.
///
/// Clones share one database. Every write is one transaction, usually of one statement, and is committed when the method
/// returns.
#[derive(Debug, Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    /// The database file. With a server it does not exist, and only the folders next to it are used.
    path: PathBuf,
    database: Box<dyn Database>,
    holder: Holder,
}

impl Store {
    /// Opens the SQLite database at `path`; creates it (mode 0600) and its folders (0700) if missing, and upgrades tables
    /// of an older version.
    ///
    /// # Errors
    /// [`StoreError`] if the file cannot be reached, written or parsed.
    pub async fn open(path: &Path, synchronous: Synchronous) -> Result<Self, StoreError> {
        let path = absolute(path)?;
        let database = SqliteDatabase::open(path.clone(), synchronous).await?;
        Ok(Self::over(path, database))
    }

    /// Opens the SQLite database at `path` read-only; `None` if it does not exist. A database of an older version stays
    /// unchanged, and is refused.
    ///
    /// # Errors
    /// [`StoreError`] if the file cannot be read or is not valid.
    pub async fn open_for_reading(path: &Path) -> Result<Option<Self>, StoreError> {
        let path = absolute(path)?;
        let database = SqliteDatabase::open_for_reading(path.clone()).await?;
        Ok(database.map(|database| Self::over(path, database)))
    }

    /// Creates a store without an open database: every request fails because it is closed.
    #[must_use]
    pub fn unopened(path: &Path) -> Self {
        Self::over(path.to_owned(), SqliteDatabase::unopened(path.to_owned()))
    }

    /// Connects to a shared store on a PostgreSQL server, and creates or upgrades its tables. Locks and heads of the audit
    /// trail are next to `path`, the database file of this machine.
    ///
    /// # Errors
    /// [`StoreError`] if the server cannot be reached, refuses the user, is too old, or has tables of a newer version.
    #[cfg(feature = "postgres")]
    pub async fn connect(server: &crate::Server, path: &Path) -> Result<Self, StoreError> {
        let database = crate::database::postgres::PostgresDatabase::connect(server).await?;
        Ok(Self::over(absolute(path)?, database))
    }

    pub(crate) fn over(path: PathBuf, database: impl Database + 'static) -> Self {
        Self {
            inner: Arc::new(Inner {
                path,
                database: Box::new(database),
                holder: Holder::default(),
            }),
        }
    }

    /// The database file, absolute. A store on a server has no such file; locks and heads of the audit trail are next to
    /// it.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.inner.path
    }

    /// The name of the database for messages: its file, or the URL of its server without the password.
    #[must_use]
    pub fn name(&self) -> String {
        self.database().name()
    }

    /// Closes the database for all clones. No written data is lost without this call.
    ///
    /// # Errors
    /// [`StoreError`] if the log of SQLite could not be moved; no data is lost.
    pub async fn close(&self) -> Result<(), StoreError> {
        if self.is_shared()
            && let Err(error) = self.return_all_leases().await
        {
            tracing::warn!(%error, "leases of sessions are not returned; they expire soon");
        }
        self.database().close().await
    }

    pub(crate) fn holder(&self) -> &Holder {
        &self.inner.holder
    }

    pub(crate) fn database(&self) -> &dyn Database {
        self.inner.database.as_ref()
    }

    pub(crate) fn dialect(&self) -> Dialect {
        self.database().dialect()
    }

    /// Whether other machines use the database too.
    pub(crate) fn is_shared(&self) -> bool {
        self.dialect() == Dialect::Postgres
    }

    pub(crate) fn sql(&self, error: sqlx::Error) -> StoreError {
        self.database().error(error)
    }

    /// Runs one statement to its end, and returns its rows.
    pub(crate) async fn fetch(&self, statement: Statement<'_>) -> Result<Vec<Row>, StoreError> {
        self.fetch_as(statement, Ok).await
    }

    /// Runs one statement to its end, and converts each row as it arrives.
    pub(crate) async fn fetch_as<T: Send>(
        &self,
        statement: Statement<'_>,
        read: impl Fn(Row) -> Result<T, sqlx::Error> + Send + Sync,
    ) -> Result<Vec<T>, StoreError> {
        let mut found = Vec::new();
        let mut each = |row: Row| {
            found.push(read(row)?);
            Ok(())
        };
        self.database().run(statement, &mut each).await?;
        Ok(found)
    }

    /// Runs one statement that writes about `bytes`, and returns the rows of its `RETURNING`.
    pub(crate) async fn write(
        &self,
        statement: Statement<'_>,
        bytes: usize,
    ) -> Result<Vec<Row>, StoreError> {
        let rows = self.fetch(statement).await?;
        self.wrote(bytes);
        Ok(rows)
    }

    /// Starts a transaction that writes. It changes nothing unless it is committed.
    pub(crate) async fn begin(&self) -> Result<Box<dyn Transaction + '_>, StoreError> {
        self.database().begin().await
    }

    /// Notes that about `bytes` were written in a transaction.
    pub(crate) fn wrote(&self, bytes: usize) {
        self.database().wrote(bytes);
    }
}

/// SQLite would take a relative `file:…` for a URI.
fn absolute(path: &Path) -> Result<PathBuf, StoreError> {
    std::path::absolute(path).map_err(|error| StoreError::io(path, &error))
}
