//! The file contents that a conversation has seen: the port to the store, and a store in memory.
//!
//! A tool that changes a file checks here whether the current content is the one that the conversation read or
//! wrote last.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;

/// The SHA-256 of a content, or of the metadata (size, time, inode) of a file that is too long to be read.
pub type ContentDigest = [u8; 32];

/// An error of the store of seen contents.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the record of the files that this conversation has read cannot be stored: {0}")]
pub struct ReadLedgerError(pub String);

/// A store of the last seen content of each file, for each conversation. Paths are canonical and absolute.
#[async_trait]
pub trait ReadLedger: Send + Sync {
    /// Returns the digest of the last content of `path` that `conversation` saw, if any.
    ///
    /// # Errors
    /// [`ReadLedgerError`] if the store cannot be read.
    async fn digest(
        &self,
        conversation: &str,
        path: &Path,
    ) -> Result<Option<ContentDigest>, ReadLedgerError>;

    /// Returns the content of that digest, if it is stored.
    ///
    /// # Errors
    /// [`ReadLedgerError`] if the store cannot be read.
    async fn content(
        &self,
        conversation: &str,
        path: &Path,
    ) -> Result<Option<Vec<u8>>, ReadLedgerError>;

    /// Records that `conversation` has seen `path` with a content of this digest. `content` is the base of a
    /// later diff, if it is worth storing.
    ///
    /// # Errors
    /// [`ReadLedgerError`] if the entry was not recorded; the earlier entry may be lost then.
    async fn note(
        &self,
        conversation: &str,
        path: &Path,
        digest: &ContentDigest,
        content: Option<&[u8]>,
    ) -> Result<(), ReadLedgerError>;

    /// Copies the record of `from` to `to`; with `moved`, removes the record of `from`. For a directory, it
    /// applies to all paths below it.
    ///
    /// # Errors
    /// [`ReadLedgerError`] if the change is not recorded.
    async fn carry(
        &self,
        conversation: &str,
        from: &Path,
        to: &Path,
        moved: bool,
    ) -> Result<(), ReadLedgerError>;

    /// Removes the records of `path` and of all paths below it.
    ///
    /// # Errors
    /// [`ReadLedgerError`] if the change is not recorded.
    async fn forget(&self, conversation: &str, path: &Path) -> Result<(), ReadLedgerError>;
}

/// The maximum size of the contents in [`InMemoryReadLedger`] in bytes; beyond it, only digests are stored.
const MAX_STORED_BYTES: usize = 32 << 20;

/// The record of a file.
#[derive(Debug, Clone)]
struct Seen {
    digest: ContentDigest,
    content: Option<Vec<u8>>,
    /// Increases with each record.
    turn: u64,
}

#[derive(Debug, Default)]
struct Kept {
    files: BTreeMap<(String, PathBuf), Seen>,
    bytes: usize,
    turn: u64,
}

/// A [`ReadLedger`] in memory, for the lifetime of the process.
#[derive(Debug, Default)]
pub struct InMemoryReadLedger {
    kept: Mutex<Kept>,
}

impl InMemoryReadLedger {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn find(&self, conversation: &str, path: &Path) -> Option<&Seen> {
        self.files.get(&(conversation.to_owned(), path.to_owned()))
    }

    fn insert(&mut self, key: (String, PathBuf), mut seen: Seen) {
        self.turn += 1;
        seen.turn = self.turn;
        self.bytes += seen.content.as_ref().map_or(0, Vec::len);
        if let Some(old) = self.files.insert(key, seen) {
            self.bytes -= old.content.map_or(0, |content| content.len());
        }
        while self.bytes > MAX_STORED_BYTES {
            let kept = self.files.values_mut();
            let Some(oldest) = kept
                .filter(|seen| seen.content.is_some())
                .min_by_key(|seen| seen.turn)
            else {
                return;
            };
            self.bytes -= oldest.content.take().map_or(0, |content| content.len());
        }
    }

    /// Removes and returns the records of `path` and of the paths below it.
    fn take(&mut self, conversation: &str, path: &Path) -> Vec<(PathBuf, Seen)> {
        let bytes = &mut self.bytes;
        self.files
            .extract_if(.., |(of, at), _| of == conversation && at.starts_with(path))
            .map(|((_, at), seen)| {
                *bytes -= seen.content.as_ref().map_or(0, Vec::len);
                (at, seen)
            })
            .collect()
    }
}

#[async_trait]
impl ReadLedger for InMemoryReadLedger {
    async fn digest(
        &self,
        conversation: &str,
        path: &Path,
    ) -> Result<Option<ContentDigest>, ReadLedgerError> {
        Ok(self.kept().find(conversation, path).map(|seen| seen.digest))
    }

    async fn content(
        &self,
        conversation: &str,
        path: &Path,
    ) -> Result<Option<Vec<u8>>, ReadLedgerError> {
        let kept = self.kept();
        Ok(kept
            .find(conversation, path)
            .and_then(|seen| seen.content.clone()))
    }

    async fn note(
        &self,
        conversation: &str,
        path: &Path,
        digest: &ContentDigest,
        content: Option<&[u8]>,
    ) -> Result<(), ReadLedgerError> {
        let seen = Seen {
            digest: *digest,
            content: content.map(<[u8]>::to_vec),
            turn: 0,
        };
        let key = (conversation.to_owned(), path.to_owned());
        self.kept().insert(key, seen);
        Ok(())
    }

    async fn carry(
        &self,
        conversation: &str,
        from: &Path,
        to: &Path,
        moved: bool,
    ) -> Result<(), ReadLedgerError> {
        let mut kept = self.kept();
        kept.take(conversation, to);
        for (at, seen) in kept.take(conversation, from) {
            let below = at.strip_prefix(from).unwrap_or(Path::new(""));
            let there = if below.as_os_str().is_empty() {
                to.to_owned()
            } else {
                to.join(below)
            };
            if !moved {
                kept.insert((conversation.to_owned(), at), seen.clone());
            }
            kept.insert((conversation.to_owned(), there), seen);
        }
        Ok(())
    }

    async fn forget(&self, conversation: &str, path: &Path) -> Result<(), ReadLedgerError> {
        self.kept().take(conversation, path);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn run<T>(work: impl Future<Output = Result<T, ReadLedgerError>>) -> T {
        tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap()
            .block_on(work)
            .unwrap()
    }

    #[test]
    fn directory_move_carries_the_entries_below_it() {
        let seen = InMemoryReadLedger::default();
        let note = |path: &str, byte| {
            run(seen.note("a", Path::new(path), &[byte; 32], Some(&[byte])));
        };
        note("/d/x", 1);
        note("/d/y/z", 2);
        note("/dd", 3);
        let digest = |of: &str, path: &str| run(seen.digest(of, Path::new(path)));
        run(seen.carry("a", Path::new("/d"), Path::new("/e"), true));
        assert_eq!(digest("a", "/d/x"), None);
        assert_eq!(digest("a", "/e/x"), Some([1; 32]));
        assert_eq!(digest("a", "/e/y/z"), Some([2; 32]));
        assert_eq!(digest("a", "/dd"), Some([3; 32]));
        assert_eq!(digest("b", "/dd"), None);
        run(seen.carry("a", Path::new("/e/x"), Path::new("/f"), false));
        assert_eq!(digest("a", "/e/x"), Some([1; 32]));
        assert_eq!(run(seen.content("a", Path::new("/f"))), Some(vec![1]));
        run(seen.forget("a", Path::new("/e")));
        assert_eq!(digest("a", "/e/y/z"), None);
        assert_eq!(digest("a", "/f"), Some([1; 32]));
    }

    #[test]
    fn old_contents_make_room_and_digests_stay() {
        let seen = InMemoryReadLedger::default();
        let large = vec![0; MAX_STORED_BYTES / 2];
        for byte in 0..3 {
            let path = format!("/{byte}");
            run(seen.note("a", Path::new(&path), &[byte; 32], Some(&large)));
        }
        let content = |path: &str| run(seen.content("a", Path::new(path))).is_some();
        assert_eq!(
            [content("/0"), content("/1"), content("/2")],
            [false, true, true]
        );
        assert_eq!(run(seen.digest("a", Path::new("/0"))), Some([0; 32]));
        assert_eq!(seen.kept().bytes, MAX_STORED_BYTES);
    }
}
