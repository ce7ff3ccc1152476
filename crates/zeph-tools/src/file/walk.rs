//! Parallel traversal of a tree with directory handles, without following links.
//!
//! Paths only name results. Every directory is opened from the handle of its parent, and every file from that
//! of its directory. So concurrent changes cannot redirect a step out of the tree.

use std::ffi::{OsStr, OsString};
use std::num::NonZero;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use rustix::fs::{AtFlags, FileType, Mode, fstat, openat, statat};

use crate::file::budget::{Budget, Stop};
use crate::file::cache_validation::DependencyTracker;
use crate::file::ignored::{Rules, Verdict};
use crate::file::resolved_path::{LIST, entries_with_types};
use crate::file::rules;
use crate::file::sandbox::Sandbox;

/// Entries of one directory that a thread processes at a time.
const SHARE: usize = 64;
/// The maximum number of threads, regardless of the number of cores.
const MAX_THREADS: usize = 8;

/// An entry of the tree.
pub(super) struct Entry<'a> {
    /// The handle of its directory.
    pub(super) dir: &'a OwnedFd,
    pub(super) name: &'a OsStr,
    /// The absolute path of the entry.
    pub(super) path: &'a Path,
    pub(super) kind: FileType,
}

/// Receives the entries. Every thread has its own visitor.
pub(super) trait Visitor {
    /// Returns true if a directory is to be entered.
    fn enters(&mut self, path: &Path) -> bool;
    /// Processes an entry. A directory is visited before it is entered.
    fn visit(&mut self, entry: &Entry<'_>);
}

/// Statistics of a walk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct WalkReport {
    /// The number of hidden entries that were skipped. A directory counts as one.
    pub(super) hidden: usize,
    /// The number of entries that ignore files exclude.
    pub(super) ignored: usize,
    /// The number of entries that rules deny.
    pub(super) denied: usize,
    /// The number of directories that could not be read.
    pub(super) unreadable: usize,
    /// The reason for an early end.
    pub(super) stopped: Option<Stop>,
}

impl WalkReport {
    fn add(&mut self, other: Self) {
        self.hidden += other.hidden;
        self.ignored += other.ignored;
        self.denied += other.denied;
        self.unreadable += other.unreadable;
        self.stopped = self.stopped.or(other.stopped);
    }

    /// Describes the skipped entries, for an empty result. Returns an empty text if none was skipped.
    pub(super) fn left_out(&self) -> String {
        let counts = [
            (self.ignored, "ignored"),
            (self.hidden, "hidden"),
            (self.denied, "denied by rules"),
            (self.unreadable, "unreadable"),
        ];
        let counts: Vec<String> = counts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        if counts.is_empty() {
            String::new()
        } else {
            format!(
                " Not searched: {} (directories count once; name one as `path` to search it).",
                counts.join(", ")
            )
        }
    }
}

enum Job {
    /// A directory: the handle of its parent, its name, its path, and the rules of the parent.
    Dir(Arc<OwnedFd>, OsString, PathBuf, Arc<Rules>),
    /// Entries of a directory, with its path.
    Entries(Arc<OwnedFd>, Arc<Path>, Vec<(OsString, FileType)>),
}

/// The waiting jobs. The last one is processed first, so that directories are completed early.
#[derive(Default)]
struct Queue {
    state: Mutex<(Vec<Job>, usize)>,
    changed: Condvar,
}

/// Marks a thread as busy. If none is busy and no job waits, the walk is complete.
struct Busy<'a>(&'a Queue);

impl Queue {
    fn lock(&self) -> MutexGuard<'_, (Vec<Job>, usize)> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next(&self) -> Option<(Job, Busy<'_>)> {
        let mut state = self.lock();
        loop {
            if let Some(job) = state.0.pop() {
                state.1 += 1;
                return Some((job, Busy(self)));
            }
            if state.1 == 0 {
                return None;
            }
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn push(&self, jobs: impl Iterator<Item = Job>) {
        self.lock().0.extend(jobs);
        self.changed.notify_all();
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.lock().1 -= 1;
        self.0.changed.notify_all();
    }
}

/// Walks the directory `dir` at `path`, and records the read entries in `stamps`. Each thread has a visitor
/// from `visitor`.
pub(super) fn walk<V: Visitor>(
    sandbox: &Sandbox,
    dir: OwnedFd,
    path: &Path,
    budget: &Budget,
    stamps: &DependencyTracker,
    visitor: impl Fn() -> V + Sync,
) -> WalkReport {
    let walk = Walk {
        sandbox,
        budget,
        stamps,
        queue: Queue::default(),
    };
    let mut walked = WalkReport::default();
    let above = walk.rules_above(path);
    let mut own = visitor();
    walk.list(dir, path, &above, &mut own, &mut walked);

    let threads = std::thread::available_parallelism()
        .map_or(1, NonZero::get)
        .min(MAX_THREADS);
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads)
            .filter_map(|_| {
                std::thread::Builder::new()
                    .name("zeph-walk".to_owned())
                    .spawn_scoped(scope, || walk.work(&mut visitor()))
                    .ok()
            })
            .collect();
        walked.add(walk.work(&mut own));
        for other in others {
            // A panic of a thread is already reported. Its part of the result is missing.
            walked.add(other.join().unwrap_or(WalkReport {
                unreadable: 1,
                ..WalkReport::default()
            }));
        }
    });
    if walked.stopped.is_some() || walked.unreadable > 0 {
        stamps.spoil();
    }
    walked
}

/// State of a walk.
struct Walk<'a> {
    sandbox: &'a Sandbox,
    budget: &'a Budget,
    stamps: &'a DependencyTracker,
    queue: Queue,
}

impl Walk<'_> {
    /// The rules of the directories from the allowed one down to the parent of `path`.
    fn rules_above(&self, path: &Path) -> Arc<Rules> {
        let mut rules = Rules::none();
        let Some(root) = self.sandbox.allowed().find(|root| path.starts_with(root)) else {
            return rules;
        };
        let mut above: Vec<&Path> = path
            .ancestors()
            .skip(1)
            .take_while(|above| above.starts_with(root))
            .collect();
        above.reverse();
        let names = [".ignore", ".gitignore", ".git"].map(OsStr::new);
        for above in above {
            let dir = above
                .to_str()
                .and_then(|text| self.sandbox.resolve(text).ok())
                .filter(|place| place.path() == above)
                .and_then(|place| place.open_dir(self.sandbox).ok());
            for name in names {
                self.stamps.identity(&above.join(name));
            }
            if let Some(dir) = dir {
                let there = names
                    .into_iter()
                    .filter(|name| statat(&dir, *name, AtFlags::SYMLINK_NOFOLLOW).is_ok());
                rules = Rules::within(&rules, &dir, above, there, self.stamps);
            }
        }
        rules
    }

    /// Processes jobs on one thread until none is left, or the budget is spent.
    fn work<V: Visitor>(&self, visitor: &mut V) -> WalkReport {
        let mut walked = WalkReport::default();
        while let Some((job, _busy)) = self.queue.next() {
            if let Some(stop) = self.budget.spent() {
                walked.stopped = Some(stop);
                // Every thread drops its part of the remaining jobs.
                continue;
            }
            match job {
                Job::Dir(above, name, path, rules) => {
                    if !visitor.enters(&path) {
                        continue;
                    }
                    match openat(&*above, &name, LIST, Mode::empty()) {
                        Ok(dir) => self.list(dir, &path, &rules, visitor, &mut walked),
                        Err(_) => walked.unreadable += 1,
                    }
                }
                Job::Entries(dir, path, entries) => {
                    for (name, kind) in entries {
                        if let Some(stop) = self.budget.spent() {
                            walked.stopped = Some(stop);
                            break;
                        }
                        visitor.visit(&Entry {
                            dir: &dir,
                            name: &name,
                            path: &path.join(&name),
                            kind,
                        });
                    }
                }
            }
        }
        walked
    }

    /// Lists the directory `dir` at `path`, and queues its entries.
    fn list<V: Visitor>(
        &self,
        dir: OwnedFd,
        path: &Path,
        above: &Arc<Rules>,
        visitor: &mut V,
        walked: &mut WalkReport,
    ) {
        match fstat(&dir) {
            Ok(stat) => self.stamps.content(&dir, path, &stat),
            Err(_) => self.stamps.spoil(),
        }
        let mut entries: Vec<(OsString, FileType)> = match entries_with_types(&dir) {
            Ok(entries) => entries.collect(),
            Err(_) => {
                walked.unreadable += 1;
                return;
            }
        };
        entries.sort_by(|a, b| a.0.cmp(&b.0));
        let names = entries.iter().map(|(name, _)| name.as_os_str());
        let rules = Rules::within(above, &dir, path, names, self.stamps);
        let dir = Arc::new(dir);
        let shared: Arc<Path> = Arc::from(path);
        let mut jobs = Vec::new();
        let mut share = Vec::new();
        for (name, mut kind) in entries {
            if kind == FileType::Unknown {
                let Ok(stat) = statat(&*dir, &name, AtFlags::SYMLINK_NOFOLLOW) else {
                    continue;
                };
                kind = FileType::from_raw_mode(stat.st_mode);
            }
            let path = path.join(&name);
            let is_dir = kind == FileType::Directory;
            if self.sandbox.is_reserved(&path) {
                walked.hidden += 1;
                continue;
            }
            let seen = match self.sandbox.rules().entry(&path) {
                rules::Entry::Seen => true,
                rules::Entry::Passed if is_dir => false,
                rules::Entry::Passed | rules::Entry::LeftOut => {
                    walked.denied += 1;
                    continue;
                }
            };
            match rules.verdict(&path, is_dir) {
                Verdict::Hidden => walked.hidden += 1,
                Verdict::Ignored => walked.ignored += 1,
                // A repository is never searched, even if a rule includes it.
                Verdict::Searched if is_dir && name == ".git" => walked.hidden += 1,
                Verdict::Searched if is_dir => {
                    if seen {
                        visitor.visit(&Entry {
                            dir: &dir,
                            name: &name,
                            path: &path,
                            kind,
                        });
                    }
                    jobs.push(Job::Dir(Arc::clone(&dir), name, path, Arc::clone(&rules)));
                }
                Verdict::Searched => {
                    share.push((name, kind));
                    if share.len() == SHARE {
                        let share = std::mem::take(&mut share);
                        jobs.push(Job::Entries(Arc::clone(&dir), Arc::clone(&shared), share));
                    }
                }
            }
        }
        if !share.is_empty() {
            jobs.push(Job::Entries(Arc::clone(&dir), shared, share));
        }
        self.queue.push(jobs.into_iter().rev());
    }
}
