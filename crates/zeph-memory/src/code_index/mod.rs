//! The index of symbols of a project: a separate database, for `zeph_tools::file::code::CodeIndex`.
//!
//! Its content can be recomputed: a database that is damaged or of another version is created again.

use std::collections::HashMap;
use std::path::PathBuf;

use async_trait::async_trait;
use sqlx::sqlite::{SqliteConnection, SqliteRow};
use sqlx::{Connection, Row, query};
use tokio::sync::{MappedMutexGuard, Mutex, MutexGuard};
use zeph_tools::file::code::{
    CodeIndex, CodeIndexError, FileMarks, Located, ReadFile, Symbol, SymbolKind, Wanted, rank,
};

mod open;

use open::{Open, failed, is_damage};

/// Names that are ranked.
const MAX_NAMES: u32 = 3000;
/// The number of names in one query for symbols.
const TOGETHER: usize = 64;

/// Stores the index in a file, which is opened at the first call.
pub struct SqliteCodeIndex {
    path: PathBuf,
    open: Mutex<Option<Open>>,
}

impl SqliteCodeIndex {
    /// The index in the file `path`, which need not exist.
    #[must_use]
    pub fn new(path: PathBuf) -> Self {
        Self {
            path,
            open: Mutex::new(None),
        }
    }

    /// The open database; creates the file (mode 0600), the folder (0700) and the tables if they are missing.
    async fn open(&self) -> Result<MappedMutexGuard<'_, Open>, CodeIndexError> {
        let mut open = self.open.lock().await;
        if open.is_none() {
            *open = Some(Open::at(&self.path).await?);
        }
        MutexGuard::try_map(open, Option::as_mut).map_err(|_| failed(&"it is closed"))
    }

    /// Converts the error of a statement. A damaged database is closed, so that the next call creates it again.
    async fn broken(&self, error: sqlx::Error) -> CodeIndexError {
        let lost = is_damage(&error);
        if lost && let Some(open) = self.open.lock().await.take() {
            open.discard().await;
        }
        CodeIndexError {
            lost,
            reason: error.to_string(),
        }
    }
}

/// The number of changes by other connections that the transaction sees.
async fn version(connection: &mut SqliteConnection) -> Result<i64, sqlx::Error> {
    let row = query("PRAGMA data_version").fetch_one(connection).await?;
    row.try_get(0)
}

async fn all_files(
    connection: &mut SqliteConnection,
) -> Result<(HashMap<String, FileMarks>, i64), sqlx::Error> {
    let mut transaction = connection.begin().await?;
    let rows = query("SELECT path, marks, content, whole FROM file")
        .fetch_all(&mut *transaction)
        .await?;
    let version = version(&mut transaction).await?;
    transaction.commit().await?;
    let file = |row: &SqliteRow| {
        let marks = FileMarks {
            marks: row.try_get(1)?,
            content: row.try_get(2)?,
            whole: row.try_get(3)?,
        };
        Ok((row.try_get(0)?, marks))
    };
    let files: Result<_, sqlx::Error> = rows.iter().map(file).collect();
    Ok((files?, version))
}

async fn put_all(connection: &mut SqliteConnection, files: &[ReadFile]) -> Result<(), sqlx::Error> {
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
    for file in files {
        let Some(symbols) = &file.symbols else {
            // The update applies only if the symbols still belong to this content.
            query("UPDATE file SET marks = ?2 WHERE path = ?1 AND content = ?3")
                .bind(&file.path)
                .bind(file.marks.marks)
                .bind(file.marks.content)
                .execute(&mut *transaction)
                .await?;
            continue;
        };
        let row = query(
            "INSERT INTO file (path, marks, content, whole) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (path) DO UPDATE
             SET marks = excluded.marks, content = excluded.content, whole = excluded.whole
             WHERE marks <> excluded.marks OR content <> excluded.content OR marks = 0
             RETURNING id",
        )
        .bind(&file.path)
        .bind(file.marks.marks)
        .bind(file.marks.content)
        .bind(file.marks.whole)
        .fetch_optional(&mut *transaction)
        .await?;
        // Another process read the same file at the same time.
        let Some(row) = row else { continue };
        let id: i64 = row.try_get(0)?;
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
    transaction.commit().await?;
    // The journal holds earlier content. While other processes still read it, a later checkpoint removes it.
    query("PRAGMA wal_checkpoint(TRUNCATE)")
        .execute(connection)
        .await
        .map(drop)
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
) -> Result<(Vec<Located>, i64), sqlx::Error> {
    let mut transaction = connection.begin().await?;
    let found = find_in(&mut transaction, wanted).await?;
    let version = version(&mut transaction).await?;
    transaction.commit().await?;
    Ok((found, version))
}

/// The candidate names, in approximate order; [`rank`] computes the exact one.
const NAMES: &str = "
    SELECT DISTINCT name FROM symbol WHERE name LIKE ?1 ESCAPE '\\'
    ORDER BY name = ?2 DESC, lower(name) = lower(?2) DESC, name LIKE ?3 ESCAPE '\\' DESC,
             instr(lower(name), lower(?2)) > 0 DESC, length(name)
    LIMIT ?4";
/// The candidate names with the conditions of the query: this reads the symbols, and [`NAMES`] only an index.
const NAMES_WANTED: &str = "
    SELECT DISTINCT name FROM symbol WHERE name LIKE ?1 ESCAPE '\\'
      AND (?5 = '[]' OR kind IN (SELECT value FROM json_each(?5)))
      AND (?6 = '' OR instr(lower(container), lower(?6)) > 0)
      AND file IN (SELECT id FROM file WHERE path = ?7 OR substr(path, 1, length(?8)) = ?8)
    ORDER BY name = ?2 DESC, lower(name) = lower(?2) DESC, name LIKE ?3 ESCAPE '\\' DESC,
             instr(lower(name), lower(?2)) > 0 DESC, length(name)
    LIMIT ?4";

/// The names that fit, best first.
async fn names_for(
    connection: &mut SqliteConnection,
    wanted: &Wanted,
    kinds: &str,
    below: &str,
) -> Result<Vec<((u8, usize), String)>, sqlx::Error> {
    // A `_` in a query is ignored: `get_rank` finds `getRank`. SQLite ignores the case of ASCII letters only.
    let letters = wanted.name.chars().filter(|c| *c != '_');
    let mut letters: String = letters.filter(char::is_ascii).collect();
    if letters.is_empty() && wanted.name.is_ascii() {
        letters.clone_from(&wanted.name);
    }
    let (pattern, beginning) = (like(&letters, "%"), like(&wanted.name, ""));
    let mut names = Vec::new();
    for statement in [NAMES, NAMES_WANTED] {
        let statement = query(statement)
            .bind(&pattern)
            .bind(&wanted.name)
            .bind(&beginning)
            .bind(MAX_NAMES)
            .bind(kinds)
            .bind(&wanted.container)
            .bind(&wanted.below)
            .bind(below);
        names = statement.fetch_all(&mut *connection).await?;
        if names.len() < MAX_NAMES as usize {
            break;
        }
    }
    let mut ranked = Vec::with_capacity(names.len());
    for row in names {
        let name: String = row.try_get(0)?;
        ranked.extend(rank(&wanted.name, &name).map(|rank| (rank, name)));
    }
    ranked.sort();
    Ok(ranked)
}

async fn find_in(
    connection: &mut SqliteConnection,
    wanted: &Wanted,
) -> Result<Vec<Located>, sqlx::Error> {
    let kinds: Vec<i64> = wanted.kinds.iter().map(|kind| kind.number()).collect();
    let kinds = serde_json::json!(kinds).to_string();
    let below = format!("{}/", wanted.below.trim_end_matches('/'));
    let names = names_for(connection, wanted, &kinds, &below).await?;
    // One additional result shows that there are more.
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
        .bind(&below)
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
            kind: SymbolKind::of_number(row.try_get(2)?)
                .ok_or_else(|| sqlx::Error::ColumnNotFound("kind".to_owned()))?,
            line: row.try_get(3)?,
            container: row.try_get(4)?,
        },
    })
}

#[async_trait]
impl CodeIndex for SqliteCodeIndex {
    async fn files(&self) -> Result<(HashMap<String, FileMarks>, i64), CodeIndexError> {
        let done = all_files(&mut self.open().await?.connection).await;
        match done {
            Ok(files) => Ok(files),
            Err(error) => Err(self.broken(error).await),
        }
    }

    async fn put(&self, files: Vec<ReadFile>) -> Result<(), CodeIndexError> {
        let done = put_all(&mut self.open().await?.connection, &files).await;
        match done {
            Ok(()) => Ok(()),
            Err(error) => Err(self.broken(error).await),
        }
    }

    async fn forget(&self, paths: Vec<String>) -> Result<(), CodeIndexError> {
        let done = forget_all(&mut self.open().await?.connection, &paths).await;
        match done {
            Ok(()) => Ok(()),
            Err(error) => Err(self.broken(error).await),
        }
    }

    async fn find(&self, wanted: &Wanted) -> Result<(Vec<Located>, i64), CodeIndexError> {
        let done = find_all(&mut self.open().await?.connection, wanted).await;
        match done {
            Ok(found) => Ok(found),
            Err(error) => Err(self.broken(error).await),
        }
    }
}
