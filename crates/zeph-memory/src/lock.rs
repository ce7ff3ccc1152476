//! Locks that allow one agent at a time on a session: a locked file next to the database, or a lease on a server.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::conversation::unknown;
use crate::database::query;
use crate::error::StoreError;
use crate::lease::Lease;
use crate::store::Store;

/// The maximum number of attempts to create a lock file that its holder removes at the same moment.
const ATTEMPTS: usize = 64;

/// A lock on a session. It ends when it is dropped, or when the process ends in any way.
#[derive(Debug)]
pub struct SessionLock {
    kind: LockKind,
}

/// The form of a lock: a file of this machine, or a row on a server.
#[derive(Debug)]
enum LockKind {
    File(#[expect(dead_code, reason = "it is dropped")] LockFile),
    Lease(Lease),
}

#[derive(Debug)]
struct LockFile {
    file: File,
    path: PathBuf,
}

impl Drop for LockFile {
    fn drop(&mut self) {
        // First the name, then the lock: who locks the nameless file notices (`is_at`). Unlocked
        // by hand, since a process just being started holds a copy of the descriptor.
        let removed = fs::remove_file(&self.path);
        let unlocked = self.file.unlock();
        for error in [removed.err(), unlocked.err()].into_iter().flatten() {
            tracing::debug!(path = %self.path.display(), %error, "releasing the lock of a session");
        }
    }
}

impl SessionLock {
    /// Ends the lock, and returns as soon as another process can have it. A dropped lock on a server ends a little later.
    pub async fn release(self) {
        if let LockKind::Lease(lease) = self.kind {
            lease.release().await;
        }
    }
}

impl Store {
    /// Locks the session `id` for this process.
    ///
    /// # Errors
    /// [`StoreError::UnknownSession`]; [`StoreError::SessionInUse`] if another process, or another part of this one,
    /// holds it; or a failure of the database or of the file system.
    pub async fn lock_session(&self, id: &str) -> Result<SessionLock, StoreError> {
        if self.is_shared() {
            let lease = self.take_lease(id).await?;
            return Ok(SessionLock {
                kind: LockKind::Lease(lease),
            });
        }
        let select = query("SELECT number FROM session WHERE id = ?1");
        let rows = self.fetch(select.bind(id)).await?;
        let row = rows.first().ok_or_else(|| unknown(id))?;
        let number: i64 = row.try_get(0).map_err(|error| self.sql(error))?;

        // Numbers are never used twice, and unlike ids they are always good names of files.
        let mut folder = self.path().as_os_str().to_owned();
        folder.push("-locks");
        let path = Path::new(&folder).join(number.to_string());
        match lock_file(&path) {
            Ok(Some(file)) => Ok(SessionLock {
                kind: LockKind::File(LockFile { file, path }),
            }),
            Ok(None) => Err(StoreError::SessionInUse {
                id: id.to_owned(),
                pid: fs::read_to_string(&path)
                    .ok()
                    .and_then(|text| text.trim().parse().ok()),
                host: None,
            }),
            Err(error) => Err(StoreError::io(&path, &error)),
        }
    }
}

/// Locks the file at `path` and writes our process id to it; `None` if another process holds it.
fn lock_file(path: &Path) -> io::Result<Option<File>> {
    if let Some(folder) = path.parent() {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)?;
    }
    for _ in 0..ATTEMPTS {
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        if is_at(&file, path)? {
            file.set_len(0)?;
            file.write_all(std::process::id().to_string().as_bytes())?;
            return Ok(Some(file));
        }
    }
    Err(io::Error::other(
        "the lock of the session keeps changing; try again",
    ))
}

/// Whether the open file is still the one of that name.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let ours = file.metadata()?;
    match fs::metadata(path) {
        Ok(named) => Ok(named.ino() == ours.ino() && named.dev() == ours.dev()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}
