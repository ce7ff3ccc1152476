//! Judges whether a batch can be undone, before anything is touched.
//!
//! The changes are gone through from the last to the first, over what stands on the disk and what
//! would stand there after the steps that were judged before: a file that was edited twice is
//! compared with the second edit, and what that one replaced with the first. A step that was not
//! made, or is undone already, is passed over.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::ops::Bound;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, openat};
use rustix::io::Errno;

use crate::error::ToolError;
use crate::file::resolved_path::{LIST, Target, entries_with_types};
use crate::file::sandbox::{Sandbox, printable};
use crate::file::snapshot;
use crate::file::undo_recorder::below;
use crate::undo::{Batch, FileState, Step, TreeEntry};

/// What is to be undone of one record.
#[derive(Debug)]
pub(super) struct Planned {
    /// Its place in the batch.
    pub(super) entry: usize,
    /// The steps to undo, in the order in which that is done.
    pub(super) steps: Vec<usize>,
}

/// Plans the undoing of `batch`, in the order in which it is done.
///
/// # Errors
/// A line for each thing that was changed since, or cannot be put back.
pub(super) fn plan(sandbox: &Sandbox, batch: &Batch) -> Result<Vec<Planned>, Vec<String>> {
    let mut view = View {
        sandbox,
        known: BTreeMap::new(),
        made: BTreeSet::new(),
    };
    let mut reasons = BTreeSet::new();
    let mut planned = Vec::new();
    for (entry, recorded) in batch.entries.iter().enumerate() {
        let change = match &recorded.change {
            Ok(change) => change,
            Err(reason) => {
                reasons.insert(format!(
                    "{} {}: not recorded: {reason}",
                    recorded.tool, recorded.what
                ));
                continue;
            }
        };
        let mut steps = Vec::new();
        for (at, step) in change.steps.iter().enumerate().rev() {
            match view.judge(step) {
                Ok(true) => steps.push(at),
                Ok(false) => {}
                Err(reason) => {
                    reasons.insert(reason);
                }
            }
            // What was found wrong is as recorded from here on: one reason is enough.
            view.assume(step);
        }
        planned.push(Planned { entry, steps });
    }
    if reasons.is_empty() {
        Ok(planned)
    } else {
        Err(reasons.into_iter().collect())
    }
}

/// The files as they would be.
struct View<'a> {
    sandbox: &'a Sandbox,
    /// What would stand where something else stands now.
    known: BTreeMap<PathBuf, FileState>,
    /// The directories among them that do not stand there now: what is not known to stand in one does not, whatever
    /// the disk has in its place.
    made: BTreeSet<PathBuf>,
}

impl View<'_> {
    /// Whether a step is to be undone; `false` when it was not made.
    ///
    /// # Errors
    /// Why it cannot be undone.
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
                if self.stands(path, after)? {
                    if before == *after {
                        return Ok(false);
                    }
                    return match after {
                        FileState::Directory => self.nothing_in(path).map(|()| true),
                        _ if before != FileState::Absent => self.has_parent(path).map(|()| true),
                        _ => Ok(true),
                    };
                }
                if self.stands(path, &before)? {
                    return Ok(false);
                }
                Err(self.changed(path, after))
            }
            Step::Move { from, to, tree } => {
                let made = self.stands(from, &FileState::Absent)?;
                let stands = !self.stands(to, &FileState::Absent)?;
                match (made, stands) {
                    (false, false) => Ok(false),
                    (false, true) => Err(format!(
                        "{}: another file exists there again",
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

    /// Sees the step as undone from here on.
    fn assume(&mut self, step: &Step) {
        match step {
            Step::Parent { path } => {
                // One that holds something stays.
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

    /// Sees `standing` at `path` from here on.
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

    /// What is known to stand at `path`; `None` when the disk says.
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

    /// The names in a directory.
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
            "{}: its directory is gone",
            self.sandbox.shown(path)
        ))
    }

    /// Whether the tree at `top` is the one that was moved there, no more and no less.
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
        format!("{}: it was put there since", self.sandbox.shown(path))
    }

    /// What is said of a path where something else than `after` stands.
    fn changed(&self, path: &Path, after: &FileState) -> String {
        let shown = self.sandbox.shown(path);
        match (self.stands(path, &FileState::Absent), after) {
            (Err(reason), _) => reason,
            (Ok(true), _) => format!("{shown}: it is gone"),
            (Ok(false), FileState::Absent) => format!("{shown}: another file exists there again"),
            (Ok(false), _) => format!("{shown}: it was changed since"),
        }
    }
}

/// The place of `path` in its directory; `None` when that directory does not exist.
pub(super) fn target(sandbox: &Sandbox, path: &Path) -> Result<Option<Target>, ToolError> {
    let place = match sandbox.resolve_recorded(path) {
        Ok(place) => place,
        // A file stands where a directory was.
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

/// Whether what stands at `path` on the disk is `expected`.
///
/// # Errors
/// When it lies outside, or cannot be looked at.
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

/// The names in the directory at `path`; none where there is no directory.
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

/// What is said of an error at `path`.
pub(super) fn trouble(path: &Path, error: &ToolError) -> String {
    format!("{}: {error}", printable(path))
}
