//! Undo: the changes of file tools are recorded before they happen, and can be undone.
//!
//! [`UndoJournal`] is the port to durable records. [`Undo`] is the port for the command `/undo`. [`change`] holds
//! the content of a record.

pub mod change;
pub mod config;
mod memory;

use std::fmt::Debug;
use std::path::PathBuf;

use async_trait::async_trait;

pub use change::{Attributes, Change, FileBackup, FileState, Fingerprint, Step, TreeEntry};
pub use config::UndoConfig;
pub use memory::MemoryJournal;

/// An error of the undo journal.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the undo journal cannot be used: {0}")]
pub struct JournalError(pub String);

/// A change that is about to be made.
#[derive(Debug, Clone, Copy)]
pub struct PendingChange<'a> {
    /// The conversation.
    pub session: &'a str,
    /// The batch: changes that are undone together.
    pub batch: &'a str,
    /// The tool.
    pub tool: &'a str,
    /// A description of the change for the user.
    pub what: &'a str,
    /// The change, or the reason why it cannot be undone.
    pub change: Result<&'a Change, &'a str>,
}

/// The result of recording a [`PendingChange`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordOutcome {
    /// The change is recorded under this number, and can be undone.
    Kept(i64),
    /// The change is recorded as one that cannot be undone: the number and the reason.
    Lost(i64, String),
}

/// A recorded change.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The number; a later change has a higher one.
    pub number: i64,
    /// The tool.
    pub tool: String,
    /// A description of the change for the user.
    pub what: String,
    /// The change, or the reason why it cannot be undone.
    pub change: Result<Change, String>,
}

/// The changes that are undone together: those of one response of a model, or of one call by the user.
#[derive(Debug, Clone)]
pub struct Batch {
    /// The id.
    pub id: String,
    /// The changes that are not undone yet, the latest first.
    pub entries: Vec<Entry>,
}

/// A bounded journal for each session. When its methods return, their effect is durable.
#[async_trait]
pub trait UndoJournal: Send + Sync + Debug {
    /// Returns the maximum of [`Change::bytes`] per session; 0 disables records.
    fn max_bytes(&self) -> u64;

    /// Records a change before it is made. The oldest batches are dropped to make space. If that is not
    /// sufficient, the change is recorded as one that cannot be undone.
    ///
    /// # Errors
    /// [`JournalError`]; then the change must not be made.
    async fn record(&self, draft: PendingChange<'_>) -> Result<RecordOutcome, JournalError>;

    /// Removes the records, with their images, of changes that were not made or that are undone.
    ///
    /// # Errors
    /// [`JournalError`].
    async fn settle(&self, session: &str, numbers: &[i64]) -> Result<(), JournalError>;

    /// Returns the last batch that is not undone, if any.
    ///
    /// # Errors
    /// [`JournalError`].
    async fn last(&self, session: &str) -> Result<Option<Batch>, JournalError>;

    /// Returns the changes after the one with this number that are not undone, the latest first.
    ///
    /// # Errors
    /// [`JournalError`].
    async fn since(&self, session: &str, number: i64) -> Result<Vec<Entry>, JournalError>;
}

/// Returns the reason for a change that exceeds the limit of the journal.
#[must_use]
pub fn too_large(max_bytes: u64) -> String {
    format!("too large ([tools.undo] max_bytes = {max_bytes})")
}

/// A journal that stores nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoJournal;

#[async_trait]
impl UndoJournal for NoJournal {
    fn max_bytes(&self) -> u64 {
        0
    }

    async fn record(&self, _draft: PendingChange<'_>) -> Result<RecordOutcome, JournalError> {
        Err(JournalError("the journal is disabled".to_owned()))
    }

    async fn settle(&self, _session: &str, _numbers: &[i64]) -> Result<(), JournalError> {
        Ok(())
    }

    async fn last(&self, _session: &str) -> Result<Option<Batch>, JournalError> {
        Ok(None)
    }

    async fn since(&self, _session: &str, _number: i64) -> Result<Vec<Entry>, JournalError> {
        Ok(Vec::new())
    }
}

/// The result of an undo, one line per step: "restored a.txt".
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UndoReport {
    /// The lines, in the order of the steps.
    pub lines: Vec<String>,
}

/// The files after the undo of all changes since a point of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RewindReport {
    /// The restored files, one line each: "restored a.txt".
    pub restored: Vec<String>,
    /// The files that are not restored, one line each with the reason: "a.txt: it was changed since".
    pub not_restored: Vec<String>,
    /// The absolute paths with a record in the journal.
    pub recorded: Vec<PathBuf>,
}

/// The reason why an undo was not made.
#[derive(Debug, Clone, thiserror::Error)]
pub enum UndoError {
    /// No change is recorded.
    #[error("there is nothing to undo")]
    Nothing,
    /// The undo would not restore the previous state, so nothing was changed: one line per reason.
    #[error("the last changes cannot be undone, and nothing was changed:\n{}", .0.join("\n"))]
    Refused(Vec<String>),
    /// The undo was made in part.
    #[error(
        "{reason}\nundone before that:\n{}\nrepeat the undo to continue with the rest",
        .done.join("\n")
    )]
    Partial {
        /// The steps that were undone before.
        done: Vec<String>,
        /// The failure.
        reason: String,
    },
    /// The journal failed.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

/// The undo of the changes of file tools in a session.
#[async_trait]
pub trait Undo: Send + Sync {
    /// Undoes the last batch: all of it, or nothing if a part of it was changed since.
    ///
    /// # Errors
    /// [`UndoError`], with the steps that were made, if any.
    async fn undo_last(&self, session: &str) -> Result<UndoReport, UndoError>;

    /// Discards the last batch without a change of files, so that the previous batch can be undone. Returns the
    /// discarded changes.
    ///
    /// # Errors
    /// [`UndoError::Nothing`], [`UndoError::Journal`].
    async fn forget_last(&self, session: &str) -> Result<UndoReport, UndoError>;

    /// Reports the result of [`Undo::rewind`], and changes nothing.
    ///
    /// # Errors
    /// [`UndoError::Journal`].
    async fn plan_rewind(&self, session: &str, number: i64) -> Result<RewindReport, UndoError>;

    /// Undoes the changes after the one with this number. A file that cannot be restored to that state is not changed
    /// at all.
    ///
    /// # Errors
    /// [`UndoError::Refused`] if nothing may be changed, [`UndoError::Journal`].
    async fn rewind(&self, session: &str, number: i64) -> Result<RewindReport, UndoError>;
}

/// A journal without records has nothing to undo.
#[async_trait]
impl Undo for NoJournal {
    async fn undo_last(&self, _session: &str) -> Result<UndoReport, UndoError> {
        Err(UndoError::Nothing)
    }

    async fn forget_last(&self, _session: &str) -> Result<UndoReport, UndoError> {
        Err(UndoError::Nothing)
    }

    async fn plan_rewind(&self, _session: &str, _number: i64) -> Result<RewindReport, UndoError> {
        Ok(RewindReport::default())
    }

    async fn rewind(&self, _session: &str, _number: i64) -> Result<RewindReport, UndoError> {
        Ok(RewindReport::default())
    }
}
