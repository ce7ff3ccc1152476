//! Snapshot of the files in scope before a command, stored in a separate directory.
//!
//! All access is relative to directory handles and follows no link. An entry that is not a file, link or directory (a
//! socket, a FIFO, a device) is ignored.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, Stat, fchmod, fstat, mkdirat, openat, readlinkat, statat,
    symlinkat, unlinkat,
};
use rustix::io::Errno;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use super::dir_fd::{MAX_DEPTH, ProtectedFiles, entries, identity, open_dir, open_file};
use super::scope::Scope;
use super::snapshot_locks;

/// The number of bytes that are copied between two checks for cancellation.
const PORTION: u64 = 8 << 20;

/// The reason why a snapshot was not made.
#[derive(Debug, thiserror::Error)]
pub(super) enum SnapshotError {
    /// The call was cancelled.
    #[error("the call was cancelled")]
    Cancelled,
    /// The files have too many bytes.
    #[error(
        "the files in scope have more than {max} bytes (`[tools.shell] max_snapshot_bytes`); \
         `transaction_scope` narrows them"
    )]
    TooLarge {
        /// The maximum number of bytes.
        max: u64,
    },
    /// A file cannot be read or written.
    #[error("{what} {}: {source}", path.display())]
    Io {
        /// The operation that failed.
        what: &'static str,
        /// The path of the file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

impl SnapshotError {
    pub(super) fn io(what: &'static str, path: &Path, source: impl Into<io::Error>) -> Self {
        Self::Io {
            what,
            path: path.to_owned(),
            source: source.into(),
        }
    }
}

/// Mode and owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Attributes {
    pub(super) mode: rustix::fs::RawMode,
    pub(super) uid: u32,
    pub(super) gid: u32,
}

impl Attributes {
    pub(super) fn of(stat: &Stat) -> Self {
        Self {
            mode: stat.st_mode & 0o7777,
            uid: stat.st_uid,
            gid: stat.st_gid,
        }
    }
}

/// An entry of the snapshot.
#[derive(Debug)]
pub(super) enum Saved {
    File {
        attributes: Attributes,
        size: u64,
    },
    /// A link, with its target.
    Link(OsString),
    Dir(SavedDir),
    /// An entry that is ignored.
    Other,
}

/// A directory of the snapshot.
#[derive(Debug)]
pub(super) struct SavedDir {
    pub(super) attributes: Attributes,
    pub(super) entries: BTreeMap<OsString, Saved>,
}

/// The files to save, and the limit for their size.
#[derive(Debug)]
pub(super) struct Wanted<'a> {
    /// The working directory; absolute.
    pub(super) root: &'a Path,
    pub(super) scope: &'a Scope,
    /// The program's own database.
    pub(super) database: Option<&'a Path>,
    /// The directory in which snapshots are made.
    pub(super) base: &'a Path,
    /// The maximum number of bytes; 0 is unlimited.
    pub(super) max_bytes: u64,
}

/// The saved files. They are removed when this is dropped.
#[derive(Debug)]
pub(super) struct Snapshot {
    /// The directory with the lock and with `files`, which has the names and contents of the saved files.
    pub(super) dir: TempDir,
    _lock: File,
    pub(super) root: OwnedFd,
    pub(super) path: PathBuf,
    pub(super) files: OwnedFd,
    pub(super) tree: SavedDir,
    pub(super) own: ProtectedFiles,
}

/// Saves the files of `wanted`.
///
/// # Errors
/// [`SnapshotError`]; all copies are then removed.
pub(super) fn take(
    wanted: &Wanted<'_>,
    cancel: &CancellationToken,
) -> Result<Snapshot, SnapshotError> {
    let failed = |path: &Path, error: io::Error| {
        SnapshotError::io("its directory cannot be created:", path, error)
    };
    let base = wanted.base;
    snapshot_locks::make_base(base).map_err(|error| failed(base, error))?;
    let root = openat(
        rustix::fs::CWD,
        wanted.root,
        super::dir_fd::LIST,
        Mode::empty(),
    )
    .map_err(|error| SnapshotError::io("cannot open", wanted.root, error))?;
    let own = ProtectedFiles::find(wanted.database, base).map_err(|error| failed(base, error))?;
    let mut taker = SnapshotBuilder {
        wanted,
        own: &own,
        cancel,
        bytes: 0,
    };
    if wanted.max_bytes > 0 {
        taker.root(&root, None)?;
        taker.bytes = 0;
    }
    let (dir, lock) = snapshot_locks::locked_dir(base).map_err(|error| failed(base, error))?;
    let at = dir.path().join("files");
    std::fs::create_dir(&at).map_err(|error| failed(&at, error))?;
    let files = openat(rustix::fs::CWD, &at, super::dir_fd::LIST, Mode::empty())
        .map_err(|error| failed(&at, error.into()))?;
    let tree = taker.root(&root, Some(&files))?;
    Ok(Snapshot {
        dir,
        _lock: lock,
        root,
        path: wanted.root.to_owned(),
        files,
        tree,
        own,
    })
}

struct SnapshotBuilder<'a> {
    wanted: &'a Wanted<'a>,
    own: &'a ProtectedFiles,
    cancel: &'a CancellationToken,
    bytes: u64,
}

/// A directory that is being saved, and its copy, if one is made.
struct Pair<'a> {
    from: &'a OwnedFd,
    to: Option<&'a OwnedFd>,
    /// The path relative to the root.
    path: &'a Path,
    whole: bool,
    depth: usize,
}

impl SnapshotBuilder<'_> {
    fn root(&mut self, root: &OwnedFd, to: Option<&OwnedFd>) -> Result<SavedDir, SnapshotError> {
        let stat = fstat(root)
            .map_err(|error| SnapshotError::io("cannot examine", self.wanted.root, error))?;
        let pair = Pair {
            from: root,
            to,
            path: Path::new(""),
            whole: false,
            depth: 0,
        };
        self.dir(&pair, &stat)
    }

    fn dir(&mut self, pair: &Pair<'_>, stat: &Stat) -> Result<SavedDir, SnapshotError> {
        let shown = || self.wanted.root.join(pair.path);
        let failed = |error: Errno| SnapshotError::io("cannot read", &shown(), error);
        if pair.depth > MAX_DEPTH {
            let error = io::Error::other(format!("more than {MAX_DEPTH} directories deep"));
            return Err(SnapshotError::io("cannot read", &shown(), error));
        }
        let here = identity(stat);
        let mut saved = BTreeMap::new();
        for name in entries(pair.from).map_err(failed)? {
            if self.cancel.is_cancelled() {
                return Err(SnapshotError::Cancelled);
            }
            let path = pair.path.join(&name);
            let whole = pair.whole || self.wanted.scope.names(&path);
            if !whole && !self.wanted.scope.leads_into(&path) {
                continue;
            }
            let entry = if self.own.has(here, &name) {
                Some(Saved::Other)
            } else {
                let below = Pair {
                    path: &path,
                    whole,
                    ..*pair
                };
                self.entry(&below, &name)?
            };
            saved.extend(entry.map(|entry| (name, entry)));
        }
        Ok(SavedDir {
            attributes: Attributes::of(stat),
            entries: saved,
        })
    }

    /// Saves the entry `name` at the path of `pair`. `None` if it does not exist or is not in scope.
    fn entry(&mut self, pair: &Pair<'_>, name: &OsStr) -> Result<Option<Saved>, SnapshotError> {
        let failed = |error: Errno| {
            SnapshotError::io("cannot read", &self.wanted.root.join(pair.path), error)
        };
        let stat = match statat(pair.from, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => self.below(pair, name),
            _ if !pair.whole => Ok(None),
            FileType::RegularFile => self.file(pair, name, &stat),
            FileType::Symlink => {
                let target = readlinkat(pair.from, name, Vec::new()).map_err(failed)?;
                let target = OsString::from_vec(target.into_bytes());
                if let Some(to) = pair.to {
                    symlinkat(&*target, to, name).map_err(|error| self.not_kept(pair, error))?;
                }
                Ok(Some(Saved::Link(target)))
            }
            _ => Ok(Some(Saved::Other)),
        }
    }

    fn below(&mut self, pair: &Pair<'_>, name: &OsStr) -> Result<Option<Saved>, SnapshotError> {
        let failed = |error: Errno| {
            SnapshotError::io("cannot open", &self.wanted.root.join(pair.path), error)
        };
        let from = open_dir(pair.from, name).map_err(failed)?;
        let stat = fstat(&from).map_err(failed)?;
        if self.own.is_base(identity(&stat)) {
            return Ok(Some(Saved::Other));
        }
        let to = match pair.to {
            None => None,
            Some(to) => {
                // The copy must be accessible and removable for this process, regardless of the modes.
                let mode = Mode::from_raw_mode((stat.st_mode & 0o777) | 0o700);
                let made = mkdirat(to, name, mode).and_then(|()| open_dir(to, name));
                Some(made.map_err(|error| self.not_kept(pair, error))?)
            }
        };
        let below = Pair {
            from: &from,
            to: to.as_ref(),
            depth: pair.depth + 1,
            ..*pair
        };
        let saved = self.dir(&below, &stat)?;
        if pair.whole || !saved.entries.is_empty() {
            return Ok(Some(Saved::Dir(saved)));
        }
        // Neither the directory nor an entry of it is in scope.
        if let Some(to) = pair.to {
            unlinkat(to, name, AtFlags::REMOVEDIR).map_err(|error| self.not_kept(pair, error))?;
        }
        Ok(None)
    }

    fn file(
        &mut self,
        pair: &Pair<'_>,
        name: &OsStr,
        stat: &Stat,
    ) -> Result<Option<Saved>, SnapshotError> {
        let attributes = Attributes::of(stat);
        let Some(to) = pair.to else {
            let size = u64::try_from(stat.st_size).unwrap_or_default();
            self.count(size)?;
            return Ok(Some(Saved::File { attributes, size }));
        };
        let read = |error: io::Error| {
            SnapshotError::io("cannot read", &self.wanted.root.join(pair.path), error)
        };
        let mut source = match open_file(pair.from, name) {
            Ok(file) => file,
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(read(error.into())),
        };
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let copy = openat(to, name, flags, Mode::from_raw_mode(0o600))
            .map_err(|error| self.not_kept(pair, error))?;
        let mut copy = File::from(copy);
        let mut size = 0;
        loop {
            // On one file system, the kernel copies the data or shares the blocks.
            let bytes = io::copy(&mut (&mut source).take(PORTION), &mut copy).map_err(read)?;
            if bytes == 0 {
                break;
            }
            size += bytes;
            self.count(bytes)?;
            if self.cancel.is_cancelled() {
                return Err(SnapshotError::Cancelled);
            }
        }
        // Readable for the user, who may examine a stored snapshot.
        fchmod(&copy, Mode::from_raw_mode((stat.st_mode & 0o777) | 0o400))
            .map_err(|error| self.not_kept(pair, error))?;
        Ok(Some(Saved::File { attributes, size }))
    }

    fn count(&mut self, bytes: u64) -> Result<(), SnapshotError> {
        self.bytes = self.bytes.saturating_add(bytes);
        match self.wanted.max_bytes {
            0 => Ok(()),
            max if self.bytes <= max => Ok(()),
            max => Err(SnapshotError::TooLarge { max }),
        }
    }

    fn not_kept(&self, pair: &Pair<'_>, error: Errno) -> SnapshotError {
        SnapshotError::io(
            "cannot store a copy of",
            &self.wanted.root.join(pair.path),
            error,
        )
    }
}
