//! Check whether a batch can be undone, before anything is changed.
//!
//! The changes are checked from the last to the first, against a view of the files: the disk with the results
//! of the steps that were checked before. If a file was edited twice, the disk is compared with the second
//! edit, and the content before that edit with the first. A step that was not made or is already undone is
//! skipped.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::ops::Bound;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, openat};
use rustix::io::Errno;
use tokio_util::sync::CancellationToken;

use crate::error::ToolError;
use crate::file::editor::{EditorFile, disk_content};
use crate::file::resolved_path::{LIST, Target, entries_with_types};
use crate::file::sandbox::{Sandbox, printable};
use crate::file::snapshot;
use crate::file::undo_recorder::below;
use crate::undo::{Batch, Entry, FileState, Step, TreeEntry};

/// The steps of one record to undo.
#[derive(Debug)]
pub(super) struct Planned {
    /// The index of the record in the batch.
    pub(super) entry: usize,
    /// The steps to undo, in the order of execution.
    pub(super) steps: Vec<usize>,
}

/// Plans the undo of `batch`, in the order of execution.
///
/// # Errors
/// A line for each file that changed since, or cannot be restored.
pub(super) fn plan(sandbox: &Sandbox, batch: &Batch) -> Result<Vec<Planned>, Vec<String>> {
    let checked = check(sandbox, batch.entries.iter().enumerate());
    if checked.faults.is_empty() {
        return Ok(checked.planned);
    }
    let reasons: BTreeSet<String> = checked
        .faults
        .into_iter()
        .map(|fault| fault.reason)
        .collect();
    Err(reasons.into_iter().collect())
}

/// A reason why a record cannot be undone.
#[derive(Debug)]
pub(super) struct Fault {
    /// The index of the record.
    pub(super) entry: usize,
    /// The reason, which names the file.
    pub(super) reason: String,
}

/// The steps to undo, in the order of execution, and the reasons why they cannot all be undone.
#[derive(Debug, Default)]
pub(super) struct Checked {
    pub(super) planned: Vec<Planned>,
    pub(super) faults: Vec<Fault>,
}

/// Checks records, the latest first, each with its index.
pub(super) fn check<'e>(
    sandbox: &Sandbox,
    entries: impl Iterator<Item = (usize, &'e Entry)>,
) -> Checked {
    let mut view = View {
        sandbox,
        known: BTreeMap::new(),
        made: BTreeSet::new(),
    };
    let mut checked = Checked::default();
    for (entry, recorded) in entries {
        let mut fail = |reason| checked.faults.push(Fault { entry, reason });
        let change = match &recorded.change {
            Ok(change) => change,
            Err(reason) => {
                let Entry { tool, what, .. } = recorded;
                fail(format!("{tool} {what}: not recorded: {reason}"));
                continue;
            }
        };
        let mut steps = Vec::new();
        for (at, step) in change.steps.iter().enumerate().rev() {
            match view.judge(step) {
                Ok(true) => steps.push(at),
                Ok(false) => {}
                Err(reason) => fail(reason),
            }
            // From here on the files count as recorded, so each fault is reported once.
            view.assume(step);
        }
        checked.planned.push(Planned { entry, steps });
    }
    checked
}

/// The files after the steps that were checked so far.
struct View<'a> {
    sandbox: &'a Sandbox,
    /// States that differ from the disk.
    known: BTreeMap<PathBuf, FileState>,
    /// Directories among them that do not exist on the disk. Entries below them exist only if `known` has them,
    /// regardless of the disk.
    made: BTreeSet<PathBuf>,
}

impl View<'_> {
    /// Returns true if a step must be undone, and `false` if it was not made.
    ///
    /// # Errors
    /// The reason if it cannot be undone.
    fn judge(&self, step: &Step) -> Result<bool, String> {
        match step {
            Step::Parent { path } => {
                Ok(self.stands(path, &FileState::Directory)? && self.children(path)?.is_empty())
            }
            Step::Put {
                path,
                before,
                after,
            } => {
                let before = before.standing();
                if self.has_content(path, after)? {
                    if before == *after {
                        return Ok(false);
                    }
                    return match after {
                        FileState::Directory => self.nothing_in(path).map(|()| true),
                        _ if before != FileState::Absent => self.has_parent(path).map(|()| true),
                        _ => Ok(true),
                    };
                }
                if self.has_content(path, &before)? {
                    return match (&before, after) {
                        (FileState::Absent, FileState::File(_)) => {
                            self.nothing_unsaved(path).map(|()| false)
                        }
                        _ => Ok(false),
                    };
                }
                Err(self.changed(path, after))
            }
            Step::Move { from, to, tree } => {
                let made = self.stands(from, &FileState::Absent)?;
                let stands = !self.stands(to, &FileState::Absent)?;
                match (made, stands) {
                    (false, false) => Ok(false),
                    (false, true) => Err(format!(
                        "{}: another file exists at this path",
                        self.sandbox.shown(from)
                    )),
                    (true, false) => Err(format!("{}: it is gone", self.sandbox.shown(to))),
                    (true, true) => {
                        self.same_tree(to, tree)?;
                        self.has_parent(from).map(|()| true)
                    }
                }
            }
        }
    }

    /// Changes the view as if the step was undone.
    fn assume(&mut self, step: &Step) {
        match step {
            Step::Parent { path } => {
                // A directory with entries is not removed.
                if self.children(path).is_ok_and(|names| names.is_empty()) {
                    self.put(path.clone(), FileState::Absent);
                }
            }
            Step::Put { path, before, .. } => self.put(path.clone(), before.standing()),
            Step::Move { from, to, tree } => {
                self.known.retain(|path, _| !path.starts_with(to));
                self.made.retain(|path| !path.starts_with(to));
                self.known.insert(to.clone(), FileState::Absent);
                for listed in tree {
                    self.put(below(from, &listed.path), listed.standing.clone());
                }
            }
        }
    }

    /// Sets the state of `path` in the view.
    fn put(&mut self, path: PathBuf, standing: FileState) {
        match standing {
            FileState::Directory => {
                if self.stands(&path, &standing) == Ok(false) {
                    self.made.insert(path.clone());
                }
            }
            _ => {
                self.made.remove(&path);
            }
        }
        self.known.insert(path, standing);
    }

    /// The state of `path` in the view; `None` if the disk applies.
    fn known(&self, path: &Path) -> Option<&FileState> {
        if let Some(standing) = self.known.get(path) {
            return Some(standing);
        }
        let mut above = path.ancestors().skip(1);
        match above.find_map(|path| self.known.get_key_value(path)) {
            None => None,
            Some((dir, FileState::Directory)) if !self.made.contains(dir) => None,
            Some(_) => Some(&FileState::Absent),
        }
    }

    fn stands(&self, path: &Path, expected: &FileState) -> Result<bool, String> {
        match self.known(path) {
            Some(standing) => Ok(match (standing, expected) {
                (FileState::File(one), FileState::File(other)) => one.is_of(other),
                (one, other) => one == other,
            }),
            None => stands_on_disk(self.sandbox, path, expected).map_err(|error| error.to_string()),
        }
    }

    /// Whether a file that a tool wrote has the state `expected`. A text in an editor replaces the content on the disk.
    fn has_content(&self, path: &Path, expected: &FileState) -> Result<bool, String> {
        if self.known(path).is_some() {
            return self.stands(path, expected);
        }
        let found = match target(self.sandbox, path) {
            Ok(Some(target)) => has_content(self.sandbox, &target, expected),
            Ok(None) => Ok(*expected == FileState::Absent),
            Err(error) => Err(error),
        };
        found.map_err(|error| trouble(path, &error))
    }

    /// Refuses the undo of a created file that exists only in an editor, which can remove it alone. The text of a denied file
    /// is not read.
    fn nothing_unsaved(&self, path: &Path) -> Result<(), String> {
        if self.sandbox.check_read(path).is_err() {
            return Ok(());
        }
        let go_on = CancellationToken::new();
        let editor = EditorFile::new(self.sandbox, path, &go_on);
        match editor.unsaved_text() {
            Ok(None) => Ok(()),
            Ok(Some(_)) => Err(format!(
                "{}: it is not saved, and exists only in the editor: close it there",
                self.sandbox.shown(path)
            )),
            Err(error) => Err(trouble(path, &error)),
        }
    }

    /// The names in a directory of the view.
    fn children(&self, dir: &Path) -> Result<BTreeSet<OsString>, String> {
        let mut names = BTreeSet::new();
        let on_disk = match self.known(dir) {
            None => true,
            Some(known) => *known == FileState::Directory && !self.made.contains(dir),
        };
        if on_disk {
            names = names_on_disk(self.sandbox, dir).map_err(|error| error.to_string())?;
        }
        let inside = (Bound::Excluded(dir), Bound::Unbounded);
        for (path, standing) in self.known.range::<Path, _>(inside) {
            if !path.starts_with(dir) {
                break;
            }
            if path.parent() == Some(dir)
                && let Some(name) = path.file_name()
            {
                match standing {
                    FileState::Absent => names.remove(name),
                    _ => names.insert(name.to_owned()),
                };
            }
        }
        Ok(names)
    }

    fn nothing_in(&self, dir: &Path) -> Result<(), String> {
        match self.children(dir)?.first() {
            None => Ok(()),
            Some(name) => Err(self.stranger(&dir.join(name))),
        }
    }

    fn has_parent(&self, path: &Path) -> Result<(), String> {
        let Some(parent) = path.parent() else {
            return Ok(());
        };
        if self.sandbox.allowed().any(|root| root == parent)
            || self.stands(parent, &FileState::Directory)?
        {
            return Ok(());
        }
        Err(format!(
            "{}: its directory no longer exists",
            self.sandbox.shown(path)
        ))
    }

    /// Checks that the tree at `top` is exactly the one that was moved there.
    fn same_tree(&self, top: &Path, tree: &[TreeEntry]) -> Result<(), String> {
        let known: BTreeSet<PathBuf> = tree.iter().map(|entry| below(top, &entry.path)).collect();
        for listed in tree {
            let path = below(top, &listed.path);
            if !self.stands(&path, &listed.standing)? {
                return Err(self.changed(&path, &listed.standing));
            }
            if listed.standing == FileState::Directory {
                let names = self.children(&path)?;
                let stranger = names
                    .iter()
                    .map(|name| path.join(name))
                    .find(|path| !known.contains(path));
                if let Some(stranger) = stranger {
                    return Err(self.stranger(&stranger));
                }
            }
        }
        Ok(())
    }

    fn stranger(&self, path: &Path) -> String {
        format!("{}: it was created later", self.sandbox.shown(path))
    }

    /// Describes the change of a path whose state is not `after`.
    fn changed(&self, path: &Path, after: &FileState) -> String {
        let shown = self.sandbox.shown(path);
        match (self.stands(path, &FileState::Absent), after) {
            (Err(reason), _) => reason,
            (Ok(true), _) => format!("{shown}: it no longer exists"),
            (Ok(false), FileState::Absent) => format!("{shown}: another file exists at this path"),
            (Ok(false), _) => format!("{shown}: it was changed later"),
        }
    }
}

/// The target for `path`; `None` if its directory does not exist.
pub(super) fn target(sandbox: &Sandbox, path: &Path) -> Result<Option<Target>, ToolError> {
    let place = match sandbox.resolve_recorded(path) {
        Ok(place) => place,
        // A file has replaced the directory.
        Err(ToolError::Io { source, .. })
            if Errno::from_io_error(&source) == Some(Errno::NOTDIR) =>
        {
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    if !place.absent_parents().is_empty() {
        return Ok(None);
    }
    place.target(sandbox).map(Some)
}

/// Returns true if the entry at `path` on the disk is `expected`.
///
/// # Errors
/// If it is outside of the sandbox, or cannot be inspected.
pub(super) fn stands_on_disk(
    sandbox: &Sandbox,
    path: &Path,
    expected: &FileState,
) -> Result<bool, ToolError> {
    match target(sandbox, path)? {
        Some(target) => snapshot::stands(&target, expected),
        None => Ok(*expected == FileState::Absent),
    }
}

/// Returns true if the entry at `target` is `expected`. A text in an editor replaces the content on the disk.
///
/// # Errors
/// If the entry cannot be inspected, or the editor does not return its text.
pub(super) fn has_content(
    sandbox: &Sandbox,
    target: &Target,
    expected: &FileState,
) -> Result<bool, ToolError> {
    if let FileState::File(expected) = expected
        && expected.digest.is_some()
        && let Some(text) = text_in_editor(sandbox, target)?
    {
        return Ok(snapshot::of_bytes(&text).is_of(expected));
    }
    snapshot::stands(target, expected)
}

/// The text of the file at `target` in the editor, if undo changes it there. A denied file is not read.
fn text_in_editor(sandbox: &Sandbox, target: &Target) -> Result<Option<Vec<u8>>, ToolError> {
    if !is_in_editor(sandbox, target)? || sandbox.check_read(&target.path).is_err() {
        return Ok(None);
    }
    let go_on = CancellationToken::new();
    match disk_content(target)? {
        Some(disk) => EditorFile::new(sandbox, &target.path, &go_on).text_to_change(&disk),
        None => Ok(None),
    }
}

/// Returns true if an editor writes the existing file at `target`.
///
/// # Errors
/// If the file cannot be inspected.
pub(super) fn is_in_editor(sandbox: &Sandbox, target: &Target) -> Result<bool, ToolError> {
    if sandbox.editor().writer.is_none()
        || !matches!(target.stat()?, Some((_, FileType::RegularFile)))
    {
        return Ok(false);
    }
    let go_on = CancellationToken::new();
    let editor = EditorFile::new(sandbox, &target.path, &go_on);
    Ok(disk_content(target)?.is_some_and(|disk| editor.is_written(Some(&disk))))
}

/// The names in the directory at `path`; empty if it is not a directory.
fn names_on_disk(sandbox: &Sandbox, path: &Path) -> Result<BTreeSet<OsString>, ToolError> {
    let Some(target) = target(sandbox, path)? else {
        return Ok(BTreeSet::new());
    };
    if !matches!(target.stat()?, Some((_, FileType::Directory))) {
        return Ok(BTreeSet::new());
    }
    let failed = |error| ToolError::io("open", path, error);
    let dir = openat(&*target.dir, &target.name, LIST, Mode::empty())
        .map_err(|error| failed(error.into()))?;
    Ok(entries_with_types(&dir)
        .map_err(failed)?
        .map(|(name, _)| name)
        .collect())
}

/// Formats an error at `path`.
pub(super) fn trouble(path: &Path, error: &ToolError) -> String {
    format!("{}: {error}", printable(path))
}
