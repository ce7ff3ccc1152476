//! Errors of the store, as messages for the user.

use std::io;
use std::path::{Path, PathBuf};

/// A failure of the store, with its place and its fix.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The folder of the database, or a file in it, cannot be made or reached.
    #[error(
        "the database {path} cannot be created or opened: {reason}; \
         make its folder writable or set `[memory] path` to another place"
    )]
    Unreachable {
        /// The database.
        path: PathBuf,
        /// The message of the system.
        reason: String,
    },
    /// A folder, a pipe or a device has the name of the file.
    #[error("{path} is not a regular file: set `[memory] path` to the name of a file")]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// The file or its folder must not be written.
    #[error(
        "the database {path} is read-only: make the file and its folder writable \
         or set `[memory] path` to another place"
    )]
    ReadOnly {
        /// The database.
        path: PathBuf,
    },
    /// The file is not a database of Zeph.
    #[error(
        "{path} is not a database of Zeph ({reason}): \
         move it away or set `[memory] path` to another file"
    )]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The evidence.
        reason: String,
    },
    /// The file was a database, and is damaged.
    #[error(
        "the database {path} is damaged ({reason}): move it away together with the files next to \
         it that begin with its name; `sqlite3 FILE .recover` can save the readable rows"
    )]
    Corrupt {
        /// The database.
        path: PathBuf,
        /// The message of SQLite.
        reason: String,
    },
    /// A newer program has changed the tables.
    #[error(
        "the database {path} was written by a newer Zeph (its version is {found}, this program \
         supports up to {known}): update Zeph or set `[memory] path` to another file"
    )]
    Newer {
        /// The database.
        path: PathBuf,
        /// The version of its tables.
        found: i64,
        /// The newest version known here.
        known: i64,
    },
    /// The text of a fact is empty.
    #[error("there is nothing to store: `content` is empty")]
    EmptyMemory,
    /// The text of a fact is too long.
    #[error("a fact of {bytes} bytes is too long to be stored (limit {max}): store a shorter text")]
    LongMemory {
        /// Its length.
        bytes: usize,
        /// The most.
        max: usize,
    },
    /// An older program made the tables, and they are only to be read.
    #[error(
        "the database {path} was written by an older Zeph (its version is {found}): any command that \
         opens it, such as `zeph sessions list`, brings it up to date"
    )]
    Older {
        /// The database.
        path: PathBuf,
        /// The version of its tables.
        found: i64,
    },
    /// Nothing more fits on the disk.
    #[error(
        "no space is left for the database {path}: free disk space and try again; the last write \
         was not stored, all earlier ones were"
    )]
    Full {
        /// The database.
        path: PathBuf,
    },
    /// Another process holds the database.
    #[error(
        "another process holds the lock of the database {path}: wait for it or end it, then try \
         again"
    )]
    Busy {
        /// The database.
        path: PathBuf,
    },
    /// [`Store::close`](crate::Store::close) was called before.
    #[error("the database {path} is closed")]
    Closed {
        /// The database.
        path: PathBuf,
    },
    /// Any other failure of SQLite.
    #[error("the database {path} failed: {source}")]
    Database {
        /// The database.
        path: PathBuf,
        /// The error of SQLite or its driver.
        source: sqlx::Error,
    },
    /// The URL of the server is invalid. The message does not contain it, because it may have a password.
    #[error(
        "`[memory] url` is not the URL of a PostgreSQL server: {reason}; use postgres://USER@HOST/DATABASE"
    )]
    ServerUrl {
        /// The reason.
        reason: String,
    },
    /// This program cannot use a server.
    #[error(
        "`[memory] url` names a PostgreSQL server, and this zeph was built without the feature `postgres`: \
         build it with `--features postgres`, or remove the key"
    )]
    NoServerSupport,
    /// Only a shared store has other users.
    #[error(
        "the store is a file that only this user can access: set `[memory] url` for a shared store"
    )]
    NotShared,
    /// An approval has too many parts.
    #[error(
        "an approval of {parts} parts is not stored, and the limit is {max}; approve a shorter command"
    )]
    LongApproval {
        /// Its parts.
        parts: usize,
        /// The most parts.
        max: usize,
    },
    /// The server does not respond.
    #[error(
        "the PostgreSQL server {server} cannot be reached: {reason}; start it, or correct `[memory] url`"
    )]
    ServerUnreachable {
        /// The URL without its password.
        server: String,
        /// The message of the system.
        reason: String,
    },
    /// The server refuses the connection or a statement.
    #[error("the PostgreSQL server {server} refuses: {reason}; {fix}")]
    ServerRefused {
        /// The URL without its password.
        server: String,
        /// The message of the server.
        reason: String,
        /// The fix.
        fix: &'static str,
    },
    /// The server is too old.
    #[error(
        "the PostgreSQL server {server} has version {found}: Zeph needs version {min} or later"
    )]
    ServerTooOld {
        /// The URL without its password.
        server: String,
        /// Its version.
        found: i32,
        /// The oldest supported version.
        min: i32,
    },
    /// A newer program has changed the tables on the server.
    #[error(
        "the tables on {server} were created by a newer Zeph (their version is {found}, this \
         program supports up to {known}): update Zeph"
    )]
    ServerNewer {
        /// The URL without its password.
        server: String,
        /// The version of the tables.
        found: usize,
        /// The newest version known here.
        known: usize,
    },
    /// The connection ended while a statement ran.
    #[error(
        "the connection to the PostgreSQL server {server} was lost, so the last write may be missing; try again"
    )]
    ConnectionLost {
        /// The URL without its password.
        server: String,
    },
    /// [`Store::close`](crate::Store::close) was called before.
    #[error("the connection to the PostgreSQL server {server} is closed")]
    ServerClosed {
        /// The URL without its password.
        server: String,
    },
    /// The session does not exist.
    #[error("there is no session {id:?}: `zeph sessions list` shows all sessions")]
    UnknownSession {
        /// The id, or the beginning of one.
        id: String,
    },
    /// Several sessions begin so.
    #[error("{prefix:?} is the prefix of several sessions: {}; write more of the ID", ids.join(", \
        "))]
    AmbiguousSession {
        /// The given prefix.
        prefix: String,
        /// The first few that fit.
        ids: Vec<String>,
    },
    /// The prefix of an id is too short.
    #[error("{prefix:?} is not a session; an ID prefix needs at least {min} characters")]
    ShortPrefix {
        /// The given prefix.
        prefix: String,
        /// How many characters are needed.
        min: usize,
    },
    /// The id of a session has an invalid form.
    #[error(
        "{id:?} cannot be the id of a session: use 1 to {max} bytes without control characters"
    )]
    InvalidSessionId {
        /// The given id.
        id: String,
        /// The most bytes that an id may have.
        max: usize,
    },
    /// Another agent works on the session.
    #[error(
        "the session {id:?} is in use by {}: end that process first, or start another session",
        holder(*.pid, .host.as_deref())
    )]
    SessionInUse {
        /// The session.
        id: String,
        /// The process that holds it, if known.
        pid: Option<u32>,
        /// The machine of that process, if it is another one.
        host: Option<String>,
    },
    /// Another process took over the session, because this one did not renew its lease in time.
    #[error(
        "process {pid} on {host} took over the session {id:?}, so this message is not stored: continue there, or \
         start another session"
    )]
    LeaseLost {
        /// The session.
        id: String,
        /// The machine of the other process.
        host: String,
        /// The other process.
        pid: u64,
    },
    /// More messages than one statement can take.
    #[error("{count} messages cannot be appended together: the limit is {max}")]
    BatchTooLarge {
        /// How many there were.
        count: usize,
        /// How many there may be.
        max: usize,
    },
    /// An output to store cannot be read from the temporary file that holds it.
    #[error("the temporary file with the output cannot be read: {0}")]
    Spill(#[source] io::Error),
    /// The session does not have this task.
    #[error("there is no task {id:?} in this session; {}", known_tasks(.known))]
    UnknownTask {
        /// The given id.
        id: String,
        /// The ids there are.
        known: Vec<String>,
    },
    /// The status does not exist.
    #[error("{status:?} is not a status of a task: use `pending`, `in_progress` or `completed`")]
    UnknownStatus {
        /// The given status.
        status: String,
    },
    /// The text of a task is empty.
    #[error("`content` is empty: describe the work of the task")]
    EmptyTask,
    /// A task is too long.
    #[error(
        "a task of {characters} characters is too long (limit {max}): describe the work briefly, \
         and write the rest to a file that the task names"
    )]
    LongTask {
        /// Its length.
        characters: usize,
        /// The most.
        max: usize,
    },
}

fn holder(pid: Option<u32>, host: Option<&str>) -> String {
    let process = match pid {
        Some(pid) => format!("process {pid}"),
        None => "another process".to_owned(),
    };
    match host {
        Some(host) => format!("{process} on {host}"),
        None => process,
    }
}

fn known_tasks(known: &[String]) -> String {
    if known.is_empty() {
        "the session has no tasks yet: add one first".to_owned()
    } else {
        format!("it has {}", known.join(", "))
    }
}

impl StoreError {
    /// Whether the configuration or the server has to be changed before a session can start.
    #[must_use]
    pub fn is_configuration(&self) -> bool {
        matches!(
            self,
            Self::ServerUrl { .. }
                | Self::NoServerSupport
                | Self::ServerUnreachable { .. }
                | Self::ServerRefused { .. }
                | Self::ServerTooOld { .. }
                | Self::ServerNewer { .. }
        )
    }

    /// Whether the database may be usable again later without a change of the configuration.
    #[must_use]
    pub fn is_temporary(&self) -> bool {
        matches!(
            self,
            Self::Busy { .. } | Self::ServerUnreachable { .. } | Self::ConnectionLost { .. }
        )
    }

    /// Whether a transaction failed because of another one, by a deadlock or a failed serialization. It had no effect, and may succeed
    /// the next time.
    pub(crate) fn is_conflict(&self) -> bool {
        let Self::Database { source, .. } = self else {
            return false;
        };
        let code = source.as_database_error().and_then(|error| error.code());
        matches!(code.as_deref(), Some("40001" | "40P01"))
    }

    /// Converts a failed system call on the database's file or folder to an error.
    pub(crate) fn io(path: &Path, error: &io::Error) -> Self {
        let path = path.to_owned();
        match error.kind() {
            io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => {
                Self::ReadOnly { path }
            }
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full { path },
            _ => Self::Unreachable {
                path,
                reason: error.to_string(),
            },
        }
    }

    /// Converts a failed statement to an error.
    pub(crate) fn sql(path: &Path, source: sqlx::Error) -> Self {
        let path = path.to_owned();
        let sqlx::Error::Database(error) = &source else {
            return Self::Database { path, source };
        };
        let reason = error.message().to_owned();
        // The primary result code is the low byte: https://www.sqlite.org/rescode.html
        match error.code().and_then(|code| code.parse::<i32>().ok()) {
            // SQLITE_IOERR_SHMSIZE: the index of the log could not be made larger.
            Some(4874) => Self::Full { path },
            Some(code) => match code & 0xff {
                5 | 6 => Self::Busy { path },
                8 => Self::ReadOnly { path },
                11 => Self::Corrupt { path, reason },
                13 => Self::Full { path },
                14 => Self::Unreachable { path, reason },
                26 => Self::Foreign { path, reason },
                _ => Self::Database { path, source },
            },
            None => Self::Database { path, source },
        }
    }
}
