//! Rules for the entries that a search skips: hidden ones, and those in `.ignore`, `.gitignore` and
//! `.git/info/exclude`.
//!
//! The files are read through directory handles, and never from outside of the sandbox.

use std::ffi::OsStr;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use rustix::fs::{Mode, openat};

use crate::file::cache_validation::DependencyTracker;
use crate::file::glob;
use crate::file::resolved_path::open_regular;
use crate::file::sandbox::PASS;

/// Bytes of one ignore file that are read.
const MAX_READ_BYTES: u64 = 1 << 20;
/// Bytes of the rules of one ignore file that apply. A compiled rule takes up to 400 times its text.
const MAX_FILE_BYTES: usize = 64 * 1024;
/// Bytes of ignore files whose rules one walk holds in memory at a time.
const MAX_HELD_BYTES: usize = 192 * 1024;

/// The decision of the rules about an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Searched,
    Hidden,
    Ignored,
}

/// The rules of one directory and of its parents.
#[derive(Debug)]
pub(super) struct Rules {
    above: Option<Arc<Rules>>,
    ignore: Gitignore,
    gitignore: Gitignore,
    exclude: Gitignore,
    /// True if this directory is the root of a git work tree: git rules of its parents do not apply.
    work_tree: bool,
    held: Held,
}

/// The text of the rules in memory, counted for a whole walk. Dropping a share returns it.
#[derive(Debug, Default)]
struct Held {
    of_walk: Arc<AtomicUsize>,
    own: usize,
}

impl Held {
    /// Reserves up to `wanted` bytes, and returns the granted number.
    fn take(&mut self, wanted: usize) -> usize {
        let before = self.of_walk.fetch_add(wanted, Ordering::Relaxed);
        let granted = wanted.min(MAX_HELD_BYTES.saturating_sub(before));
        self.of_walk.fetch_sub(wanted - granted, Ordering::Relaxed);
        self.own += granted;
        granted
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.of_walk.fetch_sub(self.own, Ordering::Relaxed);
    }
}

impl Rules {
    /// Creates an empty set of rules.
    pub(super) fn none() -> Arc<Self> {
        Arc::new(Self {
            held: Held::default(),
            above: None,
            ignore: Gitignore::empty(),
            gitignore: Gitignore::empty(),
            exclude: Gitignore::empty(),
            work_tree: false,
        })
    }

    /// The rules for the directory `dir` at `path`, in addition to `above`. `names` are those of its entries.
    /// The read files are recorded in `stamps`. Most directories have no rules.
    pub(super) fn within<'a>(
        above: &Arc<Self>,
        dir: &OwnedFd,
        path: &Path,
        names: impl Iterator<Item = &'a OsStr>,
        stamps: &DependencyTracker,
    ) -> Arc<Self> {
        let (mut ignore, mut gitignore, mut work_tree) = (false, false, false);
        for name in names {
            match name.as_bytes() {
                b".ignore" => ignore = true,
                b".gitignore" => gitignore = true,
                b".git" => work_tree = true,
                _ => {}
            }
        }
        if !ignore && !gitignore && !work_tree {
            return Arc::clone(above);
        }
        let mut held = Held {
            of_walk: Arc::clone(&above.held.of_walk),
            own: 0,
        };
        let mut read = |there: bool, name: &str| {
            if there {
                parse(dir, name, path, &path.join(name), stamps, &mut held)
            } else {
                Gitignore::empty()
            }
        };
        let ignore = read(ignore, ".ignore");
        let gitignore = read(gitignore, ".gitignore");
        let exclude = if work_tree {
            exclude(dir, path, stamps, &mut held)
        } else {
            Gitignore::empty()
        };
        Arc::new(Self {
            above: Some(Arc::clone(above)),
            ignore,
            gitignore,
            exclude,
            work_tree,
            held,
        })
    }

    /// Decides about the entry at `path`. `.ignore` takes precedence over git's rules, and a deeper directory
    /// over its parents. An explicitly included entry is not hidden.
    pub(super) fn verdict(&self, path: &Path, is_dir: bool) -> Verdict {
        let chain = || std::iter::successors(Some(self), |rules| rules.above.as_deref());
        let decided = |rules: &Gitignore| match rules.matched(path, is_dir) {
            Match::None => None,
            Match::Ignore(_) => Some(Verdict::Ignored),
            Match::Whitelist(_) => Some(Verdict::Searched),
        };
        let own = chain().find_map(|rules| decided(&rules.ignore));
        let of_git = || {
            let mut inside = true;
            chain().find_map(|rules| {
                if !inside {
                    return None;
                }
                inside = !rules.work_tree;
                decided(&rules.gitignore).or_else(|| decided(&rules.exclude))
            })
        };
        own.or_else(of_git).unwrap_or_else(|| {
            let hidden = path
                .file_name()
                .is_some_and(|name| name.as_bytes().starts_with(b"."));
            if hidden {
                Verdict::Hidden
            } else {
                Verdict::Searched
            }
        })
    }
}

/// Parses the rules in the file `name` of `dir`, for entries below `path`. `file` is the path of the file.
///
/// The rules are empty if it is not a regular file. Invalid globs are skipped. Lines beyond the limits of a
/// file and of a walk are ignored with a warning.
fn parse(
    dir: &OwnedFd,
    name: &str,
    path: &Path,
    file: &Path,
    stamps: &DependencyTracker,
    held: &mut Held,
) -> Gitignore {
    let mut text = Vec::new();
    let Ok((handle, stat)) = open_regular(dir, OsStr::new(name), path) else {
        stamps.identity(file);
        return Gitignore::empty();
    };
    stamps.content(&handle, file, &stat);
    if handle.take(MAX_READ_BYTES).read_to_end(&mut text).is_err() {
        stamps.spoil();
        return Gitignore::empty();
    }
    let text = String::from_utf8_lossy(&text);
    let lines = text.lines().filter(|line| glob::is_bounded(line));
    let wanted: usize = lines.clone().map(str::len).sum();
    let granted = held.take(wanted.min(MAX_FILE_BYTES));
    if granted < wanted {
        tracing::warn!(
            file = %file.display(),
            granted,
            "an ignore file is too large: only the rules of its first bytes apply"
        );
    }
    let mut builder = GitignoreBuilder::new(path);
    let mut used = 0;
    for line in lines {
        used += line.len();
        if used > granted {
            break;
        }
        let _ = builder.add_line(None, line.trim_start_matches('\u{FEFF}'));
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}

/// Reads the rules in `.git/info/exclude` of the work tree `dir`.
fn exclude(dir: &OwnedFd, path: &Path, stamps: &DependencyTracker, held: &mut Held) -> Gitignore {
    let git = path.join(".git");
    let info = git.join("info");
    for place in [&git, &info] {
        stamps.identity(place);
    }
    let opened = openat(dir, ".git", PASS, Mode::empty())
        .and_then(|git| openat(git, "info", PASS, Mode::empty()));
    match opened {
        Ok(opened) => {
            let file = info.join("exclude");
            parse(&opened, "exclude", path, &file, stamps, held)
        }
        Err(_) => Gitignore::empty(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::file::resolved_path::LIST;

    fn rules_of(above: &Arc<Rules>, directory: &Path) -> Arc<Rules> {
        let opened = rustix::fs::open(directory, LIST, Mode::empty()).unwrap();
        let names = [OsStr::new(".gitignore")];
        Rules::within(
            above,
            &opened,
            directory,
            names.into_iter(),
            &DependencyTracker::new(false),
        )
    }

    /// Proves FILE-13 for bounds: the first lines of a huge ignore file apply, and all are counted.
    #[test]
    fn ignore_file_over_the_bound_applies_its_first_lines() {
        let directory = tempfile::tempdir().unwrap();
        let text = "first.txt\n".to_owned() + &"/some/long/dir/**/x?.tmp\n".repeat(100_000);
        fs::write(directory.path().join(".gitignore"), text).unwrap();
        let none = Rules::none();
        let rules = rules_of(&none, directory.path());
        let verdict = |name: &str| rules.verdict(&directory.path().join(name), false);
        assert_eq!(verdict("first.txt"), Verdict::Ignored);
        assert_eq!(verdict("other.txt"), Verdict::Searched);
        assert!(rules.held.own <= MAX_FILE_BYTES);
        let more: Vec<_> = (0..5).map(|_| rules_of(&rules, directory.path())).collect();
        assert_eq!(none.held.of_walk.load(Ordering::Relaxed), MAX_HELD_BYTES);
        drop(more);
        assert_eq!(none.held.of_walk.load(Ordering::Relaxed), rules.held.own);
        drop(rules);
        assert_eq!(none.held.of_walk.load(Ordering::Relaxed), 0);
    }
}
