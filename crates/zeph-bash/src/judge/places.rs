//! The possible working directories of a command, and the directories that it must not destroy.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

use super::evaluate::WorkingDirState;
use super::shells::is_descriptor;
use super::values::{Possible, Values};
use crate::syntax::word::Word;

/// The maximum number of distinct working directories that are tracked.
const MAX_DIRECTORIES: usize = 16;

/// The possible working directories of a command, and the protected directories.
#[derive(Debug, Clone)]
pub(super) struct Places {
    home: Option<PathBuf>,
    roots: Vec<PathBuf>,
    /// Values of variables that the command receives.
    variables: Rc<BTreeMap<String, String>>,
    /// The possible working directories; `None` is any directory.
    now: Vec<Option<PathBuf>>,
    /// The working directories if the preceding `cd` failed.
    failed: Vec<Option<PathBuf>>,
    /// The possible previous working directories: the values of `OLDPWD`.
    old: Vec<Option<PathBuf>>,
    /// The values of `OLDPWD` if the preceding `cd` failed.
    failed_old: Vec<Option<PathBuf>>,
    /// The values of variables.
    pub(super) values: Values,
    /// Whether `cd` and `cd -` use `HOME` and `OLDPWD` as the command sets them. Otherwise the target may be any
    /// directory.
    pub(super) returns: bool,
}

/// Whether a path is a protected directory, or contains one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Hit {
    No,
    Perhaps,
    Yes,
}

/// Replaces too many directories by the unknown directory.
fn limit(places: &mut Vec<Option<PathBuf>>) {
    if places.len() > MAX_DIRECTORIES {
        *places = vec![None];
    }
}

impl Places {
    pub(super) fn new(start: &WorkingDirState) -> Self {
        let now = start.cwd.is_absolute().then(|| normalize_path(&start.cwd));
        Self {
            home: start.home.as_deref().map(normalize_path),
            roots: start
                .roots
                .iter()
                .map(|root| normalize_path(root))
                .collect(),
            variables: Rc::new(start.variables.clone()),
            now: vec![now],
            failed: Vec::new(),
            old: vec![None],
            failed_old: Vec::new(),
            values: Values::default(),
            returns: true,
        }
    }

    /// The sandbox's directories.
    pub(super) fn roots(&self) -> &[PathBuf] {
        &self.roots
    }

    /// The user's home.
    pub(super) fn home_path(&self) -> Option<&Path> {
        self.home.as_deref()
    }

    /// The possible working directories; `None` is any directory.
    pub(super) fn now(&self) -> &[Option<PathBuf>] {
        &self.now
    }

    /// The possible values of the variable `name`.
    pub(super) fn value(&self, name: &str) -> Possible {
        let directories = |directories: &[Option<PathBuf>]| {
            Possible::of(directories.iter().map(|directory| {
                let text = directory.as_deref().and_then(Path::to_str);
                text.map(str::to_owned)
            }))
        };
        self.values.get(name).unwrap_or_else(|| match name {
            "PWD" => directories(&self.now),
            "OLDPWD" => directories(&self.old),
            "HOME" => directories(std::slice::from_ref(&self.home)),
            name => Possible::of(std::iter::once(self.variables.get(name).cloned())),
        })
    }

    /// Whether `is` holds for a path in any form in which the system may resolve it.
    fn any_form(&self, path: &str, is: impl Fn(&str) -> bool) -> bool {
        let places = self.now.iter().flatten();
        let mut forms = places.map(|place| normalize_path(&place.join(path)));
        normalize_path(Path::new(path)).to_str().is_some_and(&is)
            || forms.any(|form| form.to_str().is_some_and(&is))
    }

    /// Whether a path is a descriptor of the process that opens it.
    pub(super) fn is_descriptor(&self, path: &str) -> bool {
        self.any_form(path, is_descriptor)
    }

    /// Whether a path is standard input.
    pub(super) fn is_input(&self, path: &str) -> bool {
        self.any_form(path, |path| {
            let own = path.starts_with("/dev/") || path.starts_with("/proc/");
            path == "/dev/stdin" || (own && path.ends_with("/fd/0"))
        })
    }

    /// Whether a path is a device, or information about a process.
    pub(super) fn is_system(&self, path: &str) -> bool {
        self.any_form(path, |path| {
            path.starts_with("/dev/") || path.starts_with("/proc/")
        })
    }

    /// Applies a `cd`, `pushd` or `popd` with these arguments.
    pub(super) fn change(&mut self, name: &str, words: &[Word]) {
        let operand = words
            .iter()
            .find(|word| word.prefix() == "-" || !word.prefix().starts_with('-'));
        // `-P` resolves links before `..`.
        let physical = words
            .iter()
            .any(|word| word.prefix().starts_with('-') && word.prefix().contains('P'));
        let returns = operand.is_some_and(|word| word.known() == Some("-")) && name == "cd";
        let unknown = |to: &str| {
            // `pushd` and `popd` use the directory stack, which is not tracked.
            (name != "cd" && to.starts_with(['+', '-'])) || (physical && to.contains(".."))
        };
        let to: Vec<Option<PathBuf>> = match operand {
            _ if returns && self.returns => self.old.clone(),
            _ if returns => vec![None],
            None if name == "cd" && (self.returns || self.values.get("HOME").is_none()) => {
                self.value("HOME").paths()
            }
            _ if name == "popd" => vec![None],
            Some(word) => {
                let known = word.known().filter(|to| !unknown(to));
                vec![known.map(PathBuf::from)]
            }
            None => vec![None],
        };
        let change = |from: &Option<PathBuf>, to: &Option<PathBuf>| match (to, from) {
            (Some(to), _) if to.is_absolute() => Some(normalize_path(to)),
            (Some(to), Some(from)) => Some(normalize_path(&from.join(to))),
            _ => None,
        };
        let mut now: Vec<Option<PathBuf>> = Vec::new();
        for (from, to) in self
            .now
            .iter()
            .flat_map(|from| to.iter().map(move |to| (from, to)))
        {
            let place = change(from, to);
            if !now.contains(&place) {
                now.push(place);
            }
        }
        limit(&mut now);
        let before = std::mem::replace(&mut self.now, now);
        self.failed.extend_from_slice(&before);
        let old = std::mem::replace(&mut self.old, before);
        self.failed_old.extend(old);
        self.values.directory_changed();
    }

    /// Adds the directories in case the preceding `cd` failed.
    pub(super) fn forget_success(&mut self) {
        let pairs = [
            (&mut self.failed, &mut self.now),
            (&mut self.failed_old, &mut self.old),
        ];
        for (failed, places) in pairs {
            for place in std::mem::take(failed) {
                if !places.contains(&place) {
                    places.push(place);
                }
            }
            limit(places);
        }
    }

    /// Adds the possible states of `other`.
    pub(super) fn join(&mut self, other: &Self) {
        let pairs = [
            (&mut self.now, &other.now),
            (&mut self.failed, &other.failed),
            (&mut self.old, &other.old),
            (&mut self.failed_old, &other.failed_old),
        ];
        for (places, others) in pairs {
            for place in others {
                if !places.contains(place) {
                    places.push(place.clone());
                }
            }
            limit(places);
        }
        self.values.join(&other.values);
    }

    pub(super) fn may_be_anywhere(&mut self) {
        for places in [&mut self.now, &mut self.old] {
            if !places.contains(&None) {
                places.push(None);
            }
        }
    }

    /// Whether `word` is a protected directory, or a parent of one. The sandbox's directories are protected only
    /// with `roots`.
    pub(super) fn hit(&self, word: &Word, roots: bool) -> Hit {
        // An unresolved part may be absolute, or begin with `..`.
        let Some(text) = word.pattern() else {
            return Hit::Perhaps;
        };
        let globs = word.known().is_none();
        let mut hits = self.now.iter().map(|place| match place {
            Some(place) => self.hit_from(place, text, globs, roots),
            None if text.starts_with('/') => self.hit_from(Path::new("/"), text, globs, roots),
            None => self.hit_from_anywhere(text, globs, roots),
        });
        let first = hits.next().unwrap_or(Hit::Perhaps);
        hits.fold(
            first,
            |one, other| {
                if one == other { one } else { Hit::Perhaps }
            },
        )
    }

    fn hit_from(&self, place: &Path, text: &str, globs: bool, roots: bool) -> Hit {
        let full = normalize_path(&place.join(text)).display().to_string();
        let path = if globs { without_all(&full) } else { &full };
        if globs && path.contains(['*', '?', '[']) {
            let names = names_of(path);
            let could = |stays: &Path| {
                let own: Vec<&str> = stays
                    .iter()
                    .skip(1)
                    .filter_map(|name| name.to_str())
                    .collect();
                let many = path.contains("**");
                (own.len() == names.len() || (many && own.len() >= names.len()))
                    && own
                        .iter()
                        .zip(&names)
                        .all(|(name, pattern)| fits(pattern, name))
            };
            return if self.any_above(roots, could) {
                Hit::Perhaps
            } else {
                Hit::No
            };
        }
        if self.list(roots).iter().any(|stays| stays.starts_with(path)) {
            Hit::Yes
        } else {
            Hit::No
        }
    }

    /// Whether a relative path in an unknown directory may be a protected directory.
    fn hit_from_anywhere(&self, text: &str, globs: bool, roots: bool) -> Hit {
        let mut path = normalize_path(&Path::new("/").join(text))
            .display()
            .to_string();
        if globs {
            path = without_all(&path).to_owned();
        }
        let mut depth = Some(0_usize);
        for component in Path::new(text).components() {
            depth = match component {
                Component::ParentDir => depth.and_then(|depth| depth.checked_sub(1)),
                Component::Normal(_) => depth.map(|depth| depth + 1),
                _ => depth,
            };
        }
        let names = names_of(&path);
        let could = |stays: &Path| {
            let own: Vec<&str> = stays
                .iter()
                .skip(1)
                .filter_map(|name| name.to_str())
                .collect();
            let mut pairs = own.iter().rev().zip(names.iter().rev());
            own.len() >= names.len() && pairs.all(|(name, pattern)| fits(pattern, name))
        };
        if depth.is_none() || names.is_empty() || self.any_above(roots, could) {
            Hit::Perhaps
        } else {
            Hit::No
        }
    }

    /// Whether `is` holds for a protected directory or one of its parents.
    fn any_above(&self, roots: bool, is: impl Fn(&Path) -> bool) -> bool {
        let list = self.list(roots);
        list.iter().flat_map(|stays| stays.ancestors()).any(is)
    }

    fn list(&self, roots: bool) -> Vec<&Path> {
        let mut list = vec![Path::new("/")];
        list.extend(self.home.as_deref());
        if roots {
            list.extend(self.roots.iter().map(PathBuf::as_path));
        }
        list
    }
}

/// The components of an absolute path.
fn names_of(path: &str) -> Vec<&str> {
    path.split('/').filter(|name| !name.is_empty()).collect()
}

/// Whether a file name may match a component of a pattern.
fn fits(pattern: &str, name: &str) -> bool {
    match pattern.find(['*', '?', '[']) {
        Some(at) => name.starts_with(&pattern[..at]),
        None => name == pattern,
    }
}

/// The directory of a pattern that matches all files in it: `/*`, `x/.[!.]*`.
fn without_all(text: &str) -> &str {
    let mut path = text;
    loop {
        let trimmed = path.trim_end_matches('/');
        let (directory, last) = match trimmed.rfind('/') {
            Some(at) => (&trimmed[..=at], &trimmed[at + 1..]),
            None => ("", trimmed),
        };
        let all = matches!(
            last,
            "*" | "**" | ".*" | "?*" | "*?" | ".??*" | ".?*" | ".[!.]*" | ".[^.]*"
        );
        if !all {
            return path;
        }
        path = directory;
    }
}

/// Returns the path without `.`, `..` and doubled slashes. It does not follow links.
pub fn normalize_path(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                normal.pop();
            }
            other => normal.push(other),
        }
    }
    normal
}
