//! Resolution of paths: their start directory, and their real location after links.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

/// The maximum number of links for one path; the limit of the kernel.
const MAX_LINKS: u32 = 40;

/// The maximum length of a path in bytes; the limit of the kernel.
const MAX_PATH_BYTES: usize = 4096;

/// The queries to the file system; a table replaces it in tests.
pub trait FileSystem: Send + Sync {
    /// Returns the real path of the existing entry at `path` (absolute).
    fn real(&self, path: &Path) -> Option<PathBuf>;
    /// Returns the target text of the link at `path`, if it is one.
    fn link(&self, path: &Path) -> Option<PathBuf>;
    /// Whether an entry exists at `path` (absolute), also a link without a target.
    fn is_there(&self, path: &Path) -> bool;
    /// Returns the kind of the entry at `path` (absolute).
    fn entry(&self, path: &Path) -> Entry;
    /// Whether the entry is a directory.
    fn is_directory(&self, path: &Path) -> bool;
    /// Returns the names in a directory. `None` if it cannot be listed or has more than `max` entries.
    fn names(&self, directory: &Path, max: usize) -> Option<Vec<OsString>>;
    /// Returns a check for many paths relative to `directory`, with the result of [`FileSystem::is_there`].
    fn inside<'d>(&'d self, directory: &Path) -> ExistsFn<'d> {
        let directory = directory.to_owned();
        Box::new(move |name| self.is_there(&directory.join(name)))
    }
}

/// A check whether an entry exists at a path relative to a directory.
pub type ExistsFn<'d> = Box<dyn Fn(&str) -> bool + 'd>;

/// The kind of an entry at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    /// No visible entry.
    Missing,
    /// A link.
    Link,
    /// Any other entry.
    Other,
}

/// The file system of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealDisk;

impl FileSystem for RealDisk {
    #[allow(
        clippy::disallowed_methods,
        reason = "rules are about real paths; nothing is opened by them, the sandbox walks anew"
    )]
    fn real(&self, path: &Path) -> Option<PathBuf> {
        std::fs::canonicalize(path).ok()
    }

    fn link(&self, path: &Path) -> Option<PathBuf> {
        std::fs::read_link(path).ok()
    }

    fn is_there(&self, path: &Path) -> bool {
        path.symlink_metadata().is_ok()
    }

    fn is_directory(&self, path: &Path) -> bool {
        path.is_dir()
    }

    fn names(&self, directory: &Path, max: usize) -> Option<Vec<OsString>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(directory).ok()? {
            if names.len() == max {
                return None;
            }
            names.push(entry.ok()?.file_name());
        }
        Some(names)
    }

    fn entry(&self, path: &Path) -> Entry {
        match path.symlink_metadata() {
            Ok(entry) if entry.is_symlink() => Entry::Link,
            Ok(_) => Entry::Other,
            Err(_) => Entry::Missing,
        }
    }

    /// Uses a handle, so that the path of the directory is resolved once.
    #[cfg(all(target_os = "linux", feature = "file"))]
    fn inside<'d>(&'d self, directory: &Path) -> ExistsFn<'d> {
        use rustix::fs::{AtFlags, Mode, OFlags, open, statat};
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match open(directory, flags, Mode::empty()) {
            Ok(handle) => {
                Box::new(move |name| statat(&handle, name, AtFlags::SYMLINK_NOFOLLOW).is_ok())
            }
            Err(_) => {
                let directory = directory.to_owned();
                Box::new(move |name| self.is_there(&directory.join(name)))
            }
        }
    }
}

/// The start directory of paths, and the directories of the sandbox.
pub struct PathResolver {
    /// The working directory; absolute.
    cwd: PathBuf,
    /// The real path of the working directory.
    real_cwd: PathBuf,
    home: Option<PathBuf>,
    /// The directories that file tools may access; canonical.
    roots: Vec<PathBuf>,
    disk: Box<dyn FileSystem>,
}

impl PathResolver {
    /// Creates a resolver for paths that begin at `cwd` (absolute). `roots` (relative to it) are the directories
    /// that file tools may access; `cwd` alone if there are none.
    #[must_use]
    pub fn new(cwd: &Path, home: Option<PathBuf>, roots: &[PathBuf]) -> Self {
        Self::on(Box::new(RealDisk), cwd, home, roots)
    }

    /// Creates a resolver for paths that begin at `cwd`, with an empty sandbox.
    #[must_use]
    pub fn without_sandbox(cwd: &Path) -> Self {
        Self {
            roots: Vec::new(),
            ..Self::new(cwd, None, &[])
        }
    }

    /// Creates a resolver on another file system.
    #[must_use]
    pub fn on(
        disk: Box<dyn FileSystem>,
        cwd: &Path,
        home: Option<PathBuf>,
        roots: &[PathBuf],
    ) -> Self {
        let real_cwd = disk.real(cwd).unwrap_or_else(|| normal(cwd));
        let own = [cwd.to_owned()];
        let roots = if roots.is_empty() { &own } else { roots };
        let roots = roots.iter().filter_map(|root| disk.real(&cwd.join(root)));
        Self {
            roots: roots.collect(),
            cwd: normal(cwd),
            real_cwd,
            home,
            disk,
        }
    }

    /// Returns the working directory as given.
    #[must_use]
    pub fn cwd(&self) -> &Path {
        &self.cwd
    }

    /// Returns the real path of the working directory.
    #[must_use]
    pub fn real_cwd(&self) -> &Path {
        &self.real_cwd
    }

    /// Returns the home directory of the user.
    #[must_use]
    pub fn home(&self) -> Option<&Path> {
        self.home.as_deref()
    }

    /// Returns the real path of an existing entry.
    #[must_use]
    pub fn existing(&self, path: &Path) -> Option<PathBuf> {
        self.disk.real(path)
    }

    /// Whether an entry exists at `path` (absolute), also a link without a target.
    #[must_use]
    pub fn is_there(&self, path: &Path) -> bool {
        self.disk.is_there(path)
    }

    /// Whether a real path is inside the sandbox.
    #[must_use]
    pub fn is_inside(&self, real: &Path) -> bool {
        self.roots.iter().any(|root| real.starts_with(root))
    }

    /// Whether the entry is a directory.
    #[must_use]
    pub fn is_directory(&self, path: &Path) -> bool {
        self.disk.is_directory(path)
    }

    /// Returns the names in a directory. `None` if it cannot be listed or has more than `max` entries.
    #[cfg(feature = "shell")]
    pub(super) fn names(&self, directory: &Path, max: usize) -> Option<Vec<OsString>> {
        self.disk.names(directory, max)
    }

    /// Returns the kind of the entry at `path` (absolute).
    pub(super) fn entry(&self, path: &Path) -> Entry {
        self.disk.entry(path)
    }

    /// Returns a check for many paths relative to `directory`.
    #[must_use]
    pub fn inside<'p>(&'p self, directory: &Path) -> ExistsFn<'p> {
        self.disk.inside(directory)
    }

    /// Whether a path is longer than the limit of the kernel.
    pub(super) fn is_too_long(path: &Path) -> bool {
        path.as_os_str().len() > MAX_PATH_BYTES
    }

    /// Returns the real path of `path` (absolute), also if it does not exist yet: links without a target are
    /// followed. `None` if it cannot be determined.
    #[must_use]
    pub fn leads_to(&self, path: &Path) -> Option<PathBuf> {
        if Self::is_too_long(path) {
            return None;
        }
        self.follow(path, MAX_LINKS)
    }

    /// Returns the real path of the entry at `path` (absolute); a link is not followed.
    #[must_use]
    pub fn lies_at(&self, path: &Path) -> Option<PathBuf> {
        match (path.parent(), path.components().next_back()) {
            (Some(parent), Some(Component::Normal(name))) => {
                Some(self.leads_to(parent)?.join(name))
            }
            _ => self.leads_to(path),
        }
    }

    fn follow(&self, path: &Path, fuel: u32) -> Option<PathBuf> {
        if let Some(real) = self.disk.real(path) {
            return Some(real);
        }
        let parent = path.parent()?;
        let parent = self.follow(parent, fuel)?;
        match path.components().next_back()? {
            Component::Normal(name) => {
                let here = parent.join(name);
                match self.disk.link(&here) {
                    Some(target) => self.follow(&parent.join(target), fuel.checked_sub(1)?),
                    None => Some(here),
                }
            }
            Component::ParentDir => Some(parent.parent().unwrap_or(&parent).to_owned()),
            _ => Some(parent),
        }
    }
}

impl std::fmt::Debug for PathResolver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Places")
            .field("cwd", &self.cwd)
            .field("roots", &self.roots)
            .finish_non_exhaustive()
    }
}

/// Removes `.` and `..` from a path, by its text alone.
#[must_use]
pub fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                normal.pop();
            }
            Component::CurDir => {}
            part => normal.push(part),
        }
    }
    normal
}

/// A file system table, for tests.
#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// The existing entries: directories, files, and links with their targets.
    #[derive(Debug, Clone, Default)]
    pub(crate) struct Table {
        entries: BTreeMap<PathBuf, At>,
    }

    #[derive(Debug, Clone, PartialEq, Eq)]
    enum At {
        Directory,
        File,
        Link(PathBuf),
    }

    impl Table {
        /// Creates a table: `a/` is a directory, `a -> b` a link, any other text a file; all absolute.
        pub(crate) fn of(entries: &[&str]) -> Self {
            let mut table = Self::default();
            table.entries.insert("/".into(), At::Directory);
            for entry in entries {
                let (path, entry) = match entry.split_once(" -> ") {
                    Some((path, target)) => (path, At::Link(target.into())),
                    None if entry.ends_with('/') => (entry.trim_end_matches('/'), At::Directory),
                    None => (*entry, At::File),
                };
                for above in Path::new(path).ancestors().skip(1) {
                    let above = above.to_owned();
                    table.entries.entry(above).or_insert(At::Directory);
                }
                table.entries.insert(path.into(), entry);
            }
            table
        }

        fn walk(&self, path: &Path, fuel: u32) -> Option<PathBuf> {
            let mut here = PathBuf::from("/");
            for part in path.components() {
                match part {
                    Component::ParentDir => {
                        here.pop();
                    }
                    Component::Normal(name) => {
                        let next = here.join(name);
                        here = match self.entries.get(&next)? {
                            At::Link(target) => {
                                self.walk(&here.join(target), fuel.checked_sub(1)?)?
                            }
                            _ => next,
                        };
                    }
                    _ => {}
                }
            }
            Some(here)
        }
    }

    impl FileSystem for Table {
        fn real(&self, path: &Path) -> Option<PathBuf> {
            self.walk(path, 40)
        }

        fn link(&self, path: &Path) -> Option<PathBuf> {
            match self.entries.get(path) {
                Some(At::Link(target)) => Some(target.clone()),
                _ => None,
            }
        }

        fn is_there(&self, path: &Path) -> bool {
            self.real(path).is_some() || self.link(path).is_some()
        }

        fn names(&self, directory: &Path, max: usize) -> Option<Vec<OsString>> {
            let real = self.real(directory)?;
            let entries = self.entries.keys();
            let inside = entries.filter(|path| path.parent() == Some(&*real));
            let names = inside.filter_map(|path| path.file_name().map(OsString::from));
            let names: Vec<OsString> = names.collect();
            (names.len() <= max).then_some(names)
        }

        fn entry(&self, path: &Path) -> Entry {
            let real = path.parent().zip(path.file_name());
            let real = real.and_then(|(above, name)| Some(self.real(above)?.join(name)));
            match real.and_then(|real| self.entries.get(&real).cloned()) {
                Some(At::Link(_)) => Entry::Link,
                Some(_) => Entry::Other,
                None => Entry::Missing,
            }
        }

        fn is_directory(&self, path: &Path) -> bool {
            let real = self.real(path);
            real.is_some_and(|path| self.entries.get(&path) == Some(&At::Directory))
        }
    }

    /// Returns a resolver for `/w/p` with these entries; `/h` is the home directory.
    pub(crate) fn places(entries: &[&str]) -> PathResolver {
        let mut all = vec!["/w/p/", "/h/"];
        all.extend(entries);
        let table = Table::of(&all);
        PathResolver::on(Box::new(table), Path::new("/w/p"), Some("/h".into()), &[])
    }

    #[test]
    fn paths_are_resolved() {
        let places = places(&[
            "/w/p/src/a",
            "/etc/passwd",
            "/w/p/link -> /etc",
            "/w/p/dangling -> ../new/file",
            "/w/p/loop -> loop",
            "/w/p/out -> /nowhere/x",
        ]);
        let check = |path: &str, leads: Option<&str>, lies: Option<&str>| {
            let path = Path::new("/w/p").join(path);
            assert_eq!(
                places.leads_to(&path).as_deref(),
                leads.map(Path::new),
                "{path:?}"
            );
            assert_eq!(
                places.lies_at(&path).as_deref(),
                lies.map(Path::new),
                "{path:?}"
            );
        };
        check("src/a", Some("/w/p/src/a"), Some("/w/p/src/a"));
        check("src/../src/a", Some("/w/p/src/a"), Some("/w/p/src/a"));
        check("link/passwd", Some("/etc/passwd"), Some("/etc/passwd"));
        check("link", Some("/etc"), Some("/w/p/link"));
        check(
            "link/new/deep",
            Some("/etc/new/deep"),
            Some("/etc/new/deep"),
        );
        check("link/../x", Some("/x"), Some("/x"));
        check("dangling", Some("/w/new/file"), Some("/w/p/dangling"));
        check("out/y", Some("/nowhere/x/y"), Some("/nowhere/x/y"));
        check("loop", None, Some("/w/p/loop"));
        check("loop/x", None, None);
        let long = "a/".repeat(MAX_PATH_BYTES);
        check(&long, None, None);
        check("new/../x", Some("/w/p/x"), Some("/w/p/x"));
        assert!(places.is_inside(Path::new("/w/p/src/a")));
        assert!(!places.is_inside(Path::new("/w/pp")));
    }
}
