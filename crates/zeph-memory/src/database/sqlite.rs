//! SQLite: opening the file, versions of its tables, one connection that writes, checkpoints.

use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use futures_util::TryStreamExt as _;
use std::time::Duration;
use std::{fs, io};

use rustix::fs::Access;
use sqlx::query::Query;
use sqlx::sqlite::{SqliteArguments, SqliteConnectOptions, SqliteConnection, SqliteSynchronous};
use sqlx::{
    AssertSqlSafe, ConnectOptions, Connection, Executor as _, Row as _, SqlSafeStr as _, Sqlite,
    query, raw_sql,
};
use sqlx_core::transaction::TransactionManager as _;
use tokio::sync::{MappedMutexGuard, Mutex as AsyncMutex, MutexGuard};

use super::statement::Value;
use super::{Database, Dialect, EachRow, Row, Statement, Transaction};
use crate::config::Synchronous;
use crate::error::StoreError;

/// The scripts that make the tables; the n-th upgrades version n - 1 to n (`PRAGMA user_version`).
const MIGRATIONS: &[&str] = &[
    include_str!("../../migrations/0001_sessions_tasks_audit.sql"),
    include_str!("../../migrations/0002_seen_files.sql"),
    include_str!("../../migrations/0003_undo.sql"),
    include_str!("../../migrations/0004_overflow.sql"),
    include_str!("../../migrations/0005_audit_claim_source.sql"),
    include_str!("../../migrations/0006_audit_chain.sql"),
    include_str!("../../migrations/0007_filter_gain.sql"),
    include_str!("../../migrations/0008_call_quota.sql"),
    include_str!("../../migrations/0009_completed_tools.sql"),
    include_str!("../../migrations/0010_memory.sql"),
    include_str!("../../migrations/0011_spending.sql"),
    include_str!("../../migrations/0012_summaries.sql"),
    include_str!("../../migrations/0016_embeddings.sql"),
    include_str!("../../migrations/0017_schedule.sql"),
    include_str!("../../migrations/0018_offered_tools.sql"),
    include_str!("../../migrations/0019_memory_vectors.sql"),
    include_str!("../../migrations/0020_message_words.sql"),
    include_str!("../../migrations/0021_result_view.sql"),
    include_str!("../../migrations/0022_session_history.sql"),
    include_str!("../../migrations/0023_sub_agent_session.sql"),
    include_str!("../../migrations/0024_audit_writer.sql"),
    include_str!("../../migrations/0025_session_choices.sql"),
    include_str!("../../migrations/0026_long_messages.sql"),
];

/// `PRAGMA application_id` of our databases: "ZEPH".
const APPLICATION_ID: i64 = 0x5A45_5048;

/// How long a statement waits for another process.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// The approximate number of bytes that a small write adds to the log: four pages.
const WRITE_OVERHEAD: usize = 16 * 1024;

/// How far the log grows before it is moved into the database, in bytes, about.
const CHECKPOINT_AFTER: usize = 4 * 1024 * 1024;

/// The size of the log (in pages: 64 MiB) from which a writer moves it into the database itself, if the background
/// task has not done so.
const LOG_LIMIT_PAGES: &str = "16384";

/// The pages that the connection stores in memory: 256 KiB. The system caches the file as well, and a long message would
/// fill a larger cache.
const CACHE_KIB: &str = "-256";

type Manager = <Sqlite as sqlx::Database>::TransactionManager;
type ConnectionGuard<'a> = MappedMutexGuard<'a, SqliteConnection>;

/// A database file with one connection. Every write is one transaction, usually of one statement.
#[derive(Debug)]
pub(crate) struct SqliteDatabase {
    path: PathBuf,
    options: SqliteConnectOptions,
    connection: AsyncMutex<Option<SqliteConnection>>,
    log: Arc<Log>,
}

/// The write-ahead log since the last checkpoint.
#[derive(Debug, Default)]
struct Log {
    bytes: AtomicUsize,
    is_moving: AtomicBool,
}

impl SqliteDatabase {
    /// Opens the database at `path`; creates it (mode 0600) and its folders (0700) if missing, and upgrades tables of
    /// an older version.
    ///
    /// # Errors
    /// [`StoreError`] if the file cannot be reached, written or parsed.
    pub(crate) async fn open(path: PathBuf, synchronous: Synchronous) -> Result<Self, StoreError> {
        prepare_file(&path)?;
        let options = SqliteConnectOptions::new()
            .filename(&path)
            .foreign_keys(true)
            .busy_timeout(BUSY_TIMEOUT)
            .synchronous(match synchronous {
                Synchronous::Normal => SqliteSynchronous::Normal,
                Synchronous::Full => SqliteSynchronous::Full,
            })
            .pragma("wal_autocheckpoint", LOG_LIMIT_PAGES)
            .pragma("cache_size", CACHE_KIB)
            .disable_statement_logging();
        let mut connection = options
            .connect()
            .await
            .map_err(|error| StoreError::sql(&path, error))?;
        ready(&mut connection, &path, synchronous).await?;
        Ok(Self::over(path, options, Some(connection)))
    }

    /// Opens the database at `path` read-only; `None` if it does not exist. A database of an older version stays
    /// unchanged, and is refused.
    ///
    /// # Errors
    /// [`StoreError`] if the file cannot be read or is not valid.
    pub(crate) async fn open_for_reading(path: PathBuf) -> Result<Option<Self>, StoreError> {
        match fs::metadata(&path) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(StoreError::io(&path, &error)),
        }
        let mut log = path.clone().into_os_string();
        log.push("-wal");
        // Without a log the file is complete, and reading it needs no additional files.
        let whole = fs::metadata(&log).is_err();
        let options = SqliteConnectOptions::new()
            .filename(&path)
            .read_only(true)
            .immutable(whole)
            .busy_timeout(BUSY_TIMEOUT)
            .disable_statement_logging();
        let mut connection = options
            .connect()
            .await
            .map_err(|error| StoreError::sql(&path, error))?;
        let state = state(&mut connection, &path).await?;
        if state.version < MIGRATIONS.len() {
            let found = i64::try_from(state.version).unwrap_or(i64::MAX);
            return Err(StoreError::Older { path, found });
        }
        Ok(Some(Self::over(path, options, Some(connection))))
    }

    /// A database that is not open: every statement fails because it is closed.
    pub(crate) fn unopened(path: PathBuf) -> Self {
        let options = SqliteConnectOptions::new().filename(&path);
        Self::over(path, options, None)
    }

    fn over(
        path: PathBuf,
        options: SqliteConnectOptions,
        connection: Option<SqliteConnection>,
    ) -> Self {
        Self {
            path,
            options,
            connection: AsyncMutex::new(connection),
            log: Arc::default(),
        }
    }

    pub(crate) async fn connection(&self) -> Result<ConnectionGuard<'_>, StoreError> {
        MutexGuard::try_map(self.connection.lock().await, Option::as_mut).map_err(|_| {
            StoreError::Closed {
                path: self.path.clone(),
            }
        })
    }
}

/// A transaction, which is rolled back when it is dropped.
struct SqliteTransaction<'d> {
    database: &'d SqliteDatabase,
    connection: ConnectionGuard<'d>,
    is_open: bool,
}

#[async_trait]
impl Transaction for SqliteTransaction<'_> {
    async fn fetch(&mut self, statement: Statement<'_>) -> Result<Vec<Row>, StoreError> {
        let rows = self.connection.fetch_all(bound(statement)).await;
        let rows = rows.map_err(|error| self.database.error(error))?;
        Ok(rows.into_iter().map(Row::Sqlite).collect())
    }

    async fn commit(mut self: Box<Self>) -> Result<(), StoreError> {
        let committed = Manager::commit(&mut self.connection).await;
        committed.map_err(|error| self.database.error(error))?;
        self.is_open = false;
        Ok(())
    }
}

impl Drop for SqliteTransaction<'_> {
    fn drop(&mut self) {
        if self.is_open {
            Manager::start_rollback(&mut self.connection);
        }
    }
}

/// The statement with its values, as the driver takes it.
fn bound(statement: Statement<'_>) -> Query<'_, Sqlite, SqliteArguments> {
    let mut bound = query(AssertSqlSafe(statement.sql(Dialect::Sqlite)).into_sql_str());
    for value in statement.values {
        bound = match value {
            Value::Integer(value) => bound.bind(value),
            Value::Boolean(value) => bound.bind(value),
            Value::Text(value) => bound.bind(value),
            Value::Bytes(value) => bound.bind(value),
        };
    }
    bound.persistent(statement.is_prepared)
}

#[async_trait]
impl Database for SqliteDatabase {
    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }

    fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// Reads all rows: a commit that fails shows only after the last one.
    async fn run(&self, statement: Statement<'_>, each: EachRow<'_>) -> Result<(), StoreError> {
        let mut connection = self.connection().await?;
        let mut rows = connection.fetch(bound(statement));
        let read = async {
            while let Some(row) = rows.try_next().await? {
                each(Row::Sqlite(row))?;
            }
            Ok(())
        };
        read.await.map_err(|error| self.error(error))
    }

    async fn begin(&self) -> Result<Box<dyn Transaction + '_>, StoreError> {
        let mut transaction = SqliteTransaction {
            connection: self.connection().await?,
            database: self,
            is_open: true,
        };
        let begin = Some("BEGIN IMMEDIATE".into_sql_str());
        let begun = Manager::begin(&mut transaction.connection, begin).await;
        begun.map_err(|error| self.error(error))?;
        Ok(Box::new(transaction))
    }

    /// Starts a checkpoint in the background if the log is large enough. It uses a separate connection, so that no
    /// write waits for the disk.
    fn wrote(&self, bytes: usize) {
        let bytes = bytes + WRITE_OVERHEAD;
        let grown = self.log.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if grown < CHECKPOINT_AFTER || self.log.is_moving.swap(true, Ordering::AcqRel) {
            return;
        }
        self.log.bytes.store(0, Ordering::Relaxed);
        let (log, options) = (Arc::clone(&self.log), self.options.clone());
        tokio::spawn(async move {
            if let Err(error) = checkpoint(&options).await {
                tracing::debug!(%error, "the write-ahead log of the database was not moved into \
                    the database; Zeph tries again");
            }
            log.is_moving.store(false, Ordering::Release);
        });
    }

    fn error(&self, error: sqlx::Error) -> StoreError {
        StoreError::sql(&self.path, error)
    }

    /// Closes the connection and, if no other process has one, moves the log into the database. Without this call the
    /// next start reads the log.
    async fn close(&self) -> Result<(), StoreError> {
        match self.connection.lock().await.take() {
            Some(connection) => connection.close().await.map_err(|error| self.error(error)),
            None => Ok(()),
        }
    }
}

/// Moves as much of the log into the database as possible, without blocking other connections.
async fn checkpoint(options: &SqliteConnectOptions) -> Result<(), sqlx::Error> {
    let mut connection = options.connect().await?;
    raw_sql("PRAGMA wal_checkpoint(PASSIVE)")
        .execute(&mut connection)
        .await?;
    connection.close().await
}

/// Ensures that a writable regular file exists.
fn prepare_file(path: &Path) -> Result<(), StoreError> {
    // A file descriptor closed here would drop SQLite's locks on the same file held elsewhere in
    // this process, so the file is opened only to create it, and by one thread at a time.
    static CREATING: Mutex<()> = Mutex::new(());
    let _guard = CREATING.lock().unwrap_or_else(PoisonError::into_inner);
    let fail = |error: &io::Error| StoreError::io(path, error);
    let folder = path.parent().unwrap_or(Path::new("/"));
    match fs::metadata(path) {
        Ok(found) if !found.is_file() => {
            return Err(StoreError::NotAFile {
                path: path.to_owned(),
            });
        }
        Ok(_) => tighten(path).map_err(|error| fail(&error))?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(folder)
                .map_err(|error| fail(&error))?;
            match fs::OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(path)
            {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(fail(&error)),
            }
        }
        Err(error) => return Err(fail(&error)),
    }
    // SQLite opens a write-protected file for reading, and fails only at the first write.
    for place in [path, folder] {
        rustix::fs::access(place, Access::WRITE_OK).map_err(|errno| fail(&errno.into()))?;
    }
    Ok(())
}

/// Removes the permissions of other users from the database, its log and its index of the log: they hold
/// conversations and copies of files. A file of another user is not changed.
fn tighten(path: &Path) -> io::Result<()> {
    let own = rustix::process::geteuid().as_raw();
    for ending in ["", "-wal", "-shm", "-journal"] {
        let mut file = path.as_os_str().to_owned();
        file.push(ending);
        let found = match fs::symlink_metadata(&file) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        if found.is_file() && found.uid() == own && found.mode() & 0o077 != 0 {
            fs::set_permissions(&file, fs::Permissions::from_mode(found.mode() & 0o700))?;
        }
    }
    Ok(())
}

/// Checks the application and the version of the database, and upgrades it.
async fn ready(
    connection: &mut SqliteConnection,
    path: &Path,
    synchronous: Synchronous,
) -> Result<(), StoreError> {
    let state = state(connection, path).await?;
    if state.is_current() {
        return Ok(());
    }
    // Flushing an empty database to a busy disk takes longer than the whole start. A process that
    // dies here loses nothing by that, and the first checkpoint flushes it all.
    let unflushed = state.version == 0 && synchronous == Synchronous::Normal;
    if unflushed {
        execute(connection, path, "PRAGMA synchronous = OFF").await?;
    }
    enter_wal(connection)
        .await
        .map_err(|error| StoreError::sql(path, error))?;
    migrate(connection, path).await?;
    if unflushed {
        execute(connection, path, "PRAGMA synchronous = NORMAL").await?;
    }
    Ok(())
}

/// Runs the scripts that are missing, all or none.
async fn migrate(connection: &mut SqliteConnection, path: &Path) -> Result<(), StoreError> {
    let fail = |error| StoreError::sql(path, error);
    let mut transaction = connection
        .begin_with("BEGIN IMMEDIATE")
        .await
        .map_err(fail)?;
    // Another process may have been faster.
    let state = state(&mut transaction, path).await?;
    for script in MIGRATIONS.iter().skip(state.version) {
        execute(&mut transaction, path, script).await?;
    }
    let version = MIGRATIONS.len();
    for pragma in [
        format!("PRAGMA user_version = {version}"),
        format!("PRAGMA application_id = {APPLICATION_ID}"),
    ] {
        execute(&mut transaction, path, &pragma).await?;
    }
    transaction.commit().await.map_err(fail)
}

/// Runs statements of our own making that return nothing of interest.
async fn execute(
    connection: &mut SqliteConnection,
    path: &Path,
    sql: &str,
) -> Result<(), StoreError> {
    raw_sql(sqlx::AssertSqlSafe(sql))
        .execute(connection)
        .await
        .map(drop)
        .map_err(|error| StoreError::sql(path, error))
}

struct State {
    version: usize,
    wal: bool,
}

impl State {
    fn is_current(&self) -> bool {
        self.version == MIGRATIONS.len() && self.wal
    }
}

/// Reads version and mode; refuses a foreign or too new database.
async fn state(connection: &mut SqliteConnection, path: &Path) -> Result<State, StoreError> {
    let row = query(
        "SELECT (SELECT application_id FROM pragma_application_id),
                (SELECT user_version FROM pragma_user_version),
                (SELECT count(*) FROM sqlite_schema),
                (SELECT journal_mode FROM pragma_journal_mode) = 'wal'",
    )
    .fetch_one(connection)
    .await
    .map_err(|error| StoreError::sql(path, error))?;
    let column = |index: usize| {
        row.try_get::<i64, _>(index)
            .map_err(|error| StoreError::sql(path, error))
    };
    let (application, found, tables) = (column(0)?, column(1)?, column(2)?);
    let empty = application == 0 && found == 0 && tables == 0;
    if application != APPLICATION_ID && !empty {
        return Err(StoreError::Foreign {
            path: path.to_owned(),
            reason: "another program made it".to_owned(),
        });
    }
    match usize::try_from(found) {
        Ok(version) if version <= MIGRATIONS.len() => Ok(State {
            version,
            wal: column(3)? == 1,
        }),
        _ => Err(StoreError::Newer {
            path: path.to_owned(),
            found,
            known: i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX),
        }),
    }
}

/// Switches to the write-ahead log. SQLite does not wait for other connections here, so we do.
async fn enter_wal(connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
    let pause = Duration::from_millis(5);
    let mut waited = Duration::ZERO;
    loop {
        let result = raw_sql("PRAGMA journal_mode = WAL")
            .execute(&mut *connection)
            .await;
        match result {
            Err(sqlx::Error::Database(error))
                if error.message().contains("locked") && waited < BUSY_TIMEOUT =>
            {
                tokio::time::sleep(pause).await;
                waited += pause;
            }
            result => return result.map(drop),
        }
    }
}

#[cfg(test)]
mod tests;
