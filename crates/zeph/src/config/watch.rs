//! States of the configuration files in the file system, to detect changes.

use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use super::paths::Paths;

/// The files of a configuration and their states.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stamps {
    /// The user's file.
    pub(crate) user: Stamped,
    /// The project's file, if there is one.
    pub(crate) project: Option<Stamped>,
}

/// A file and its state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stamped {
    /// The file.
    pub(crate) path: PathBuf,
    /// Its state.
    pub(crate) stamp: Stamp,
}

/// The state of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stamp {
    /// It is not there, or cannot be examined.
    Absent,
    /// It is a pipe or the like: its content can be read only once.
    Special,
    /// Device, inode, size, and the times of the last change of content and of state.
    File(u64, u64, u64, (i64, i64), (i64, i64)),
}

impl Stamps {
    /// Reads the states of the files.
    pub(crate) fn of(paths: &Paths) -> Self {
        Self {
            user: Stamped::of(paths.user_file.clone()),
            project: paths.project_file.clone().map(Stamped::of),
        }
    }

    /// The time since the last change; `None` if it is unknown or in the future.
    pub(crate) fn age(&self) -> Option<Duration> {
        let files = [Some(&self.user), self.project.as_ref()];
        let newest = files.into_iter().flatten().filter_map(Stamped::changed);
        newest.max()?.elapsed().ok()
    }
}

impl Stamped {
    fn of(path: PathBuf) -> Self {
        let stamp = match std::fs::metadata(&path) {
            Err(_) => Stamp::Absent,
            Ok(found) if !found.is_file() => Stamp::Special,
            Ok(found) => Stamp::File(
                found.dev(),
                found.ino(),
                found.size(),
                (found.mtime(), found.mtime_nsec()),
                (found.ctime(), found.ctime_nsec()),
            ),
        };
        Self { path, stamp }
    }

    fn changed(&self) -> Option<SystemTime> {
        let Stamp::File(.., (seconds, nanoseconds)) = self.stamp else {
            return None;
        };
        let seconds = Duration::from_secs(u64::try_from(seconds).ok()?);
        let nanoseconds = Duration::from_nanos(u64::try_from(nanoseconds).ok()?);
        SystemTime::UNIX_EPOCH.checked_add(seconds + nanoseconds)
    }
}
