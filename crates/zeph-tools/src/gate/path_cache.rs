//! A cache of resolved paths for one decision, so that a common parent of several paths is resolved once.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::ops::Deref;
use std::path::{Component, Path, PathBuf};

use super::path_resolver::{Entry, PathResolver};

/// A path resolver that caches results. Each decision creates a new one, because links may change.
#[derive(Debug)]
pub struct CachedPathResolver<'p> {
    places: &'p PathResolver,
    known: RefCell<HashMap<PathBuf, Option<ResolvedPath>>>,
    /// The first path, if no part of it is a link.
    plain: OnceCell<Option<PathBuf>>,
}

/// The result of the resolution of a path.
#[derive(Debug, Clone)]
struct ResolvedPath {
    path: PathBuf,
    /// Whether it certainly does not exist, so that nothing exists below it either.
    missing: bool,
}

impl<'p> CachedPathResolver<'p> {
    /// Creates an empty cache.
    #[must_use]
    pub fn new(places: &'p PathResolver) -> Self {
        Self {
            places,
            known: RefCell::default(),
            plain: OnceCell::new(),
        }
    }

    /// Returns the result of [`PathResolver::leads_to`].
    pub(super) fn leads_to(&self, path: &Path) -> Option<PathBuf> {
        if PathResolver::is_too_long(path) {
            return None;
        }
        Some(self.lead(path)?.path)
    }

    /// Returns the result of [`PathResolver::lies_at`].
    pub(super) fn lies_at(&self, path: &Path) -> Option<PathBuf> {
        match (path.parent(), path.components().next_back()) {
            (Some(parent), Some(Component::Normal(name))) => {
                Some(self.leads_to(parent)?.join(name))
            }
            _ => self.leads_to(path),
        }
    }

    fn lead(&self, path: &Path) -> Option<ResolvedPath> {
        let Some(plain) = self.plain.get() else {
            // A single path is resolved as a whole; parts are cached only if there are several paths.
            let real = self.places.existing(path);
            let plain = real.clone().filter(|real| real == path);
            self.plain.get_or_init(|| plain);
            return match real {
                Some(path) => Some(ResolvedPath {
                    path,
                    missing: false,
                }),
                None => self.lead(path),
            };
        };
        if plain
            .as_deref()
            .is_some_and(|plain| plain.starts_with(path))
        {
            return Some(ResolvedPath {
                path: path.components().collect(),
                missing: false,
            });
        }
        if let Some(known) = self.known.borrow().get(path) {
            return known.clone();
        }
        let lead = self.look(path);
        self.known
            .borrow_mut()
            .insert(path.to_owned(), lead.clone());
        lead
    }

    /// Looks up a name in a known directory with one system call. Resolves all other paths as a whole.
    fn look(&self, path: &Path) -> Option<ResolvedPath> {
        let (Some(above), Some(Component::Normal(name))) =
            (path.parent(), path.components().next_back())
        else {
            return self.follow(path);
        };
        let above = self.lead(above)?;
        let path_there = above.path.join(name);
        let entry = match above.missing {
            true => Entry::Missing,
            false => self.places.entry(&path_there),
        };
        match entry {
            Entry::Link => self.follow(path),
            entry => Some(ResolvedPath {
                path: path_there,
                missing: entry == Entry::Missing,
            }),
        }
    }

    fn follow(&self, path: &Path) -> Option<ResolvedPath> {
        Some(ResolvedPath {
            path: self.places.leads_to(path)?,
            missing: false,
        })
    }
}

impl Deref for CachedPathResolver<'_> {
    type Target = PathResolver;

    fn deref(&self) -> &PathResolver {
        self.places
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use proptest::prelude::*;

    use super::super::path_resolver::tests::places;
    use super::*;

    /// Sample entries: directories, files, and links to entries, to missing entries, and in a cycle.
    const TREE: &[&str] = &[
        "/w/p/a/b/",
        "/w/p/a/f",
        "/w/p/f",
        "/w/p/up -> ..",
        "/w/p/a/l -> ../f",
        "/w/p/d -> a/b",
        "/w/p/a/b/back -> ../../d/../l",
        "/w/p/gone -> nowhere/x",
        "/w/p/loop -> loop/a",
        "/w/p/one -> two",
        "/w/p/two -> one",
        "/w/p/root -> /",
    ];

    proptest! {
        /// The cache does not change any result, in any order of requests.
        #[test]
        fn cached_results_equal_uncached_results(
            paths in prop::collection::vec(
                prop::collection::vec(
                    prop::sample::select(vec![
                        "a", "b", "f", "up", "l", "d", "back", "gone", "loop", "one", "two", "root",
                        "w", "p", "new", "..", ".", "",
                    ]),
                    0..7,
                ),
                1..12,
            ),
        ) {
            let places = places(TREE);
            let followed = CachedPathResolver::new(&places);
            for path in paths {
                let path = Path::new("/w/p").join(path.join("/"));
                prop_assert_eq!(followed.leads_to(&path), places.leads_to(&path), "{:?}", path);
                prop_assert_eq!(followed.lies_at(&path), places.lies_at(&path), "{:?}", path);
            }
        }
    }

    /// The cache does not change results on a real disk that has a directory without search permission.
    #[cfg(unix)]
    #[test]
    fn cached_results_equal_those_of_a_real_disk() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        std::fs::create_dir_all(root.join("shut/in")).unwrap();
        std::fs::write(root.join("a/f"), "").unwrap();
        symlink("a/b", root.join("d")).unwrap();
        symlink("../f", root.join("a/b/l")).unwrap();
        symlink("nowhere/x", root.join("gone")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        symlink("/", root.join("root")).unwrap();
        std::fs::set_permissions(root.join("shut"), PermissionsExt::from_mode(0o000)).unwrap();
        let places = PathResolver::new(root, None, &[]);
        let followed = CachedPathResolver::new(&places);
        let paths = [
            "",
            "a",
            "a/f",
            "a/f/x",
            "a/f/",
            "a/f/.",
            "a/b/l",
            "d",
            "d/",
            "d/l",
            "d/l/x",
            "d/../f",
            "d/..",
            "gone",
            "gone/y",
            "gone/../y",
            "loop",
            "loop/x",
            "root/etc",
            "root/tmp/..",
            "shut/in",
            "shut/in/x",
            "new/x/../y",
            "a//f",
            "./a/./f",
            "../x",
        ];
        for path in paths.map(|path| root.join(path)) {
            assert_eq!(followed.leads_to(&path), places.leads_to(&path), "{path:?}");
            assert_eq!(followed.lies_at(&path), places.lies_at(&path), "{path:?}");
        }
        let long = root.join("a/".repeat(4096));
        assert_eq!(followed.leads_to(&long), None);
        std::fs::set_permissions(root.join("shut"), PermissionsExt::from_mode(0o700)).unwrap();
    }
}
