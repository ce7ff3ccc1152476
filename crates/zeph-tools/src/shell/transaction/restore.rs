//! Restores the files in scope to their state in the snapshot.
//!
//! First, created files are removed, which frees the disk. Then changed and removed files are restored: each is written
//! under a temporary name in its directory and then renamed. Unchanged files are not touched. All access is relative to
//! the directory handle of the snapshot and follows no link. So no file outside is written, even if a command has
//! replaced a directory by a link.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, FileType, Gid, Mode, OFlags, Stat, Uid, fchmod, fchown, fstat, mkdirat, openat,
    readlinkat, renameat, stat, symlinkat, unlinkat,
};

use super::dir_fd::{
    Identity, MAX_DEPTH, entries, identity, look, open_dir, open_file, open_to_change, remove,
};
use super::scope::Scope;
use super::snapshot::{Attributes, Saved, SavedDir, Snapshot};
use crate::event::RolledBack;

/// The number of files up to which each is synchronized separately. With more, the whole file system is.
const SYNCED: usize = 64;
/// The number of bytes that are compared at a time.
const PORTION: usize = 64 * 1024;

/// A file that could not be restored.
#[derive(Debug)]
pub(super) struct Failure {
    /// The path relative to the root; empty for the root itself.
    pub(super) path: PathBuf,
    /// The reason.
    pub(super) why: String,
}

/// Restores the files of `snapshot`. The list has the files that could not be restored. All other files are restored.
pub(super) fn restore(snapshot: &Snapshot, scope: &Scope) -> (RolledBack, Vec<Failure>) {
    let mut work = Restorer {
        snapshot,
        scope,
        done: RolledBack::default(),
        widened: HashMap::new(),
        failures: Vec::new(),
    };
    if let Err(error) = work.run() {
        work.fail(Path::new(""), &error);
    }
    (work.done, work.failures)
}

struct Restorer<'a> {
    snapshot: &'a Snapshot,
    scope: &'a Scope,
    done: RolledBack,
    /// The attributes of directories from before their mode was widened for the restoration.
    widened: HashMap<Identity, Attributes>,
    failures: Vec<Failure>,
}

impl Restorer<'_> {
    fn fail(&mut self, path: &Path, why: &dyn std::fmt::Display) {
        self.failures.push(Failure {
            path: path.to_owned(),
            why: why.to_string(),
        });
    }

    fn run(&mut self) -> io::Result<()> {
        let snapshot = self.snapshot;
        let root = fstat(&snapshot.root)?;
        if stat(&snapshot.path).map(|found| identity(&found)).ok() != Some(identity(&root)) {
            return Err(io::Error::other("it was moved, removed or replaced"));
        }
        let before = Attributes::of(&root);
        // If another user owns the directory, it stays unchanged.
        let _ = fchmod(
            &snapshot.root,
            Mode::from_raw_mode((root.st_mode & 0o7777) | 0o700),
        );
        self.sweep(
            &snapshot.root,
            Some(&snapshot.tree),
            Path::new(""),
            false,
            0,
        );
        self.rebuild(
            &snapshot.root,
            &snapshot.files,
            &snapshot.tree,
            Path::new(""),
        );
        self.settle(&snapshot.root, before, snapshot.tree.attributes)?;
        #[cfg(target_os = "linux")]
        if self.done.restored > SYNCED {
            rustix::fs::syncfs(&snapshot.root)?;
        }
        Ok(())
    }

    /// Removes the entries in scope that were created after the snapshot from the directory `live`.
    fn sweep(
        &mut self,
        live: &OwnedFd,
        saved: Option<&SavedDir>,
        path: &Path,
        whole: bool,
        depth: usize,
    ) {
        let (names, here) = match entries(live).and_then(|names| Ok((names, fstat(live)?))) {
            Ok((names, stat)) => (names, identity(&stat)),
            Err(error) => return self.fail(path, &error),
        };
        for name in names {
            let path = path.join(&name);
            let whole = whole || self.scope.names(&path);
            let swept = match saved.and_then(|saved| saved.entries.get(&name)) {
                Some(Saved::Dir(below)) => {
                    self.sweep_below(live, &name, Some(below), &path, whole, depth)
                }
                Some(_) => Ok(()),
                None => self.sweep_new(live, &name, here, &path, whole, depth),
            };
            if let Err(error) = swept {
                self.fail(&path, &error);
            }
        }
    }

    fn sweep_below(
        &mut self,
        live: &OwnedFd,
        name: &OsStr,
        saved: Option<&SavedDir>,
        path: &Path,
        whole: bool,
        depth: usize,
    ) -> io::Result<()> {
        if !is_dir(look(live, name)?.as_ref()) {
            return Ok(());
        }
        if depth == MAX_DEPTH {
            return Err(io::Error::other(format!(
                "it is more than {MAX_DEPTH} directories deep"
            )));
        }
        let below = match saved {
            Some(_) => self.enter(live, name)?,
            None => open_dir(live, name)?,
        };
        self.sweep(&below, saved, path, whole, depth + 1);
        Ok(())
    }

    fn enter(&mut self, live: &OwnedFd, name: &OsStr) -> io::Result<OwnedFd> {
        let (opened, stood) = open_to_change(live, name)?;
        let attributes = Attributes::of(&stood);
        if attributes.mode & 0o700 != 0o700 {
            self.widened.insert(identity(&stood), attributes);
        }
        Ok(opened)
    }

    /// Handles the entry `name`, which did not exist or was not in scope.
    fn sweep_new(
        &mut self,
        live: &OwnedFd,
        name: &OsStr,
        here: Identity,
        path: &Path,
        whole: bool,
        depth: usize,
    ) -> io::Result<()> {
        let own = &self.snapshot.own;
        if own.has(here, name) {
            return Ok(());
        }
        if whole {
            return remove(live, name, own, depth, &mut self.done.removed);
        }
        if self.scope.leads_into(path) {
            return self.sweep_below(live, name, None, path, whole, depth);
        }
        Ok(())
    }

    /// Restores the entries of `saved` in the directory `live`; `files` has the contents.
    fn rebuild(&mut self, live: &OwnedFd, files: &OwnedFd, saved: &SavedDir, path: &Path) {
        for (name, entry) in &saved.entries {
            let path = path.join(name);
            let rebuilt = match entry {
                Saved::Other => Ok(()),
                Saved::Link(target) => self.link(live, name, target),
                Saved::File { attributes, size } => {
                    self.file(live, files, name, *attributes, *size)
                }
                Saved::Dir(below) => self.dir(live, files, name, below, &path),
            };
            if let Err(error) = rebuilt {
                self.fail(&path, &error);
            }
        }
    }

    fn dir(
        &mut self,
        live: &OwnedFd,
        files: &OwnedFd,
        name: &OsStr,
        saved: &SavedDir,
        path: &Path,
    ) -> io::Result<()> {
        let stood = look(live, name)?;
        let before = match &stood {
            Some(stat) if is_dir(stood.as_ref()) => {
                let widened = self.widened.get(&identity(stat)).copied();
                widened.unwrap_or_else(|| Attributes::of(stat))
            }
            other => {
                if other.is_some() {
                    unlinkat(live, name, AtFlags::empty())?;
                }
                mkdirat(live, name, Mode::from_raw_mode(0o700))?;
                self.done.restored += 1;
                saved.attributes
            }
        };
        let inner = self.enter(live, name)?;
        self.rebuild(&inner, &open_dir(files, name)?, saved, path);
        self.settle(&inner, before, saved.attributes)
    }

    /// Restores mode and owner of an existing directory or file. `before` has its attributes before the restoration.
    fn settle(
        &mut self,
        file: impl AsFd,
        before: Attributes,
        wanted: Attributes,
    ) -> io::Result<()> {
        let now = fstat(&file)?;
        if Attributes::of(&now) != wanted {
            give(&file, &now, wanted)?;
        }
        self.done.restored += usize::from(before != wanted);
        Ok(())
    }

    fn file(
        &mut self,
        live: &OwnedFd,
        files: &OwnedFd,
        name: &OsStr,
        attributes: Attributes,
        size: u64,
    ) -> io::Result<()> {
        let lost = |_| io::Error::other("the snapshot copy is missing or was modified");
        let mut copy = open_file(files, name).map_err(lost)?;
        if copy.metadata()?.len() != size {
            return Err(io::Error::other("the snapshot copy was modified"));
        }
        let stood = look(live, name)?;
        if stood.as_ref().is_some_and(|stat| {
            FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
                && u64::try_from(stat.st_size) == Ok(size)
        })
            // A file that cannot be read is replaced.
            && let Ok(mut current) = open_file(live, name)
        {
            if equal(&mut current, &mut copy)? {
                let before = Attributes::of(&fstat(&current)?);
                return self.settle(&current, before, attributes);
            }
            copy = open_file(files, name).map_err(lost)?;
        }
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let new = temporary();
        let file = openat(live, &new, flags, Mode::from_raw_mode(0o600))?;
        let mut file = File::from(file);
        let written = io::copy(&mut copy, &mut file).and_then(|_| {
            give(&file, &fstat(&file)?, attributes)?;
            // The snapshot is removed at the end, so the restored data must be on the disk by then.
            if self.done.restored < SYNCED || cfg!(not(target_os = "linux")) {
                file.sync_all()?;
            }
            Ok(())
        });
        self.take_place(live, &new, name, stood.as_ref(), written)
    }

    fn link(&mut self, live: &OwnedFd, name: &OsStr, target: &OsStr) -> io::Result<()> {
        let stood = look(live, name)?;
        if readlinkat(live, name, Vec::new())
            .is_ok_and(|found| OsString::from_vec(found.into_bytes()) == target)
        {
            return Ok(());
        }
        let new = temporary();
        symlinkat(target, live, &new)?;
        self.take_place(live, &new, name, stood.as_ref(), Ok(()))
    }

    /// Renames the `written` file `new` to `name`, and replaces the previous entry.
    fn take_place(
        &mut self,
        live: &OwnedFd,
        new: &OsStr,
        name: &OsStr,
        stood: Option<&Stat>,
        written: io::Result<()>,
    ) -> io::Result<()> {
        let placed = written.and_then(|()| {
            if is_dir(stood) {
                let own = &self.snapshot.own;
                remove(live, name, own, 0, &mut self.done.removed)?;
            }
            Ok(renameat(live, new, live, name)?)
        });
        match placed {
            Ok(()) => {
                self.done.restored += 1;
                Ok(())
            }
            Err(error) => {
                // The returned error already reports the incomplete restoration.
                let _ = unlinkat(live, new, AtFlags::empty());
                Err(error)
            }
        }
    }
}

fn is_dir(stat: Option<&Stat>) -> bool {
    stat.is_some_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory)
}

fn temporary() -> OsString {
    OsString::from(format!(".zeph-tmp-{}", uuid::Uuid::new_v4().simple()))
}

/// Sets mode and owner of `file`; `now` is its current status. If the owner or the group cannot be set, the mode is
/// narrowed, so that no user gets more rights.
fn give(file: impl AsFd, now: &Stat, wanted: Attributes) -> io::Result<()> {
    let mut mode = wanted.mode;
    let owner = Some(Uid::from_raw(wanted.uid));
    let group = Some(Gid::from_raw(wanted.gid));
    // The owner is changed first, because that clears the set-user-ID bit.
    if now.st_uid != wanted.uid && fchown(&file, owner, None).is_err() {
        mode &= !0o4000;
    }
    if now.st_gid != wanted.gid && fchown(&file, None, group).is_err() {
        mode = (mode & !0o2070) | (mode & 0o070 & ((mode & 0o007) << 3));
    }
    Ok(fchmod(file, Mode::from_raw_mode(mode))?)
}

/// Whether two files have the same content.
fn equal(one: &mut File, other: &mut File) -> io::Result<bool> {
    let mut buffers = (vec![0; PORTION], vec![0; PORTION]);
    loop {
        let read = fill(one, &mut buffers.0)?;
        if fill(other, &mut buffers.1)? != read || buffers.0[..read] != buffers.1[..read] {
            return Ok(false);
        }
        if read == 0 {
            return Ok(true);
        }
    }
}

/// Reads until the buffer is full or the file ends.
fn fill(file: &mut File, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(bytes) => filled += bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
