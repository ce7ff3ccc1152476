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
use crate::context::{CallContext, Origin};
use crate::error::ToolError;
use crate::event::{RolledBack, ToolEvent};
use crate::feedback::ToolResult;
use crate::output::ToolOutput;
use crate::shell::config::ShellConfig;
use crate::shell::config::ShellConfigError;

pub use scope::{Scope, ScopeError};

use restore::Failure;
use snapshot::{Snapshot, SnapshotError, Wanted};

/// How many files that were not restored are named.
const NAMED: usize = 10;

/// The transactions of one session's commands.
#[derive(Debug)]
pub(super) struct Transactions {
    setup: Arc<Setup>,
    enabled: bool,
    required: bool,
    /// The exit codes after which a command is rolled back.
    rollback_on: Vec<i32>,
    /// The snapshot before the last command that wrote and did not succeed.
    last: Mutex<Option<Snapshot>>,
    cleaned: Arc<Once>,
}

/// What is saved, and where to.
#[derive(Debug, Clone)]
struct Setup {
    root: PathBuf,
    scope: Scope,
    database: Option<PathBuf>,
    base: PathBuf,
    max_bytes: u64,
}

/// One command.
pub(super) struct Transaction<'t> {
    of: &'t Transactions,
    state: State,
}

enum State {
    /// There is nothing to take back.
    None,
    /// What the model is told: that there is no snapshot, and why.
    Without(String),
    With(Snapshot),
}

impl Transactions {
    /// Transactions in the directory `root` (absolute); snapshots are made in `base`.
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

    /// Leaves the file `database` and those beside it whose names go on from its with a `-` alone,
    /// also in the scope, and makes snapshots in `base`.
    pub(super) fn beside(mut self, database: PathBuf, base: PathBuf) -> Self {
        let setup = Arc::make_mut(&mut self.setup);
        setup.database = Some(database);
        setup.base = base;
        self
    }

    /// Before `command` runs: saves the files, if it writes and was not typed by the user.
    ///
    /// # Errors
    /// [`ToolError::SnapshotFailed`] when that fails and is required; the command must not run
    /// then. [`ToolError::Cancelled`].
    pub(super) async fn begin(
        &self,
        command: &str,
        background: bool,
        call: &ToolCall,
        cx: &CallContext,
    ) -> Result<Transaction<'_>, ToolError> {
        let with = |state| Ok(Transaction { of: self, state });
        if !self.enabled || cx.origin == Origin::User || !detect::writes(command) {
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
                "a defect while saving",
                &self.setup.root,
                std::io::Error::other(error),
            )),
        }
    }

    fn swap(&self, new: Option<Snapshot>) -> Option<Snapshot> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut last, new)
    }

    /// Removes what is kept; the end of the session.
    pub(super) async fn end(&self) {
        discard(self.swap(None)).await;
    }
}

/// Removes snapshots on a thread that may block.
async fn discard(snapshot: Option<Snapshot>) {
    if snapshot.is_some() {
        // What goes wrong leaves files behind that a later start removes.
        let _ = tokio::task::spawn_blocking(move || drop(snapshot)).await;
    }
}

impl Transaction<'_> {
    /// After the command: rolls back what `exit_code` asks to. `None` stands for a command of
    /// which no end is known.
    ///
    /// # Errors
    /// Those of `result`; and a permanent failure when the files were not restored as a whole.
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
            "[nothing was rolled back; the files as they were before are in {} until another command \
             fails or the session ends]",
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
                    "[rolled back: the files are as they were before the command; {changes}]"
                );
                noted(result, &note)
            }
            Ok(Err(message)) => Err(partial(exit_code, message, result)),
            Err(error) => {
                let message = format!("the rollback broke off; this is a defect: {error}");
                Err(partial(exit_code, message, result))
            }
        }
    }
}

/// Restores; the message says what could not be restored, and where the snapshot is kept then.
fn restore_or_keep(snapshot: Snapshot, scope: &Scope) -> Result<RolledBack, String> {
    // From here on it is the only copy of what is being replaced.
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
        "; the files as they were before the command are kept in {}",
        files.display()
    );
    if held.is_err() {
        message.push_str(", which was tampered with");
    }
    Err(message)
}

/// The failure of a command that was rolled back in part.
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

/// Adds a line for the model behind what was printed.
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
