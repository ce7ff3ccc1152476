//! The audit trail in a file, a JSON line each. The file is locked around finding its end and
//! appending, so that all processes that write it write one chain.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::{
    DirBuilderExt as _, FileExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use rustix::fs::OFlags;
use serde_json::{Value, json};
use zeph_tools::audit::chain::{self, Fields, hex_digest};
use zeph_tools::audit::{ChainCheck, Intent, Link};
use zeph_tools::layers::now_ms;
use zeph_tools::{AuditEntry, AuditError, AuditSink};

use super::head::{Head, HeadFile, Heads, attach};

/// How long an append waits for the lock of another process.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long it sleeps between two tries.
const PAUSE: Duration = Duration::from_micros(500);

/// Appends audit entries to a file.
#[derive(Debug)]
pub struct JsonlAudit {
    path: PathBuf,
    head: HeadFile,
    /// Whether each entry is to survive a power cut.
    flush: bool,
}

/// The position of the next line.
struct End {
    name: String,
    link: Link,
    /// The incomplete line after the last entry, left by a crash.
    torn: Vec<u8>,
}

impl JsonlAudit {
    /// A sink that appends to the file at `path` (absolute), and stores the chain's head in `heads`.
    #[must_use]
    pub fn new(path: PathBuf, heads: &Heads, flush: bool) -> Self {
        Self {
            head: heads.of_file(&path),
            path,
            flush,
        }
    }

    /// Creates the file if it is missing, so that its path is known.
    ///
    /// # Errors
    /// [`AuditError`] if it cannot be written.
    pub fn prepare(&self) -> Result<(), AuditError> {
        open(&self.path)
            .map(drop)
            .map_err(|error| self.failed(&error))
    }

    async fn locked(&self) -> io::Result<File> {
        let mut waited = Duration::ZERO;
        loop {
            let file = open(&self.path)?;
            match file.try_lock() {
                // Not a file that was moved away in the meantime.
                Ok(()) if is_at(&file, &self.path) => return Ok(file),
                Ok(()) => {}
                Err(TryLockError::WouldBlock) if waited < PATIENCE => {}
                Err(TryLockError::WouldBlock) => {
                    return Err(io::Error::other("another process holds its lock"));
                }
                Err(TryLockError::Error(error)) => return Err(error),
            }
            tokio::time::sleep(PAUSE).await;
            waited += PAUSE;
        }
    }

    fn append_locked(&self, file: &mut File, entry: &AuditEntry) -> io::Result<()> {
        let head = self.head.open()?;
        let mut length = file.metadata()?.len();
        let End {
            name,
            mut link,
            torn,
        } = end_of(file, length, head.read().as_ref())?;
        if !torn.is_empty() {
            let what = json!({ "torn": { "bytes": torn.len(), "sha256": hex_digest(&torn) } });
            let note = AuditEntry::of_the_trail(now_ms(), what);
            tracing::warn!(path = %self.path.display(), bytes = torn.len(), "an incomplete line of \
                the audit log is closed");
            link = self.write(file, &mut length, "\n", &note, &link)?;
            head.note(&Head {
                chain: name.clone(),
                last: link.clone(),
                bytes: length,
            })?;
        }
        let last = self.write(file, &mut length, "", entry, &link)?;
        head.note(&Head {
            chain: name,
            last,
            bytes: length,
        })
    }

    /// Writes one line with one system call. A partial write is undone.
    fn write(
        &self,
        file: &mut File,
        length: &mut u64,
        before: &str,
        entry: &AuditEntry,
        link: &Link,
    ) -> io::Result<Link> {
        let call = entry.call.to_string();
        let repairs = Value::from(entry.repairs.as_slice()).to_string();
        let sealed = chain::seal(&Fields::of(entry, &call, &repairs), link);
        let line = format!("{before}{}\n", sealed.line);
        let written = match file.write(line.as_bytes()) {
            Ok(count) if count == line.len() => self.flushed(file),
            Ok(_) => Err(io::Error::from(io::ErrorKind::StorageFull)),
            Err(error) => Err(error),
        };
        if let Err(error) = written {
            file.set_len(*length)?;
            return Err(error);
        }
        *length += line.len() as u64;
        Ok(sealed.link)
    }

    fn flushed(&self, file: &File) -> io::Result<()> {
        if self.flush { file.sync_data() } else { Ok(()) }
    }

    fn failed(&self, error: &io::Error) -> AuditError {
        let reason = if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) {
            "it is a symbolic link, which is not followed".to_owned()
        } else {
            error.to_string()
        };
        AuditError(format!(
            "{}: {reason}; make it and its head {} writable regular files on a disk with free \
             space, or set `[tools.audit] path` to another file",
            self.path.display(),
            self.head.path().display(),
        ))
    }
}

#[async_trait]
impl AuditSink for JsonlAudit {
    async fn reserve(&self, intent: Intent<'_>) -> Result<(), AuditError> {
        let reserved = async {
            let file = self.locked().await?;
            self.head.open()?;
            let length = file.metadata()?.len();
            let result = reserve(&file, length, intent.bytes as u64);
            file.unlock()?;
            result
        };
        reserved.await.map_err(|error| self.failed(&error))
    }

    async fn append(&self, entry: &AuditEntry) -> Result<(), AuditError> {
        let appended = async {
            let mut file = self.locked().await?;
            let result = self.append_locked(&mut file, entry);
            // Unlocked by hand, since a process just being started holds a copy of the descriptor.
            file.unlock()?;
            result
        };
        appended.await.map_err(|error| self.failed(&error))
    }
}

/// Opens the log for appending: a regular file of the user's alone. A wider mode is tightened.
fn open(path: &Path) -> io::Result<File> {
    // Opening a pipe does not wait for its reader.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true);
    options.mode(0o600).custom_flags(flags.bits().cast_signed());
    let file = match options.open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let folder = path.parent().unwrap_or(Path::new("/"));
            fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(folder)?;
            options.open(path)?
        }
        opened => opened?,
    };
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    if found.mode() & 0o077 != 0 {
        file.set_permissions(fs::Permissions::from_mode(0o600))?;
    }
    Ok(file)
}

/// Whether the open file is still the one of that name.
fn is_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), fs::symlink_metadata(path)) {
        (Ok(ours), Ok(named)) => ours.ino() == named.ino() && ours.dev() == named.dev(),
        _ => false,
    }
}

/// Reserves `bytes` on the disk after the end of the file.
fn reserve(file: &File, length: u64, bytes: u64) -> io::Result<()> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Fsize).current;
    if limit.is_some_and(|limit| length.saturating_add(bytes) > limit) {
        return Err(io::Error::from(io::ErrorKind::FileTooLarge));
    }
    #[cfg(target_os = "linux")]
    match rustix::fs::fallocate(file, rustix::fs::FallocateFlags::KEEP_SIZE, length, bytes) {
        // Some file systems reserve nothing.
        Ok(()) | Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => {}
        Err(errno) => return Err(errno.into()),
    }
    #[cfg(not(target_os = "linux"))]
    let _ = file;
    Ok(())
}

/// Finds the end of the chain in a file of `length` bytes. In the common case the file ends at the position in its
/// head, and nothing is read.
fn end_of(file: &File, length: u64, head: Option<&Head>) -> io::Result<End> {
    let Some(head) = head else {
        return end_without_head(file, length);
    };
    let name = head.chain.clone();
    if length == head.bytes {
        return Ok(End {
            name,
            link: head.last.clone(),
            torn: Vec::new(),
        });
    }
    if length < head.bytes {
        let torn = last_piece(file, length)?;
        let link = attach(Some(head), None, false);
        return Ok(End { name, link, torn });
    }
    // A process ended before it could move the head.
    let (lines, torn) = split(&tail(file, length, length - head.bytes)?);
    let mut check = ChainCheck::behind(head.last.clone());
    for line in lines {
        let Some((link, prev)) = chain::open(&line) else {
            break;
        };
        if check.entry(&link, &prev).is_err() {
            break;
        }
    }
    let last = check.last().cloned();
    let link = attach(Some(head), last, true);
    Ok(End { name, link, torn })
}

/// The end of a chain with a lost head: that of its last line.
fn end_without_head(file: &File, length: u64) -> io::Result<End> {
    let (lines, torn) = split(&tail(file, length, length)?);
    let links = lines.iter().filter_map(|line| chain::open(line));
    let (mut name, mut last) = (None, None);
    for (link, prev) in links {
        name.get_or_insert(prev);
        last = Some(link);
    }
    let link = attach(None, last, false);
    Ok(End {
        name: name.unwrap_or_else(|| link.hash.clone()),
        link,
        torn,
    })
}

/// The text after the last line break.
fn last_piece(file: &File, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = length.min(64 * 1024);
    loop {
        let end = tail(file, length, bytes)?;
        if bytes == length || end.contains(&b'\n') {
            return Ok(split(&end).1);
        }
        bytes = length.min(bytes.saturating_mul(2));
    }
}

/// The last `bytes` of a file of `length` bytes.
fn tail(file: &File, length: u64, bytes: u64) -> io::Result<Vec<u8>> {
    let mut buffer = vec![0; usize::try_from(bytes).map_err(io::Error::other)?];
    file.read_exact_at(&mut buffer, length - bytes)?;
    Ok(buffer)
}

/// Complete lines, and the text after the last of them.
fn split(bytes: &[u8]) -> (Vec<Vec<u8>>, Vec<u8>) {
    let mut lines: Vec<Vec<u8>> = bytes.split(|b| *b == b'\n').map(<[u8]>::to_vec).collect();
    let torn = lines.pop().unwrap_or_default();
    (lines, torn)
}
