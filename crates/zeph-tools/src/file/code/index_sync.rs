//! Synchronization of the index with the files. Only new and changed files are read and parsed.

use std::collections::HashMap;
use std::io::Read as _;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use rustix::fs::{AtFlags, FileType, Stat, statat};
use sha2::{Digest as _, Sha256};
use tokio::sync::mpsc::Sender;
use zeph_symbols::{Language, Symbols, symbols};

use super::index::{FileMarks, ReadFile};
use crate::error::ToolError;
use crate::file::budget::{Budget, Stop};
use crate::file::cache_validation::DependencyTracker;
use crate::file::edit::decoded;
use crate::file::fingerprint::FileMetadataStamp;
use crate::file::resolved_path::{Found, Place};
use crate::file::sandbox::Sandbox;
use crate::file::walk::{Entry, Visitor, WalkReport, walk};

/// The maximum size of a parsed file in bytes.
const MAX_FILE_BYTES: u64 = 2 << 20;
/// The number of files that are stored in the index together.
const BATCH: usize = 128;
/// The maximum number of parser threads. The user waits for them, but other work needs processors too.
const MAX_THREADS: usize = 4;

/// The result of a synchronization.
#[derive(Debug, Default)]
pub(super) struct Refreshed {
    /// The number of changed files that were not read in time.
    pub(super) left: usize,
    /// The number of files of known languages.
    pub(super) files: usize,
    /// The number of files that could not be read.
    pub(super) unreadable: usize,
    /// The number of files with incompletely known symbols.
    pub(super) partly: usize,
    /// Files in the index that no longer exist, or that cannot or may not be read.
    pub(super) gone: Vec<String>,
    pub(super) walked: WalkReport,
}

/// Returns a digest of the metadata of a file; 0 if a later change could leave the metadata equal.
fn digest_of(stat: &Stat) -> i64 {
    let marks = FileMetadataStamp::from(stat);
    if !marks.are_settled(SystemTime::now()) {
        return 0;
    }
    shortened(&marks.bytes())
}

/// Returns a number from the first bytes of the SHA-256 of `bytes`; never 0.
fn shortened(bytes: &[u8]) -> i64 {
    let digest = Sha256::digest(bytes);
    let mut first = [0; 8];
    first.copy_from_slice(&digest[..8]);
    i64::from_le_bytes(first).max(1 - i64::MAX) | 1
}

/// Returns the language of a file if symbols of that language are indexed.
fn language(path: &Path) -> Option<Language> {
    Language::from_path(path).filter(|language| language.has_symbols())
}

/// The state that all threads of the walk share.
struct SharedScan<'a> {
    known: &'a HashMap<String, (usize, FileMarks)>,
    seen: &'a [AtomicBool],
    changed: &'a Mutex<Vec<PathBuf>>,
    files: &'a AtomicUsize,
    partly: &'a AtomicUsize,
    stamps: &'a DependencyTracker,
}

impl Visitor for SharedScan<'_> {
    fn enters(&mut self, _: &Path) -> bool {
        true
    }

    fn visit(&mut self, entry: &Entry<'_>) {
        if entry.kind != FileType::RegularFile || language(entry.path).is_none() {
            return;
        }
        let Ok(stat) = statat(entry.dir, entry.name, AtFlags::SYMLINK_NOFOLLOW) else {
            return;
        };
        look(self, entry.path, &stat);
    }
}

/// Compares a file with its state in the index, and records it if it changed.
fn look(looking: &SharedScan<'_>, path: &Path, stat: &Stat) {
    // Files with other names are never shown.
    let Some(name) = path
        .to_str()
        .filter(|name| !name.contains(char::is_control))
    else {
        return;
    };
    looking.files.fetch_add(1, Ordering::Relaxed);
    let marks = digest_of(stat);
    if marks == 0 {
        looking.stamps.spoil();
    }
    looking.stamps.entry(path, stat);
    let known = looking.known.get(name);
    if let Some((place, _)) = known
        && let Some(seen) = looking.seen.get(*place)
    {
        seen.store(true, Ordering::Relaxed);
    }
    if marks == 0 || known.is_none_or(|(_, known)| known.marks != marks) {
        let mut changed = looking
            .changed
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        changed.push(path.to_owned());
    } else if known.is_some_and(|(_, known)| !known.whole) {
        looking.partly.fetch_add(1, Ordering::Relaxed);
    }
}

/// Finds files at or below `start` that differ from their state `known`, reads them, and sends the results in batches
/// to `read`. Blocks.
///
/// # Errors
/// If `start` cannot be opened, or the call was cancelled.
pub(super) fn refresh(
    sandbox: &Sandbox,
    start: &Place,
    known: HashMap<String, FileMarks>,
    budget: &Budget,
    stamps: &DependencyTracker,
    read: &Sender<Vec<ReadFile>>,
) -> Result<Refreshed, ToolError> {
    let known: HashMap<String, (usize, FileMarks)> = (0..)
        .zip(known)
        .map(|(place, (path, marks))| (path, (place, marks)))
        .collect();
    let seen: Vec<AtomicBool> = known.iter().map(|_| AtomicBool::new(false)).collect();
    let (changed, files, partly) = (Mutex::default(), AtomicUsize::new(0), AtomicUsize::new(0));
    let looking = || SharedScan {
        known: &known,
        seen: &seen,
        changed: &changed,
        files: &files,
        partly: &partly,
        stamps,
    };
    let walked = match start.open(sandbox)? {
        Found::Dir(dir) => walk(sandbox, dir, start.path(), budget, stamps, looking),
        Found::File(_, stat) => {
            sandbox.check_read(start.path())?;
            if language(start.path()).is_some() {
                look(&looking(), start.path(), &stat);
            }
            WalkReport::default()
        }
    };
    let mut changed = changed.into_inner().unwrap_or_else(PoisonError::into_inner);
    changed.sort_unstable();
    let parsed = parse_all(sandbox, &known, &changed, budget, read);
    if budget.spent() == Some(Stop::Cancelled) {
        return Err(ToolError::cancelled());
    }
    let left = changed.len().saturating_sub(parsed.done);
    if left > 0 || !parsed.unreadable.is_empty() {
        stamps.spoil();
    }
    // After a walk that ended early, a file that was not seen may still exist.
    let whole = walked.stopped.is_none();
    let is_gone = |(path, (place, _)): &(&String, &(usize, FileMarks))| {
        whole
            && Path::new(path.as_str()).starts_with(start.path())
            && seen
                .get(*place)
                .is_some_and(|seen| !seen.load(Ordering::Relaxed))
    };
    let mut gone: Vec<String> = known
        .iter()
        .filter(is_gone)
        .map(|(path, _)| path.clone())
        .collect();
    let unreadable = parsed.unreadable.len();
    let lost = parsed.unreadable.into_iter();
    gone.extend(lost.filter(|path| known.contains_key(path)));
    Ok(Refreshed {
        left,
        files: files.into_inner(),
        unreadable,
        partly: partly.into_inner() + parsed.partly,
        gone,
        walked,
    })
}

/// The result for the changed files.
#[derive(Default)]
struct Parsed {
    /// The number of processed files.
    done: usize,
    /// The number of files with incompletely known symbols.
    partly: usize,
    unreadable: Vec<String>,
}

/// Reads the files `changed` until the budget is spent.
fn parse_all(
    sandbox: &Sandbox,
    known: &HashMap<String, (usize, FileMarks)>,
    changed: &[PathBuf],
    budget: &Budget,
    read: &Sender<Vec<ReadFile>>,
) -> Parsed {
    let next = AtomicUsize::new(0);
    let all: Mutex<Parsed> = Mutex::default();
    let work = || {
        let mut batch = Vec::with_capacity(BATCH);
        let mut own = Parsed::default();
        while let Some(path) = changed.get(next.fetch_add(1, Ordering::Relaxed)) {
            if budget.spent().is_some() {
                break;
            }
            let Some(name) = path.to_str() else { continue };
            own.done += 1;
            match parsed(sandbox, name, known.get(name).map(|known| known.1)) {
                Some(file) => {
                    own.partly += usize::from(!file.marks.whole);
                    batch.push(file);
                }
                None => own.unreadable.push(name.to_owned()),
            }
            if batch.len() == BATCH && read.blocking_send(std::mem::take(&mut batch)).is_err() {
                break;
            }
        }
        if !batch.is_empty() {
            // The receiver is closed only if the call failed or was abandoned.
            let _ = read.blocking_send(batch);
        }
        let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
        all.done += own.done;
        all.partly += own.partly;
        all.unreadable.append(&mut own.unreadable);
    };
    let threads = std::thread::available_parallelism()
        .map_or(1, NonZero::get)
        .min(MAX_THREADS)
        .min(changed.len() / 16 + 1);
    std::thread::scope(|scope| {
        for _ in 1..threads {
            let thread = std::thread::Builder::new().name("zeph-parse".to_owned());
            // If a thread cannot start, the other threads do its work.
            let _ = thread.spawn_scoped(scope, work);
        }
        work();
    });
    all.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Reads a file and its symbols. Returns `None` if the file cannot be read.
fn parsed(sandbox: &Sandbox, name: &str, known: Option<FileMarks>) -> Option<ReadFile> {
    let path = Path::new(name);
    let language = language(path)?;
    let (file, stat) = opened(sandbox, name)?;
    let mut text = Vec::new();
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut text).ok()?;
    let content = shortened(&text);
    let known = known.filter(|known| known.content == content);
    let (symbols, whole) = if let Some(known) = known {
        (None, known.whole)
    } else {
        let text = decoded(&text);
        let found = if text.len() as u64 > MAX_FILE_BYTES {
            Symbols::default()
        } else if memchr::memchr(0, &text).is_some() {
            // A file with a NUL byte is not text, regardless of its name.
            Symbols {
                whole: true,
                ..Symbols::default()
            }
        } else {
            symbols(&text, language)
        };
        (Some(found.found), found.whole)
    };
    Some(ReadFile {
        path: name.to_owned(),
        marks: FileMarks {
            marks: digest_of(&stat),
            content,
            whole,
        },
        symbols,
    })
}

/// Opens the regular file at the path `name`, if it may be read and the path is canonical.
pub(super) fn opened(sandbox: &Sandbox, name: &str) -> Option<(std::fs::File, Stat)> {
    let place = sandbox.resolve(name).ok()?;
    if place.path() != Path::new(name) || sandbox.check_read(place.path()).is_err() {
        return None;
    }
    match place.open(sandbox).ok()? {
        Found::File(file, stat) => Some((file, stat)),
        Found::Dir(_) => None,
    }
}
