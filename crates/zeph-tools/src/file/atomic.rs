//! Atomic replacement of files: after a crash or power failure a file has either its old or its new content.
//!
//! The new content is written to a temporary file in the same directory, synchronized to the disk, and renamed
//! to the target. Then the directory is synchronized. A killed process leaves at most a file named
//! `.zeph-tmp-…`, which nothing reads.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;

use rustix::fs::{
    AtFlags, FlockOperation, Gid, Mode, OFlags, RawMode, Stat, Uid, fchmod, fchown, flock, fstat,
    fsync, openat, renameat, statat, unlinkat,
};
use rustix::io::Errno;
use tokio_util::sync::CancellationToken;

use crate::error::ToolError;
use crate::file::copy_tree::rename_new;
use crate::file::resolved_path::Target;

/// The prefix of the names of temporary files.
pub(super) const TEMPORARY: &str = ".zeph-tmp-";

/// A temporary file that is removed unless it was renamed.
struct Temporary<'a> {
    target: &'a Target,
    name: OsString,
    renamed: bool,
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if !self.renamed {
            // A failure to remove the file is ignored: it is harmless.
            let _ = unlinkat(&*self.target.dir, &self.name, AtFlags::empty());
        }
    }
}

/// Writes `content` to `target`.
///
/// Owner and mode of `existing`, the replaced file, are retained. A new file has the default ones of the
/// process. Cancellation is possible until the rename. Returns the new file, locked as by `locks::hold_file` if
/// possible: no process of this program changes it before the handle is dropped.
///
/// # Errors
/// If the target is not writable, the disk is full, the call is cancelled, or `existing` was changed or
/// replaced; [`io::ErrorKind::AlreadyExists`] if `existing` is `None` and the target exists. Then neither the
/// content nor a temporary file remains.
pub(super) fn replace(
    target: &Target,
    content: &[u8],
    existing: Option<&Stat>,
    cancel: &CancellationToken,
) -> Result<File, ToolError> {
    let failed = |error: io::Error| {
        if error.kind() == io::ErrorKind::StorageFull
            || error.kind() == io::ErrorKind::QuotaExceeded
        {
            ToolError::permanent(format!(
                "the disk is full, so {} was not written and has its old content ({error})",
                target.path.display()
            ))
        } else {
            ToolError::io("write", &target.path, error)
        }
    };
    if existing.is_some() {
        writable(target).map_err(|error| failed(error.into()))?;
    }
    let (mut temporary, mut file) =
        create(target, existing.is_none()).map_err(|error| failed(error.into()))?;
    // The lock is optional, because some file systems have no locks.
    let _ = flock(&file, FlockOperation::NonBlockingLockExclusive);
    file.write_all(content).map_err(failed)?;
    if let Some(existing) = existing {
        take_over(&file, existing).map_err(|error| failed(error.into()))?;
    }
    file.sync_all().map_err(failed)?;
    if cancel.is_cancelled() {
        return Err(ToolError::cancelled());
    }
    if existing.is_some_and(|existing| !stands(target, existing)) {
        return Err(ToolError::invalid(format!(
            "another program changed {} in the meantime, so nothing was written: read it again",
            target.path.display()
        )));
    }
    let renamed = match existing {
        Some(_) => renameat(&*target.dir, &temporary.name, &*target.dir, &target.name),
        None => rename_new((&target.dir, &temporary.name), (&target.dir, &target.name)),
    };
    renamed.map_err(|error| failed(error.into()))?;
    temporary.renamed = true;
    // The content is in place. If the directory cannot be opened or synchronized (on some network file
    // systems), a power failure may still revert the rename.
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    if let Ok(dir) = openat(&*target.dir, ".", flags, Mode::empty()) {
        let _ = fsync(dir);
    }
    Ok(file)
}

/// Returns true if the file at `target` is still the one that `seen` describes, with the same content.
pub(super) fn stands(target: &Target, seen: &Stat) -> bool {
    let content = |stat: &Stat| {
        (
            (stat.st_dev, stat.st_ino, stat.st_size),
            (stat.st_mtime, stat.st_mtime_nsec),
        )
    };
    statat(&*target.dir, &target.name, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|now| content(&now) == content(seen))
}

/// Checks that the file itself is writable. A rename requires only a writable directory, but a read-only file
/// must not be replaced.
fn writable(target: &Target) -> Result<(), Errno> {
    let flags =
        OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    match openat(&*target.dir, &target.name, flags, Mode::empty()) {
        // A running program can be replaced, although it cannot be opened for writing.
        Ok(_) | Err(Errno::TXTBSY) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Creates the temporary file: with the default mode for a new file, or readable only by the owner.
fn create(target: &Target, new: bool) -> Result<(Temporary<'_>, File), Errno> {
    let name = OsString::from(format!("{TEMPORARY}{}", uuid::Uuid::new_v4().simple()));
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(if new { 0o666 } else { 0o600 });
    let file = openat(&*target.dir, &name, flags, mode)?;
    let temporary = Temporary {
        target,
        name,
        renamed: false,
    };
    Ok((temporary, File::from(file)))
}

/// Sets owner and mode of `file` to those of `existing`. If owner or group cannot be set, the mode is reduced,
/// so that no user gains access.
pub(super) fn take_over(file: impl AsFd, existing: &Stat) -> Result<(), Errno> {
    let created = fstat(&file)?;
    let mode = kept_mode(
        existing.st_mode & 0o7777,
        existing.st_uid == created.st_uid
            || fchown(&file, Some(Uid::from_raw(existing.st_uid)), None).is_ok(),
        existing.st_gid == created.st_gid
            || fchown(&file, None, Some(Gid::from_raw(existing.st_gid))).is_ok(),
    );
    fchmod(&file, Mode::from_raw_mode(mode))
}

/// The mode of the new file: `mode` without the rights that a different owner or group would gain.
fn kept_mode(mode: RawMode, same_owner: bool, same_group: bool) -> RawMode {
    let mut kept = mode;
    if !same_owner {
        kept &= !0o4000;
    }
    if !same_group {
        let others = mode & 0o007;
        kept = (kept & !0o2070) | (mode & 0o070 & (others << 3));
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_mode_is_never_widened() {
        let check = |mode, owner, group, expect| {
            assert_eq!(kept_mode(mode, owner, group), expect, "{mode:o}");
        };
        check(0o644, true, true, 0o644);
        check(0o4755, true, true, 0o4755);
        check(0o4755, false, true, 0o755);
        check(0o2775, true, false, 0o755);
        check(0o640, true, false, 0o600);
        check(0o664, true, false, 0o644);
        check(0o660, false, false, 0o600);
    }

    fn target(dir: &std::path::Path, name: &str) -> Target {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let handle = openat(rustix::fs::CWD, dir, flags, Mode::empty()).expect("a directory");
        Target {
            dir: std::sync::Arc::new(handle),
            name: name.into(),
            path: dir.join(name),
        }
    }

    fn names(dir: &std::path::Path) -> Vec<OsString> {
        let entries = std::fs::read_dir(dir).expect("a directory");
        entries
            .map(|entry| entry.expect("an entry").file_name())
            .collect()
    }

    /// Proves FILE-20 in part: a failed write changes nothing, and leaves no temporary file.
    #[test]
    fn failed_write_leaves_only_the_old_content() {
        let dir = tempfile::tempdir().expect("a directory");
        let go_on = CancellationToken::new();
        // The rename fails: the temporary file exists at this time.
        std::fs::create_dir(dir.path().join("taken")).expect("a directory");
        replace(&target(dir.path(), "taken"), b"new", None, &go_on).expect_err("a directory");
        assert_eq!(names(dir.path()), ["taken"]);

        let file = dir.path().join("taken/f");
        std::fs::write(&file, "old").expect("a file");
        let cancelled = CancellationToken::new();
        cancelled.cancel();
        let below = target(&dir.path().join("taken"), "f");
        let stat = below.existing().expect("a file");
        let error = replace(&below, b"new", stat.as_ref(), &cancelled).expect_err("cancelled");
        assert!(matches!(error, ToolError::Cancelled { .. }));
        assert_eq!(std::fs::read(&file).expect("a file"), b"old");
        assert_eq!(names(&dir.path().join("taken")), ["f"]);

        replace(&below, b"new", stat.as_ref(), &go_on).expect("written");
        assert_eq!(std::fs::read(&file).expect("a file"), b"new");
        assert_eq!(names(&dir.path().join("taken")), ["f"]);
    }

    #[test]
    fn concurrently_changed_file_is_not_overwritten() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("f");
        std::fs::write(&file, "old").expect("a file");
        let target = target(dir.path(), "f");
        let stat = target.existing().expect("a file");
        std::fs::write(&file, "theirs").expect("changed");
        let error = replace(&target, b"ours", stat.as_ref(), &CancellationToken::new())
            .expect_err("changed");
        assert!(error.to_string().contains("in the meantime"), "{error}");
        assert_eq!(std::fs::read(&file).expect("a file"), b"theirs");
        std::fs::remove_file(&file).expect("removed");
        replace(&target, b"ours", stat.as_ref(), &CancellationToken::new()).expect_err("gone");
        assert!(names(dir.path()).is_empty());
    }

    #[test]
    fn read_only_file_is_not_overwritten() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("f");
        std::fs::write(&file, "old").expect("a file");
        let mut permissions = std::fs::metadata(&file).expect("metadata").permissions();
        permissions.set_readonly(true);
        std::fs::set_permissions(&file, permissions).expect("read-only");
        let target = target(dir.path(), "f");
        let stat = target.existing().expect("a file");
        let result = replace(&target, b"new", stat.as_ref(), &CancellationToken::new());
        // The superuser can write read-only files.
        let content: &[u8] = if rustix::process::geteuid().is_root() {
            result.expect("written");
            b"new"
        } else {
            result.expect_err("read-only");
            b"old"
        };
        assert_eq!(std::fs::read(&file).expect("a file"), content);
    }
}
