//! One lock per path: what reads a file, changes it and writes it back holds it.
//!
//! [`PathLocks`] orders the calls of this process, [`hold_file`] those of several: without it two
//! processes that edit one file would each write back what the other has not seen.

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

/// How long the lock of another process is waited for. Ours are held for one write; who holds one
/// longer is no editor, and the check before the rename (`atomic`) is there all the same.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long to wait before asking for a lock again.
const PAUSE: Duration = Duration::from_millis(2);

/// Waits for the lock (`flock`) of the file at `target`, which other processes of this program
/// take too. It is let go when the handle is dropped. `None` where there is no file, or it cannot
/// be locked: not readable, or a file system without locks.
///
/// # Errors
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
        // A writer replaces the file: the lock that counts is that of what stands there now.
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

/// The locks that are held or waited for.
#[derive(Debug, Default)]
pub(super) struct PathLocks {
    locks: Mutex<HashMap<PathBuf, Arc<AsyncMutex<()>>>>,
}

/// The lock of one path; let go on drop.
#[derive(Debug)]
pub(super) struct PathGuard<'a> {
    locks: &'a PathLocks,
    path: PathBuf,
    /// `Some` until it is dropped.
    held: Option<OwnedMutexGuard<()>>,
}

impl PathLocks {
    /// Waits for the lock of the canonical `path`. For threads that may block.
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
        // Whoever waits has a copy, and copies are made under `locks` alone.
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
    fn one_holder_at_a_time_and_nothing_is_left() {
        let locks = PathLocks::default();
        // Taken without waiting: whoever comes while another is inside fails.
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
