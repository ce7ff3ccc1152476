//! The log file: each event is appended without the values of secrets.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use tracing_subscriber::fmt::MakeWriter;

use super::redact::redacted;

/// The size from which the file is replaced at the start of the program. One earlier file is kept.
const MAX_BYTES: u64 = 8 * 1024 * 1024;

/// A log file. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct LogFile(Arc<Mutex<File>>);

impl LogFile {
    /// Opens the file at `path`, which only the user can read. Its directory is created.
    ///
    /// # Errors
    /// An error of the file system.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(folder)?;
        }
        if fs::metadata(path).is_ok_and(|file| file.len() > MAX_BYTES) {
            fs::rename(path, path.with_extension("log.1"))?;
        }
        let file = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(path)?;
        Ok(Self(Arc::new(Mutex::new(file))))
    }
}

impl<'a> MakeWriter<'a> for LogFile {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

impl Write for LogFile {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        let mut file = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(redacted(&text).as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
