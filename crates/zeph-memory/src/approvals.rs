//! Permanent approvals in a shared store: the table `approval`. Without a server they are in a file of the user.
//!
//! Every statement names the owner, because row-level security does not limit superusers.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::conversation::now;
use crate::database::{Row, query};
use crate::error::StoreError;
use crate::store::Store;

/// The maximum number of parts of one approval.
const MAX_APPROVED_PARTS: usize = 1000;

/// A permanent approval: calls of `tool` that match `pattern` run without a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approval {
    /// The tool.
    pub tool: String,
    /// The pattern of its calls.
    pub pattern: String,
    /// The real path of the project; `None` in all projects.
    pub project: Option<PathBuf>,
    /// The time of the approval: milliseconds since the Unix epoch, in whole seconds.
    pub added_at: i64,
}

fn approval_of(row: &Row) -> Result<Approval, sqlx::Error> {
    let project: Option<Vec<u8>> = row.try_get(2)?;
    Ok(Approval {
        tool: row.try_get(0)?,
        pattern: row.try_get(1)?,
        project: project.map(|path| PathBuf::from(OsStr::from_bytes(&path))),
        added_at: row.try_get(3)?,
    })
}

fn key(project: Option<&Path>) -> Option<Vec<u8>> {
    project.map(|path| path.as_os_str().as_bytes().to_vec())
}

impl Store {
    /// The approvals of this user, in the order of approval.
    ///
    /// # Errors
    /// [`StoreError::NotShared`] for a SQLite store, or a failure of the database.
    pub async fn approvals(&self) -> Result<Vec<Approval>, StoreError> {
        self.check_shared()?;
        let select = query(
            "SELECT tool, pattern, project, added_at FROM approval
             WHERE owner = current_user ORDER BY number",
        );
        self.fetch_as(select, |row| approval_of(&row)).await
    }

    /// The approvals of this user that apply in `project`, in the order of approval.
    ///
    /// # Errors
    /// [`StoreError::NotShared`] for a SQLite store, or a failure of the database.
    pub async fn approvals_in(&self, project: &Path) -> Result<Vec<Approval>, StoreError> {
        self.check_shared()?;
        let select = query(
            "SELECT tool, pattern, project, added_at FROM approval
             WHERE owner = current_user AND (project IS NULL OR project = ?1) ORDER BY number",
        );
        self.fetch_as(select.bind(key(Some(project))), |row| approval_of(&row))
            .await
    }

    /// Approves calls by their tools and patterns, in a project or in all. Those that are approved already do not change. Either
    /// all of them are stored, or none.
    ///
    /// # Errors
    /// [`StoreError::NotShared`] for a SQLite store, [`StoreError::LongApproval`], or a failure of the database.
    pub async fn approve(
        &self,
        calls: &[(&str, &str)],
        project: Option<&Path>,
    ) -> Result<(), StoreError> {
        self.check_shared()?;
        if calls.is_empty() {
            return Ok(());
        }
        if calls.len() > MAX_APPROVED_PARTS {
            return Err(StoreError::LongApproval {
                parts: calls.len(),
                max: MAX_APPROVED_PARTS,
            });
        }
        // One statement, which has the same effect when it runs again after a lost connection.
        let rows: Vec<String> = (0..calls.len())
            .map(|at| format!("(?{}, ?{}, ?1, ?2)", 2 * at + 3, 2 * at + 4))
            .collect();
        let text = format!(
            "INSERT INTO approval (tool, pattern, project, added_at) VALUES {} ON CONFLICT DO NOTHING",
            rows.join(", ")
        );
        let seconds = now() / 1000;
        let mut insert = query(text)
            .bind(key(project))
            .bind(seconds * 1000)
            .prepared(false)
            .repeatable();
        for (tool, pattern) in calls {
            insert = insert.bind(*tool).bind(*pattern);
        }
        self.write(insert, 0).await.map(drop)
    }

    /// Revokes an approval; whether it existed.
    ///
    /// # Errors
    /// [`StoreError::NotShared`] for a SQLite store, or a failure of the database.
    pub async fn revoke_approval(&self, approval: &Approval) -> Result<bool, StoreError> {
        self.check_shared()?;
        let delete = query(
            "DELETE FROM approval WHERE owner = current_user AND tool = ?1 AND pattern = ?2
                 AND project IS NOT DISTINCT FROM ?3 AND added_at = ?4
             RETURNING number",
        );
        let delete = delete
            .bind(&approval.tool)
            .bind(&approval.pattern)
            .bind(key(approval.project.as_deref()))
            .bind(approval.added_at)
            .repeatable();
        Ok(!self.write(delete, 0).await?.is_empty())
    }
}
