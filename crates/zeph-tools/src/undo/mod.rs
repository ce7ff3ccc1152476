//! Undo: what file tools change is on record before it happens, and can be taken back.
//!
//! [`UndoJournal`] is the port through which records become durable; [`Undo`] is what a person's
//! `/undo` reaches. What a record says is in [`change`].

pub mod change;
pub mod config;
mod memory;

use std::fmt::Debug;

use async_trait::async_trait;

pub use change::{Attributes, Change, FileBackup, FileState, Fingerprint, Step, TreeEntry};
pub use config::UndoConfig;
pub use memory::MemoryJournal;

/// The journal could not be read or written.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the undo journal cannot be used: {0}")]
pub struct JournalError(pub String);

/// A change that is about to be made.
#[derive(Debug, Clone, Copy)]
pub struct PendingChange<'a> {
    /// The conversation.
    pub session: &'a str,
    /// What is undone together.
    pub batch: &'a str,
    /// The tool.
    pub tool: &'a str,
    /// What is changed, for a person to read.
    pub what: &'a str,
    /// The change, or why it cannot be recorded so that it could be undone.
    pub change: Result<&'a Change, &'a str>,
}

/// What became of a [`PendingChange`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordOutcome {
    /// It is on record under this number, and can be undone.
    Kept(i64),
    /// It is on record that it cannot be undone: the number, and why.
    Lost(i64, String),
}

/// A change on record.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Its number; a later one is higher.
    pub number: i64,
    /// The tool.
    pub tool: String,
    /// What was changed, for a person to read.
    pub what: String,
    /// The change, or why it cannot be undone.
    pub change: Result<Change, String>,
}

/// What is undone together: the changes of one answer of a model, or of one call by a person.
#[derive(Debug, Clone)]
pub struct Batch {
    /// Its id.
    pub id: String,
    /// The changes that are not undone yet, the latest first.
    pub entries: Vec<Entry>,
}

/// Keeps records, one journal for each session, bounded. Its methods return when what they did
/// survives the death of the process.
#[async_trait]
pub trait UndoJournal: Send + Sync + Debug {
    /// The most bytes of [`Change::bytes`] that are kept of a session; 0 keeps no records at all.
    fn max_bytes(&self) -> u64;

    /// Puts a change on record before it is made. The oldest batches are dropped to make room;
    /// where that does not help, it is recorded as one that cannot be undone.
    ///
    /// # Errors
    /// [`JournalError`]; then the change must not be made.
    async fn record(&self, draft: PendingChange<'_>) -> Result<RecordOutcome, JournalError>;

    /// Takes the records of changes back that were not made or are undone: they and their images
    /// are gone from the journal.
    ///
    /// # Errors
    /// [`JournalError`].
    async fn settle(&self, session: &str, numbers: &[i64]) -> Result<(), JournalError>;

    /// The last batch that is not undone; `None` when there is none.
    ///
    /// # Errors
    /// [`JournalError`].
    async fn last(&self, session: &str) -> Result<Option<Batch>, JournalError>;
}

/// The reason of a change that is larger than all that a journal may keep.
#[must_use]
pub fn too_large(max_bytes: u64) -> String {
    format!("too large ([tools.undo] max_bytes = {max_bytes})")
}

/// Keeps nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoJournal;

#[async_trait]
impl UndoJournal for NoJournal {
    fn max_bytes(&self) -> u64 {
        0
    }

    async fn record(&self, _draft: PendingChange<'_>) -> Result<RecordOutcome, JournalError> {
        Err(JournalError("there is none".to_owned()))
    }

    async fn settle(&self, _session: &str, _numbers: &[i64]) -> Result<(), JournalError> {
        Ok(())
    }

    async fn last(&self, _session: &str) -> Result<Option<Batch>, JournalError> {
        Ok(None)
    }
}

/// What an undo did, a line each: "restored a.txt".
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndoReport {
    /// The lines, in the order in which it was done.
    pub lines: Vec<String>,
}

/// Why an undo was not made.
#[derive(Debug, Clone, thiserror::Error)]
pub enum UndoError {
    /// There is nothing on record.
    #[error("there is nothing to undo")]
    Nothing,
    /// It would not put back what was, so nothing was changed: a line for each reason.
    #[error("the last changes are not undone, and nothing was changed:\n{}", .0.join("\n"))]
    Refused(Vec<String>),
    /// It ended half-way.
    #[error(
        "{reason}\nundone before that:\n{}\nundo again to go on with the rest",
        .done.join("\n")
    )]
    Partial {
        /// What was undone before.
        done: Vec<String>,
        /// What happened.
        reason: String,
    },
    /// The journal failed.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

/// Takes back what file tools changed in a session.
#[async_trait]
pub trait Undo: Send + Sync {
    /// Undoes the last batch: all of it, or nothing where anything of it was changed since.
    ///
    /// # Errors
    /// [`UndoError`], which says what was done, if anything.
    async fn undo_last(&self, session: &str) -> Result<UndoReport, UndoError>;

    /// Forgets the last batch and leaves the files as they are, so that the one before it can be
    /// undone; says what was forgotten.
    ///
    /// # Errors
    /// [`UndoError::Nothing`], [`UndoError::Journal`].
    async fn forget_last(&self, session: &str) -> Result<UndoReport, UndoError>;
}

/// Where nothing is kept, there is nothing to undo.
#[async_trait]
impl Undo for NoJournal {
    async fn undo_last(&self, _session: &str) -> Result<UndoReport, UndoError> {
        Err(UndoError::Nothing)
    }

    async fn forget_last(&self, _session: &str) -> Result<UndoReport, UndoError> {
        Err(UndoError::Nothing)
    }
}
