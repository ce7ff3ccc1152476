//! The log file: several processes append to it, and one of them replaces it when it is full.
//!
//! A record is one `write` to a file that is open for appending, under a lock, so that lines of several processes never
//! mix. Before each record, the path is compared with the open file, because another process may have replaced it.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;

/// The size at which the file is replaced.
const MAX_BYTES: u64 = 4 * 1024 * 1024;
/// The number of earlier files that are kept: `zeph.log.1` is the newest.
const KEPT: usize = 3;
/// The maximum wait for the lock. A record is then written without it, which may exceed the size.
const LOCK_WAIT: Duration = Duration::from_millis(50);
/// The number of attempts while other processes replace the file.
const ATTEMPTS: usize = 8;
/// The access of the file: its user alone.
const MODE: u32 = 0o600;

/// The log file. [`LogFile::append`] opens it if it is not open.
#[derive(Debug)]
pub(super) struct LogFile {
    path: Option<PathBuf>,
    open: Mutex<Option<File>>,
}

impl LogFile {
    /// The file at `path`; without a path, every record is an error.
    pub(super) fn new(path: Option<PathBuf>) -> Self {
        Self {
            path,
            open: Mutex::new(None),
        }
    }

    fn path(&self) -> io::Result<&Path> {
        self.path
            .as_deref()
            .ok_or_else(|| io::Error::other("neither XDG_STATE_HOME nor HOME is set"))
    }

    /// Opens the file, and returns its size.
    ///
    /// # Errors
    /// An error of the file system.
    pub(super) fn open(&self) -> io::Result<u64> {
        let file = open(self.path()?)?;
        let size = file.metadata()?.len();
        *self.open.lock().unwrap_or_else(PoisonError::into_inner) = Some(file);
        Ok(size)
    }

    /// Appends a record, which ends with a line break.
    ///
    /// # Errors
    /// An error of the file system. No part of the record is then in the file, if the file is locked and can be truncated.
    pub(super) fn append(&self, record: &[u8]) -> io::Result<()> {
        let path = self.path()?;
        let mut kept = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        for _ in 0..ATTEMPTS {
            let file = match kept.take() {
                Some(file) if is_at(&file, path) => file,
                _ => open(path)?,
            };
            let is_locked = lock(&file);
            if is_locked && !is_at(&file, path) {
                continue;
            }
            let size = file.metadata()?.len();
            if is_locked && size > 0 && size + record.len() as u64 > MAX_BYTES {
                // The lock ends with the file.
                replace(path)?;
                continue;
            }
            let mut writer = &file;
            let written = writer.write_all(record);
            if written.is_err() && is_locked {
                let _ = file.set_len(size);
            }
            if is_locked {
                let _ = file.unlock();
            }
            *kept = Some(file);
            return written;
        }
        Err(io::Error::other("other processes replace it continuously"))
    }
}

/// Opens the file for appending. Its folder is created; both are for the user alone. A named pipe without a reader is an
/// error, and no write to a pipe waits.
fn open(path: &Path) -> io::Result<File> {
    let options = {
        let mut options = OpenOptions::new();
        options
            .append(true)
            .create(true)
            .mode(MODE)
            .custom_flags(i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default());
        options
    };
    let file = match options.open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if let Some(folder) = path.parent() {
                DirBuilder::new()
                    .recursive(true)
                    .mode(0o700)
                    .create(folder)?;
            }
            options.open(path)?
        }
        opened => opened?,
    };
    let metadata = file.metadata()?;
    if metadata.is_file() && metadata.mode() & 0o777 != MODE {
        file.set_permissions(Permissions::from_mode(MODE))?;
    }
    Ok(file)
}

/// Whether the open file is still the one at `path`.
fn is_at(file: &File, path: &Path) -> bool {
    let ids = |metadata: io::Result<fs::Metadata>| {
        let metadata = metadata.ok()?;
        Some((metadata.dev(), metadata.ino()))
    };
    let open = ids(file.metadata());
    open.is_some() && open == ids(fs::metadata(path))
}

/// Locks the file. `false` after [`LOCK_WAIT`], for example if the holder was stopped, and where locks do not exist.
#[allow(
    clippy::disallowed_methods,
    reason = "a record rarely waits, and at most for LOCK_WAIT"
)]
fn lock(file: &File) -> bool {
    let start = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return true,
            Err(TryLockError::Error(_)) => return false,
            Err(TryLockError::WouldBlock) if start.elapsed() > LOCK_WAIT => return false,
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_micros(100)),
        }
    }
}

/// Renames the file and the earlier ones; the oldest is replaced.
fn replace(path: &Path) -> io::Result<()> {
    for number in (1..KEPT).rev() {
        match fs::rename(earlier(path, number), earlier(path, number + 1)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    fs::rename(path, earlier(path, 1))
}

fn earlier(path: &Path, number: usize) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{number}"));
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(path: &Path) -> String {
        fs::read_to_string(path).unwrap()
    }

    /// Proves OPS-4: the number and the size of the files are limited.
    #[test]
    fn full_file_is_replaced_and_old_files_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("zeph.log");
        let file = LogFile::new(Some(path.clone()));
        let record = |number: usize| format!("{number} {}\n", "x".repeat(1024 * 1024));
        for number in 0..18 {
            file.append(record(number).as_bytes()).unwrap();
        }
        let mut sizes: Vec<_> = fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().metadata().unwrap().len())
            .collect();
        sizes.sort_unstable();
        assert_eq!(sizes.len(), KEPT + 1, "{sizes:?}");
        assert!(sizes.iter().all(|size| *size <= MAX_BYTES), "{sizes:?}");
        assert!(text(&path).starts_with("15 "));
        assert!(text(&earlier(&path, 1)).starts_with("12 "));
        assert!(text(&earlier(&path, 3)).starts_with("6 "));
    }

    /// Proves OPS-4: a process follows the replacement by another one.
    #[test]
    fn record_goes_to_the_new_file_after_a_replacement() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("zeph.log");
        let (one, other) = (
            LogFile::new(Some(path.clone())),
            LogFile::new(Some(path.clone())),
        );
        one.append(b"first\n").unwrap();
        other
            .append(&[b"x".repeat(MAX_BYTES as usize), b"\n".to_vec()].concat())
            .unwrap();
        one.append(b"last\n").unwrap();
        assert_eq!(text(&path), "last\n");
    }

    /// Proves OPS-4: the file is for the user alone, also if it was not.
    #[test]
    fn file_and_folder_are_private() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state/zeph/zeph.log");
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        LogFile::new(Some(path.clone())).append(b"a\n").unwrap();
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        LogFile::new(Some(path.clone())).append(b"b\n").unwrap();
        assert_eq!(mode(&path), 0o600);
    }

    /// Proves OPS-4: a place that cannot be written is an error, and nothing waits.
    #[test]
    fn unusable_place_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        assert!(LogFile::new(None).append(b"a\n").is_err());
        let blocked = folder.path().join("file");
        fs::write(&blocked, "").unwrap();
        let inside = LogFile::new(Some(blocked.join("zeph.log")));
        assert!(inside.append(b"a\n").is_err());
        let is_folder = LogFile::new(Some(folder.path().to_owned()));
        assert!(is_folder.append(b"a\n").is_err());
        let pipe = folder.path().join("pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
            0,
        )
        .unwrap();
        assert!(LogFile::new(Some(pipe)).append(b"a\n").is_err());
    }
}
