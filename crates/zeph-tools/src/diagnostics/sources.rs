//! The validity of cached diagnostics: the state of the files of the project and of its configuration.
//!
//! The files are listed before and after cargo runs. If both lists are equal, the result is valid while the files
//! are unchanged, and for a minute at most: other inputs (the toolchain, inputs of build scripts) are not
//! checked. The files that cargo itself writes, `Cargo.lock` and target directories, count with their state
//! afterwards.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use rustix::fs::{AtFlags, CWD, statat};

use crate::cache::{CacheValidity, DualClockInstant, FreshnessCheck};
use crate::file::fingerprint::{FileMetadataStamp, PathState, is_local};

/// The maximum number of files and directories; diagnostics of a larger project are not cached.
const MAX_ENTRIES: usize = 8192;
/// The maximum age of a result.
const LIFE: Duration = Duration::from_secs(60);
/// Files next to or above a project that configure its build.
const SETTINGS: [&str; 5] = [
    "Cargo.toml",
    "rust-toolchain",
    "rust-toolchain.toml",
    ".cargo/config",
    ".cargo/config.toml",
];
/// Files in the home directory that configure builds.
const OWN_SETTINGS: [&str; 3] = [
    ".cargo/config",
    ".cargo/config.toml",
    ".rustup/settings.toml",
];
/// The marker file of directories with reproducible contents, such as target directories of cargo.
const TAG: &str = "CACHEDIR.TAG";
/// The file that cargo writes next to the sources.
const LOCK: &str = "Cargo.lock";

/// The recorded state of a project.
pub(super) struct Sources {
    /// The root of the project; canonical if the working directory is.
    root: PathBuf,
    home: Option<PathBuf>,
    began: SystemTime,
    moment: DualClockInstant,
    /// The files that people edit.
    files: Vec<(PathBuf, PathState)>,
    /// The paths that cargo may write: its lock file, and directories, in which it creates others.
    changing: Vec<(PathBuf, FileMetadataStamp)>,
}

impl Sources {
    /// Records the project around `cwd`, before cargo runs. `None` if the project does not exist or is too large,
    /// or if its state cannot be determined.
    pub(super) fn look(cwd: &Path, home: Option<&Path>) -> Option<Self> {
        let is_project = |dir: &&Path| dir.join("Cargo.toml").is_file();
        let root = cwd.ancestors().filter(is_project).last()?;
        Self::list(root.to_owned(), home.map(Path::to_owned))
    }

    fn list(root: PathBuf, home: Option<PathBuf>) -> Option<Self> {
        let mut sources = Self {
            began: SystemTime::now(),
            moment: DualClockInstant::now(),
            files: Vec::new(),
            changing: Vec::new(),
            home,
            root,
        };
        let device = marks(&sources.root).ok()?.device;
        if !File::open(&sources.root).is_ok_and(is_local) {
            return None;
        }
        let root = sources.root.clone();
        sources.directory(&root, device)?;
        let above = root.ancestors().skip(1);
        let above = above.flat_map(|dir| SETTINGS.map(|name| dir.join(name)));
        let own = sources.home.iter();
        let own = own.flat_map(|home| OWN_SETTINGS.map(|name| home.join(name)));
        for path in above.chain(own).collect::<Vec<_>>() {
            let stood = marks(&path).map_or(PathState::Absent, PathState::As);
            sources.files.push((path, stood));
        }
        Some(sources)
    }

    /// Records `dir` and its contents. `None` if the state cannot be determined, such as for a link.
    fn directory(&mut self, dir: &Path, device: u64) -> Option<()> {
        self.changing.push((dir.to_owned(), marks(dir).ok()?));
        for entry in fs::read_dir(dir).ok()? {
            let entry = entry.ok()?;
            let (name, path) = (entry.file_name(), entry.path());
            let kind = entry.file_type().ok()?;
            if self.files.len() + self.changing.len() > MAX_ENTRIES || kind.is_symlink() {
                return None;
            }
            let marks = marks(&path).ok()?;
            if marks.device != device {
                return None;
            }
            if kind.is_dir() {
                if name != ".git" && !path.join(TAG).is_file() {
                    self.directory(&path, device)?;
                }
            } else if name == LOCK {
                self.changing.push((path, marks));
            } else {
                self.files.push((path, PathState::As(marks)));
            }
        }
        Some(())
    }

    /// Returns the validity of the diagnostics that cargo has produced since. `manifests` are those of the
    /// packages with sources only on this disk. `None` if something changed meanwhile.
    pub(super) fn basis<'m>(
        self,
        mut manifests: impl Iterator<Item = &'m Path>,
    ) -> Option<CacheValidity> {
        if !manifests.all(|manifest| manifest.starts_with(&self.root)) {
            return None;
        }
        let settled = |(_, stood): &(PathBuf, PathState)| match stood {
            PathState::As(marks) => marks.are_settled(self.began),
            PathState::Same { .. } | PathState::Absent => true,
        };
        let mut before = self.files;
        if !before.iter().all(settled) {
            return None;
        }
        let mut now = Self::list(self.root, self.home)?;
        let by_path = |a: &(PathBuf, PathState), b: &(PathBuf, PathState)| a.0.cmp(&b.0);
        before.sort_by(by_path);
        now.files.sort_by(by_path);
        let written = now.changing.iter();
        let written = written.map(|(_, marks)| marks.are_settled(now.began));
        if before != now.files || !written.into_iter().all(|settled| settled) {
            return None;
        }
        let mut stood = now.files;
        let changing = now.changing.into_iter();
        stood.extend(changing.map(|(path, marks)| (path, PathState::As(marks))));
        Some(CacheValidity::Files(Arc::new(Evidence {
            since: self.moment,
            stood: stood.into(),
        })))
    }
}

fn marks(path: &Path) -> io::Result<FileMetadataStamp> {
    Ok(FileMetadataStamp::from(&statat(
        CWD,
        path,
        AtFlags::SYMLINK_NOFOLLOW,
    )?))
}

struct Evidence {
    since: DualClockInstant,
    stood: Arc<[(PathBuf, PathState)]>,
}

#[async_trait]
impl FreshnessCheck for Evidence {
    async fn holds(&self) -> bool {
        if DualClockInstant::now().since(self.since) >= LIFE {
            return false;
        }
        let stood = Arc::clone(&self.stood);
        let stands = move || stood.iter().all(|(path, stood)| stood.stands(path));
        tokio::task::spawn_blocking(stands).await.unwrap_or(false)
    }

    fn bytes(&self) -> usize {
        let paths = self.stood.iter().map(|(path, _)| path.as_os_str().len());
        size_of_val(&*self.stood) + paths.sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settle(beside: &Path) {
        let began = std::time::Instant::now();
        while began.elapsed() < Duration::from_millis(40) {
            fs::write(beside, "x").unwrap();
        }
    }

    fn put(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    async fn holds(basis: &CacheValidity) -> bool {
        match basis {
            CacheValidity::Files(witness) => witness.holds().await,
            CacheValidity::Remote => true,
        }
    }

    /// Proves OUT-41 in part.
    #[tokio::test]
    async fn any_project_file_changes_the_sources() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("project");
        let beside = dir.path().join("probe");
        put(&root.join("Cargo.toml"), "[package]");
        put(&root.join("src/main.rs"), "fn main() {}");
        settle(&beside);
        let look = || Sources::look(&root.join("src"), Some(dir.path())).unwrap();
        let none = || std::iter::empty::<&Path>();

        let first = look();
        put(&root.join("target/CACHEDIR.TAG"), "x");
        put(&root.join("target/out"), "x");
        put(&root.join(LOCK), "x");
        settle(&beside);
        let basis = first.basis(none()).unwrap();
        assert!(holds(&basis).await, "what cargo writes makes no difference");
        put(&root.join("target/more"), "x");
        assert!(holds(&basis).await);

        let changes: [(&str, &dyn Fn()); 5] = [
            ("a file", &|| {
                put(&root.join("src/main.rs"), "fn main() {1}")
            }),
            ("a new file", &|| put(&root.join("src/new.rs"), "")),
            ("a new directory", &|| put(&root.join("tests/it.rs"), "")),
            ("the lock file", &|| put(&root.join(LOCK), "other")),
            ("a setting above", &|| {
                put(&dir.path().join("rust-toolchain"), "x")
            }),
        ];
        for (what, change) in changes {
            settle(&beside);
            let basis = look().basis(none()).unwrap();
            assert!(holds(&basis).await, "before {what}");
            let meanwhile = look();
            change();
            assert!(!holds(&basis).await, "{what}");
            settle(&beside);
            let agrees = meanwhile.basis(none()).is_some();
            assert_eq!(agrees, what == "the lock file", "{what} meanwhile");
        }

        let outside = dir.path().join("other/Cargo.toml");
        assert!(look().basis(std::iter::once(outside.as_path())).is_none());
        std::os::unix::fs::symlink("/", root.join("link")).unwrap();
        assert!(Sources::look(&root, None).is_none(), "a link");
        assert!(Sources::look(&dir.path().join("none"), None).is_none());
    }
}
