//! The path sandbox: which directories file tools may touch.
//!
//! A path is never checked first and used later. [`Sandbox::resolve`] walks it on directory
//! handles, link by link, and yields a [`Place`]: the handle of the deepest existing directory and
//! the names that follow. All I/O goes relative to that handle and follows no link, so a link that
//! is swapped in afterwards leads nowhere.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{CWD, Mode, OFlags, openat};

use crate::category::ToolErrorCategory;
use crate::error::ToolError;
use crate::file::locks::PathLocks;
use crate::file::resolve::{self, FinalLinkMode};
use crate::file::resolved_path::Place;
use crate::file::rules::{self, ReadRules};
use crate::file::staleness::Differences;
use crate::gate::PathRole;
use crate::read_tracking::{InMemoryReadLedger, ReadLedger};
use crate::undo::{NoJournal, UndoJournal};

/// How a directory is opened to go through it. `O_PATH` needs no permission to list it.
#[cfg(target_os = "linux")]
pub(super) const PASS: OFlags = OFlags::PATH
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);
/// How a directory is opened to go through it.
#[cfg(not(target_os = "linux"))]
pub(super) const PASS: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// The longest path that is taken, in bytes.
const MAX_PATH_BYTES: usize = 4096;

/// A directory of the configuration that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("tools.file.allowed_paths: the directory {} cannot be used: {source}", .path.display())]
pub struct SandboxError {
    /// The directory as configured.
    pub path: PathBuf,
    /// Why.
    #[source]
    pub source: io::Error,
}

/// An allowed directory: its canonical path and its handle.
#[derive(Debug)]
pub(super) struct Root {
    pub(super) path: PathBuf,
    pub(super) dir: Arc<OwnedFd>,
}

/// The directories that file tools may touch, and where relative paths begin.
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
}

impl Sandbox {
    /// A sandbox of the directories `allowed`; of `cwd` when there are none. Relative paths, those
    /// of `allowed` too, begin at `cwd`.
    ///
    /// # Errors
    /// When a directory does not exist or cannot be opened.
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
            // Sorted, so a directory comes after the one that it lies in.
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
        })
    }

    /// Keeps file tools away from the existing database file `own` and the files beside it whose
    /// names go on from its with a `-`, also where they lie in an allowed directory. It holds the
    /// audit trail, and a process that opens and closes a database file beside SQLite drops
    /// SQLite's locks on it (POSIX advisory locks).
    ///
    /// # Errors
    /// When the file does not exist or cannot be reached.
    pub fn reserving(mut self, own: &Path) -> Result<Self, SandboxError> {
        self.reserved.push(canonical(own)?);
        Ok(self)
    }

    /// The same for a file that need not exist, and whose directories need not.
    ///
    /// # Errors
    /// When none of the directories above it can be reached.
    pub fn reserving_absent(mut self, own: &Path) -> Result<Self, SandboxError> {
        for above in own.ancestors().skip(1) {
            match (canonical(above), own.strip_prefix(above)) {
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

    /// Sets which files may be read.
    #[must_use]
    pub fn with_rules(mut self, rules: ReadRules) -> Self {
        self.rules = rules;
        self
    }

    /// Sets where it is kept what a conversation has seen of files; `None` lets file tools change
    /// what was never read. Without this it is kept in memory.
    #[must_use]
    pub fn with_seen(mut self, seen: Option<Arc<dyn ReadLedger>>) -> Self {
        self.seen = seen;
        self
    }

    /// The differences that answers of models were shown.
    pub(super) fn differences(&self) -> &Differences {
        &self.differences
    }

    /// What conversations have seen of files, where that matters.
    pub(super) fn seen(&self) -> Option<&Arc<dyn ReadLedger>> {
        self.seen.as_ref()
    }

    /// Sets where changes are put on record before they are made; nowhere without it. The tools
    /// then need a Tokio runtime that runs the journal.
    #[must_use]
    pub fn with_journal(mut self, journal: Arc<dyn UndoJournal>) -> Self {
        self.journal = journal;
        self
    }

    /// Where changes are put on record.
    pub(super) fn journal(&self) -> &Arc<dyn UndoJournal> {
        &self.journal
    }

    /// Which files may be read.
    pub(super) fn rules(&self) -> &ReadRules {
        &self.rules
    }

    /// Refuses what may not be read; `path` is canonical.
    ///
    /// # Errors
    /// [`ToolError::PolicyBlocked`], which names the rule.
    pub(super) fn check_read(&self, path: &Path) -> Result<(), ToolError> {
        match self.rules.refusal(path) {
            None => Ok(()),
            Some(reason) => Err(rules::refused(&self.shown(path), &reason)),
        }
    }

    /// Refuses a directory in which nothing may be read; `path` is canonical.
    ///
    /// # Errors
    /// [`ToolError::PolicyBlocked`], which names the rule.
    pub(super) fn check_search(&self, path: &Path) -> Result<(), ToolError> {
        match self.rules.denied(path) {
            None => Ok(()),
            Some(reason) => Err(rules::refused(&self.shown(path), &reason)),
        }
    }

    /// Whether `path` (canonical) is the program's own.
    pub(super) fn is_reserved(&self, path: &Path) -> bool {
        let path = path.as_os_str().as_bytes();
        self.reserved.iter().any(|own| {
            path.strip_prefix(own.as_os_str().as_bytes())
                .is_some_and(|rest| matches!(rest.first(), None | Some(b'-' | b'/')))
        })
    }

    /// Whether something of the program's own lies in the directory `path` (canonical).
    pub(super) fn holds_reserved(&self, path: &Path) -> bool {
        self.reserved.iter().any(|own| own.starts_with(path))
    }

    /// The directory where relative paths begin; canonical.
    #[must_use]
    pub fn cwd(&self) -> &Path {
        &self.cwd
    }

    /// The allowed directories; canonical, none within another.
    pub fn allowed(&self) -> impl Iterator<Item = &Path> {
        self.roots.iter().map(|root| root.path.as_path())
    }

    pub(super) fn roots(&self) -> &[Root] {
        &self.roots
    }

    pub(super) fn locks(&self) -> &PathLocks {
        &self.locks
    }

    /// Where `given` leads, all links followed.
    ///
    /// # Errors
    /// [`ToolError::InvalidParameters`] for what is no path, [`ToolError::PolicyBlocked`] for what
    /// lies outside, [`ToolError::Io`] for what cannot be walked.
    pub(super) fn resolve(&self, given: &str) -> Result<Place, ToolError> {
        self.checked("path", given, FinalLinkMode::Followed)
    }

    /// Where `given` leads when a link at its end is not followed: the entry itself is meant.
    /// `field` is the argument that it came as.
    ///
    /// # Errors
    /// As [`Sandbox::resolve`].
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

    /// Where a link in the directory `dir` leads whose text is `target`.
    ///
    /// # Errors
    /// As [`Sandbox::resolve`].
    pub(super) fn resolve_link(&self, dir: &Path, target: &Path) -> Result<Place, ToolError> {
        self.walk(&dir.join(target), FinalLinkMode::Followed)
    }

    /// Where the canonical `path` of a record is now; its last component is not followed.
    ///
    /// # Errors
    /// As [`Sandbox::resolve`]; and when a link has come to lie on the way.
    pub(super) fn resolve_recorded(&self, path: &Path) -> Result<Place, ToolError> {
        let place = self.walk(path, FinalLinkMode::Itself)?;
        if place.path() == path {
            return Ok(place);
        }
        Err(ToolError::blocked(format!(
            "there is a link on the way to {} now, which leads to {}",
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

    /// Why a file tool would refuse a path, or to read what is there, as things stand now; `None` where
    /// it would not. A link at its end is followed, unless the `entry` itself is meant.
    #[must_use]
    pub fn refusal(&self, given: &str, role: PathRole, entry: bool) -> Option<ToolError> {
        let last = if entry {
            FinalLinkMode::Itself
        } else {
            FinalLinkMode::Followed
        };
        let found = self.checked("path", given, last);
        let found = found.and_then(|place| match role {
            PathRole::Read => self.check_read(place.path()),
            PathRole::Write => Ok(()),
        });
        let blocked = |error: &ToolError| error.category() == ToolErrorCategory::PolicyBlocked;
        found.err().filter(blocked)
    }

    /// The refusal of the program's own files.
    pub(super) fn own(&self, given: &Path) -> ToolError {
        ToolError::blocked(format!(
            "{} is this program's own database; file tools stay away from it",
            printable(given)
        ))
    }

    /// The refusal of a path that lies outside.
    pub(super) fn outside(&self, given: &Path) -> ToolError {
        let roots: Vec<String> = self.allowed().map(printable).collect();
        ToolError::blocked(format!(
            "{} lies outside the directories that file tools may touch: {}",
            printable(given),
            roots.join(", ")
        ))
    }

    /// `path` as results name it: relative to the working directory where it lies below it.
    pub(super) fn shown(&self, path: &Path) -> String {
        match path.strip_prefix(&self.cwd) {
            Ok(rest) if rest.as_os_str().is_empty() => ".".to_owned(),
            Ok(rest) => printable(rest),
            Err(_) => printable(path),
        }
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

/// A path or name on one line: control characters are escaped, other bytes than UTF-8 replaced.
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
