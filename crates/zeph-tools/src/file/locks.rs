//! One lock per path: what reads a file, changes it and writes it back holds it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

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
