//! The index of symbols of a project: a database of its own, behind
//! `zeph_tools::file::code::CodeIndex`.
//!
//! Nothing in it is worth saving: one that is damaged, or of another version, is made anew.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteRow, SqliteSynchronous,
};
use sqlx::{ConnectOptions, Connection, Row, query, raw_sql};
use tokio::sync::{MappedMutexGuard, Mutex, MutexGuard};
use zeph_tools::file::code::{
    CodeIndex, CodeIndexError, FileMarks, Kind, Located, ReadFile, Symbol, Wanted, rank,
};

/// `PRAGMA user_version` of these tables. It also has to grow when symbols are read differently.
const VERSION: i64 = 1;
/// The tables. Rows of a file lie together, so that they go together.
const TABLES: &str = "
CREATE TABLE file (
    id INTEGER PRIMARY KEY,
    path TEXT NOT NULL UNIQUE,
    marks INTEGER NOT NULL,
    content INTEGER NOT NULL
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
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
/// Names that are ranked.
const MOST_NAMES: i64 = 3000;
/// Names whose symbols are asked for together.
const TOGETHER: usize = 64;

/// Keeps the index in a file, which is opened at the first call.
pub struct SqliteCodeIndex {
    path: PathBuf,
    connection: Mutex<Option<SqliteConnection>>,
}

impl SqliteCodeIndex {
    /// The index in the file `path`, which need not exist.
    #[must_use]
    pub fn new(path: PathBuf) -> Self {
        Self {
            path,
            connection: Mutex::new(None),
        }
    }

    /// The open connection; makes file (mode 0600), folder (0700) and tables when missing.
    async fn open(&self) -> Result<MappedMutexGuard<'_, SqliteConnection>, CodeIndexError> {
        let mut connection = self.connection.lock().await;
        if connection.is_none() {
            prepare(&self.path).map_err(|error| failed(&error))?;
            let opened = match connect(&self.path).await {
                // Of another version, or damaged: nothing is lost by beginning anew.
                Ok(None) => self.renew().await,
                Err(error) if is_damage(&error) => self.renew().await,
                Ok(Some(opened)) => Ok(opened),
                Err(error) => Err(failed(&error)),
            };
            *connection = Some(opened?);
        }
        MutexGuard::try_map(connection, Option::as_mut).map_err(|_| failed(&"it is closed"))
    }

    async fn renew(&self) -> Result<SqliteConnection, CodeIndexError> {
        discard(&self.path);
        prepare(&self.path).map_err(|error| failed(&error))?;
        let opened = connect(&self.path).await.map_err(|error| failed(&error))?;
        opened.ok_or_else(|| failed(&"another version of this program uses it at the same time"))
    }

    /// The error of a statement. After damage nothing is left of the index.
    async fn broken(&self, error: sqlx::Error) -> CodeIndexError {
        let lost = is_damage(&error);
        if lost {
            if let Some(connection) = self.connection.lock().await.take() {
                let _ = connection.close_hard().await;
            }
            discard(&self.path);
        }
        CodeIndexError {
            lost,
            reason: error.to_string(),
        }
    }
}

fn failed(error: &dyn std::fmt::Display) -> CodeIndexError {
    CodeIndexError {
        lost: false,
        reason: error.to_string(),
    }
}

/// Whether the file is no database, or a damaged one.
fn is_damage(error: &sqlx::Error) -> bool {
    match error {
        // SQLITE_CORRUPT and SQLITE_NOTADB, with their extended codes; a table that is missing.
        sqlx::Error::Database(error) => {
            let code = error.code().and_then(|code| code.parse::<i32>().ok());
            code.is_some_and(|code| matches!(code & 0xff, 11 | 26))
                || error.message().starts_with("no such")
        }
        sqlx::Error::ColumnDecode { .. } | sqlx::Error::ColumnNotFound(_) => true,
        _ => false,
    }
}

/// Removes the database and what lies beside it.
fn discard(path: &Path) {
    for ending in ["", "-wal", "-shm", "-journal"] {
        let mut file = path.as_os_str().to_owned();
        file.push(ending);
        // What cannot be removed shows when it is opened again.
        let _ = fs::remove_file(file);
    }
}

fn prepare(path: &Path) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)?;
    }
    let mut options = fs::OpenOptions::new();
    match options.write(true).create_new(true).mode(0o600).open(path) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// Opens the database; `None` when it is of another version.
async fn connect(path: &Path) -> Result<Option<SqliteConnection>, sqlx::Error> {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .busy_timeout(BUSY_TIMEOUT)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Normal)
        // Names of what may not be read any more do not stay behind.
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

async fn all_files(
    connection: &mut SqliteConnection,
) -> Result<HashMap<String, FileMarks>, sqlx::Error> {
    let rows = query("SELECT path, marks, content FROM file")
        .fetch_all(connection)
        .await?;
    let file = |row: &SqliteRow| {
        let marks = FileMarks {
            marks: row.try_get(1)?,
            content: row.try_get(2)?,
        };
        Ok((row.try_get(0)?, marks))
    };
    rows.iter().map(file).collect()
}

async fn put_all(connection: &mut SqliteConnection, files: &[ReadFile]) -> Result<(), sqlx::Error> {
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    for file in files {
        let row = query(
            "INSERT INTO file (path, marks, content) VALUES (?1, ?2, ?3)
             ON CONFLICT (path) DO UPDATE SET marks = excluded.marks, content = excluded.content
             RETURNING id",
        )
        .bind(&file.path)
        .bind(file.marks.marks)
        .bind(file.marks.content)
        .fetch_one(&mut *transaction)
        .await?;
        let id: i64 = row.try_get(0)?;
        let Some(symbols) = &file.symbols else {
            continue;
        };
        query("DELETE FROM symbol WHERE file = ?1")
            .bind(id)
            .execute(&mut *transaction)
            .await?;
        if symbols.is_empty() {
            continue;
        }
        let rows: Vec<_> = symbols.iter().map(row_of).collect();
        query(
            "INSERT INTO symbol SELECT ?1, key, value ->> 0, value ->> 1, value ->> 2, value ->> 3
             FROM json_each(?2)",
        )
        .bind(id)
        .bind(serde_json::Value::from(rows).to_string())
        .execute(&mut *transaction)
        .await?;
    }
    transaction.commit().await
}

fn row_of(symbol: &Symbol) -> serde_json::Value {
    serde_json::json!([
        symbol.name,
        symbol.kind.number(),
        symbol.line,
        symbol.container
    ])
}

async fn forget_all(
    connection: &mut SqliteConnection,
    paths: &[String],
) -> Result<(), sqlx::Error> {
    let paths = serde_json::json!(paths).to_string();
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    for statement in [
        "DELETE FROM symbol WHERE file IN
         (SELECT id FROM file WHERE path IN (SELECT value FROM json_each(?1)))",
        "DELETE FROM file WHERE path IN (SELECT value FROM json_each(?1))",
    ] {
        query(statement)
            .bind(&paths)
            .execute(&mut *transaction)
            .await?;
    }
    transaction.commit().await
}

/// A pattern of `LIKE` for texts that have these characters in this order, `between` two of them.
fn like(text: &str, between: &str) -> String {
    let mut pattern = String::new();
    for character in text.chars() {
        pattern.push_str(between);
        if matches!(character, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(character);
    }
    pattern.push('%');
    pattern
}

async fn find_all(
    connection: &mut SqliteConnection,
    wanted: &Wanted,
) -> Result<Vec<Located>, sqlx::Error> {
    // `_` of a query stands for nothing: `get_rank` finds `getRank`.
    let letters: String = wanted.name.chars().filter(|c| *c != '_').collect();
    let letters = if letters.is_empty() {
        &wanted.name
    } else {
        &letters
    };
    let rows = query(
        "SELECT DISTINCT name FROM symbol WHERE name LIKE ?1 ESCAPE '\\'
         ORDER BY name = ?2 DESC, lower(name) = lower(?2) DESC, name LIKE ?3 ESCAPE '\\' DESC,
                  instr(lower(name), lower(?2)) > 0 DESC, length(name)
         LIMIT ?4",
    )
    .bind(like(letters, "%"))
    .bind(&wanted.name)
    .bind(like(&wanted.name, ""))
    .bind(MOST_NAMES)
    .fetch_all(&mut *connection)
    .await?;
    let mut names = Vec::with_capacity(rows.len());
    for row in rows {
        let name: String = row.try_get(0)?;
        names.extend(rank(&wanted.name, &name).map(|rank| (rank, name)));
    }
    names.sort();

    let kinds: Vec<i64> = wanted.kinds.iter().map(|kind| kind.number()).collect();
    let kinds = serde_json::json!(kinds).to_string();
    // One more tells that there are more.
    let most = wanted.most.saturating_add(1);
    let mut found = Vec::new();
    for names in names.chunks(TOGETHER) {
        let order: HashMap<&str, usize> = (0..)
            .zip(names)
            .map(|(place, (_, name))| (name.as_str(), place))
            .collect();
        let names: Vec<&str> = names.iter().map(|(_, name)| name.as_str()).collect();
        let rows = query(
            "SELECT path, name, kind, line, container FROM symbol JOIN file ON file.id = symbol.file
             WHERE name IN (SELECT value FROM json_each(?1))
               AND (path = ?2 OR substr(path, 1, length(?3)) = ?3)
               AND (?4 = '[]' OR kind IN (SELECT value FROM json_each(?4)))
               AND (?5 = '' OR instr(lower(container), lower(?5)) > 0)
             ORDER BY path, line LIMIT 20000",
        )
        .bind(serde_json::json!(names).to_string())
        .bind(&wanted.below)
        .bind(format!("{}/", wanted.below.trim_end_matches('/')))
        .bind(&kinds)
        .bind(&wanted.container)
        .fetch_all(&mut *connection)
        .await?;
        let mut some = rows.iter().map(located).collect::<Result<Vec<_>, _>>()?;
        some.sort_by_key(|located| order.get(located.symbol.name.as_str()).copied());
        found.append(&mut some);
        if found.len() >= most {
            break;
        }
    }
    found.truncate(most);
    Ok(found)
}

fn located(row: &SqliteRow) -> Result<Located, sqlx::Error> {
    Ok(Located {
        path: row.try_get(0)?,
        symbol: Symbol {
            name: row.try_get(1)?,
            kind: Kind::of_number(row.try_get(2)?)
                .ok_or_else(|| sqlx::Error::ColumnNotFound("kind".to_owned()))?,
            line: row.try_get(3)?,
            container: row.try_get(4)?,
        },
    })
}

#[async_trait]
impl CodeIndex for SqliteCodeIndex {
    async fn files(&self) -> Result<HashMap<String, FileMarks>, CodeIndexError> {
        let done = all_files(&mut *self.open().await?).await;
        match done {
            Ok(files) => Ok(files),
            Err(error) => Err(self.broken(error).await),
        }
    }

    async fn put(&self, files: Vec<ReadFile>) -> Result<(), CodeIndexError> {
        let done = put_all(&mut *self.open().await?, &files).await;
        match done {
            Ok(()) => Ok(()),
            Err(error) => Err(self.broken(error).await),
        }
    }

    async fn forget(&self, paths: Vec<String>) -> Result<(), CodeIndexError> {
        let done = forget_all(&mut *self.open().await?, &paths).await;
        match done {
            Ok(()) => Ok(()),
            Err(error) => Err(self.broken(error).await),
        }
    }

    async fn find(&self, wanted: &Wanted) -> Result<Vec<Located>, CodeIndexError> {
        let done = find_all(&mut *self.open().await?, wanted).await;
        match done {
            Ok(found) => Ok(found),
            Err(error) => Err(self.broken(error).await),
        }
    }
}
