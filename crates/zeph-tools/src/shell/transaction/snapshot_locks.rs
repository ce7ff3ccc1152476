//! The directories of snapshots: each has a lock that is held as long as it is in use, so that what
//! a killed process left behind can be told from what another one works with.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::{FlockOperation, OFlags, flock};
use tempfile::TempDir;

/// How the names of the directories begin.
const PREFIX: &str = "snapshot-";
/// The name of the lock. A directory without one is kept for good.
const LOCK: &str = "lock";

/// Makes the directory in which snapshots are made, for this user alone.
pub(super) fn make_base(base: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(base)
}

/// A new directory in `base`, and its lock.
pub(super) fn locked_dir(base: &Path) -> io::Result<(TempDir, File)> {
    let dir = tempfile::Builder::new().prefix(PREFIX).tempdir_in(base)?;
    // It gets its name when it is locked: until then nobody takes it for an abandoned one.
    let new = dir.path().join("lock.new");
    let lock = File::create_new(&new)?;
    flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
    fs::rename(new, dir.path().join(LOCK))?;
    Ok((dir, lock))
}

/// Lets a snapshot stay when this process is killed from now on.
pub(super) fn hold_on_to(dir: &Path) -> io::Result<()> {
    fs::remove_file(dir.join(LOCK))
}

/// Removes the snapshots that processes left behind which were killed.
pub(super) fn clean(base: &Path) {
    let Ok(found) = fs::read_dir(base) else {
        return;
    };
    for entry in found.flatten() {
        let name = entry.file_name();
        if name.to_string_lossy().starts_with(PREFIX) && is_abandoned(&entry.path().join(LOCK)) {
            // What cannot be removed now may be later.
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

    /// Proves SH-32: what a killed process left is removed, what is in use or was kept is not.
    #[test]
    fn abandoned_snapshots_go() {
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
