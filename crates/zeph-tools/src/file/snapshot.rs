//! Snapshots of the entry at a path: a fingerprint to recognize it, and a backup to restore it.

use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Stat, readlinkat};
use sha2::{Digest, Sha256};
use tokio_util::sync::CancellationToken;

use crate::audit::chain::hex;
use crate::error::ToolError;
use crate::file::resolved_path::{Target, open_regular};
use crate::file::sandbox::Sandbox;
use crate::file::tree_walk::{self, Node};
use crate::undo::{Attributes, Change, FileBackup, FileState, Fingerprint, Step, TreeEntry};

/// Bytes of file contents that are hashed to recognize a tree. Other files are recognized by size and time.
const MAX_DIGESTED_BYTES: u64 = 64 << 20;
/// Entries of a tree that are recorded.
const MAX_ENTRIES: usize = 20_000;

/// The reason for a missing record, or an error.
pub(super) enum RecordError {
    /// The change is possible, but cannot be undone.
    Lost(String),
    /// The change is not possible.
    Failed(ToolError),
}

impl From<ToolError> for RecordError {
    fn from(error: ToolError) -> Self {
        Self::Failed(error)
    }
}

/// The fingerprint of a content in memory.
pub(super) fn of_bytes(bytes: &[u8]) -> Fingerprint {
    Fingerprint {
        len: bytes.len() as u64,
        digest: Some(hex(&Sha256::digest(bytes))),
        modified: None,
    }
}

/// Mode and owner of a file.
pub(super) fn attributes(stat: &Stat) -> Attributes {
    Attributes {
        #[allow(
            clippy::useless_conversion,
            reason = "the types differ between systems"
        )]
        mode: u32::from(stat.st_mode) & 0o7777,
        uid: stat.st_uid,
        gid: stat.st_gid,
    }
}

fn len(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or_default()
}

#[allow(clippy::unnecessary_cast, reason = "the types differ between systems")]
fn modified(stat: &Stat) -> (i64, i64) {
    (stat.st_mtime as i64, stat.st_mtime_nsec as i64)
}

/// The target of the link `name` in `dir`.
pub(super) fn link_text(dir: &OwnedFd, name: &OsStr, path: &Path) -> Result<PathBuf, ToolError> {
    let target = readlinkat(dir, name, Vec::new())
        .map_err(|error| ToolError::io("read the link", path, error.into()))?;
    Ok(PathBuf::from(OsString::from_vec(target.into_bytes())))
}

/// The digest of the file `name` in `dir`, and its length.
fn digest(dir: &OwnedFd, name: &OsStr, path: &Path) -> Result<(String, u64), ToolError> {
    let (mut file, _) = open_regular(dir, name, path)?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 64 << 10];
    let mut total = 0;
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok((hex(&hasher.finalize()), total)),
            Ok(read) => {
                hasher.update(&buffer[..read]);
                total += read as u64;
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(ToolError::io("read", path, error)),
        }
    }
}

/// Returns true if the entry at `target` is `expected`. The contents of a directory are not compared.
///
/// # Errors
/// If the entry cannot be inspected.
pub(super) fn stands(target: &Target, expected: &FileState) -> Result<bool, ToolError> {
    let Some((stat, kind)) = target.stat()? else {
        return Ok(*expected == FileState::Absent);
    };
    Ok(match expected {
        FileState::Absent => false,
        FileState::Directory => kind == FileType::Directory,
        FileState::Link(text) => {
            kind == FileType::Symlink
                && link_text(&target.dir, &target.name, &target.path)? == *text
        }
        FileState::File(fingerprint) => {
            kind == FileType::RegularFile
                && len(&stat) == fingerprint.len
                && match &fingerprint.digest {
                    Some(expected) => {
                        digest(&target.dir, &target.name, &target.path)?.0 == *expected
                    }
                    None => fingerprint.modified == Some(modified(&stat)),
                }
        }
    })
}

/// Lists the tree at `top`, to recognize it later.
///
/// # Errors
/// [`RecordError::Lost`] if the tree cannot be recognized later; [`RecordError::Failed`] if the call is
/// cancelled, or the tree cannot be read.
pub(super) fn listing(
    top: &Target,
    cancel: &CancellationToken,
) -> Result<Vec<TreeEntry>, RecordError> {
    let mut listed = Vec::new();
    let mut room = MAX_DIGESTED_BYTES;
    walk(top, cancel, &mut |node| {
        if listed.len() == MAX_ENTRIES {
            return Err(RecordError::Lost(format!(
                "more than {MAX_ENTRIES} entries"
            )));
        }
        let standing = match node.kind {
            FileType::Directory => FileState::Directory,
            FileType::Symlink => FileState::Link(link_text(node.dir, node.name, node.path)?),
            FileType::RegularFile => FileState::File(fingerprint(node, &mut room)),
            _ => return Err(special(node)),
        };
        let path = node.path.strip_prefix(&top.path).unwrap_or(node.path);
        listed.push(TreeEntry {
            path: path.to_owned(),
            standing,
        });
        Ok(())
    })?;
    Ok(listed)
}

/// The fingerprint of a file by its content if it is readable and `room` suffices, else by its time.
fn fingerprint(node: &Node<'_>, room: &mut u64) -> Fingerprint {
    let size = len(node.stat);
    if size <= *room
        && let Ok((digest, len)) = digest(node.dir, node.name, node.path)
    {
        *room = room.saturating_sub(len);
        return Fingerprint {
            len,
            digest: Some(digest),
            modified: None,
        };
    }
    Fingerprint {
        len: size,
        digest: None,
        modified: Some(modified(node.stat)),
    }
}

/// The record for a deletion of the tree at `top`, with at most `max_bytes` bytes of contents.
///
/// # Errors
/// The errors of [`listing`].
pub(super) fn deletion(
    sandbox: &Sandbox,
    top: &Target,
    max_bytes: u64,
    cancel: &CancellationToken,
) -> Result<Change, RecordError> {
    let mut total = 0;
    let mut entries = 0;
    // No content is read before the total size is known.
    walk(top, cancel, &mut |node| {
        entries += 1;
        if entries > MAX_ENTRIES {
            return Err(RecordError::Lost(format!(
                "more than {MAX_ENTRIES} entries"
            )));
        }
        if node.kind == FileType::RegularFile {
            total += len(node.stat);
        }
        if total > max_bytes {
            return Err(RecordError::Lost(crate::undo::too_large(max_bytes)));
        }
        Ok(())
    })?;
    let mut change = Change::default();
    walk(top, cancel, &mut |node| {
        let before = match node.kind {
            FileType::Directory => FileBackup::Directory(attributes(node.stat)),
            FileType::Symlink => FileBackup::Link(link_text(node.dir, node.name, node.path)?),
            FileType::RegularFile => file(node, &mut change.images, max_bytes, sandbox)?,
            _ => return Err(special(node)),
        };
        change.steps.push(Step::Put {
            path: node.path.to_owned(),
            before,
            after: FileState::Absent,
        });
        Ok(())
    })?;
    // The steps are in the order of the deletion: entries before their directory.
    change.steps.reverse();
    Ok(change)
}

/// The backup of a file. Its content is appended to `images`.
fn file(
    node: &Node<'_>,
    images: &mut Vec<u8>,
    max_bytes: u64,
    sandbox: &Sandbox,
) -> Result<FileBackup, RecordError> {
    let unreadable = |error: &dyn std::fmt::Display| {
        RecordError::Lost(format!(
            "{} cannot be read: {error}",
            sandbox.shown(node.path)
        ))
    };
    let (source, stat) =
        open_regular(node.dir, node.name, node.path).map_err(|error| unreadable(&error))?;
    let at = images.len();
    let room = max_bytes.saturating_sub(at as u64);
    source
        .take(room + 1)
        .read_to_end(images)
        .map_err(|error| unreadable(&error))?;
    if images.len() as u64 > max_bytes {
        return Err(RecordError::Lost(crate::undo::too_large(max_bytes)));
    }
    Ok(FileBackup::File {
        at,
        fingerprint: of_bytes(&images[at..]),
        attributes: attributes(&stat),
    })
}

fn special(node: &Node<'_>) -> RecordError {
    RecordError::Lost(format!(
        "{} is not a file, link or directory",
        crate::file::sandbox::printable(node.path)
    ))
}

/// Walks a tree with a visitor that may reject an entry.
fn walk(
    top: &Target,
    cancel: &CancellationToken,
    visit: &mut dyn FnMut(&Node<'_>) -> Result<(), RecordError>,
) -> Result<(), RecordError> {
    let mut lost = None;
    let scanned = tree_walk::scan(top, cancel, &mut |node| match visit(node) {
        Ok(()) => Ok(()),
        Err(RecordError::Failed(error)) => Err(error),
        Err(RecordError::Lost(reason)) => {
            lost = Some(reason);
            Err(ToolError::cancelled())
        }
    });
    match (lost, scanned) {
        (Some(reason), _) => Err(RecordError::Lost(reason)),
        (None, scanned) => scanned.map_err(RecordError::Failed),
    }
}
