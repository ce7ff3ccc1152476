//! The task list of an agent in its session.

use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::conversation::{now, unknown};
use crate::database::{Row, query};
use crate::error::StoreError;
use crate::store::Store;

/// The maximum length of a task in characters.
pub const MAX_TASK_CHARS: usize = 4000;

/// The status of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(description = "")]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// Not begun.
    Pending,
    /// Being done.
    InProgress,
    /// Done.
    Completed,
}

impl TaskStatus {
    /// All statuses, in the order of a task's life.
    pub const ALL: [Self; 3] = [Self::Pending, Self::InProgress, Self::Completed];

    /// The name in the database and for models.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
        }
    }
}

impl FromStr for TaskStatus {
    type Err = StoreError;

    fn from_str(text: &str) -> Result<Self, StoreError> {
        Self::ALL
            .into_iter()
            .find(|status| status.as_str() == text)
            .ok_or_else(|| StoreError::UnknownStatus {
                status: text.to_owned(),
            })
    }
}

/// A task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Task {
    /// `task_1`, `task_2`, … in its session.
    pub id: String,
    /// The description of the task.
    pub content: String,
    /// How far it is.
    pub status: TaskStatus,
    /// When it was added: milliseconds since the Unix epoch.
    pub created_at: i64,
    /// When its status was last set: milliseconds since the Unix epoch.
    pub updated_at: i64,
}

fn task_id(number: i64) -> String {
    format!("task_{number}")
}

/// The number in `task_7`: digits as we write them, without sign or leading zero.
fn task_number(id: &str) -> Option<i64> {
    let number = id.strip_prefix("task_")?.parse().ok()?;
    (task_id(number) == id).then_some(number)
}

impl Store {
    /// Adds a task, `pending`, at the end of the session's list.
    ///
    /// # Errors
    /// [`StoreError::EmptyTask`], [`StoreError::LongTask`], [`StoreError::UnknownSession`], or a failure of the
    /// database.
    pub async fn add_task(&self, session: &str, content: &str) -> Result<Task, StoreError> {
        if content.trim().is_empty() {
            return Err(StoreError::EmptyTask);
        }
        let characters = content.chars().count();
        if characters > MAX_TASK_CHARS {
            return Err(StoreError::LongTask {
                characters,
                max: MAX_TASK_CHARS,
            });
        }
        let insert = query(
            "INSERT INTO task (session, number, content, status, created_at, updated_at)
             SELECT s.number,
                    (SELECT coalesce(max(t.number), 0) + 1 FROM task t WHERE t.session = s.number),
                    ?2, ?3, ?4, ?4
             FROM session s WHERE s.id = ?1
             RETURNING number, content, status, created_at, updated_at",
        )
        .bind(session)
        .bind(content)
        .bind(TaskStatus::Pending.as_str())
        .bind(now());
        let rows = self.write(insert, content.len()).await?;
        self.task_of(rows.first().ok_or_else(|| unknown(session))?)
    }

    /// The tasks of a session, in the order of their ids.
    ///
    /// # Errors
    /// [`StoreError::UnknownSession`], or a failure of the database.
    pub async fn tasks(&self, session: &str) -> Result<Vec<Task>, StoreError> {
        let select = query(
            "SELECT t.number, t.content, t.status, t.created_at, t.updated_at
             FROM session s JOIN task t ON t.session = s.number
             WHERE s.id = ?1 ORDER BY t.number",
        );
        let rows = self.fetch(select.bind(session)).await?;
        if rows.is_empty() {
            self.session(session).await?;
        }
        rows.iter().map(|row| self.task_of(row)).collect()
    }

    /// Sets the status of a task and returns the task.
    ///
    /// # Errors
    /// [`StoreError::UnknownTask`], which names the known ones; [`StoreError::UnknownSession`];
    /// or a failure of the database.
    pub async fn update_task(
        &self,
        session: &str,
        id: &str,
        status: TaskStatus,
    ) -> Result<Task, StoreError> {
        let update = query(
            "UPDATE task SET status = ?3, updated_at = ?4
             WHERE session = (SELECT number FROM session WHERE id = ?1) AND number = ?2
             RETURNING number, content, status, created_at, updated_at",
        )
        .bind(session)
        .bind(task_number(id))
        .bind(status.as_str())
        .bind(now());
        match self.write(update, 0).await?.first() {
            Some(row) => self.task_of(row),
            None => Err(StoreError::UnknownTask {
                id: id.to_owned(),
                known: self
                    .tasks(session)
                    .await?
                    .into_iter()
                    .map(|task| task.id)
                    .collect(),
            }),
        }
    }

    fn task_of(&self, row: &Row) -> Result<Task, StoreError> {
        let read = || -> Result<_, sqlx::Error> {
            Ok((
                row.try_get(0)?,
                row.try_get(1)?,
                row.try_get::<&str, _>(2)?,
                row.try_get(3)?,
                row.try_get(4)?,
            ))
        };
        let (number, content, status, created_at, updated_at) =
            read().map_err(|error| self.sql(error))?;
        Ok(Task {
            id: task_id(number),
            content,
            status: status.parse()?,
            created_at,
            updated_at,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_canonical_ids_are_accepted() {
        fn check(id: &str, expect: Option<i64>) {
            assert_eq!(task_number(id), expect, "{id:?}");
        }
        check("task_1", Some(1));
        check("task_120", Some(120));
        for id in [
            "",
            "1",
            "task_",
            "task_+1",
            "task_01",
            "task_ 1",
            "Task_1",
            "task_1 ",
            "task_x",
            "task_99999999999999999999",
        ] {
            check(id, None);
        }
    }
}
