//! Sessions: the conversations of a project.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::Serialize;
use uuid::Uuid;

use crate::database::{Row, Statement, Transaction, query};
use crate::error::StoreError;
use crate::store::Store;

/// The minimum length of an id prefix that identifies a session.
const MIN_PREFIX: usize = 4;
/// The most bytes of an id.
const MAX_ID: usize = 256;
/// The most empty sessions that are deleted at a time.
const MAX_DELETED: u32 = 100;
/// How many of the sessions that fit an ambiguous prefix are named.
const NAMED: usize = 6;

/// The description of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SessionInfo {
    /// Its id.
    pub id: String,
    /// Its working directory; invalid UTF-8 is replaced.
    pub project: PathBuf,
    /// Its title, if it has one.
    pub title: Option<String>,
    /// The provider last used.
    pub provider: Option<String>,
    /// The model last used.
    pub model: Option<String>,
    /// The time of its start: milliseconds since the Unix epoch.
    pub created_at: i64,
    /// The time of its last message: milliseconds since the Unix epoch.
    pub updated_at: i64,
    /// How many messages it holds, those before `/clear` included.
    pub messages: u64,
    /// How many calls the audit trail has of it.
    pub calls: u64,
}

/// A new id for a session: random, so that its first characters are usually unique.
#[must_use]
pub fn new_session_id() -> String {
    Uuid::new_v4().to_string()
}

pub(crate) fn now() -> i64 {
    Timestamp::now().as_millisecond()
}

/// Converts a count to the integer type of SQLite.
pub(crate) fn integer(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Converts an integer of SQLite to a count.
pub(crate) fn count(integer: i64) -> u64 {
    u64::try_from(integer).unwrap_or(0)
}

fn project_key(project: &Path) -> String {
    project.to_string_lossy().into_owned()
}

macro_rules! select_session {
    ($($rest:tt)*) => {
        concat!(
            "SELECT s.id, s.project, s.title, s.provider, s.model, s.created_at, s.updated_at,
                (SELECT count(*) FROM message m WHERE m.session = s.number),
                (SELECT count(*) FROM tool_audit a WHERE a.session = s.id AND a.id > s.audit_floor)
             FROM session s ",
            $($rest)*
        )
    };
}

/// The condition of sessions with a message. A call without a model has a session without messages.
macro_rules! has_message {
    () => {
        "EXISTS (SELECT 1 FROM message m WHERE m.session = s.number)"
    };
}

/// The condition of sessions without messages and calls that began before `?1`.
macro_rules! is_empty_since {
    () => {
        "WHERE s.created_at < ?1 AND s.parent IS NULL
           AND NOT EXISTS (SELECT 1 FROM message m WHERE m.session = s.number)
           AND NOT EXISTS (SELECT 1 FROM tool_audit a WHERE a.session = s.id AND a.id > s.audit_floor)"
    };
}

fn session_of(row: &Row) -> Result<SessionInfo, sqlx::Error> {
    Ok(SessionInfo {
        id: row.try_get(0)?,
        project: PathBuf::from(row.try_get::<String, _>(1)?),
        title: row.try_get(2)?,
        provider: row.try_get(3)?,
        model: row.try_get(4)?,
        created_at: row.try_get(5)?,
        updated_at: row.try_get(6)?,
        messages: count(row.try_get(7)?),
        calls: count(row.try_get(8)?),
    })
}

impl Store {
    /// The session `id`; it is created for `project` if it does not exist.
    ///
    /// # Errors
    /// [`StoreError::InvalidSessionId`], or a failure of the database.
    pub async fn ensure_session(
        &self,
        id: &str,
        project: &Path,
    ) -> Result<SessionInfo, StoreError> {
        if id.is_empty() || id.len() > MAX_ID || id.chars().any(char::is_control) {
            return Err(StoreError::InvalidSessionId {
                id: id.to_owned(),
                max: MAX_ID,
            });
        }
        let insert = Statement::per_dialect(
            "INSERT INTO session (id, project, created_at, updated_at, activity, audit_floor)
             VALUES (?1, ?2, ?3, ?3,
                     (SELECT coalesce(max(activity), 0) + 1 FROM session),
                     (SELECT coalesce(max(id), 0) FROM tool_audit))
             ON CONFLICT (id) DO NOTHING",
            "INSERT INTO session (id, project, created_at, updated_at, audit_floor)
             VALUES (?1, ?2, ?3, ?3, (SELECT coalesce(max(id), 0) FROM tool_audit))
             ON CONFLICT (id) DO NOTHING",
        );
        self.write(insert.bind(id).bind(project_key(project)).bind(now()), 0)
            .await?;
        self.session(id).await
    }

    /// Creates the session `id` for a sub-agent of the session `parent`. It is not listed and not continued, and it is
    /// deleted with its parent.
    ///
    /// # Errors
    /// [`StoreError::InvalidSessionId`], [`StoreError::UnknownSession`] without a parent, or a failure of the
    /// database.
    pub async fn create_sub_session(
        &self,
        id: &str,
        parent: &str,
        project: &Path,
    ) -> Result<(), StoreError> {
        self.ensure_session(id, project).await?;
        let update = query(
            "UPDATE session SET parent = (SELECT number FROM session WHERE id = ?2)
             WHERE id = ?1 AND EXISTS (SELECT 1 FROM session WHERE id = ?2) RETURNING number",
        );
        self.write_to_session(parent, update.bind(id).bind(parent))
            .await
    }

    /// The session `id`.
    ///
    /// # Errors
    /// [`StoreError::UnknownSession`], or a failure of the database.
    pub async fn session(&self, id: &str) -> Result<SessionInfo, StoreError> {
        let select = query(select_session!("WHERE s.id = ?1"));
        let found = self.sessions(select.bind(id)).await?;
        found.into_iter().next().ok_or_else(|| unknown(id))
    }

    /// The session with the id `prefix`, otherwise the only one with that prefix.
    ///
    /// # Errors
    /// [`StoreError::UnknownSession`], [`StoreError::AmbiguousSession`], [`StoreError::ShortPrefix`], or a failure of
    /// the database.
    pub async fn find_session(&self, prefix: &str) -> Result<SessionInfo, StoreError> {
        let select = query(select_session!(
            "WHERE s.id >= ?1 AND substr(s.id, 1, length(?1)) = ?1 ORDER BY s.id LIMIT ?2"
        ));
        let named = i64::try_from(NAMED).unwrap_or(i64::MAX);
        let mut found = self.sessions(select.bind(prefix).bind(named)).await?;
        // The id itself sorts before all that it is the beginning of.
        match found.first() {
            Some(first) if first.id == prefix => return Ok(found.swap_remove(0)),
            _ if prefix.chars().count() < MIN_PREFIX => {
                return Err(StoreError::ShortPrefix {
                    prefix: prefix.to_owned(),
                    min: MIN_PREFIX,
                });
            }
            _ => {}
        }
        match (found.pop(), found.is_empty()) {
            (None, _) => Err(unknown(prefix)),
            (Some(only), true) => Ok(only),
            (Some(last), false) => Err(StoreError::AmbiguousSession {
                prefix: prefix.to_owned(),
                ids: found.into_iter().chain([last]).map(|s| s.id).collect(),
            }),
        }
    }

    /// The session of `project` with the latest activity, among the user's own with a message. `--continue` resumes it.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn latest_session(&self, project: &Path) -> Result<Option<SessionInfo>, StoreError> {
        let select = Statement::per_dialect(
            select_session!(
                "WHERE s.project = ?1 AND s.parent IS NULL AND ",
                has_message!(),
                " ORDER BY s.activity DESC LIMIT 1"
            ),
            select_session!(
                "WHERE s.project = ?1 AND s.parent IS NULL AND s.owner = current_user AND ",
                has_message!(),
                " ORDER BY s.activity DESC LIMIT 1"
            ),
        );
        let mut found = self.sessions(select.bind(project_key(project))).await?;
        Ok(found.pop())
    }

    /// Up to `limit` sessions, of `project` or of all, the latest activity first.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn list_sessions(
        &self,
        project: Option<&Path>,
        limit: u32,
    ) -> Result<Vec<SessionInfo>, StoreError> {
        let select = match project {
            Some(project) => query(select_session!(
                "WHERE s.project = ?2 AND s.parent IS NULL ORDER BY s.activity DESC LIMIT ?1"
            ))
            .bind(limit)
            .bind(project_key(project)),
            None => query(select_session!(
                "WHERE s.parent IS NULL ORDER BY s.activity DESC LIMIT ?1"
            ))
            .bind(limit),
        };
        self.sessions(select).await
    }

    /// Up to `limit` sessions with a message, of `project` or of all, the latest activity first.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn list_conversations(
        &self,
        project: Option<&Path>,
        limit: u32,
    ) -> Result<Vec<SessionInfo>, StoreError> {
        let select = match project {
            Some(project) => query(select_session!(
                "WHERE s.project = ?2 AND s.parent IS NULL AND ",
                has_message!(),
                " ORDER BY s.activity DESC LIMIT ?1"
            ))
            .bind(limit)
            .bind(project_key(project)),
            None => query(select_session!(
                "WHERE s.parent IS NULL AND ",
                has_message!(),
                " ORDER BY s.activity DESC LIMIT ?1"
            ))
            .bind(limit),
        };
        self.sessions(select).await
    }

    /// The working directories of all sessions by their id. Sessions of sub-agents are included.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn session_projects(&self) -> Result<HashMap<String, PathBuf>, StoreError> {
        let select = query("SELECT id, project FROM session");
        let projects = self.fetch_as(select, |row| {
            let project = row.try_get::<String, _>(1)?;
            Ok((row.try_get::<String, _>(0)?, PathBuf::from(project)))
        });
        Ok(projects.await?.into_iter().collect())
    }

    /// Deletes a session with its messages, tasks and records of read files. Its audit entries stay.
    ///
    /// # Errors
    /// [`StoreError::UnknownSession`], [`StoreError::SessionInUse`], or a failure of the database.
    pub async fn delete_session(&self, id: &str) -> Result<(), StoreError> {
        let _lock = self.lock_session(id).await?;
        let delete = query(
            "DELETE FROM session
             WHERE id = ?1 OR parent = (SELECT number FROM session WHERE id = ?1) RETURNING number",
        );
        self.write_to_session(id, delete.bind(id)).await
    }

    /// Deletes the user's sessions without messages and calls that began before `before`, in milliseconds since the Unix
    /// epoch. Sessions in use stay. Returns the number of deleted sessions.
    ///
    /// # Errors
    /// A failure of the database or of a lock.
    pub async fn delete_empty_sessions(&self, before: i64) -> Result<usize, StoreError> {
        let select = Statement::per_dialect(
            concat!(
                "SELECT s.id FROM session s ",
                is_empty_since!(),
                " LIMIT ?2"
            ),
            concat!(
                "SELECT s.id FROM session s ",
                is_empty_since!(),
                " AND s.owner = current_user LIMIT ?2"
            ),
        );
        let found = self.fetch(select.bind(before).bind(MAX_DELETED)).await?;
        let mut deleted = 0;
        for row in &found {
            let id: String = row.try_get(0).map_err(|error| self.sql(error))?;
            let lock = match self.lock_session(&id).await {
                Ok(lock) => lock,
                Err(StoreError::SessionInUse { .. } | StoreError::UnknownSession { .. }) => {
                    continue;
                }
                Err(error) => return Err(error),
            };
            // A message may have come before the lock.
            let delete = query(concat!(
                "DELETE FROM session WHERE number IN (SELECT s.number FROM session s ",
                is_empty_since!(),
                " AND s.id = ?2) RETURNING number"
            ));
            let rows = self.write(delete.bind(before).bind(id), 0).await;
            lock.release().await;
            deleted += rows?.len();
        }
        Ok(deleted)
    }

    /// Sets the title of a session, unless [`Store::rename_session`] has set it. Returns the title.
    ///
    /// # Errors
    /// [`StoreError::UnknownSession`], or a failure of the database.
    pub async fn set_title(&self, id: &str, title: &str) -> Result<String, StoreError> {
        let update = query(
            "UPDATE session SET title = CASE WHEN is_renamed THEN title ELSE ?2 END
             WHERE id = ?1 RETURNING coalesce(title, '')",
        );
        let rows = self.write(update.bind(id).bind(title), 0).await?;
        let row = rows.first().ok_or_else(|| unknown(id))?;
        row.try_get(0).map_err(|error| self.sql(error))
    }

    /// Sets the title of a session that the user chose. Prompts do not change it.
    ///
    /// # Errors
    /// [`StoreError::UnknownSession`], or a failure of the database.
    pub async fn rename_session(&self, id: &str, title: &str) -> Result<(), StoreError> {
        let update = query(
            "UPDATE session SET title = ?2, is_renamed = TRUE WHERE id = ?1 RETURNING number",
        );
        self.write_to_session(id, update.bind(id).bind(title)).await
    }

    /// The tools in the model's catalog of a session, in their order; empty if none were recorded since the window
    /// was cleared or compacted. An unknown session has none.
    ///
    /// # Errors
    /// A failure of the database.
    pub async fn offered_tools(&self, id: &str) -> Result<Vec<String>, StoreError> {
        let select = query("SELECT coalesce(offered_tools, '') FROM session WHERE id = ?1");
        let rows = self.fetch(select.bind(id)).await?;
        let Some(row) = rows.first() else {
            return Ok(Vec::new());
        };
        let text: String = row.try_get(0).map_err(|error| self.sql(error))?;
        Ok(text.lines().map(str::to_owned).collect())
    }

    /// Records the tools in the model's catalog of a session, in their order.
    ///
    /// # Errors
    /// [`StoreError::UnknownSession`], or a failure of the database.
    pub async fn set_offered_tools(&self, id: &str, tools: &[String]) -> Result<(), StoreError> {
        let update = query("UPDATE session SET offered_tools = ?2 WHERE id = ?1 RETURNING number");
        self.write_to_session(id, update.bind(id).bind(tools.join("\n")))
            .await
    }

    /// Records the model of a session.
    ///
    /// # Errors
    /// [`StoreError::UnknownSession`], or a failure of the database.
    pub async fn set_model(&self, id: &str, provider: &str, model: &str) -> Result<(), StoreError> {
        let update =
            query("UPDATE session SET provider = ?2, model = ?3 WHERE id = ?1 RETURNING number");
        self.write_to_session(id, update.bind(id).bind(provider).bind(model))
            .await
    }

    /// The number of the session `id` within a transaction.
    pub(crate) async fn session_number(
        &self,
        transaction: &mut dyn Transaction,
        id: &str,
    ) -> Result<i64, StoreError> {
        let select = query("SELECT number FROM session WHERE id = ?1");
        let rows = transaction.fetch(select.bind(id)).await?;
        let row = rows.first().ok_or_else(|| unknown(id))?;
        row.try_get(0).map_err(|error| self.sql(error))
    }

    async fn sessions(&self, select: Statement<'_>) -> Result<Vec<SessionInfo>, StoreError> {
        let rows = self.fetch(select).await?;
        rows.iter()
            .map(|row| session_of(row).map_err(|error| self.sql(error)))
            .collect()
    }

    /// Runs a statement that returns a row if the session exists.
    pub(crate) async fn write_to_session(
        &self,
        id: &str,
        statement: Statement<'_>,
    ) -> Result<(), StoreError> {
        match self.write(statement, 0).await?.is_empty() {
            true => Err(unknown(id)),
            false => Ok(()),
        }
    }
}

pub(crate) fn unknown(session: &str) -> StoreError {
    StoreError::UnknownSession {
        id: session.to_owned(),
    }
}
