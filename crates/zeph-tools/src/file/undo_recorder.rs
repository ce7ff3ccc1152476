//! Undo records, which are stored before a change is made.
//!
//! A record is durable before any part of the change is visible. If the process ends in between, the journal
//! has a record of a change that was not made. Undo detects and skips it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::Stat;
use tokio_util::sync::CancellationToken;

use crate::call::ToolCall;
use crate::error::ToolError;
use crate::file::resolved_path::{Place, Target};
use crate::file::sandbox::Sandbox;
use crate::file::snapshot::{self, RecordError};
use crate::undo::{
    Change, FileBackup, FileState, PendingChange, RecordOutcome, Step, UndoJournal, too_large,
};

/// Records the changes of one call.
#[derive(Debug, Clone)]
pub(super) struct Recorder {
    sandbox: Arc<Sandbox>,
    session: String,
    batch: String,
    tool: String,
}

/// The record of a change, if there is one.
#[derive(Debug)]
pub(super) struct Mark {
    journal: Arc<dyn UndoJournal>,
    session: String,
    number: Option<i64>,
    /// The reason if the change cannot be undone.
    lost: Option<String>,
}

impl Recorder {
    /// Creates the recorder for `call`.
    pub(super) fn new(sandbox: &Arc<Sandbox>, call: &ToolCall) -> Self {
        Self {
            sandbox: Arc::clone(sandbox),
            session: call.account().to_owned(),
            batch: call.batch.clone().unwrap_or_else(|| call.id.clone()),
            tool: call.tool.clone(),
        }
    }

    /// The maximum bytes of a change that can be undone; 0 if nothing is recorded.
    pub(super) fn max_bytes(&self) -> u64 {
        self.sandbox.journal().max_bytes()
    }

    /// Records the creation of the missing parent directories of `place`.
    pub(super) fn parents(&self, place: &Place) -> Result<Mark, ToolError> {
        let absent = place.absent_parents();
        let Some(first) = absent.first().cloned() else {
            return Ok(self.unmarked());
        };
        let steps = absent.into_iter().map(|path| Step::Parent { path });
        let change = Change {
            steps: steps.collect(),
            images: Vec::new(),
        };
        self.record_as(&format!("{}/", self.sandbox.shown(&first)), || Ok(change))
    }

    /// Records the creation of a directory at `path`.
    pub(super) fn directory(&self, path: &Path) -> Result<Mark, ToolError> {
        self.record(path, || {
            Ok(put(
                path,
                FileBackup::Absent,
                FileState::Directory,
                Vec::new(),
            ))
        })
    }

    /// Records the creation of a file at `path`.
    pub(super) fn new_file(&self, path: &Path, content: &[u8]) -> Result<Mark, ToolError> {
        self.record(path, || {
            let after = FileState::File(snapshot::of_bytes(content));
            Ok(put(path, FileBackup::Absent, after, Vec::new()))
        })
    }

    /// Records a change of the content of the file at `path`. `stat` and `old` are its current state; `old` is
    /// `None` if the file is not readable.
    pub(super) fn content(
        &self,
        path: &Path,
        (stat, old): (&Stat, Option<&[u8]>),
        new: &[u8],
    ) -> Result<Mark, ToolError> {
        if old == Some(new) {
            return Ok(self.unmarked());
        }
        self.record(path, || {
            let size = u64::try_from(stat.st_size).unwrap_or_default();
            if size > self.max_bytes() {
                return Err(RecordError::Lost(too_large(self.max_bytes())));
            }
            let Some(old) = old else {
                return Err(RecordError::Lost(
                    "its old content cannot be read".to_owned(),
                ));
            };
            let before = FileBackup::File {
                at: 0,
                fingerprint: snapshot::of_bytes(old),
                attributes: snapshot::attributes(stat),
            };
            let after = FileState::File(snapshot::of_bytes(new));
            Ok(put(path, before, after, old.to_vec()))
        })
    }

    /// Returns true if the file must be read so that its change can be undone.
    pub(super) fn wants(&self, stat: &Stat) -> bool {
        u64::try_from(stat.st_size).is_ok_and(|size| size <= self.max_bytes())
    }

    /// Records the deletion of the entry at `top` and all its descendants.
    pub(super) fn deletion(
        &self,
        top: &Target,
        cancel: &CancellationToken,
    ) -> Result<Mark, ToolError> {
        self.record(&top.path, || {
            snapshot::deletion(&self.sandbox, top, self.max_bytes(), cancel)
        })
    }

    /// Records a new name for the entry at `from`.
    pub(super) fn renaming(
        &self,
        from: &Target,
        to: &Path,
        cancel: &CancellationToken,
    ) -> Result<Mark, ToolError> {
        self.record(&from.path, || {
            let step = Step::Move {
                from: from.path.clone(),
                to: to.to_owned(),
                tree: snapshot::listing(from, cancel)?,
            };
            Ok(Change {
                steps: vec![step],
                images: Vec::new(),
            })
        })
    }

    /// Records that the entry at `made` will have the free name `path`.
    pub(super) fn copy(
        &self,
        made: &Target,
        path: &Path,
        cancel: &CancellationToken,
    ) -> Result<Mark, ToolError> {
        self.record(path, || {
            let listed = snapshot::listing(made, cancel)?;
            let steps = listed.into_iter().map(|entry| Step::Put {
                path: below(path, &entry.path),
                before: FileBackup::Absent,
                after: entry.standing,
            });
            Ok(Change {
                steps: steps.collect(),
                images: Vec::new(),
            })
        })
    }

    fn record(
        &self,
        path: &Path,
        change: impl FnOnce() -> Result<Change, RecordError>,
    ) -> Result<Mark, ToolError> {
        self.record_as(&self.sandbox.shown(path), change)
    }

    fn record_as(
        &self,
        what: &str,
        change: impl FnOnce() -> Result<Change, RecordError>,
    ) -> Result<Mark, ToolError> {
        let max_bytes = self.max_bytes();
        if max_bytes == 0 {
            return Ok(self.unmarked());
        }
        let change = match change() {
            Ok(change) if change.bytes() > max_bytes => Err(too_large(max_bytes)),
            Ok(change) => Ok(change),
            Err(RecordError::Lost(reason)) => Err(reason),
            Err(RecordError::Failed(error)) => return Err(error),
        };
        let draft = PendingChange {
            session: &self.session,
            batch: &self.batch,
            tool: &self.tool,
            what,
            change: change.as_ref().map_err(String::as_str),
        };
        // The I/O runs on a blocking thread; the runtime drives the journal.
        let recorded = tokio::runtime::Handle::current()
            .block_on(self.sandbox.journal().record(draft))
            .map_err(|error| {
                ToolError::permanent(format!(
                    "{error}; nothing was changed, because the change could not be undone"
                ))
            })?;
        let (number, lost) = match recorded {
            RecordOutcome::Kept(number) => (number, None),
            RecordOutcome::Lost(number, reason) => (number, Some(reason)),
        };
        Ok(Mark {
            number: Some(number),
            lost,
            ..self.unmarked()
        })
    }

    fn unmarked(&self) -> Mark {
        Mark {
            journal: Arc::clone(self.sandbox.journal()),
            session: self.session.clone(),
            number: None,
            lost: None,
        }
    }
}

impl Mark {
    /// Removes the record if the change failed.
    pub(super) fn made<T>(&self, result: Result<T, ToolError>) -> Result<T, ToolError> {
        if result.is_err() {
            self.withdraw();
        }
        result
    }

    /// Removes the new parent directories of `place` and this record of them if the change failed.
    /// Directories with entries remain.
    pub(super) fn remove_parents_on_error<T>(
        &self,
        place: &Place,
        result: Result<T, ToolError>,
    ) -> Result<T, ToolError> {
        if result.is_err() && place.remove_parents().is_ok() {
            self.withdraw();
        }
        result
    }

    /// Removes the record, because the change was not made. If that fails, the record remains. Undo skips it as
    /// long as the file is unchanged.
    pub(super) fn withdraw(&self) {
        if let Some(number) = self.number {
            let numbers = [number];
            let settled = self.journal.settle(&self.session, &numbers);
            if let Err(error) = tokio::runtime::Handle::current().block_on(settled) {
                tracing::warn!(%error, "the undo record of a failed change was not removed");
            }
        }
    }

    /// Appends a note to the result `said` if the change cannot be undone.
    pub(super) fn note(&self, said: &mut String) {
        if let Some(reason) = &self.lost {
            said.push_str("\nThis change cannot be undone, because it was not recorded: ");
            said.push_str(reason);
            said.push('.');
        }
    }
}

fn put(path: &Path, before: FileBackup, after: FileState, images: Vec<u8>) -> Change {
    Change {
        steps: vec![Step::Put {
            path: path.to_owned(),
            before,
            after,
        }],
        images,
    }
}

/// Joins `path` and `rest`, which may be empty.
pub(super) fn below(path: &Path, rest: &Path) -> PathBuf {
    if rest.as_os_str().is_empty() {
        path.to_owned()
    } else {
        path.join(rest)
    }
}
