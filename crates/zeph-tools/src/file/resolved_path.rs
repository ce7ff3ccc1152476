//! Resolved paths, and file operations on them inside of the sandbox.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, Stat, fstat, mkdirat, openat, statat, unlinkat,
};
use rustix::io::Errno;

use crate::error::ToolError;
use crate::file::sandbox::{PASS, Sandbox, printable};
use crate::file::suggestions;

/// Flags to open a file for reading. Links are not followed, and a FIFO does not block.
pub(super) const READ: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

/// Flags to open a directory for listing.
pub(super) const LIST: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// The maximum number of directory entries that are searched for similar names.
const MAX_NEAR_ENTRIES: usize = 10_000;

/// A place inside the sandbox, without links.
#[derive(Debug)]
pub(super) struct Place {
    /// The deepest existing directory of the path, or the place itself if `rest` is empty.
    dir: Arc<OwnedFd>,
    /// The remaining names: one if the directory of the place exists, more otherwise.
    rest: Vec<OsString>,
    /// The canonical absolute path.
    path: PathBuf,
}

/// A name in an existing directory.
#[derive(Debug, Clone)]
pub(super) struct Target {
    pub(super) dir: Arc<OwnedFd>,
    pub(super) name: OsString,
    pub(super) path: PathBuf,
}

/// The opened entry at a place.
pub(super) enum Found {
    File(File, Stat),
    Dir(OwnedFd),
}

impl Place {
    pub(super) fn new(dir: Arc<OwnedFd>, rest: Vec<OsString>, path: PathBuf) -> Self {
        Self { dir, rest, path }
    }

    /// The canonical absolute path.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns true if the place is an allowed directory itself. It must have been resolved as an entry.
    pub(super) fn is_root(&self) -> bool {
        self.rest.is_empty()
    }

    /// The directories that must be created before a write to the place, from the top.
    pub(super) fn absent_parents(&self) -> Vec<PathBuf> {
        let mut parents: Vec<PathBuf> = self
            .path
            .ancestors()
            .skip(1)
            .take(self.rest.len().saturating_sub(1))
            .map(Path::to_owned)
            .collect();
        parents.reverse();
        parents
    }

    /// Returns true if no entry exists at the place.
    ///
    /// # Errors
    /// If the place cannot be inspected.
    pub(super) fn is_free(&self) -> Result<bool, ToolError> {
        let [name] = self.rest.as_slice() else {
            return Ok(!self.rest.is_empty());
        };
        match statat(&*self.dir, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => Ok(false),
            Err(Errno::NOENT) => Ok(true),
            Err(error) => Err(ToolError::io("examine", &self.path, error.into())),
        }
    }

    /// Opens the file or directory at the place for reading.
    ///
    /// # Errors
    /// [`ToolError::Missing`] with similar names; [`ToolError::PolicyBlocked`] for devices, FIFOs and sockets,
    /// which are not opened.
    pub(super) fn open(&self, sandbox: &Sandbox) -> Result<Found, ToolError> {
        let failed = |error: Errno| ToolError::io("open", &self.path, error.into());
        let name = match self.rest.as_slice() {
            [] => {
                return openat(&*self.dir, ".", LIST, Mode::empty())
                    .map(Found::Dir)
                    .map_err(failed);
            }
            [name] => name,
            _ => return Err(self.missing(sandbox)),
        };
        match statat(&*self.dir, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => match FileType::from_raw_mode(stat.st_mode) {
                FileType::Directory => openat(&*self.dir, name, LIST, Mode::empty())
                    .map(Found::Dir)
                    .map_err(failed),
                _ => open_regular(&self.dir, name, &self.path)
                    .map(|(file, stat)| Found::File(file, stat)),
            },
            Err(Errno::NOENT) => Err(self.missing(sandbox)),
            Err(error) => Err(failed(error)),
        }
    }

    /// Opens the regular file at the place for reading.
    ///
    /// # Errors
    /// The errors of [`Place::open`]; an error with the text `directory` for a directory.
    pub(super) fn open_file(
        &self,
        sandbox: &Sandbox,
        directory: &str,
    ) -> Result<(File, Stat), ToolError> {
        match self.open(sandbox)? {
            Found::File(file, stat) => Ok((file, stat)),
            Found::Dir(_) => Err(ToolError::permanent(format!(
                "{} is a directory; {directory}",
                sandbox.shown(&self.path)
            ))),
        }
    }

    /// Opens the directory at the place.
    ///
    /// # Errors
    /// The errors of [`Place::open`]; an error for a file.
    pub(super) fn open_dir(&self, sandbox: &Sandbox) -> Result<OwnedFd, ToolError> {
        match self.open(sandbox)? {
            Found::Dir(dir) => Ok(dir),
            Found::File(..) => Err(ToolError::permanent(format!(
                "{} is a file, not a directory; use `read` for its content",
                sandbox.shown(&self.path)
            ))),
        }
    }

    /// The target for a write to the place.
    ///
    /// # Errors
    /// If the place is an allowed directory itself, or its directory does not exist.
    pub(super) fn target(&self, sandbox: &Sandbox) -> Result<Target, ToolError> {
        match self.rest.as_slice() {
            [] => Err(ToolError::permanent(format!(
                "{} is a directory",
                sandbox.shown(&self.path)
            ))),
            [name] => Ok(Target {
                dir: Arc::clone(&self.dir),
                name: name.clone(),
                path: self.path.clone(),
            }),
            _ => Err(self.missing(sandbox)),
        }
    }

    /// The target for a write to the place. Missing parent directories are created.
    ///
    /// # Errors
    /// If a directory cannot be created, or a link replaces it concurrently.
    pub(super) fn target_with_parents(&self, sandbox: &Sandbox) -> Result<Target, ToolError> {
        let Some((name, parents)) = self.rest.split_last() else {
            return self.target(sandbox);
        };
        let failed = |error: Errno| {
            let parent = self.path.parent().unwrap_or(&self.path);
            ToolError::io("create the directory", parent, error.into())
        };
        let mut dir = Arc::clone(&self.dir);
        for parent in parents {
            match mkdirat(&*dir, parent, Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(failed(error)),
            }
            dir = Arc::new(openat(&*dir, parent, PASS, Mode::empty()).map_err(failed)?);
        }
        Ok(Target {
            dir,
            name: name.clone(),
            path: self.path.clone(),
        })
    }

    /// Removes the parent directories that [`Place::target_with_parents`] created, deepest first.
    ///
    /// # Errors
    /// If a directory has entries or cannot be removed. It remains with the directories above it.
    pub(super) fn remove_parents(&self) -> Result<(), Errno> {
        match self.rest.split_last() {
            Some((_, parents)) => remove_dirs(&self.dir, parents),
            None => Ok(()),
        }
    }

    /// Creates the directory at the place with its parents, and returns whether it did not exist.
    ///
    /// # Errors
    /// If another kind of entry exists there, or a directory cannot be created.
    pub(super) fn make_dir(&self, sandbox: &Sandbox) -> Result<bool, ToolError> {
        if self.rest.is_empty() {
            return Ok(false);
        }
        let target = self.target_with_parents(sandbox)?;
        match mkdirat(&*target.dir, &target.name, Mode::from_raw_mode(0o777)) {
            Ok(()) => Ok(true),
            Err(Errno::EXIST) => match target.stat()? {
                Some((_, FileType::Directory)) => Ok(false),
                _ => Err(ToolError::permanent(format!(
                    "{} exists and is not a directory",
                    sandbox.shown(&target.path)
                ))),
            },
            Err(error) => Err(ToolError::io(
                "create the directory",
                &target.path,
                error.into(),
            )),
        }
    }

    /// The error for a missing entry, with similar names.
    pub(super) fn missing(&self, sandbox: &Sandbox) -> ToolError {
        let Some(absent) = self.rest.first() else {
            return ToolError::io("open", &self.path, Errno::NOENT.into());
        };
        let what = if self.rest.len() == 1 {
            "file or directory"
        } else {
            "directory"
        };
        let mut parent = self.path.clone();
        for _ in &self.rest {
            parent.pop();
        }
        let near: Vec<String> = entries(&self.dir)
            .map(|entries| {
                let named = entries
                    .take(MAX_NEAR_ENTRIES)
                    .filter(|name| sandbox.rules().refusal(&parent.join(name)).is_none());
                suggestions::near_names(absent, named)
            })
            .unwrap_or_default()
            .into_iter()
            .map(|name| sandbox.shown(&parent.join(name)))
            .collect();
        let mut message = format!(
            "no such {what}: {}",
            sandbox.shown(&parent.join(absent.as_os_str()))
        );
        if !near.is_empty() {
            message.push_str(&format!("; did you mean {}?", near.join(", ")));
        }
        ToolError::Missing { message }
    }
}

impl Target {
    /// Metadata and type of the entry at the target, without following links. `None` if it does not exist.
    ///
    /// # Errors
    /// If the target cannot be inspected.
    pub(super) fn stat(&self) -> Result<Option<(Stat, FileType)>, ToolError> {
        match statat(&*self.dir, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some((stat, FileType::from_raw_mode(stat.st_mode)))),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(ToolError::io("examine", &self.path, error.into())),
        }
    }

    /// Metadata of the regular file at the target. `None` if it does not exist.
    ///
    /// # Errors
    /// If the target cannot be inspected, is a directory, or is not a regular file.
    pub(super) fn existing(&self) -> Result<Option<Stat>, ToolError> {
        match statat(&*self.dir, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => match FileType::from_raw_mode(stat.st_mode) {
                FileType::RegularFile => Ok(Some(stat)),
                kind => Err(no_file(&self.path, kind)),
            },
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(ToolError::io("open", &self.path, error.into())),
        }
    }

    /// Opens the regular file at the target for reading.
    ///
    /// # Errors
    /// If it is not a regular file, or cannot be opened.
    pub(super) fn open(&self) -> Result<(File, Stat), ToolError> {
        open_regular(&self.dir, &self.name, &self.path)
    }
}

/// Removes the empty directory `names[0]` in `dir` after the directories `names[1..]` nested in it.
fn remove_dirs(dir: &OwnedFd, names: &[OsString]) -> Result<(), Errno> {
    let Some((name, nested)) = names.split_first() else {
        return Ok(());
    };
    if !nested.is_empty() {
        match openat(dir, name, PASS, Mode::empty()) {
            Ok(own) => remove_dirs(&own, nested)?,
            Err(Errno::NOENT) => {}
            Err(error) => return Err(error),
        }
    }
    match unlinkat(dir, name, AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Opens the regular file `name` in `dir`. `path`: its name in errors.
///
/// Other entries are rejected without being opened. If another entry replaces the file concurrently, it is
/// opened without blocking, and rejected.
///
/// # Errors
/// If it is not a regular file, or cannot be opened.
pub(super) fn open_regular(
    dir: &OwnedFd,
    name: &OsStr,
    path: &Path,
) -> Result<(File, Stat), ToolError> {
    let failed = |error: Errno| ToolError::io("open", path, error.into());
    let stat = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).map_err(failed)?;
    let kind = FileType::from_raw_mode(stat.st_mode);
    if kind != FileType::RegularFile {
        return Err(no_file(path, kind));
    }
    let file = openat(dir, name, READ, Mode::empty()).map_err(failed)?;
    let stat = fstat(&file).map_err(failed)?;
    let kind = FileType::from_raw_mode(stat.st_mode);
    if kind != FileType::RegularFile {
        return Err(no_file(path, kind));
    }
    Ok((File::from(file), stat))
}

/// The names in a directory, except `.` and `..`, with their types. Some file systems do not report types.
/// Unreadable entries are skipped.
pub(super) fn entries_with_types(
    dir: &OwnedFd,
) -> io::Result<impl Iterator<Item = (OsString, FileType)>> {
    // `Dir::read_from` would inherit `O_PATH`, so the directory is opened again.
    let mut dir = Dir::new(openat(dir, ".", LIST, Mode::empty())?)?;
    Ok(std::iter::from_fn(move || {
        loop {
            let entry = dir.read()?.ok()?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                return Some((OsStr::from_bytes(name).to_owned(), entry.file_type()));
            }
        }
    }))
}

/// The names in a directory, as in [`entries_with_types`].
fn entries(dir: &OwnedFd) -> io::Result<impl Iterator<Item = OsString>> {
    Ok(entries_with_types(dir)?.map(|(name, _)| name))
}

/// The error for an entry that is not a regular file.
pub(super) fn no_file(path: &Path, kind: FileType) -> ToolError {
    let path = printable(path);
    let kind = match kind {
        FileType::Directory => {
            return ToolError::permanent(format!("{path} is a directory"));
        }
        FileType::Symlink => {
            return ToolError::permanent(format!(
                "{path} became a link while it was being opened, so nothing was done"
            ));
        }
        FileType::Fifo => "a FIFO",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        _ => "no regular file",
    };
    ToolError::blocked(format!(
        "{path} is {kind}; file tools only work on regular files"
    ))
}
