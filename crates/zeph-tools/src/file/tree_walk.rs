//! Traversal of trees with directory handles and `lstat`, including hidden and ignored entries.
//!
//! Every directory is opened from the handle of its parent without following links, so concurrently created
//! links have no effect.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, Stat, openat, statat, unlinkat};
use rustix::io::Errno;
use tokio_util::sync::CancellationToken;

use crate::error::ToolError;
use crate::file::resolved_path::{LIST, Target, entries_with_types};

/// The maximum depth of nested directories. Each level needs a handle.
pub(super) const MAX_DEPTH: usize = 128;

/// An entry of a tree.
pub(super) struct Node<'a> {
    /// The directory that contains the entry.
    pub(super) dir: &'a OwnedFd,
    pub(super) name: &'a OsStr,
    pub(super) path: &'a Path,
    pub(super) stat: &'a Stat,
    pub(super) kind: FileType,
}

/// The error for a tree that is too deep.
pub(super) fn too_deep(path: &Path) -> ToolError {
    ToolError::permanent(format!(
        "{} is more than {MAX_DEPTH} directories deep; work on a part of the tree",
        path.display()
    ))
}

/// The metadata of the entry `name` in `dir`, without following links. `None` if it does not exist.
fn look(dir: &OwnedFd, name: &OsStr, path: &Path) -> Result<Option<Stat>, ToolError> {
    match statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(stat)),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(ToolError::io("examine", path, error.into())),
    }
}

/// Calls `visit` for the entry at `top` and all its descendants. Directories precede their entries.
///
/// # Errors
/// Errors of `visit`; errors if a directory cannot be read or is too deep, or the call is cancelled.
pub(super) fn scan(
    top: &Target,
    cancel: &CancellationToken,
    visit: &mut dyn FnMut(&Node<'_>) -> Result<(), ToolError>,
) -> Result<(), ToolError> {
    scan_entry(&top.dir, &top.name, top.path.clone(), 0, cancel, visit)
}

fn scan_entry(
    dir: &OwnedFd,
    name: &OsStr,
    path: PathBuf,
    depth: usize,
    cancel: &CancellationToken,
    visit: &mut dyn FnMut(&Node<'_>) -> Result<(), ToolError>,
) -> Result<(), ToolError> {
    if cancel.is_cancelled() {
        return Err(ToolError::cancelled());
    }
    let Some(stat) = look(dir, name, &path)? else {
        return Ok(());
    };
    let kind = FileType::from_raw_mode(stat.st_mode);
    visit(&Node {
        dir,
        name,
        path: &path,
        stat: &stat,
        kind,
    })?;
    if kind != FileType::Directory {
        return Ok(());
    }
    if depth == MAX_DEPTH {
        return Err(too_deep(&path));
    }
    let failed = |error| ToolError::io("open", &path, error);
    let own = openat(dir, name, LIST, Mode::empty()).map_err(|error| failed(error.into()))?;
    for (name, _) in entries_with_types(&own).map_err(failed)? {
        scan_entry(&own, &name, path.join(&name), depth + 1, cancel, visit)?;
    }
    Ok(())
}

/// Removes the entry at `top` and all its descendants, and counts them in `removed`. Links are not followed.
///
/// `may` is called before a directory is entered, and before any other entry is removed.
///
/// # Errors
/// Errors of `may`; errors if an entry cannot be removed, or the call is cancelled. Entries that were already
/// removed are not restored.
pub(super) fn remove(
    top: &Target,
    cancel: &CancellationToken,
    removed: &mut usize,
    may: &dyn Fn(&Node<'_>) -> Result<(), ToolError>,
) -> Result<(), ToolError> {
    remove_entry(
        &top.dir,
        &top.name,
        top.path.clone(),
        0,
        cancel,
        removed,
        may,
    )
}

fn remove_entry(
    dir: &OwnedFd,
    name: &OsStr,
    path: PathBuf,
    depth: usize,
    cancel: &CancellationToken,
    removed: &mut usize,
    may: &dyn Fn(&Node<'_>) -> Result<(), ToolError>,
) -> Result<(), ToolError> {
    if cancel.is_cancelled() {
        return Err(ToolError::cancelled());
    }
    let Some(stat) = look(dir, name, &path)? else {
        return Ok(());
    };
    let kind = FileType::from_raw_mode(stat.st_mode);
    may(&Node {
        dir,
        name,
        path: &path,
        stat: &stat,
        kind,
    })?;
    let failed = |error| ToolError::io("delete", &path, error);
    let mut how = AtFlags::empty();
    if kind == FileType::Directory {
        if depth == MAX_DEPTH {
            return Err(too_deep(&path));
        }
        let own = openat(dir, name, LIST, Mode::empty()).map_err(|error| failed(error.into()))?;
        // All names are read first, because a directory listing is undefined while entries are removed.
        let names: Vec<_> = entries_with_types(&own).map_err(failed)?.collect();
        for (name, _) in names {
            let path = path.join(&name);
            remove_entry(&own, &name, path, depth + 1, cancel, removed, may)?;
        }
        how = AtFlags::REMOVEDIR;
    }
    match unlinkat(dir, name, how) {
        Ok(()) => {
            *removed += 1;
            Ok(())
        }
        Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(failed(error.into())),
    }
}
