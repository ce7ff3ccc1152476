//! Locks on paths for the read, change and write of a file.
//!
//! [`PathLocks`] orders the calls in this process, [`hold_file`] those in several processes. Otherwise two
//! processes that edit one file would overwrite each other's changes.

use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, FlockOperation, flock, statat};
use rustix::io::Errno;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};
use tokio_util::sync::CancellationToken;

use crate::error::ToolError;
use crate::file::resolved_path::Target;

/// The maximum wait for the lock of another process. This program holds a lock only for one write, and `atomic`
/// checks the file before the rename in any case.
const PATIENCE: Duration = Duration::from_secs(5);
/// The wait before the next attempt to lock.
const PAUSE: Duration = Duration::from_millis(2);

/// Waits for the lock (`flock`) of the file at `target`, which other processes of this program also use.
///
/// Dropping the handle releases the lock. Returns `None` if the file does not exist or cannot be locked: it is
/// not readable, or the file system has no locks.
///
/// # Errors
/// [`ToolError::Cancelled`].
/// [`ToolError::Cancelled`].
#[allow(
    clippy::disallowed_methods,
    reason = "file I/O has a thread that may block, and a lock cannot be waited for and cancelled"
)]
pub(super) fn hold_file(
    target: &Target,
    cancel: &CancellationToken,
) -> Result<Option<File>, ToolError> {
    let start = Instant::now();
    loop {
        let Ok((file, opened)) = target.open() else {
            return Ok(None);
        };
        // A writer replaces the file, so the lock must be on the current file.
        let stands = || {
            statat(&*target.dir, &target.name, AtFlags::SYMLINK_NOFOLLOW)
                .is_ok_and(|now| (now.st_dev, now.st_ino) == (opened.st_dev, opened.st_ino))
        };
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => break,
                Err(Errno::WOULDBLOCK | Errno::INTR) if start.elapsed() < PATIENCE => {}
                Err(_) => return Ok(None),
            }
            if cancel.is_cancelled() {
                return Err(ToolError::cancelled());
            }
            std::thread::sleep(PAUSE);
            if !stands() {
                break;
            }
        }
        if stands() || start.elapsed() >= PATIENCE {
            return Ok(Some(file));
        }
    }
}

/// The locks that are held or awaited.
#[derive(Debug, Default)]
pub(super) struct PathLocks {
    locks: Mutex<HashMap<PathBuf, Arc<AsyncMutex<()>>>>,
}

/// The lock of one path. Dropping it releases the lock.
#[derive(Debug)]
pub(super) struct PathGuard<'a> {
    locks: &'a PathLocks,
    path: PathBuf,
    /// `Some` until the drop.
    held: Option<OwnedMutexGuard<()>>,
}

impl PathLocks {
    /// Waits for the lock of the canonical `path`. The thread may block.
    pub(super) fn hold(&self, path: &Path) -> PathGuard<'_> {
        let lock = {
            let mut locks = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(locks.entry(path.to_owned()).or_default())
        };
        PathGuard {
            locks: self,
            path: path.to_owned(),
            held: Some(lock.blocking_lock_owned()),
        }
    }
}

impl Drop for PathGuard<'_> {
    fn drop(&mut self) {
        let mut locks = self
            .locks
            .locks
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        self.held = None;
        // Each waiting thread has a clone, and clones are created only under `locks`.
        if locks
            .get(&self.path)
            .is_some_and(|lock| Arc::strong_count(lock) == 1)
        {
            locks.remove(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lock_has_one_holder_and_is_removed() {
        let locks = PathLocks::default();
        // A thread that enters while another one is inside fails.
        let total = Mutex::new(0_u32);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..500 {
                        let _guard = locks.hold(Path::new("/a"));
                        *total.try_lock().expect("another thread is inside") += 1;
                    }
                });
            }
        });
        assert_eq!(*total.lock().expect("not poisoned"), 2000);
        assert!(locks.locks.lock().expect("not poisoned").is_empty());
    }
}
