//! Transactions: a failed command leaves the files unchanged.
//!
//! One call: `detect` decides whether the command writes → `snapshot` saves the files in `scope` → the command runs → its exit
//! code decides: `restore`, or keep the changes. `dir_fd` accesses directories without following links, and `snapshot_locks`
//! removes the snapshots of killed processes.
//!
//! Only the exit code decides, also for a stopped command: 143 and 137 mean a timeout. If a failed command is not rolled back, its
//! snapshot remains until the next such command or the end of the session, so that single files can be restored from it.

mod detect;
mod dir_fd;
mod restore;
mod scope;
mod snapshot;
mod snapshot_locks;
#[cfg(test)]
mod tests;

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, Once, PoisonError};

use crate::call::ToolCall;
use crate::category::ToolErrorCategory;
use crate::context::CallContext;
use crate::error::ToolError;
use crate::event::{RolledBack, ToolEvent};
use crate::feedback::ToolResult;
use crate::output::ToolOutput;
use crate::shell::config::ShellConfig;
use crate::shell::config::ShellConfigError;

pub use scope::{Scope, ScopeError};

use restore::Failure;
use snapshot::{Snapshot, SnapshotError, Wanted};

/// The maximum number of files that a message about an incomplete rollback names.
const NAMED: usize = 10;

/// The transactions of a session's commands.
#[derive(Debug)]
pub(super) struct Transactions {
    setup: Arc<Setup>,
    enabled: bool,
    required: bool,
    /// The exit codes after which a command is rolled back.
    rollback_on: Vec<i32>,
    /// The snapshot from before the last command that may write and failed.
    last: Mutex<Option<Snapshot>>,
    cleaned: Arc<Once>,
}

/// The settings of a snapshot: the files, and the location.
#[derive(Debug, Clone)]
struct Setup {
    root: PathBuf,
    scope: Scope,
    database: Option<PathBuf>,
    base: PathBuf,
    max_bytes: u64,
}

/// The transaction of one command.
pub(super) struct Transaction<'t> {
    of: &'t Transactions,
    state: State,
}

enum State {
    /// The command is not part of a transaction.
    None,
    /// A snapshot was not made. The text for the model says why.
    Without(String),
    With(Snapshot),
}

impl Transactions {
    /// Returns transactions in the directory `root` (absolute), with snapshots in `base`.
    ///
    /// # Errors
    /// [`ShellConfigError::Scope`]s if `transaction_scope` is invalid.
    pub(super) fn new(
        config: &ShellConfig,
        root: PathBuf,
        base: PathBuf,
    ) -> Result<Self, Vec<ShellConfigError>> {
        let scope = Scope::new(&config.transaction_scope).map_err(|errors| {
            let errors = errors.into_iter().map(ShellConfigError::Scope);
            errors.collect::<Vec<_>>()
        })?;
        let rollback_on = match config.auto_rollback {
            true => config.auto_rollback_exit_codes.clone(),
            false => Vec::new(),
        };
        Ok(Self {
            setup: Arc::new(Setup {
                root,
                scope,
                database: None,
                base,
                max_bytes: config.max_snapshot_bytes,
            }),
            enabled: config.transactional,
            required: config.snapshot_required,
            rollback_on,
            last: Mutex::default(),
            cleaned: Arc::new(Once::new()),
        })
    }

    /// Excludes the file `database`, and files with the same name and a suffix that begins with `-`, even if they are
    /// in the scope. Makes snapshots in `base`.
    pub(super) fn beside(mut self, database: PathBuf, base: PathBuf) -> Self {
        let setup = Arc::make_mut(&mut self.setup);
        setup.database = Some(database);
        setup.base = base;
        self
    }

    /// Starts the transaction of `command`: saves the files, if the command writes and the user did not type it.
    ///
    /// # Errors
    /// [`ToolError::SnapshotFailed`] if saving fails and is required; the command must not run then.
    /// [`ToolError::Cancelled`] if the call was cancelled.
    pub(super) async fn begin(
        &self,
        command: &str,
        background: bool,
        call: &ToolCall,
        cx: &CallContext,
    ) -> Result<Transaction<'_>, ToolError> {
        let with = |state| Ok(Transaction { of: self, state });
        if !self.enabled || cx.origin.is_user() || !detect::writes(command) {
            return with(State::None);
        }
        let reason = if background {
            "a background job cannot be rolled back".to_owned()
        } else {
            match self.save(cx).await {
                Ok(snapshot) => return with(State::With(snapshot)),
                Err(SnapshotError::Cancelled) => return Err(ToolError::cancelled()),
                Err(error) => error.to_string(),
            }
        };
        if self.required {
            return Err(ToolError::SnapshotFailed { reason });
        }
        let call_id = call.id.clone();
        let text = format!("Could not snapshot files before this command: {reason}.");
        cx.emit(ToolEvent::Notice { call_id, text });
        with(State::Without(format!(
            "[no snapshot was made, so this command is not rolled back: {reason}]"
        )))
    }

    async fn save(&self, cx: &CallContext) -> Result<Snapshot, SnapshotError> {
        let setup = Arc::clone(&self.setup);
        let cleaned = Arc::clone(&self.cleaned);
        let cancel = cx.cancel.clone();
        let taken = tokio::task::spawn_blocking(move || {
            cleaned.call_once(|| snapshot_locks::clean(&setup.base));
            let wanted = Wanted {
                root: &setup.root,
                scope: &setup.scope,
                database: setup.database.as_deref(),
                base: &setup.base,
                max_bytes: setup.max_bytes,
            };
            snapshot::take(&wanted, &cancel)
        });
        match taken.await {
            Ok(taken) => taken,
            Err(error) => Err(SnapshotError::io(
                "a bug in Zeph while saving",
                &self.setup.root,
                std::io::Error::other(error),
            )),
        }
    }

    fn swap(&self, new: Option<Snapshot>) -> Option<Snapshot> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut last, new)
    }

    /// Removes the stored snapshot at the end of the session.
    pub(super) async fn end(&self) {
        discard(self.swap(None)).await;
    }
}

/// Removes a snapshot on a thread that may block.
async fn discard(snapshot: Option<Snapshot>) {
    if snapshot.is_some() {
        // If this fails, a later start removes the remaining files.
        let _ = tokio::task::spawn_blocking(move || drop(snapshot)).await;
    }
}

impl Transaction<'_> {
    /// Ends the transaction: rolls back if `exit_code` requires it. `None` is a command with an unknown end.
    ///
    /// # Errors
    /// Those of `result`, and a permanent failure if some files were not restored.
    pub(super) async fn finish(
        self,
        exit_code: Option<i32>,
        result: ToolResult,
        call: &ToolCall,
        cx: &CallContext,
    ) -> ToolResult {
        let snapshot = match self.state {
            State::None => return result,
            State::Without(note) => return noted(result, &note),
            State::With(snapshot) => snapshot,
        };
        if exit_code == Some(0) {
            discard(Some(snapshot)).await;
            return result;
        }
        if exit_code.is_some_and(|code| self.of.rollback_on.contains(&code)) {
            return self
                .of
                .roll_back(snapshot, exit_code, result, call, cx)
                .await;
        }
        let note = format!(
            "[nothing was rolled back; copies of the files from before the command are in {} until \
             another command fails or the session ends]",
            snapshot.dir.path().join("files").display()
        );
        discard(self.of.swap(Some(snapshot))).await;
        noted(result, &note)
    }
}

impl Transactions {
    async fn roll_back(
        &self,
        snapshot: Snapshot,
        exit_code: Option<i32>,
        result: ToolResult,
        call: &ToolCall,
        cx: &CallContext,
    ) -> ToolResult {
        let setup = Arc::clone(&self.setup);
        let restored = tokio::task::spawn_blocking(move || restore_or_keep(snapshot, &setup.scope));
        match restored.await {
            Ok(Ok(changes)) => {
                cx.trace().rolled_back = true;
                cx.emit(ToolEvent::Rollback {
                    call_id: call.id.clone(),
                    changes,
                });
                let note = format!(
                    "[rolled back: the files have their state from before the command; {changes}]"
                );
                noted(result, &note)
            }
            Ok(Err(message)) => Err(partial(exit_code, message, result)),
            Err(error) => {
                let message = format!("the rollback failed because of a bug in Zeph: {error}");
                Err(partial(exit_code, message, result))
            }
        }
    }
}

/// Restores the files. The error message lists the files that were not restored, and the location of the snapshot.
fn restore_or_keep(snapshot: Snapshot, scope: &Scope) -> Result<RolledBack, String> {
    // From here on, the snapshot is the only copy of the replaced files.
    let held = snapshot_locks::hold_on_to(snapshot.dir.path());
    let (changes, failures) = restore::restore(&snapshot, scope);
    if failures.is_empty() {
        return Ok(changes);
    }
    let root = snapshot.path.clone();
    let files = snapshot.dir.keep().join("files");
    let mut message = format!("the rollback is incomplete ({changes}); not restored: ");
    for (at, Failure { path, why }) in failures.iter().take(NAMED).enumerate() {
        let comma = if at == 0 { "" } else { ", " };
        let _ = write!(message, "{comma}{} ({why})", root.join(path).display());
    }
    if failures.len() > NAMED {
        let _ = write!(message, " and {} more", failures.len() - NAMED);
    }
    let _ = write!(
        message,
        "; copies of the files from before the command are in {}",
        files.display()
    );
    if held.is_err() {
        message.push_str(", which another program modified");
    }
    Err(message)
}

/// The failure of a command that was only rolled back in part.
fn partial(exit_code: Option<i32>, message: String, result: ToolResult) -> ToolError {
    let output = match result {
        Ok(output) => output,
        Err(ToolError::Shell { output, .. }) => *output,
        Err(error) => ToolOutput::text(error.to_string()),
    };
    ToolError::Shell {
        exit_code,
        category: ToolErrorCategory::PermanentFailure,
        message,
        output: Box::new(output),
    }
}

/// Appends a line for the model to the output.
fn noted(result: ToolResult, note: &str) -> ToolResult {
    let add = |output: &mut ToolOutput| {
        if !output.summary.is_empty() {
            output.summary.push('\n');
        }
        output.summary.push_str(note);
    };
    match result {
        Ok(mut output) => {
            add(&mut output);
            Ok(output)
        }
        Err(mut error) => {
            if let ToolError::Shell { output, .. } = &mut error {
                add(output);
            }
            Err(error)
        }
    }
}
