//! A path that has been resolved, and what can be done there without leaving the sandbox.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat, fstat, mkdirat, openat, statat};
use rustix::io::Errno;

use crate::error::ToolError;
use crate::file::sandbox::{PASS, Sandbox, printable};
use crate::file::suggestions;

/// How a file is opened to read it: no link is followed, and a FIFO does not block.
pub(super) const READ: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

/// How a directory is opened to list it.
pub(super) const LIST: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// The most entries of a directory that are looked through for near names.
const MAX_NEAR_ENTRIES: usize = 10_000;

/// A place inside the sandbox, free of links.
#[derive(Debug)]
pub(super) struct Place {
    /// The deepest existing directory on the way, or the place itself when `rest` is empty.
    dir: Arc<OwnedFd>,
    /// What follows: one name when the directory of the place exists, more when it does not.
    rest: Vec<OsString>,
    /// The canonical absolute path.
    path: PathBuf,
}

/// A name in a directory that exists.
#[derive(Debug, Clone)]
pub(super) struct Target {
    pub(super) dir: Arc<OwnedFd>,
    pub(super) name: OsString,
    pub(super) path: PathBuf,
}

/// What stands at a place.
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

    /// Whether the place is an allowed directory itself, when it was resolved as an entry.
    pub(super) fn is_root(&self) -> bool {
        self.rest.is_empty()
    }

    /// The directories that have to be made before the place can be written to, from the top.
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

    /// Whether nothing stands at the place.
    ///
    /// # Errors
    /// When it cannot be looked at.
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
    /// [`ToolError::Missing`] with near names; [`ToolError::PolicyBlocked`] for devices, FIFOs and
    /// sockets, which are not opened at all.
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
    /// As [`Place::open`]; and for a directory, with the words of `directory`.
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
    /// As [`Place::open`]; and for a file.
    pub(super) fn open_dir(&self, sandbox: &Sandbox) -> Result<OwnedFd, ToolError> {
        match self.open(sandbox)? {
            Found::Dir(dir) => Ok(dir),
            Found::File(..) => Err(ToolError::permanent(format!(
                "{} is a file, no directory; use `read` for its content",
                sandbox.shown(&self.path)
            ))),
        }
    }

    /// The name to write to, in its directory.
    ///
    /// # Errors
    /// When the place is an allowed directory itself, or its directory does not exist.
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

    /// The name to write to, in its directory, which is made with its parents if need be.
    ///
    /// # Errors
    /// When a directory cannot be made, or a link takes its place meanwhile.
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

    /// The directory at the place, which is made with its parents if need be; and whether it was.
    ///
    /// # Errors
    /// When something else stands there, or a directory cannot be made.
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
                    "{} exists and is no directory",
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

    /// The error that says that nothing is here, and what is near.
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
    /// What stands at the target, by lstat: `None` when nothing does.
    ///
    /// # Errors
    /// When it cannot be looked at.
    pub(super) fn stat(&self) -> Result<Option<(Stat, FileType)>, ToolError> {
        match statat(&*self.dir, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some((stat, FileType::from_raw_mode(stat.st_mode)))),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(ToolError::io("examine", &self.path, error.into())),
        }
    }

    /// What stands at the target: `None` when nothing does.
    ///
    /// # Errors
    /// When it cannot be looked at, is a directory, or no regular file.
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
    /// When it is none, or cannot be opened.
    pub(super) fn open(&self) -> Result<(File, Stat), ToolError> {
        open_regular(&self.dir, &self.name, &self.path)
    }
}

/// Opens the regular file `name` in `dir`, which `path` names in errors. Anything else is refused
/// without being opened; what is swapped in meanwhile is opened without blocking, and refused.
///
/// # Errors
/// When it is no regular file, or cannot be opened.
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

/// The names in a directory, `.` and `..` left out, with their types (unknown on some file
/// systems). Entries that cannot be read are left out.
pub(super) fn entries_with_types(
    dir: &OwnedFd,
) -> io::Result<impl Iterator<Item = (OsString, FileType)>> {
    // Not `Dir::read_from`, which would take over `O_PATH`.
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

/// The names in a directory, as [`entries_with_types`].
fn entries(dir: &OwnedFd) -> io::Result<impl Iterator<Item = OsString>> {
    Ok(entries_with_types(dir)?.map(|(name, _)| name))
}

/// The refusal of what is no regular file.
pub(super) fn no_file(path: &Path, kind: FileType) -> ToolError {
    let path = printable(path);
    let kind = match kind {
        FileType::Directory => {
            return ToolError::permanent(format!("{path} is a directory"));
        }
        FileType::Symlink => {
            return ToolError::permanent(format!(
                "{path} became a link while it was being opened; nothing was done"
            ));
        }
        FileType::Fifo => "a FIFO",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        _ => "no regular file",
    };
    ToolError::blocked(format!(
        "{path} is {kind}; file tools touch regular files alone"
    ))
}
