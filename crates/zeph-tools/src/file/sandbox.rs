//! The path sandbox: the directories that file tools may access.
//!
//! A path is never checked first and used later. [`Sandbox::resolve`] resolves it with directory handles, link
//! by link, and returns a [`Place`]: the handle of the deepest existing directory and the names that follow.
//! All I/O is relative to that handle and follows no link. So a link that is created later has no effect.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use rustix::fs::{CWD, Mode, OFlags, openat};

use crate::call::ToolCall;
use crate::category::ToolErrorCategory;
use crate::context::CallContext;
use crate::error::ToolError;
use crate::file::editor::EditorFiles;
use crate::file::locks::PathLocks;
use crate::file::resolve::{self, FinalLinkMode};
use crate::file::resolved_path::Place;
use crate::file::rules::{self, ReadRules};
use crate::file::staleness::{Differences, refusal_of_unread};
use crate::gate::{CallSubject, KnownRefusals, SubjectPath};
use crate::read_tracking::{InMemoryReadLedger, ReadLedger};
use crate::undo::{NoJournal, UndoJournal};

/// Flags to open a directory for traversal. `O_PATH` needs no permission to list it.
#[cfg(target_os = "linux")]
pub(super) const PASS: OFlags = OFlags::PATH
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);
/// Flags to open a directory for traversal.
#[cfg(not(target_os = "linux"))]
pub(super) const PASS: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// The maximum length of a path in bytes.
const MAX_PATH_BYTES: usize = 4096;

/// A directory in the configuration that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("tools.file.allowed_paths: the directory {} cannot be used: {source}", .path.display())]
#[non_exhaustive]
pub struct SandboxError {
    /// The directory as configured.
    pub path: PathBuf,
    /// The reason.
    #[source]
    pub source: io::Error,
}

/// An allowed directory: its canonical path and its handle.
#[derive(Debug)]
pub(super) struct Root {
    pub(super) path: PathBuf,
    pub(super) dir: Arc<OwnedFd>,
}

/// The directories that file tools may access, and the base of relative paths.
pub struct Sandbox {
    roots: Vec<Root>,
    cwd: PathBuf,
    /// Canonical paths of the program's own databases.
    reserved: Vec<PathBuf>,
    rules: ReadRules,
    locks: PathLocks,
    seen: Option<Arc<dyn ReadLedger>>,
    differences: Differences,
    journal: Arc<dyn UndoJournal>,
    editor: EditorFiles,
}

impl Sandbox {
    /// Creates a sandbox of the directories `allowed`, or of `cwd` if `allowed` is empty. Relative paths,
    /// including those in `allowed`, are relative to `cwd`.
    ///
    /// # Errors
    /// If a directory does not exist or cannot be opened.
    pub fn new(allowed: &[PathBuf], cwd: &Path) -> Result<Self, SandboxError> {
        let cwd = canonical(cwd)?;
        let mut paths = if allowed.is_empty() {
            vec![cwd.clone()]
        } else {
            let paths = allowed.iter().map(|path| canonical(&cwd.join(path)));
            paths.collect::<Result<_, _>>()?
        };
        paths.sort();
        let mut roots: Vec<Root> = Vec::with_capacity(paths.len());
        for path in paths {
            // The paths are sorted, so a directory follows its parents.
            if roots.iter().any(|root| path.starts_with(&root.path)) {
                continue;
            }
            match openat(CWD, &path, PASS, Mode::empty()) {
                Ok(dir) => roots.push(Root {
                    path,
                    dir: Arc::new(dir),
                }),
                Err(error) => {
                    return Err(SandboxError {
                        path,
                        source: error.into(),
                    });
                }
            }
        }
        Ok(Self {
            roots,
            cwd,
            reserved: Vec::new(),
            rules: ReadRules::default(),
            locks: PathLocks::default(),
            seen: Some(Arc::new(InMemoryReadLedger::default())),
            differences: Differences::default(),
            journal: Arc::new(NoJournal),
            editor: EditorFiles::default(),
        })
    }

    /// Denies access to the file or folder `own` of this program, also in an allowed directory, and to files with its
    /// name and a suffix `-…`. It and its directories need not exist.
    ///
    /// It may be a database with the audit trail. A process that opens and closes a database file drops SQLite's locks on
    /// it (POSIX advisory locks).
    ///
    /// # Errors
    /// If none of its directories is accessible.
    pub fn reserving(mut self, own: &Path) -> Result<Self, SandboxError> {
        for above in own.ancestors() {
            match (canonical(above), own.strip_prefix(above)) {
                (Ok(real), Ok(rest)) if rest.as_os_str().is_empty() => {
                    self.reserved.push(real);
                    return Ok(self);
                }
                (Ok(real), Ok(rest)) => {
                    self.reserved.push(real.join(rest));
                    return Ok(self);
                }
                (Err(error), _) if error.source.kind() == io::ErrorKind::NotFound => {}
                (Err(error), _) => return Err(error),
                _ => break,
            }
        }
        Err(SandboxError {
            path: own.to_owned(),
            source: io::ErrorKind::NotFound.into(),
        })
    }

    /// Sets the rules for readable files.
    #[must_use]
    pub fn with_rules(mut self, rules: ReadRules) -> Self {
        self.rules = rules;
        self
    }

    /// Sets the store of the file contents that each conversation has read. `None` permits changes of unread
    /// files. The default is a store in memory.
    #[must_use]
    pub fn with_seen(mut self, seen: Option<Arc<dyn ReadLedger>>) -> Self {
        self.seen = seen;
        self
    }

    /// The differences that models have received.
    pub(super) fn differences(&self) -> &Differences {
        &self.differences
    }

    /// The store of the file contents that each conversation has read, if changes require a read.
    pub(super) fn seen(&self) -> Option<&Arc<dyn ReadLedger>> {
        self.seen.as_ref()
    }

    /// Sets the undo journal, in which changes are recorded in advance. By default changes are not recorded.
    /// With a journal, the tools need a Tokio runtime that runs it.
    #[must_use]
    pub fn with_journal(mut self, journal: Arc<dyn UndoJournal>) -> Self {
        self.journal = journal;
        self
    }

    /// The undo journal.
    pub(super) fn journal(&self) -> &Arc<dyn UndoJournal> {
        &self.journal
    }

    /// Sets the editor through which texts are read and written. By default the disk is used.
    #[must_use]
    pub fn with_editor(mut self, editor: EditorFiles) -> Self {
        self.editor = editor;
        self
    }

    /// The editor through which texts are read and written.
    pub(super) fn editor(&self) -> &EditorFiles {
        &self.editor
    }

    /// The rules for readable files.
    pub(super) fn rules(&self) -> &ReadRules {
        &self.rules
    }

    /// Rejects a denied path. `path` is canonical.
    ///
    /// # Errors
    /// [`ToolError::PolicyBlocked`] with the name of the rule.
    pub(super) fn check_read(&self, path: &Path) -> Result<(), ToolError> {
        match self.rules.refusal(path) {
            None => Ok(()),
            Some(reason) => Err(rules::refused(&self.shown(path), &reason)),
        }
    }

    /// Rejects a directory in which nothing may be read. `path` is canonical.
    ///
    /// # Errors
    /// [`ToolError::PolicyBlocked`] with the name of the rule.
    pub(super) fn check_search(&self, path: &Path) -> Result<(), ToolError> {
        match self.rules.denied(path) {
            None => Ok(()),
            Some(reason) => Err(rules::refused(&self.shown(path), &reason)),
        }
    }

    /// Returns true if `path` (canonical) is a file of this program.
    pub(super) fn is_reserved(&self, path: &Path) -> bool {
        let path = path.as_os_str().as_bytes();
        self.reserved.iter().any(|own| {
            path.strip_prefix(own.as_os_str().as_bytes())
                .is_some_and(|rest| matches!(rest.first(), None | Some(b'-' | b'/')))
        })
    }

    /// Returns true if the directory `path` (canonical) contains a file of this program.
    pub(super) fn holds_reserved(&self, path: &Path) -> bool {
        self.reserved.iter().any(|own| own.starts_with(path))
    }

    /// The canonical directory to which paths are relative.
    #[must_use]
    pub fn cwd(&self) -> &Path {
        &self.cwd
    }

    /// The canonical allowed directories. None is inside another one.
    pub fn allowed(&self) -> impl Iterator<Item = &Path> {
        self.roots.iter().map(|root| root.path.as_path())
    }

    pub(super) fn roots(&self) -> &[Root] {
        &self.roots
    }

    pub(super) fn locks(&self) -> &PathLocks {
        &self.locks
    }

    /// Resolves `given` and follows all links.
    ///
    /// # Errors
    /// [`ToolError::InvalidParameters`] for an invalid path; [`ToolError::PolicyBlocked`] for a path outside;
    /// [`ToolError::Io`] for a path that cannot be resolved.
    pub(super) fn resolve(&self, given: &str) -> Result<Place, ToolError> {
        self.checked("path", given, FinalLinkMode::Followed)
    }

    /// Resolves `given` without following a link in the last component. `field`: the name of the argument.
    ///
    /// # Errors
    /// The errors of [`Sandbox::resolve`].
    pub(super) fn resolve_entry(&self, field: &str, given: &str) -> Result<Place, ToolError> {
        self.checked(field, given, FinalLinkMode::Itself)
    }

    fn checked(&self, field: &str, given: &str, last: FinalLinkMode) -> Result<Place, ToolError> {
        if given.is_empty() {
            return Err(ToolError::invalid(format!("`{field}` is empty")));
        }
        if given.contains('\0') {
            return Err(ToolError::invalid(format!("`{field}` contains a NUL byte")));
        }
        if given.len() > MAX_PATH_BYTES {
            return Err(ToolError::invalid(format!(
                "`{field}` is longer than {MAX_PATH_BYTES} bytes"
            )));
        }
        self.walk(Path::new(given), last)
    }

    /// Resolves the link text `target` in the directory `dir`.
    ///
    /// # Errors
    /// The errors of [`Sandbox::resolve`].
    pub(super) fn resolve_link(&self, dir: &Path, target: &Path) -> Result<Place, ToolError> {
        self.walk(&dir.join(target), FinalLinkMode::Followed)
    }

    /// Resolves the canonical `path` of a record again. The last component is not followed.
    ///
    /// # Errors
    /// The errors of [`Sandbox::resolve`]; an error if the path contains a link now.
    pub(super) fn resolve_recorded(&self, path: &Path) -> Result<Place, ToolError> {
        let place = self.walk(path, FinalLinkMode::Itself)?;
        if place.path() == path {
            return Ok(place);
        }
        Err(ToolError::blocked(format!(
            "the path {} now contains a link to {}",
            self.shown(path),
            self.shown(place.path())
        )))
    }

    fn walk(&self, given: &Path, last: FinalLinkMode) -> Result<Place, ToolError> {
        let place = resolve::resolve(self, given, last)?;
        if self.is_reserved(place.path()) {
            return Err(self.own(given));
        }
        Ok(place)
    }

    /// The error of a file tool for this path, if it would currently deny access to or reading of it.
    fn refusal(&self, path: &SubjectPath) -> Option<ToolError> {
        let last = if path.is_entry() {
            FinalLinkMode::Itself
        } else {
            FinalLinkMode::Followed
        };
        let found = self.checked("path", &path.given, last);
        let found = found.and_then(|place| {
            if path.is_searched() {
                self.check_search(place.path())
            } else if path.is_read() {
                self.check_read(place.path())
            } else {
                Ok(())
            }
        });
        let blocked = |error: &ToolError| error.category() == ToolErrorCategory::PolicyBlocked;
        found.err().filter(blocked)
    }

    /// The error for a file of this program.
    pub(super) fn own(&self, given: &Path) -> ToolError {
        ToolError::blocked(format!(
            "{} is the database of Zeph, which file tools do not open",
            printable(given)
        ))
    }

    /// The error for a path outside of the allowed directories.
    pub(super) fn outside(&self, given: &Path) -> ToolError {
        let roots: Vec<String> = self.allowed().map(printable).collect();
        ToolError::blocked(format!(
            "{} is outside the directories that file tools may use: {}",
            printable(given),
            roots.join(", ")
        ))
    }

    /// The path in results: relative to the working directory if it is inside of it.
    pub(super) fn shown(&self, path: &Path) -> String {
        match path.strip_prefix(&self.cwd) {
            Ok(rest) if rest.as_os_str().is_empty() => ".".to_owned(),
            Ok(rest) => printable(rest),
            Err(_) => printable(path),
        }
    }
}

#[async_trait]
impl KnownRefusals for Sandbox {
    fn known_refusal(&self, subject: &CallSubject<'_>, _cx: &CallContext) -> Option<ToolError> {
        subject.paths.iter().find_map(|path| self.refusal(path))
    }

    async fn unread_refusal(&self, call: &ToolCall) -> Option<ToolError> {
        refusal_of_unread(self, call).await
    }
}

impl std::fmt::Debug for Sandbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sandbox")
            .field("roots", &self.roots)
            .field("cwd", &self.cwd)
            .finish_non_exhaustive()
    }
}

/// Formats a path or name on one line: control characters are escaped, and invalid UTF-8 is replaced.
pub(super) fn printable(path: impl AsRef<Path>) -> String {
    let text = path.as_ref().to_string_lossy();
    if !text.contains(char::is_control) {
        return text.into_owned();
    }
    let mut escaped = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        if character.is_control() {
            escaped.extend(character.escape_default());
        } else {
            escaped.push(character);
        }
    }
    escaped
}

#[allow(
    clippy::disallowed_methods,
    reason = "the roots of the sandbox are canonicalized here, once"
)]
fn canonical(path: &Path) -> Result<PathBuf, SandboxError> {
    std::fs::canonicalize(path).map_err(|source| SandboxError {
        path: path.to_owned(),
        source,
    })
}
