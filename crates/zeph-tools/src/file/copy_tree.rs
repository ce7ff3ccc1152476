//! Atomic copy of an entry with all its descendants.
//!
//! The copy is created under a temporary name in the directory of the destination. Each file and directory is
//! synchronized to the disk. Then the copy is renamed to its final name, which must be free.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, RenameFlags, Stat, Timespec, Timestamps, fchmod, fstat, fsync,
    futimens, mkdirat, openat, readlinkat, renameat, renameat_with, statat, symlinkat,
};
use rustix::io::Errno;
use tokio_util::sync::CancellationToken;

use crate::error::ToolError;
use crate::file::atomic::{TEMPORARY, take_over};
use crate::file::resolved_path::{LIST, Target, entries_with_types, no_file, open_regular};
use crate::file::sandbox::{Sandbox, printable};
use crate::file::tree_walk::{self, MAX_DEPTH, too_deep};

/// Bytes that are copied between two checks for cancellation.
const PORTION: u64 = 8 << 20;

/// Renames an entry to a name that must be free.
///
/// # Errors
/// [`Errno::EXIST`] if the name exists; [`Errno::XDEV`] if it is on another file system.
pub(super) fn rename_new(from: (&OwnedFd, &OsStr), to: (&OwnedFd, &OsStr)) -> Result<(), Errno> {
    match renameat_with(from.0, from.1, to.0, to.1, RenameFlags::NOREPLACE) {
        // The file system does not support the flag, or the rename is not possible.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
            match statat(to.0, to.1, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(_) => Err(Errno::EXIST),
                Err(Errno::NOENT) => renameat(from.0, from.1, to.0, to.1),
                Err(error) => Err(error),
            }
        }
        result => result,
    }
}

/// Synchronizes a directory. Errors are ignored: they only affect durability after a power failure.
pub(super) fn sync_dir(dir: &OwnedFd) {
    if let Ok(dir) = openat(dir, ".", LIST, Mode::empty()) {
        let _ = fsync(dir);
    }
}

/// The error for a destination that exists.
pub(super) fn taken(sandbox: &Sandbox, path: &Path) -> ToolError {
    ToolError::permanent(format!(
        "the destination {} exists, so nothing was changed: use a path that does not exist (to \
         copy into a directory, add the new name)",
        sandbox.shown(path)
    ))
}

/// Metadata that differs between versions of a file.
type Version = (i64, i64, i64);

fn version(stat: &Stat) -> Version {
    #[allow(clippy::unnecessary_cast, reason = "the types differ between systems")]
    let nanoseconds = stat.st_mtime_nsec as i64;
    (stat.st_size, stat.st_mtime, nanoseconds)
}

/// A copied link: the directory of the copy, and the target.
struct Link {
    shown: PathBuf,
    dir: PathBuf,
    target: PathBuf,
}

/// State of one copy operation.
pub(super) struct TreeCopier<'a> {
    sandbox: &'a Sandbox,
    cancel: &'a CancellationToken,
    /// True if the copy replaces its source: owner, mode and times are retained.
    moves: bool,
    /// Copied files and links, by device and inode.
    copied: HashMap<(u64, u64), Version>,
    links: Vec<Link>,
    /// The root directory of the copy, which is never copied into itself.
    own: Option<(u64, u64)>,
    /// The number of copied entries.
    pub(super) entries: usize,
    /// The number of copied bytes.
    pub(super) bytes: u64,
}

#[allow(clippy::unnecessary_cast, reason = "the types differ between systems")]
fn identity(stat: &Stat) -> (u64, u64) {
    (stat.st_dev as u64, stat.st_ino as u64)
}

/// The temporary copy, which is removed unless it was renamed.
struct Temporary {
    target: Target,
    renamed: bool,
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.renamed {
            let go_on = CancellationToken::new();
            // A failure to remove the copy is ignored: it is harmless.
            let _ = tree_walk::remove(&self.target, &go_on, &mut 0, &|_| Ok(()));
        }
    }
}

impl<'a> TreeCopier<'a> {
    /// Creates a copier. `moves`: the copy replaces its source.
    pub(super) fn new(sandbox: &'a Sandbox, cancel: &'a CancellationToken, moves: bool) -> Self {
        Self {
            sandbox,
            cancel,
            moves,
            copied: HashMap::new(),
            links: Vec::new(),
            own: None,
            entries: 0,
            bytes: 0,
        }
    }

    /// Copies the entry `source` with all its descendants to `destination`. `before` is called with the
    /// complete copy before it has its final name.
    ///
    /// # Errors
    /// If an entry cannot or must not be copied, the destination exists, the disk is full, the call is
    /// cancelled, or `before` fails. Then nothing is created.
    pub(super) fn copy(
        &mut self,
        source: &Target,
        destination: &Target,
        before: &mut dyn FnMut(&Target) -> Result<(), ToolError>,
    ) -> Result<(), ToolError> {
        let name = OsString::from(format!("{TEMPORARY}{}", uuid::Uuid::new_v4().simple()));
        let above = destination.path.parent().unwrap_or(&destination.path);
        let mut temporary = Temporary {
            target: Target {
                dir: std::sync::Arc::clone(&destination.dir),
                path: above.join(&name),
                name,
            },
            renamed: false,
        };
        let to = &temporary.target;
        self.entry(
            (&source.dir, &source.name, &source.path),
            (&to.dir, &to.name, &to.path),
            0,
        )?;
        for link in &self.links {
            self.stays_inside(&link.shown, &link.dir, &link.target)?;
        }
        if self.cancel.is_cancelled() {
            return Err(ToolError::cancelled());
        }
        before(to)?;
        match rename_new((&to.dir, &to.name), (&destination.dir, &destination.name)) {
            Ok(()) => {}
            Err(Errno::EXIST | Errno::NOTEMPTY) => {
                return Err(taken(self.sandbox, &destination.path));
            }
            Err(error) => return Err(ToolError::io("create", &destination.path, error.into())),
        }
        temporary.renamed = true;
        sync_dir(&destination.dir);
        Ok(())
    }

    /// Returns true if `stat` is that of a copied file or link that did not change since.
    pub(super) fn has(&self, stat: &Stat) -> bool {
        self.copied.get(&identity(stat)) == Some(&version(stat))
    }

    fn entry(
        &mut self,
        from: (&OwnedFd, &OsStr, &Path),
        to: (&OwnedFd, &OsStr, &Path),
        depth: usize,
    ) -> Result<(), ToolError> {
        if self.cancel.is_cancelled() {
            return Err(ToolError::cancelled());
        }
        let (dir, name, path) = from;
        if self.sandbox.is_reserved(path) {
            return Err(self.sandbox.own(path));
        }
        self.sandbox.check_read(path)?;
        let stat = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)
            .map_err(|error| ToolError::io("examine", path, error.into()))?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => self.file(from, to)?,
            FileType::Symlink => self.link(from, to, &stat)?,
            FileType::Directory => self.directory(from, to, depth)?,
            kind => return Err(no_file(path, kind)),
        }
        self.entries += 1;
        Ok(())
    }

    fn file(
        &mut self,
        (dir, name, path): (&OwnedFd, &OsStr, &Path),
        (to, new, _): (&OwnedFd, &OsStr, &Path),
    ) -> Result<(), ToolError> {
        let failed = |error: io::Error| {
            let full = [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded];
            if full.contains(&error.kind()) {
                ToolError::permanent(format!(
                    "the disk is full, so {} was not copied, and nothing was changed ({error})",
                    printable(path)
                ))
            } else {
                ToolError::io("copy", path, error)
            }
        };
        let (mut source, stat) = open_regular(dir, name, path)?;
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let copy = openat(to, new, flags, Mode::from_raw_mode(0o600))
            .map_err(|error| failed(error.into()))?;
        let mut copy = File::from(copy);
        loop {
            let bytes = io::copy(&mut (&mut source).take(PORTION), &mut copy).map_err(failed)?;
            self.bytes += bytes;
            if bytes == 0 {
                break;
            }
            if self.cancel.is_cancelled() {
                return Err(ToolError::cancelled());
            }
        }
        self.take_attributes(&copy, &stat)
            .map_err(|error| failed(error.into()))?;
        copy.sync_all().map_err(failed)?;
        // If the file was changed during the copy, the copy may mix both contents.
        let after = fstat(&source).map_err(|error| failed(error.into()))?;
        if version(&after) != version(&stat) {
            return Err(ToolError::invalid(format!(
                "another program changed {} in the meantime, so nothing was copied: try again",
                printable(path)
            )));
        }
        self.copied.insert(identity(&stat), version(&stat));
        Ok(())
    }

    /// Sets the mode, and for a move also owner and times.
    fn take_attributes(&self, copy: impl AsFd, stat: &Stat) -> Result<(), Errno> {
        if !self.moves {
            return fchmod(copy, Mode::from_raw_mode(stat.st_mode & 0o777));
        }
        take_over(&copy, stat)?;
        #[allow(
            clippy::unnecessary_cast,
            clippy::useless_conversion,
            reason = "the types differ between systems"
        )]
        let time = |seconds, nanoseconds| Timespec {
            tv_sec: seconds,
            tv_nsec: nanoseconds,
        };
        let times = Timestamps {
            last_access: time(stat.st_atime, stat.st_atime_nsec as _),
            last_modification: time(stat.st_mtime, stat.st_mtime_nsec as _),
        };
        // Not all file systems store times, so errors are ignored.
        let _ = futimens(copy, &times);
        Ok(())
    }

    fn link(
        &mut self,
        (dir, name, path): (&OwnedFd, &OsStr, &Path),
        (to, new, new_path): (&OwnedFd, &OsStr, &Path),
        stat: &Stat,
    ) -> Result<(), ToolError> {
        let failed = |error: Errno| ToolError::io("copy the link", path, error.into());
        let target = readlinkat(dir, name, Vec::new()).map_err(failed)?;
        let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
        let parent = |path: &Path| path.parent().map(Path::to_owned).unwrap_or_default();
        self.stays_inside(path, &parent(path), &target)?;
        symlinkat(&target, to, new).map_err(failed)?;
        self.links.push(Link {
            shown: path.to_owned(),
            dir: parent(new_path),
            target,
        });
        self.copied.insert(identity(stat), version(stat));
        Ok(())
    }

    /// Rejects a link in the directory `dir` that points outside of the sandbox. `shown`: its path in errors.
    fn stays_inside(&self, shown: &Path, dir: &Path, target: &Path) -> Result<(), ToolError> {
        match self.sandbox.resolve_link(dir, target) {
            Ok(_) => Ok(()),
            // The link cannot be resolved: it is part of a cycle, or passes through a file.
            Err(ToolError::Io { source, .. })
                if [Some(Errno::LOOP), Some(Errno::NOTDIR)]
                    .contains(&Errno::from_io_error(&source)) =>
            {
                Ok(())
            }
            Err(error) => Err(ToolError::blocked(format!(
                "{} is a link to {}, which is not copied: {error}; nothing was changed",
                self.sandbox.shown(shown),
                printable(target)
            ))),
        }
    }

    fn directory(
        &mut self,
        (dir, name, path): (&OwnedFd, &OsStr, &Path),
        (to, new, new_path): (&OwnedFd, &OsStr, &Path),
        depth: usize,
    ) -> Result<(), ToolError> {
        if depth == MAX_DEPTH {
            return Err(too_deep(path));
        }
        let failed = |error: io::Error| ToolError::io("copy", path, error);
        let source = openat(dir, name, LIST, Mode::empty()).map_err(|e| failed(e.into()))?;
        let stat = fstat(&source).map_err(|error| failed(error.into()))?;
        if self.own == Some(identity(&stat)) {
            return Err(into_itself());
        }
        mkdirat(to, new, Mode::from_raw_mode(0o700)).map_err(|error| failed(error.into()))?;
        let copy = openat(to, new, LIST, Mode::empty()).map_err(|error| failed(error.into()))?;
        if depth == 0 {
            let own = fstat(&copy).map_err(|error| failed(error.into()))?;
            self.own = Some(identity(&own));
        }
        let names: Vec<_> = entries_with_types(&source).map_err(failed)?.collect();
        for (name, _) in names {
            self.entry(
                (&source, &name, &path.join(&name)),
                (&copy, &name, &new_path.join(&name)),
                depth + 1,
            )?;
        }
        self.take_attributes(&copy, &stat)
            .map_err(|error| failed(error.into()))?;
        // Not all file systems can synchronize directories.
        let _ = fsync(&copy);
        Ok(())
    }
}

/// The error for a directory that would contain itself.
pub(super) fn into_itself() -> ToolError {
    ToolError::invalid("`destination` is inside `source`: a directory cannot contain itself")
}
