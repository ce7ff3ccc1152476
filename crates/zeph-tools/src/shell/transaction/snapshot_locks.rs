//! Directories of snapshots. Each has a lock that is held while it is in use, to distinguish the snapshots of killed
//! processes from those of running ones.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::{FlockOperation, OFlags, flock};
use tempfile::TempDir;

/// The prefix of the directory names.
const PREFIX: &str = "snapshot-";
/// The name of the lock file. A directory without one is never removed.
const LOCK: &str = "lock";

/// Creates the directory of the snapshots, which only this user may access.
pub(super) fn make_base(base: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(base)
}

/// Creates a directory in `base`, and its lock.
pub(super) fn locked_dir(base: &Path) -> io::Result<(TempDir, File)> {
    let dir = tempfile::Builder::new().prefix(PREFIX).tempdir_in(base)?;
    // The lock gets its name when it is locked, so no process takes the directory for an abandoned one.
    let new = dir.path().join("lock.new");
    let lock = File::create_new(&new)?;
    flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
    fs::rename(new, dir.path().join(LOCK))?;
    Ok((dir, lock))
}

/// Makes a snapshot stay if this process is killed from now on.
pub(super) fn hold_on_to(dir: &Path) -> io::Result<()> {
    fs::remove_file(dir.join(LOCK))
}

/// Removes the snapshots of killed processes.
pub(super) fn clean(base: &Path) {
    let Ok(found) = fs::read_dir(base) else {
        return;
    };
    for entry in found.flatten() {
        let name = entry.file_name();
        if name.to_string_lossy().starts_with(PREFIX) && is_abandoned(&entry.path().join(LOCK)) {
            // A later start may remove a directory that cannot be removed now.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn is_abandoned(lock: &Path) -> bool {
    let no_link = OFlags::NOFOLLOW.bits().cast_signed();
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags(no_link)
        .open(lock);
    opened.is_ok_and(|lock| flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves SH-32: the snapshot of a killed process is removed; one in use, or one to be retained, is not.
    #[test]
    fn abandoned_snapshots_are_removed() {
        let base = tempfile::tempdir().expect("a directory");
        let (used, lock) = locked_dir(base.path()).expect("a snapshot");
        let (kept, held) = locked_dir(base.path()).expect("a snapshot");
        hold_on_to(kept.path()).expect("kept");
        drop(held);
        let (abandoned, held) = locked_dir(base.path()).expect("a snapshot");
        let abandoned = abandoned.keep();
        fs::create_dir(abandoned.join("files")).expect("a directory");
        fs::create_dir(base.path().join("others")).expect("a directory");
        clean(base.path());
        assert!(abandoned.exists());
        drop(held);
        clean(base.path());
        assert!(!abandoned.exists());
        assert!(used.path().exists() && kept.path().exists());
        assert!(base.path().join("others").exists());
        drop(lock);
    }
}
