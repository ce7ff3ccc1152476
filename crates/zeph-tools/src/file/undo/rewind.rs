//! Undo of all changes since a point of a session.
//!
//! Unlike an undo of one batch, it restores each file that can be restored. If one change of a file cannot be undone,
//! none of its later or earlier changes is, because the file would then have a state that it never had.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::plan::{Checked, Planned, check};
use super::restore::Restorer;
use super::{forget, hold, said, settle, top, undo_entry};
use crate::file::sandbox::Sandbox;
use crate::undo::{Entry, RewindReport, Step, UndoError};

impl RewindReport {
    /// The lines for the audit entry.
    pub(super) fn audit_lines(&self) -> Vec<String> {
        let not_restored = self.not_restored.iter();
        let not_restored = not_restored.map(|line| format!("not restored: {line}"));
        self.restored.iter().cloned().chain(not_restored).collect()
    }
}

/// Reports the result of [`run`], and changes nothing. `entries` are the changes, the latest first.
pub(super) fn preview(sandbox: &Sandbox, entries: &[Entry]) -> RewindReport {
    let selection = select(sandbox, entries);
    let mut lines = Lines::default();
    for Planned { entry, steps } in &selection.planned {
        if let Some(entry) = entries.get(*entry) {
            lines.add(sandbox, entry, steps);
        }
    }
    report(lines, selection.not_restored, entries)
}

/// Undoes changes, the latest first, and removes them from the journal.
///
/// # Errors
/// [`UndoError::Journal`].
pub(super) fn run(
    sandbox: &Sandbox,
    session: &str,
    batch: &crate::undo::Batch,
) -> Result<RewindReport, UndoError> {
    let entries = &batch.entries;
    let _guards = hold(sandbox, entries);
    let Selection {
        planned,
        mut not_restored,
    } = select(sandbox, entries);
    let mut restorer = Restorer::new(sandbox);
    let mut lines = Lines::default();
    let mut failed: Vec<&Entry> = Vec::new();
    for Planned { entry, steps } in planned {
        let Some(entry) = entries.get(entry) else {
            continue;
        };
        if failed.iter().any(|other| is_related(entry, other)) {
            continue;
        }
        if let Err(reason) = undo_entry(&mut restorer, entry, &steps) {
            not_restored.push(reason);
            failed.push(entry);
            continue;
        }
        settle(sandbox, session, entry)?;
        forget(sandbox, session, entry, &steps);
        lines.add(sandbox, entry, &steps);
    }
    if let Err(error) = restorer.finish() {
        not_restored.push(error.to_string());
    }
    Ok(report(lines, not_restored, entries))
}

/// The changes that can be undone, in the order of execution, and a line for each file that cannot be restored.
struct Selection {
    planned: Vec<Planned>,
    not_restored: Vec<String>,
}

/// Selects the changes that can be undone together.
fn select(sandbox: &Sandbox, entries: &[Entry]) -> Selection {
    let mut left: BTreeSet<usize> = (0..entries.len()).collect();
    let mut reasons: BTreeSet<String> = BTreeSet::new();
    let mut left_out: BTreeSet<usize> = BTreeSet::new();
    loop {
        let remaining = left.iter().filter_map(|at| Some((*at, entries.get(*at)?)));
        let Checked { planned, faults } = check(sandbox, remaining);
        if faults.is_empty() {
            return Selection {
                planned,
                not_restored: with_names(entries, &left_out, reasons),
            };
        }
        for fault in faults {
            left.remove(&fault.entry);
            let Some(faulty) = entries.get(fault.entry) else {
                continue;
            };
            reasons.insert(match &faulty.change {
                Ok(_) => fault.reason,
                Err(reason) => format!("{}: not recorded: {reason}", faulty.what),
            });
            left.retain(|at| {
                let is_related = entries.get(*at).is_some_and(|it| is_related(it, faulty));
                if is_related {
                    left_out.insert(*at);
                }
                !is_related
            });
        }
    }
}

/// Adds a line for each file that no reason names although a change of it is left out.
fn with_names(
    entries: &[Entry],
    left_out: &BTreeSet<usize>,
    mut reasons: BTreeSet<String>,
) -> Vec<String> {
    for entry in left_out.iter().filter_map(|at| entries.get(*at)) {
        let name = format!("{}: ", entry.what);
        if !reasons.iter().any(|reason| reason.starts_with(&name)) {
            reasons.insert(format!("{name}a later change of it cannot be undone"));
        }
    }
    reasons.into_iter().collect()
}

/// Whether two changes are of the same file, or one moved the tree with the file of the other.
fn is_related(one: &Entry, other: &Entry) -> bool {
    let (Ok(first), Ok(second)) = (&one.change, &other.change) else {
        return one.what == other.what;
    };
    first
        .steps
        .iter()
        .any(|one| second.steps.iter().any(|other| shares_file(one, other)))
}

fn shares_file(one: &Step, other: &Step) -> bool {
    let is_inside = |path: &Path, tree: &Path| path.starts_with(tree) || tree.starts_with(path);
    match (one, other) {
        (Step::Parent { .. }, _) | (_, Step::Parent { .. }) => false,
        (Step::Put { path, .. }, Step::Put { path: other, .. }) => path == other,
        (Step::Move { from, to, .. }, Step::Put { path, .. })
        | (Step::Put { path, .. }, Step::Move { from, to, .. }) => {
            is_inside(path, from) || is_inside(path, to)
        }
        (
            Step::Move { from, to, .. },
            Step::Move {
                from: from_other,
                to: to_other,
                ..
            },
        ) => [from, to]
            .iter()
            .any(|path| is_inside(path, from_other) || is_inside(path, to_other)),
    }
}

/// One line for each path: the undo of its first change is its final state.
#[derive(Default)]
struct Lines {
    lines: Vec<(PathBuf, String)>,
}

impl Lines {
    fn add(&mut self, sandbox: &Sandbox, entry: &Entry, steps: &[usize]) {
        let Ok(change) = &entry.change else { return };
        let (Some(top), Some(line)) = (top(change, steps), said(sandbox, entry, steps)) else {
            return;
        };
        self.lines.retain(|(path, _)| path != top.path());
        self.lines.push((top.path().to_owned(), line));
    }
}

fn report(lines: Lines, not_restored: Vec<String>, entries: &[Entry]) -> RewindReport {
    let mut recorded: BTreeSet<&Path> = BTreeSet::new();
    for change in entries
        .iter()
        .filter_map(|entry| entry.change.as_ref().ok())
    {
        for step in &change.steps {
            recorded.insert(step.path());
            if let Step::Move { from, .. } = step {
                recorded.insert(from);
            }
        }
    }
    RewindReport {
        restored: lines.lines.into_iter().map(|(_, line)| line).collect(),
        not_restored,
        recorded: recorded.into_iter().map(Path::to_owned).collect(),
    }
}
