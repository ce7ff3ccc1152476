//! Bounded search for the files that `deny_read` denies, so that they can be hidden from commands.
//!
//! A glob that is a plain path is looked up. A glob with a plain directory prefix is searched below it. A glob
//! that begins with `**` is searched below the given roots. Links are not followed: the rules apply to their
//! targets.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::rules::{ReadRules, real_path};
use crate::gate::path_globs::plain_base;

/// Limits of one search for denied files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// The maximum number of inspected entries.
    pub entries: usize,
    /// The maximum number of paths in the result.
    pub found: usize,
    /// The maximum duration.
    pub time: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            entries: 250_000,
            found: 2_000,
            time: Duration::from_millis(500),
        }
    }
}

/// The denied files that a search found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// Real paths of files and directories, sorted. No path is inside another one.
    pub paths: Vec<PathBuf>,
    /// The part of the search that exceeded its bounds, as a sentence without a full stop.
    pub missed: Option<String>,
}

/// Finds the existing files that `rules` deny. Globs that begin with `**` are searched below `roots` (real,
/// absolute).
#[must_use]
pub fn find(rules: &ReadRules, roots: &[PathBuf], bounds: Bounds) -> Found {
    let mut search = Search {
        rules,
        bounds,
        until: Instant::now() + bounds.time,
        seen: 0,
        paths: Vec::new(),
        missed: None,
    };
    let mut places = BTreeMap::new();
    if rules.deny_globs().iter().any(|glob| glob.starts_with("**")) {
        for root in roots {
            // The directories above a root may be denied themselves.
            for above in root.ancestors() {
                search.look_up(above);
            }
            places.insert(root.clone(), usize::MAX);
        }
    }
    for glob in rules
        .deny_globs()
        .iter()
        .filter(|glob| glob.starts_with('/'))
    {
        let base = plain_base(Path::new(glob));
        // If the path contains a link, another glob has the real path.
        if real_path(&base).as_ref() != Some(&base) {
            continue;
        }
        if base.as_os_str().len() == glob.len() {
            search.look_up(&base);
            continue;
        }
        let depth = depth_below(glob, &base);
        let known = places.entry(base).or_insert(0);
        *known = depth.max(*known);
    }
    let mut done: Option<PathBuf> = None;
    for (place, depth) in places {
        // The places are sorted, so a directory follows its parents.
        if done.as_ref().is_some_and(|done| place.starts_with(done)) {
            continue;
        }
        search.walk(&place, depth);
        if depth == usize::MAX {
            done = Some(place);
        }
    }
    search.finish()
}

/// The number of levels below `base` at which a glob can match.
fn depth_below(glob: &str, base: &Path) -> usize {
    let crosses = glob.contains("**") || (glob.contains('{') && glob.contains('}'));
    if crosses {
        return usize::MAX;
    }
    glob.matches('/')
        .count()
        .saturating_sub(base.components().count() - 1)
}

struct Search<'r> {
    rules: &'r ReadRules,
    bounds: Bounds,
    until: Instant,
    seen: usize,
    paths: Vec<PathBuf>,
    missed: Option<String>,
}

impl Search<'_> {
    fn look_up(&mut self, path: &Path) {
        if self.rules.denies_itself(path) {
            self.paths.push(path.to_owned());
        }
    }

    /// Inspects the entries below `place`, up to `depth` levels deep.
    fn walk(&mut self, place: &Path, depth: usize) {
        let mut waiting = vec![(place.to_owned(), depth)];
        while let Some((mut directory, depth)) = waiting.pop() {
            // A directory that this user cannot list is not accessible for commands either.
            let Ok(entries) = fs::read_dir(&directory) else {
                continue;
            };
            for entry in entries.flatten() {
                if !self.within_bounds(place) {
                    return;
                }
                let Ok(kind) = entry.file_type() else {
                    continue;
                };
                if kind.is_symlink() {
                    continue;
                }
                directory.push(entry.file_name());
                if self.rules.denies_itself(&directory) {
                    self.paths.push(directory.clone());
                } else if kind.is_dir() && depth > 1 && !is_kernels(&directory) {
                    waiting.push((directory.clone(), depth.saturating_sub(1)));
                }
                directory.pop();
            }
        }
    }

    fn within_bounds(&mut self, place: &Path) -> bool {
        self.seen += 1;
        let late = self.seen.is_multiple_of(256) && Instant::now() > self.until;
        let within = !late
            && self.seen <= self.bounds.entries
            && self.paths.len() < self.bounds.found
            && self.missed.is_none();
        if !within && self.missed.is_none() {
            self.missed = Some(format!(
                "{} has too many entries to find all files that `[tools.file] deny_read` denies \
                 ({} entries checked, {} denied)",
                place.display(),
                self.seen,
                self.paths.len()
            ));
        }
        within
    }

    fn finish(mut self) -> Found {
        self.paths.sort();
        let mut paths: Vec<PathBuf> = Vec::with_capacity(self.paths.len());
        for path in self.paths {
            if !paths.last().is_some_and(|last| path.starts_with(last)) {
                paths.push(path);
            }
        }
        Found {
            paths,
            missed: self.missed,
        }
    }
}

/// Returns true for a virtual file system of the kernel.
fn is_kernels(directory: &Path) -> bool {
    directory == Path::new("/proc") || directory == Path::new("/sys")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn world() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().expect("a directory");
        let base = real_path(dir.path()).expect("a directory");
        for file in [
            ".env",
            "a/.env",
            "a/b/key.pem",
            "a/b/other",
            "secrets/deep/x",
            "secrets/.env",
        ] {
            let file = base.join(file);
            fs::create_dir_all(file.parent().expect("a directory")).expect("a directory");
            fs::write(file, "").expect("a file");
        }
        symlink(base.join("a/.env"), base.join("link")).expect("a link");
        symlink(base.join("a"), base.join("dir")).expect("a link");
        (dir, base)
    }

    fn found(globs: &[&str], base: &Path, bounds: Bounds) -> Found {
        let globs: Vec<String> = globs
            .iter()
            .map(|glob| glob.replace("BASE", &base.display().to_string()))
            .collect();
        let rules = ReadRules::new(&globs, &[], None).expect("globs");
        find(&rules, &[base.to_owned()], bounds)
    }

    /// Proves SH-20a: existing files are found for each form of a glob.
    #[test]
    fn denied_files_are_found() {
        let (_dir, base) = world();
        let check = |globs: &[&str], expect: &[&str]| {
            let found = found(globs, &base, Bounds::default());
            let expect: Vec<PathBuf> = expect.iter().map(|path| base.join(path)).collect();
            assert_eq!(found.paths, expect, "{globs:?}");
            assert_eq!(found.missed, None);
        };
        check(&["**/.env"], &[".env", "a/.env", "secrets/.env"]);
        check(&["**/secrets", "**/.env"], &[".env", "a/.env", "secrets"]);
        check(&["BASE/secrets/**"], &["secrets"]);
        check(&["BASE/secrets/deep"], &["secrets/deep"]);
        check(&["BASE/.env"], &[".env"]);
        check(&["BASE/*/.env"], &["a/.env", "secrets/.env"]);
        check(&["BASE/a/*/*.pem"], &["a/b/key.pem"]);
        check(
            &["BASE/{a/b,secrets/deep}/*"],
            &["a/b/key.pem", "a/b/other", "secrets/deep/x"],
        );
        check(&["BASE/**/*.pem"], &["a/b/key.pem"]);
        check(&["BASE/?/b"], &["a/b"]);
        check(&["BASE/nothing", "BASE/*.none", "**/none"], &[]);
        // The rule applies to the target of the link. The link itself is not hidden.
        check(&["BASE/dir/.env"], &["a/.env"]);
        check(&["BASE/link"], &["a/.env"]);
        check(&["**/link"], &[]);
    }

    /// Proves SH-20a: an incomplete search is reported.
    #[test]
    fn incomplete_search_is_reported() {
        let (_dir, base) = world();
        let few = |entries, found| Bounds {
            entries,
            found,
            ..Bounds::default()
        };
        for bounds in [few(3, 100), few(100, 1)] {
            let missed = found(&["**/.env"], &base, bounds).missed.expect("said");
            assert!(missed.contains(&base.display().to_string()), "{missed}");
        }
        assert_eq!(found(&["BASE/.env"], &base, few(0, 0)).missed, None);
    }

    #[test]
    fn root_in_a_denied_directory_is_denied() {
        let (_dir, base) = world();
        let rules = ReadRules::new(&["**/secrets".to_owned()], &[], None).expect("globs");
        let found = find(&rules, &[base.join("secrets/deep")], Bounds::default());
        assert_eq!(found.paths, [base.join("secrets")]);
    }
}
