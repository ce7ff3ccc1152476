//! Check that a file did not change since the conversation read or wrote it.
//!
//! The digest identifies the content, so a new modification time alone has no effect. A refusal contains the
//! difference to the known content, and the conversation then knows the new content.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::Stat;
use sha2::{Digest as _, Sha256};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use crate::call::ToolCall;
use crate::category::ToolErrorCategory;
use crate::error::ToolError;
use crate::file::atomic::stands;
use crate::file::edit::decoded;
use crate::file::resolved_path::Target;
use crate::file::sandbox::Sandbox;
use crate::file::sniff::{Content, SNIFF, sniff};
use crate::output::ToolOutput;
use crate::preview::check_basis;
use crate::read_tracking::{ContentDigest, ReadLedger, ReadLedgerError};

/// The size in bytes from which a content is not stored.
const MAX_STORED_BYTES: usize = 1 << 20;
/// The size in bytes from which a difference is not shown.
const MAX_DIFF_BYTES: usize = 40_000;
/// Bytes that are hashed between two checks for cancellation.
const PORTION: u64 = 8 << 20;
/// The maximum number of remembered differences.
const MAX_DIFFERENCES: usize = 256;

/// The action of `edit` after a read, for refusals.
pub(super) const EDIT_AGAIN: &str = "edit again";
/// The action of `write` after a read, for refusals.
pub(super) const WRITE_AGAIN: &str = "write again";

/// The read ledger for the conversation of one call. Its methods block.
pub(super) struct FileReadGuard {
    /// `None` if changes do not require a read.
    files: Option<Arc<dyn ReadLedger>>,
    conversation: String,
    /// The model response that contains the call.
    batch: Option<String>,
    /// The digest of the file content that the user saw when approving the call.
    agreed: Option<[u8; 32]>,
    runtime: Handle,
}

/// The files that were refused with a difference, each with the model response of the call.
///
/// The model created the other calls in that response before it could read the difference.
#[derive(Debug, Default)]
pub(super) struct Differences(Mutex<VecDeque<(String, PathBuf)>>);

impl Differences {
    fn shown(&self, batch: &str, path: &Path) {
        let mut shown = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if shown.len() == MAX_DIFFERENCES {
            shown.pop_front();
        }
        shown.push_back((batch.to_owned(), path.to_owned()));
    }

    fn are_unread(&self, batch: &str, path: &Path) -> bool {
        let shown = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        shown.iter().any(|(of, at)| of == batch && at == path)
    }
}

/// The current state of a file that will be changed.
pub(super) struct Standing<'a> {
    pub(super) target: &'a Target,
    /// The metadata; `None` if the content is not that on the disk.
    pub(super) stat: Option<&'a Stat>,
    /// The complete content, if it was read.
    pub(super) content: Option<&'a [u8]>,
}

/// A reader that hashes the content of another reader.
pub(super) struct HashingReader<R> {
    inner: R,
    hash: Sha256,
    kept: Option<Vec<u8>>,
    on: bool,
    ended: bool,
}

impl<R> HashingReader<R> {
    /// The digest of the content, if it was read completely and hashed.
    pub(super) fn digest(&self) -> Option<ContentDigest> {
        (self.on && self.ended).then(|| self.hash.clone().finalize().into())
    }
}

impl<R: Read> HashingReader<R> {
    /// Creates a reader for `inner`. If `on`, it hashes the content, and stores it if its `size` is small
    /// enough.
    pub(super) fn new(inner: R, size: u64, on: bool) -> Self {
        let room = usize::try_from(size)
            .ok()
            .filter(|size| *size <= MAX_STORED_BYTES);
        Self {
            inner,
            hash: Sha256::new(),
            kept: room.filter(|_| on).map(Vec::with_capacity),
            on,
            ended: false,
        }
    }
}

impl<R: Read> Read for HashingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.ended |= count == 0 && !buffer.is_empty();
        if self.on {
            let read = &buffer[..count];
            self.hash.update(read);
            match &mut self.kept {
                Some(kept) if kept.len() + count <= MAX_STORED_BYTES => {
                    kept.extend_from_slice(read)
                }
                kept => *kept = None,
            }
        }
        Ok(count)
    }
}

/// The digest of a content.
fn digest(content: &[u8]) -> ContentDigest {
    Sha256::digest(content).into()
}

/// A substitute digest for a file that was not read completely, computed from its metadata.
#[allow(clippy::unnecessary_cast, reason = "the types differ between systems")]
fn marks(stat: &Stat) -> ContentDigest {
    let mut hash = Sha256::new();
    for mark in [
        stat.st_dev as i128,
        stat.st_ino as i128,
        stat.st_size as i128,
        stat.st_mtime as i128,
        stat.st_mtime_nsec as i128,
    ] {
        hash.update(mark.to_le_bytes());
    }
    hash.finalize().into()
}

impl FileReadGuard {
    /// Creates a guard for the conversation of `call`.
    pub(super) fn of(call: &ToolCall, sandbox: &Sandbox) -> Self {
        Self {
            files: sandbox.seen().cloned(),
            conversation: call.conversation.clone(),
            batch: call.batch.clone(),
            agreed: None,
            runtime: Handle::current(),
        }
    }

    /// Sets the digest of the file content that the user saw when approving the call.
    pub(super) fn agreed(self, agreed: Option<[u8; 32]>) -> Self {
        Self { agreed, ..self }
    }

    /// Refuses the change of a file that differs from the one the user saw.
    ///
    /// `now`: the current content, `Some(None)` if it was not read, or `None` if the file does not exist.
    ///
    /// # Errors
    /// A refusal.
    /// A refusal.
    pub(super) fn check_agreed(
        &self,
        now: Option<Option<&[u8]>>,
        shown: &str,
    ) -> Result<(), ToolError> {
        let now = match now {
            None => Some(None),
            Some(content) => content.map(Some),
        };
        check_basis(self.agreed, now, shown)
    }

    /// Returns true if reads and writes are recorded.
    pub(super) fn is_on(&self) -> bool {
        self.files.is_some()
    }

    /// Records that the file at `target` with the metadata `stat` was read through `read`.
    pub(super) fn read<R>(
        &self,
        sandbox: &Sandbox,
        target: &Target,
        stat: &Stat,
        read: HashingReader<R>,
    ) {
        let Some(files) = &self.files else { return };
        let (digest, content) = if read.ended {
            (read.hash.finalize().into(), read.kept)
        } else {
            (marks(stat), None)
        };
        // A concurrent edit has already recorded its result, or waits for this lock.
        let _guard = sandbox.locks().hold(&target.path);
        let note = match self.digest(files, &target.path) {
            Ok(Some(known)) => known != digest && stands(target, stat),
            Ok(None) => true,
            Err(error) => return warn(&error),
        };
        if note {
            self.note(&target.path, &digest, content.as_deref());
        }
    }

    /// Records that the file at `path` was written with `content`.
    pub(super) fn left(&self, path: &Path, content: &[u8]) {
        if self.is_on() {
            let kept = (content.len() <= MAX_STORED_BYTES).then_some(content);
            self.note(path, &digest(content), kept);
        }
    }

    /// Records a copy or move of an entry from `from` to `to`.
    pub(super) fn carried(&self, from: &Path, to: &Path, moved: bool) {
        if let Some(files) = &self.files {
            let carry = files.carry(&self.conversation, from, to, moved);
            self.done(self.runtime.block_on(carry));
        }
    }

    /// Removes the records of a deleted entry.
    pub(super) fn gone(&self, path: &Path) {
        if let Some(files) = &self.files {
            self.done(
                self.runtime
                    .block_on(files.forget(&self.conversation, path)),
            );
        }
    }

    /// Refuses the change of a file whose current content the conversation does not know.
    ///
    /// The caller holds the lock of the path during this check and the following call of `left`. `again`: the
    /// next action after a read, for the message.
    ///
    /// # Errors
    /// [`ToolErrorCategory::InvalidParameters`] with the difference; other errors if the check is not possible.
    pub(super) fn check(
        &self,
        sandbox: &Sandbox,
        standing: &Standing<'_>,
        again: &str,
        cancel: &CancellationToken,
    ) -> Result<(), ToolError> {
        let Some(files) = &self.files else {
            return Ok(());
        };
        let path = &standing.target.path;
        let shown = sandbox.shown(path);
        if let Some(batch) = &self.batch
            && sandbox.differences().are_unread(batch, path)
        {
            return Err(ToolError::invalid(format!(
                "another program or a command changed {shown}, as the result of an earlier call in \
                 this response shows, so nothing was written: {again} in the next response if the change still applies"
            )));
        }
        let lost = |error| ToolError::permanent(format!("{error}; {shown} was not changed"));
        let Some(known) = self.digest(files, path).map_err(lost)? else {
            return Err(standing.unread(&shown, again));
        };
        if standing.stat.is_some_and(|stat| known == marks(stat)) {
            return Ok(());
        }
        let now = match standing.content {
            Some(content) => digest(content),
            None => digest_of(standing.target, cancel)?,
        };
        if known == now {
            return Ok(());
        }
        let seen = files.content(&self.conversation, path);
        let seen = self.runtime.block_on(seen).map_err(lost)?;
        let Some(diff) = standing.difference(&shown, seen.as_deref()) else {
            return Err(ToolError::invalid(format!(
                "another program or a command changed {shown} after this conversation read it, so \
                 nothing was written: {}",
                standing.how_to_see(again)
            )));
        };
        self.note(path, &now, standing.content);
        if let Some(batch) = &self.batch {
            sandbox.differences().shown(batch, path);
        }
        Err(ToolError::Explained {
            category: ToolErrorCategory::InvalidParameters,
            message: format!(
                "another program or a command changed {shown} after this conversation read it, so \
                 nothing was written. The difference follows: {again} if the change still applies"
            ),
            output: Box::new(ToolOutput::text(format!(
                "The last content that was read (-), and the current content (+):\n{diff}"
            ))),
        })
    }

    fn digest(
        &self,
        files: &Arc<dyn ReadLedger>,
        path: &Path,
    ) -> Result<Option<ContentDigest>, ReadLedgerError> {
        self.runtime
            .block_on(files.digest(&self.conversation, path))
    }

    fn note(&self, path: &Path, digest: &ContentDigest, content: Option<&[u8]>) {
        if let Some(files) = &self.files {
            let content = content.filter(|content| content.len() <= MAX_STORED_BYTES);
            let note = files.note(&self.conversation, path, digest, content);
            self.done(self.runtime.block_on(note));
        }
    }

    fn done(&self, noted: Result<(), ReadLedgerError>) {
        if let Err(error) = noted {
            warn(&error);
        }
    }
}

/// Returns the error of [`FileReadGuard::check`] if `call` changes an existing file that its
/// conversation never read.
pub(super) async fn refusal_of_unread(sandbox: &Sandbox, call: &ToolCall) -> Option<ToolError> {
    let again = match call.tool.as_str() {
        "edit" => EDIT_AGAIN,
        "write" => WRITE_AGAIN,
        _ => return None,
    };
    let files = sandbox.seen()?;
    let place = sandbox.resolve(call.str_param("path")?).ok()?;
    let target = place.target(sandbox).ok()?;
    target.existing().ok()??;
    let known = files.digest(&call.conversation, &target.path).await;
    let standing = Standing {
        target: &target,
        stat: None,
        content: None,
    };
    // The call itself reports an error of the ledger.
    matches!(known, Ok(None)).then(|| standing.unread(&sandbox.shown(&target.path), again))
}

/// Logs an error. If a record is missing, a later change is refused, so the call does not fail.
fn warn(error: &ReadLedgerError) {
    tracing::warn!(%error, "the read or written content was not recorded");
}

/// The digest of the file at `target`.
fn digest_of(target: &Target, cancel: &CancellationToken) -> Result<ContentDigest, ToolError> {
    let (file, _) = target.open()?;
    digest_of_file(file, &target.path, cancel)
}

/// The digest of the content of `file`. `path`: its name in errors.
pub(super) fn digest_of_file(
    file: File,
    path: &Path,
    cancel: &CancellationToken,
) -> Result<ContentDigest, ToolError> {
    let mut file = HashingReader::new(file, u64::MAX, true);
    loop {
        let read = io::copy(&mut (&mut file).take(PORTION), &mut io::sink())
            .map_err(|error| ToolError::io("read", path, error))?;
        if read == 0 {
            return Ok(file.hash.finalize().into());
        }
        if cancel.is_cancelled() {
            return Err(ToolError::cancelled());
        }
    }
}

impl Standing<'_> {
    /// The refusal of a change of the file, which the conversation never read.
    fn unread(&self, shown: &str, again: &str) -> ToolError {
        ToolError::invalid(format!(
            "{shown} was not read in this conversation, so nothing was changed: {}",
            self.how_to_see(again)
        ))
    }

    /// Describes how the model can read the file.
    fn how_to_see(&self, again: &str) -> String {
        let kind = match self.content {
            Some(content) => sniff(&content[..content.len().min(SNIFF)]),
            None => self
                .target
                .open()
                .map_or(Content::Text, |(file, _)| kind(&file)),
        };
        match kind {
            Content::Binary(kind) => {
                format!(
                    "it is binary ({kind}), and `read` does not show it; to replace it, delete it \
                     first"
                )
            }
            Content::Image(_) => format!(
                "it is an image: `read` it first, then {again}; if `read` shows no images, delete \
                 it first"
            ),
            _ => format!("`read` it first, then {again}"),
        }
    }

    /// The difference from the known content, if it can be shown.
    fn difference(&self, shown: &str, seen: Option<&[u8]>) -> Option<String> {
        let (seen, now) = (seen?, self.content?);
        let is_text = |content: &[u8]| {
            let head = &content[..content.len().min(SNIFF)];
            matches!(sniff(head), Content::Text | Content::Utf16)
        };
        if !is_text(seen) || !is_text(now) {
            return None;
        }
        let diff = zeph_edit::unified_diff(shown, &decoded(seen), &decoded(now))?;
        if diff.is_empty() {
            return Some("(bytes that are not text, or the encoding)".to_owned());
        }
        (diff.len() <= MAX_DIFF_BYTES).then_some(diff)
    }
}

/// Detects the kind of the content of `file`.
fn kind(file: &File) -> Content {
    let mut head = Vec::with_capacity(SNIFF);
    match file.take(SNIFF as u64).read_to_end(&mut head) {
        Ok(_) => sniff(&head),
        Err(_) => Content::Text,
    }
}
