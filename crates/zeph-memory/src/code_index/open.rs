//! The file of the index: created, opened, and replaced if it is unusable.
//!
//! A process with an open index holds a shared lock on a file next to it. The database is removed only under the
//! exclusive lock: another process would otherwise keep an open database with the journal of the next one.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection, Row, query, raw_sql};
use zeph_tools::file::code::CodeIndexError;

/// `PRAGMA user_version` of these tables. It also has to increase when symbols are parsed differently.
const VERSION: i64 = 3;
/// The tables. Rows of a file are adjacent, so that their deletion is fast.
const TABLES: &str = "
CREATE TABLE file (
    id INTEGER PRIMARY KEY,
    path TEXT NOT NULL UNIQUE,
    marks INTEGER NOT NULL,
    content INTEGER NOT NULL,
    whole INTEGER NOT NULL
) STRICT;
CREATE TABLE symbol (
    file INTEGER NOT NULL,
    place INTEGER NOT NULL,
    name TEXT NOT NULL,
    kind INTEGER NOT NULL,
    line INTEGER NOT NULL,
    container TEXT NOT NULL,
    PRIMARY KEY (file, place)
) STRICT, WITHOUT ROWID;
CREATE INDEX symbol_name ON symbol (name);
";
/// How long a statement waits for another process.
const BUSY_TIMEOUT: Duration = Duration::from_secs(30);
/// How long to wait for other processes that have an unusable index open.
const OTHERS: Duration = Duration::from_secs(2);
/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(10);

/// An open index.
pub(super) struct Open {
    pub(super) connection: SqliteConnection,
    path: PathBuf,
    /// The shared lock. It ends with this.
    lock: File,
}

impl Open {
    /// Opens the index at `path`; an index of another version or a damaged one is replaced.
    ///
    /// # Errors
    /// If neither is possible.
    pub(super) async fn at(path: &Path) -> Result<Self, CodeIndexError> {
        let opened = async {
            let lock = lock_beside(path)?;
            locked(|| lock.try_lock_shared(), BUSY_TIMEOUT).await?;
            Ok::<File, io::Error>(lock)
        };
        let lock = opened.await.map_err(|error| failed(&error))?;
        let connection = match connect(path).await {
            // The index has no data that could be lost.
            Ok(None) => renew(path, &lock).await?,
            Err(error) if is_damage(&error) => renew(path, &lock).await?,
            Ok(Some(connection)) => connection,
            Err(error) => return Err(failed(&error)),
        };
        Ok(Self {
            connection,
            path: path.to_owned(),
            lock,
        })
    }

    /// Closes the index, and removes it if no other process has it open: they detect the damage themselves.
    pub(super) async fn discard(self) {
        let _ = self.connection.close_hard().await;
        if self.lock.unlock().is_ok() && self.lock.try_lock().is_ok() {
            remove(&self.path);
        }
    }
}

/// Replaces the index when no other process has it open. The caller holds `lock` shared, before and after the call.
async fn renew(path: &Path, lock: &File) -> Result<SqliteConnection, CodeIndexError> {
    lock.unlock().map_err(|error| failed(&error))?;
    if locked(|| lock.try_lock(), OTHERS).await.is_err() {
        return Err(failed(
            &"it is damaged or of another version, and another process has it open",
        ));
    }
    // Another process may have replaced it already.
    let made = match connect(path).await {
        Ok(Some(connection)) => Ok(Some(connection)),
        Err(error) if !is_damage(&error) => Err(error),
        _ => {
            remove(path);
            connect(path).await
        }
    };
    let made = made.map_err(|error| failed(&error))?;
    lock.unlock().map_err(|error| failed(&error))?;
    let shared = locked(|| lock.try_lock_shared(), BUSY_TIMEOUT).await;
    shared.map_err(|error| failed(&error))?;
    made.ok_or_else(|| failed(&"its file cannot be removed"))
}

/// The file that is locked for the index at `path`; makes it (mode 0600) and its folder (0700).
fn lock_beside(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)?;
    }
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    options.mode(0o600).open(path.with_extension("lock"))
}

/// Takes a lock, waiting up to `limit` for others.
async fn locked(take: impl Fn() -> Result<(), TryLockError>, limit: Duration) -> io::Result<()> {
    let began = Instant::now();
    loop {
        match take() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) if began.elapsed() >= limit => {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            Err(TryLockError::WouldBlock) => tokio::time::sleep(PAUSE).await,
        }
    }
}

pub(super) fn failed(error: &dyn std::fmt::Display) -> CodeIndexError {
    CodeIndexError {
        lost: false,
        reason: error.to_string(),
    }
}

/// The primary code of SQLite's.
fn code_of(error: &sqlx::Error) -> Option<i32> {
    let code = error.as_database_error()?.code()?;
    Some(code.parse::<i32>().ok()? & 0xff)
}

/// Whether the file is not a database or is damaged.
pub(super) fn is_damage(error: &sqlx::Error) -> bool {
    match error {
        // SQLITE_CORRUPT and SQLITE_NOTADB; a table that is missing.
        sqlx::Error::Database(database) => {
            matches!(code_of(error), Some(11 | 26)) || database.message().starts_with("no such")
        }
        sqlx::Error::ColumnDecode { .. } | sqlx::Error::ColumnNotFound(_) => true,
        _ => false,
    }
}

/// Whether another process is in the way for now: SQLITE_BUSY, SQLITE_LOCKED.
fn is_busy(error: &sqlx::Error) -> bool {
    matches!(code_of(error), Some(5 | 6))
}

/// Removes the database and its log files.
fn remove(path: &Path) {
    for ending in ["", "-wal", "-shm", "-journal"] {
        let mut file = path.as_os_str().to_owned();
        file.push(ending);
        // A failed removal shows when the file is opened again.
        let _ = fs::remove_file(file);
    }
}

/// Creates the file (mode 0600) if it is missing.
fn prepare(path: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    match options.write(true).create_new(true).mode(0o600).open(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// Opens the database; `None` if it has another version. If two processes switch to WAL concurrently, one gets the
/// lock error without waiting for the busy timeout, and tries again.
async fn connect(path: &Path) -> Result<Option<SqliteConnection>, sqlx::Error> {
    let began = Instant::now();
    loop {
        prepare(path)?;
        match connect_once(path).await {
            Err(error) if is_busy(&error) && began.elapsed() < BUSY_TIMEOUT => {
                tokio::time::sleep(PAUSE).await;
            }
            done => return done,
        }
    }
}

async fn connect_once(path: &Path) -> Result<Option<SqliteConnection>, sqlx::Error> {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .busy_timeout(BUSY_TIMEOUT)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Normal)
        // Deleted names are overwritten, since the file may no longer be readable.
        .pragma("secure_delete", "ON")
        .disable_statement_logging();
    let mut connection = options.connect().await?;
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    let row = query(
        "SELECT (SELECT user_version FROM pragma_user_version), (SELECT count(*) FROM sqlite_schema)",
    )
    .fetch_one(&mut *transaction)
    .await?;
    let (version, tables): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
    if tables == 0 {
        raw_sql(TABLES).execute(&mut *transaction).await?;
        let version = format!("PRAGMA user_version = {VERSION}");
        raw_sql(sqlx::AssertSqlSafe(version))
            .execute(&mut *transaction)
            .await?;
    } else if version != VERSION {
        drop(transaction);
        connection.close_hard().await?;
        return Ok(None);
    }
    transaction.commit().await?;
    Ok(Some(connection))
}
