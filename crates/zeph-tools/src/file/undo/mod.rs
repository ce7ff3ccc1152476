//! Undo for changes of the file tools: a batch is undone completely, and only if none of its files changed
//! since.
//!
//! First `plan` checks every change of the batch. If one cannot be undone, none is. Then `restore` undoes the
//! steps from the last to the first. Undone changes are removed from the journal immediately, so an interrupted
//! undo can continue. `rewind` undoes all changes since a point of a session, as far as possible.

mod plan;
mod restore;
mod rewind;

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use serde_json::json;

use crate::audit::digest;
use crate::audit::{AuditEntry, AuditResult, AuditTrail, Intent};
use crate::call::Phase;
use crate::category::ToolErrorCategory as Category;
use crate::context::ApprovedBy;
use crate::contract::time::{millis, now_ms};
use crate::file::sandbox::Sandbox;
use crate::trust::TrustLevel;
use crate::undo::{
    Batch, Change, Entry, FileBackup, FileState, JournalError, RewindReport, Step, Undo, UndoError,
    UndoReport,
};
use plan::{Planned, plan, trouble};
use restore::Restorer;

/// Undo for the tools of a sandbox.
#[derive(Clone)]
pub struct FileUndo {
    sandbox: Arc<Sandbox>,
    audit: AuditTrail,
}

impl FileUndo {
    /// Creates an undo for the sandbox and its journal. Each undo adds an entry to `audit`.
    #[must_use]
    pub fn new(sandbox: Arc<Sandbox>, audit: AuditTrail) -> Self {
        Self { sandbox, audit }
    }

    async fn last(&self, session: &str) -> Result<Batch, UndoError> {
        let last = self.sandbox.journal().last(session).await?;
        last.ok_or(UndoError::Nothing)
    }

    /// Checks that the undo `id` can leave an audit entry, if entries are required.
    async fn admit(&self, session: &str, id: &str) -> Result<(), UndoError> {
        let intent = Intent {
            session,
            call_id: id,
            tool: "undo",
            bytes: 0,
        };
        self.audit.admit(intent).await.map_err(|error| {
            UndoError::Refused(vec![format!(
                "no audit entry can be written (`[tools.audit] required`), so nothing was undone: \
                 {error}"
            )])
        })
    }

    /// Adds an audit entry, because the user starts an undo without a tool call. Returns the reason if it
    /// fails.
    async fn note(
        &self,
        session: &str,
        id: &str,
        batch: &Batch,
        start: Instant,
        result: &Result<UndoReport, UndoError>,
    ) -> Option<String> {
        let text = match result {
            Ok(undone) => undone.lines.join("\n"),
            Err(error) => error.to_string(),
        };
        let (result_digest, result_size) = digest(&text);
        let what: Vec<_> = batch
            .entries
            .iter()
            .map(|entry| json!({ "tool": entry.tool, "path": entry.what }))
            .collect();
        let entry = AuditEntry {
            ts: now_ms(),
            session: session.to_owned(),
            call_id: id.to_owned(),
            tool: "undo".to_owned(),
            call: json!({ "batch": batch.id, "changes": what }),
            result: match result {
                Ok(_) => AuditResult::Success,
                Err(UndoError::Refused(_)) => AuditResult::Blocked,
                Err(_) => AuditResult::Error,
            },
            result_digest,
            result_size,
            trust: TrustLevel::default(),
            approved_by: ApprovedBy::User,
            phase: Phase::Executor,
            duration_ms: millis(start),
            exit_code: None,
            truncated: None,
            error_category: match result {
                Ok(_) => None,
                Err(UndoError::Refused(_)) => Some(Category::PolicyBlocked.label()),
                Err(_) => Some(Category::PermanentFailure.label()),
            },
            attempts: 1,
            cached: false,
            adversarial_policy_decision: None,
            claim_source: None,
            repairs: Vec::new(),
            caller_id: None,
            policy_match: None,
        };
        let error = self.audit.append(&entry).await.err()?;
        tracing::error!(%error, "an undo left no audit entry");
        Some(format!("warning: no audit entry was written: {error}"))
    }
}

#[async_trait]
impl Undo for FileUndo {
    async fn undo_last(&self, session: &str) -> Result<UndoReport, UndoError> {
        loop {
            let start = Instant::now();
            let batch = Arc::new(self.last(session).await?);
            let id = format!("undo_{}", uuid::Uuid::new_v4().simple());
            self.admit(session, &id).await?;
            let mut result = {
                let (sandbox, batch) = (Arc::clone(&self.sandbox), Arc::clone(&batch));
                let session = session.to_owned();
                on_thread(move || undo(&sandbox, &session, &batch)).await
            };
            // None of its changes was made, so the previous batch is undone.
            if matches!(&result, Ok(undone) if undone.lines.is_empty()) {
                continue;
            }
            if let Some(trouble) = self.note(session, &id, &batch, start, &result).await {
                match &mut result {
                    Ok(undone) => undone.lines.push(trouble),
                    Err(UndoError::Refused(reasons)) => reasons.push(trouble),
                    Err(UndoError::Partial { reason, .. }) => {
                        *reason = format!("{reason}; {trouble}");
                    }
                    Err(UndoError::Nothing | UndoError::Journal(_)) => {}
                }
            }
            return result;
        }
    }

    async fn forget_last(&self, session: &str) -> Result<UndoReport, UndoError> {
        let batch = self.last(session).await?;
        let numbers: Vec<i64> = batch.entries.iter().map(|entry| entry.number).collect();
        self.sandbox.journal().settle(session, &numbers).await?;
        let said = batch.entries.iter().rev();
        Ok(UndoReport {
            lines: said
                .map(|entry| format!("forgot {} {}", entry.tool, entry.what))
                .collect(),
        })
    }

    async fn plan_rewind(&self, session: &str, number: i64) -> Result<RewindReport, UndoError> {
        let entries = self.sandbox.journal().since(session, number).await?;
        let sandbox = Arc::clone(&self.sandbox);
        on_thread(move || Ok(rewind::preview(&sandbox, &entries))).await
    }

    async fn rewind(&self, session: &str, number: i64) -> Result<RewindReport, UndoError> {
        let start = Instant::now();
        let entries = self.sandbox.journal().since(session, number).await?;
        if entries.is_empty() {
            return Ok(RewindReport::default());
        }
        let id = format!("rewind_{}", uuid::Uuid::new_v4().simple());
        self.admit(session, &id).await?;
        let batch = Arc::new(Batch {
            id: id.clone(),
            entries,
        });
        let (sandbox, changes) = (Arc::clone(&self.sandbox), Arc::clone(&batch));
        let owner = session.to_owned();
        let mut result = on_thread(move || rewind::run(&sandbox, &owner, &changes)).await;
        let noted = match &result {
            Ok(report) => Ok(UndoReport {
                lines: report.audit_lines(),
            }),
            Err(error) => Err(error.clone()),
        };
        if let (Some(trouble), Ok(report)) = (
            self.note(session, &id, &batch, start, &noted).await,
            &mut result,
        ) {
            report.not_restored.push(trouble);
        }
        result
    }
}

/// Runs file work on a blocking thread.
async fn on_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, UndoError> + Send + 'static,
) -> Result<T, UndoError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| {
        Err(UndoError::Refused(vec![format!(
            "it failed because of a bug in Zeph: {error}"
        )]))
    })
}

/// Undoes `batch`, and removes undone changes from the journal.
fn undo(sandbox: &Sandbox, session: &str, batch: &Batch) -> Result<UndoReport, UndoError> {
    let _guards = hold(sandbox, &batch.entries);
    let planned = plan(sandbox, batch).map_err(UndoError::Refused)?;
    let mut restorer = Restorer::new(sandbox);
    let mut lines = Vec::new();
    let mut trouble = None;
    for Planned { entry, steps } in planned {
        let Some(entry) = batch.entries.get(entry) else {
            continue;
        };
        match undo_entry(&mut restorer, entry, &steps) {
            Ok(()) => {}
            Err(reason) => {
                trouble = Some(reason);
                break;
            }
        }
        settle(sandbox, session, entry)?;
        forget(sandbox, session, entry, &steps);
        lines.extend(said(sandbox, entry, &steps));
    }
    if let Err(error) = restorer.finish() {
        trouble.get_or_insert(error.to_string());
    }
    match trouble {
        None => Ok(UndoReport { lines }),
        Some(reason) if lines.is_empty() => Err(UndoError::Refused(vec![reason])),
        Some(reason) => Err(UndoError::Partial {
            done: lines,
            reason,
        }),
    }
}

fn undo_entry(restorer: &mut Restorer<'_>, entry: &Entry, steps: &[usize]) -> Result<(), String> {
    let Ok(change) = &entry.change else {
        return Ok(());
    };
    for step in steps.iter().filter_map(|at| change.steps.get(*at)) {
        restorer
            .undo(change, step)
            .map_err(|error| trouble(step.path(), &error))?;
    }
    Ok(())
}

/// Removes an entry from the journal, on a blocking thread. The runtime drives the journal.
fn settle(sandbox: &Sandbox, session: &str, entry: &Entry) -> Result<(), JournalError> {
    let numbers = [entry.number];
    let settled = sandbox.journal().settle(session, &numbers);
    tokio::runtime::Handle::current().block_on(settled)
}

/// Removes the read records of undone paths, because their content is different now.
fn forget(sandbox: &Sandbox, session: &str, entry: &Entry, steps: &[usize]) {
    let (Some(seen), Ok(change)) = (sandbox.seen(), &entry.change) else {
        return;
    };
    let Some(top) = top(change, steps) else {
        return;
    };
    let from = match top {
        Step::Move { from, .. } => Some(from.as_path()),
        Step::Parent { .. } | Step::Put { .. } => None,
    };
    for path in std::iter::once(top.path()).chain(from) {
        let forgotten = tokio::runtime::Handle::current().block_on(seen.forget(session, path));
        if let Err(error) = forgotten {
            // The next edit compares the content in any case.
            tracing::warn!(%error, "the record of an undone file was not removed");
        }
    }
}

/// The topmost path of `steps`, which the user would name.
fn top<'a>(change: &'a Change, steps: &[usize]) -> Option<&'a Step> {
    let undone = steps.iter().filter_map(|at| change.steps.get(*at));
    undone.min_by_key(|step| step.path().components().count())
}

/// Locks all paths of the changes in the order of their names, so that two undos cannot deadlock.
fn hold<'a>(sandbox: &'a Sandbox, entries: &[Entry]) -> Vec<impl Drop + use<'a>> {
    let mut paths: Vec<&Path> = entries
        .iter()
        .filter_map(|entry| entry.change.as_ref().ok())
        .flat_map(|change| &change.steps)
        .flat_map(|step| match step {
            Step::Parent { .. } => [None, None],
            Step::Put { path, .. } => [Some(path), None],
            Step::Move { from, to, .. } => [Some(from), Some(to)],
        })
        .flatten()
        .map(std::path::PathBuf::as_path)
        .collect();
    paths.sort_unstable();
    paths.dedup();
    paths
        .into_iter()
        .map(|path| sandbox.locks().hold(path))
        .collect()
}

/// Describes the undone `steps` of a change. `None` if there were none.
fn said(sandbox: &Sandbox, entry: &Entry, steps: &[usize]) -> Option<String> {
    let change = entry.change.as_ref().ok()?;
    let undone = || steps.iter().filter_map(|at| change.steps.get(*at));
    let top = top(change, steps)?;
    let shown = sandbox.shown(top.path());
    let with = match undone().count() - 1 {
        0 => String::new(),
        1 => " with 1 entry".to_owned(),
        many => format!(" with {many} entries"),
    };
    Some(match top {
        Step::Parent { .. } => format!("removed the directory {shown}"),
        Step::Move { from, to, .. } => format!(
            "moved {} back to {}",
            sandbox.shown(to),
            sandbox.shown(from)
        ),
        Step::Put { before, after, .. } => match (before, after) {
            (FileBackup::Absent, FileState::Directory) => {
                format!("removed the directory {shown}{with}")
            }
            (FileBackup::Absent, _) => format!("removed {shown}"),
            (_, FileState::Absent) => format!("restored {shown}{with}"),
            _ => format!("restored {shown}"),
        },
    })
}
