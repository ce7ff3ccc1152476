//! Which entries of a tree a search leaves out: hidden ones, and those that `.ignore`,
//! `.gitignore` and `.git/info/exclude` name. The files are read through directory handles, and
//! none from outside the sandbox.

use std::ffi::OsStr;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use rustix::fs::{Mode, openat};

use crate::file::glob;
use crate::file::place::open_regular;
use crate::file::sandbox::PASS;
use crate::file::witness::Stamps;

/// Bytes of an ignore file that are read.
const LONGEST: u64 = 1 << 20;

/// What the rules say of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Searched,
    Hidden,
    Ignored,
}

/// The rules of one directory, and of those above it.
#[derive(Debug)]
pub(super) struct Rules {
    above: Option<Arc<Rules>>,
    ignore: Gitignore,
    gitignore: Gitignore,
    exclude: Gitignore,
    /// Whether a git work tree begins here: git's rules of the directories above do not hold.
    work_tree: bool,
}

impl Rules {
    /// The rules of no directory.
    pub(super) fn none() -> Arc<Self> {
        Arc::new(Self {
            above: None,
            ignore: Gitignore::empty(),
            gitignore: Gitignore::empty(),
            exclude: Gitignore::empty(),
            work_tree: false,
        })
    }

    /// The rules that hold in the directory `dir` at `path`, below `above`; `names` are those of
    /// its entries. What is read is noted in `stamps`. Most directories have none of their own.
    pub(super) fn within<'a>(
        above: &Arc<Self>,
        dir: &OwnedFd,
        path: &Path,
        names: impl Iterator<Item = &'a OsStr>,
        stamps: &Stamps,
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
        let read = |there: bool, name: &str| {
            if there {
                parse(dir, name, path, &path.join(name), stamps)
            } else {
                Gitignore::empty()
            }
        };
        Arc::new(Self {
            above: Some(Arc::clone(above)),
            ignore: read(ignore, ".ignore"),
            gitignore: read(gitignore, ".gitignore"),
            exclude: if work_tree {
                exclude(dir, path, stamps)
            } else {
                Gitignore::empty()
            },
            work_tree,
        })
    }

    /// What the rules say of the entry at `path`. `.ignore` is stronger than git's rules, a deeper
    /// directory stronger than one above it; what is taken in explicitly is not hidden.
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

/// The rules in the file `name` of `dir`, which stands at `file` and holds below `path`; none when it is no regular file. Lines that are no globs
/// are left out.
fn parse(dir: &OwnedFd, name: &str, path: &Path, file: &Path, stamps: &Stamps) -> Gitignore {
    let mut text = Vec::new();
    let Ok((handle, stat)) = open_regular(dir, OsStr::new(name), path) else {
        stamps.identity(file);
        return Gitignore::empty();
    };
    stamps.content(&handle, file, &stat);
    if handle.take(LONGEST).read_to_end(&mut text).is_err() {
        stamps.spoil();
        return Gitignore::empty();
    }
    let mut builder = GitignoreBuilder::new(path);
    for line in String::from_utf8_lossy(&text).lines() {
        if glob::is_bounded(line) {
            let _ = builder.add_line(None, line.trim_start_matches('\u{FEFF}'));
        }
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}

/// The rules of `.git/info/exclude` of the work tree `dir`.
fn exclude(dir: &OwnedFd, path: &Path, stamps: &Stamps) -> Gitignore {
    let git = path.join(".git");
    let info = git.join("info");
    for place in [&git, &info] {
        stamps.identity(place);
    }
    let opened = openat(dir, ".git", PASS, Mode::empty())
        .and_then(|git| openat(git, "info", PASS, Mode::empty()));
    match opened {
        Ok(opened) => parse(&opened, "exclude", path, &info.join("exclude"), stamps),
        Err(_) => Gitignore::empty(),
    }
}
