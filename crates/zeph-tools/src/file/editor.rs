//! The files of an editor: the ports, and their use after all checks of the sandbox.
//!
//! An editor may have unsaved changes. Its text then replaces the content on the disk as the base of reads and changes.
//! Other tools read the disk, and so do all tools for files that are not UTF-8 text or exceed [`MAX_TEXT_BYTES`].

use std::fs::File;
use std::future::Future;
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use crate::error::ToolError;
use crate::file::resolved_path::Target;
use crate::file::sandbox::Sandbox;
use crate::file::sniff::{Content, SNIFF, sniff};
use crate::file::undo_recorder::Mark;

/// The maximum size in bytes of a file on the disk that is read and written through the editor.
const MAX_TEXT_BYTES: u64 = 10 << 20;
/// The time in which the editor must reply.
const REPLY_TIME: Duration = Duration::from_secs(30);

/// The failure of a request to an editor.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditorError {
    /// The editor refused.
    #[error("{0}")]
    Refused(String),
    /// No reply will arrive. A write may have been made.
    #[error("the connection to the editor ended")]
    Lost,
}

/// Reads texts from an editor.
#[async_trait]
pub trait EditorReader: Send + Sync {
    /// Returns the text of the file at `path` (absolute, links resolved), with unsaved changes.
    ///
    /// # Errors
    /// [`EditorError`].
    async fn read(&self, path: &Path) -> Result<String, EditorError>;
}

/// Writes texts through an editor.
#[async_trait]
pub trait EditorWriter: Send + Sync {
    /// Replaces the text of the file at `path` (absolute, links resolved), or creates the file.
    ///
    /// # Errors
    /// [`EditorError`].
    async fn write(&self, path: &Path, text: &str) -> Result<(), EditorError>;
}

/// The access to the files of an editor. Without a port, the disk is used.
#[derive(Clone, Default)]
pub struct EditorFiles {
    /// Reads texts.
    pub reader: Option<Arc<dyn EditorReader>>,
    /// Writes texts.
    pub writer: Option<Arc<dyn EditorWriter>>,
}

impl std::fmt::Debug for EditorFiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EditorFiles")
            .field("reads", &self.reader.is_some())
            .field("writes", &self.writer.is_some())
            .finish()
    }
}

/// A file of the sandbox in the editor. Its methods block.
pub(super) struct EditorFile<'a> {
    files: &'a EditorFiles,
    path: &'a Path,
    shown: String,
    cancel: &'a CancellationToken,
}

/// The failure of a request to the editor.
enum Failure {
    /// The editor refused, for this reason.
    Refused(String),
    /// No reply arrived.
    NoReply(String),
    /// The call was cancelled before a reply arrived.
    Cancelled,
}

impl<'a> EditorFile<'a> {
    /// Returns the file at `path` (canonical), which the sandbox has allowed.
    pub(super) fn new(sandbox: &'a Sandbox, path: &'a Path, cancel: &'a CancellationToken) -> Self {
        Self {
            files: sandbox.editor(),
            path,
            shown: sandbox.shown(path),
            cancel,
        }
    }

    /// Whether the editor writes the file. `disk` is the content on the disk; `None` if the file does not exist.
    pub(super) fn is_written(&self, disk: Option<&[u8]>) -> bool {
        self.files.writer.is_some() && disk.is_none_or(is_text)
    }

    /// Returns the text that a change begins with, if the editor both reads and writes the file. `disk` is its content
    /// on the disk.
    ///
    /// # Errors
    /// If the editor refuses or does not reply, or the call is cancelled.
    pub(super) fn text_to_change(&self, disk: &[u8]) -> Result<Option<Vec<u8>>, ToolError> {
        match self.is_written(Some(disk)) {
            true => Ok(self.text(disk)?.map(String::into_bytes)),
            false => Ok(None),
        }
    }

    /// Returns the text in the editor instead of the content of `file`. `head` holds its first bytes. More of the
    /// content is appended to `head`, if that is needed to recognize a text.
    ///
    /// # Errors
    /// As [`EditorFile::text_to_change`]; or if `file` cannot be read.
    pub(super) fn text_instead_of(
        &self,
        file: &mut File,
        head: &mut Vec<u8>,
    ) -> Result<Option<String>, ToolError> {
        if self.files.reader.is_none() {
            return Ok(None);
        }
        let room = (MAX_TEXT_BYTES + 1).saturating_sub(head.len() as u64);
        file.take(room)
            .read_to_end(head)
            .map_err(|error| ToolError::io("read", self.path, error))?;
        self.text(head)
    }

    /// Returns the text of a file that does not exist on the disk, if the editor has one.
    ///
    /// # Errors
    /// If the editor does not reply, or the call is cancelled.
    pub(super) fn unsaved_text(&self) -> Result<Option<String>, ToolError> {
        let Some(reader) = &self.files.reader else {
            return Ok(None);
        };
        match self.request(reader.read(self.path)) {
            // Some editors return an empty text for a missing file.
            Ok(text) => Ok(Some(text).filter(|text| !text.is_empty())),
            Err(Failure::Refused(_)) => Ok(None),
            Err(failure) => Err(self.not_read(failure)),
        }
    }

    /// Refuses to replace a file that exists only in the editor: its text was not seen, and cannot be restored.
    ///
    /// # Errors
    /// The refusal; or as [`EditorFile::unsaved_text`].
    pub(super) fn refuse_unsaved(&self) -> Result<(), ToolError> {
        match self.unsaved_text()? {
            None => Ok(()),
            Some(_) => Err(ToolError::permanent(format!(
                "{} exists only in the editor and is not saved to the disk, so nothing was \
                 written: ask the user to save it",
                self.shown
            ))),
        }
    }

    /// Replaces the text of the file, which `mark` has recorded. If it is certain that the editor wrote nothing, the
    /// record is removed.
    ///
    /// # Errors
    /// If the editor refuses or does not reply, or the call is cancelled.
    pub(super) fn write(&self, mark: Option<&Mark>, text: &[u8]) -> Result<(), ToolError> {
        let withdraw = || {
            if let Some(mark) = mark {
                mark.withdraw();
            }
        };
        let (Some(writer), Ok(text)) = (&self.files.writer, std::str::from_utf8(text)) else {
            withdraw();
            return Err(ToolError::permanent(format!(
                "the editor cannot write {}: the new content is not UTF-8 text",
                self.shown
            )));
        };
        if self.cancel.is_cancelled() {
            withdraw();
            return Err(ToolError::cancelled());
        }
        let shown = &self.shown;
        match self.request(writer.write(self.path, text)) {
            Ok(()) => Ok(()),
            Err(Failure::Refused(reason)) => {
                withdraw();
                Err(ToolError::permanent(format!(
                    "the editor refused to write {shown}, and nothing was written: {reason}"
                )))
            }
            // The record stays: undo compares it with the file.
            Err(Failure::NoReply(reason)) => Err(ToolError::permanent(format!(
                "{reason}, so {shown} may or may not be written: read it again"
            ))),
            Err(Failure::Cancelled) => Err(ToolError::Cancelled {
                reason: format!(
                    "the call was cancelled while the editor wrote {shown}, which may have its new content"
                ),
            }),
        }
    }

    /// Returns the text in the editor, if the content `disk` is a text.
    fn text(&self, disk: &[u8]) -> Result<Option<String>, ToolError> {
        let reader = self.files.reader.as_ref().filter(|_| is_text(disk));
        let Some(reader) = reader else {
            return Ok(None);
        };
        let text = self.request(reader.read(self.path));
        text.map(Some).map_err(|failure| self.not_read(failure))
    }

    fn not_read(&self, failure: Failure) -> ToolError {
        let shown = &self.shown;
        match failure {
            Failure::Refused(reason) => {
                ToolError::permanent(format!("the editor refused to read {shown}: {reason}"))
            }
            Failure::NoReply(reason) => {
                ToolError::permanent(format!("{reason}, and {shown} was not read"))
            }
            Failure::Cancelled => ToolError::cancelled(),
        }
    }

    /// Waits for the reply to a request. The runtime drives the connection.
    fn request<T>(
        &self,
        reply: impl Future<Output = Result<T, EditorError>>,
    ) -> Result<T, Failure> {
        let wait = async {
            tokio::select! {
                biased;
                () = self.cancel.cancelled() => Err(Failure::Cancelled),
                reply = tokio::time::timeout(REPLY_TIME, reply) => match reply {
                    Ok(Ok(reply)) => Ok(reply),
                    Ok(Err(EditorError::Refused(reason))) => Err(Failure::Refused(reason)),
                    Ok(Err(error @ EditorError::Lost)) => Err(Failure::NoReply(error.to_string())),
                    Err(_) => Err(Failure::NoReply(format!(
                        "the editor did not reply in {} s",
                        REPLY_TIME.as_secs()
                    ))),
                },
            }
        };
        Handle::current().block_on(wait)
    }
}

/// Returns the content of the file at `target` on the disk, up to one byte more than the maximum of a text. `None` if it
/// is not readable.
///
/// # Errors
/// If the target is not a regular file, or reading fails.
pub(super) fn disk_content(target: &Target) -> Result<Option<Vec<u8>>, ToolError> {
    let file = match target.open() {
        Ok((file, _)) => file,
        Err(ToolError::Io { source, .. }) if source.kind() == io::ErrorKind::PermissionDenied => {
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    let mut content = Vec::new();
    file.take(MAX_TEXT_BYTES + 1)
        .read_to_end(&mut content)
        .map_err(|error| ToolError::io("read", &target.path, error))?;
    Ok(Some(content))
}

/// Whether a content on the disk is a text that an editor has unchanged: UTF-8, and not too long.
fn is_text(content: &[u8]) -> bool {
    content.len() as u64 <= MAX_TEXT_BYTES
        && sniff(&content[..content.len().min(SNIFF)]) == Content::Text
        && std::str::from_utf8(content).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves ACP-4 in part: other contents are read and written on the disk.
    #[test]
    fn text_is_valid_utf8_up_to_the_maximum_size() {
        let check = |content: &[u8], expect| {
            let begin = &content[..content.len().min(20)];
            assert_eq!(is_text(content), expect, "{begin:?}");
        };
        check(b"", true);
        check("größer\r\n".as_bytes(), true);
        check(b"\xef\xbb\xbfwith a mark", true);
        check(b"gr\xf6\xdfer", false);
        check(b"\xff\xfea\0", false);
        check(b"a\0b", false);
        check(b"%PDF-1.7", false);
        check(b"\x89PNG\r\n\x1a\n", false);
        let mut long = vec![b'x'; 10 << 20];
        check(&long, true);
        long.push(b'x');
        check(&long, false);
        // An invalid byte after the part that is sniffed.
        let mut late = vec![b'x'; SNIFF + 1];
        late.push(0xff);
        check(&late, false);
    }
}
