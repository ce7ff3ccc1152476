//! The files that the result of a file tool depends on, and their state.
//!
//! A [`fingerprint`](super::fingerprint) identifies the content of a file. The fingerprint of a recently
//! changed file is not reliable: a single small file is compared by its digest, and other results are not
//! cached.
//!
//! Results are also not cached if the clock or the metadata of the file system may be those of another machine.

use std::fs::File;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use async_trait::async_trait;
use rustix::fs::{AtFlags, CWD, Stat, statat};
use rustix::io::Errno;
use tokio_util::sync::CancellationToken;

use crate::cache::{CacheValidity, FreshnessCheck};
use crate::file::fingerprint::{FileMetadataStamp, PathState, is_local};
use crate::file::resolved_path::Found;
use crate::file::sandbox::Sandbox;
use crate::file::staleness::digest_of_file;
use crate::read_tracking::ContentDigest;

/// The maximum number of recorded states. A result that depends on more is not cached.
const MAX_STAMPS: usize = 8192;
/// The maximum size of a content that is compared by its digest.
const MAX_DIGESTED_BYTES: u64 = 1 << 20;

#[derive(Default)]
struct State {
    stood: Vec<(PathBuf, PathState)>,
    /// Devices with file systems that are known to be local.
    local: Vec<u64>,
    /// The digest of a single file, if its stamp is not reliable.
    content: Option<ContentDigest>,
    /// True if the validity of the result cannot be checked.
    spoiled: bool,
}

/// Records the files that a tool reads. It does nothing if caching is off.
pub(super) struct DependencyTracker {
    notes: Option<(SystemTime, Mutex<State>)>,
}

impl DependencyTracker {
    /// Creates a tracker. It must exist before the tool reads anything.
    pub(super) fn new(on: bool) -> Self {
        Self {
            notes: on.then(|| (SystemTime::now(), Mutex::default())),
        }
    }

    /// Returns true if the tracker records anything.
    pub(super) fn is_on(&self) -> bool {
        self.notes.is_some()
    }

    fn with(&self, note: impl FnOnce(SystemTime, &mut State)) {
        if let Some((began, state)) = &self.notes {
            note(*began, &mut lock(state));
        }
    }

    /// Records that the content of the file or directory `handle` at `path` will be read. `stat` is its current
    /// state.
    pub(super) fn content(&self, handle: impl AsFd, path: &Path, stat: &Stat) {
        self.with(|began, state| {
            let marks = FileMetadataStamp::from(stat);
            if !marks.are_settled(began) || !state.is_local(handle, marks.device) {
                state.spoiled = true;
            }
            state.note(path, PathState::As(marks));
        });
    }

    /// Records the complete read of the only file that the result depends on. If its stamp is not reliable,
    /// `digest` is used.
    pub(super) fn only_content(
        &self,
        handle: impl AsFd,
        path: &Path,
        stat: &Stat,
        digest: Option<ContentDigest>,
    ) {
        self.with(|began, state| {
            let marks = FileMetadataStamp::from(stat);
            if !marks.are_settled(began) || !state.is_local(handle, marks.device) {
                let small = u64::try_from(marks.size).is_ok_and(|size| size <= MAX_DIGESTED_BYTES);
                state.content = digest.filter(|_| small);
                state.spoiled |= state.content.is_none();
            }
            state.note(path, PathState::As(marks));
        });
    }

    /// Records that the metadata of the entry at `path` is shown or compared, but not its content.
    pub(super) fn entry(&self, path: &Path, stat: &Stat) {
        self.with(|_, state| state.note(path, PathState::As(FileMetadataStamp::from(stat))));
    }

    /// Records that the result depends on the identity or the absence of the entry at `path`.
    pub(super) fn identity(&self, path: &Path) {
        self.with(
            |_, state| match statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => state.note(path, PathState::same(FileMetadataStamp::from(&stat))),
                Err(Errno::NOENT) => state.note(path, PathState::Absent),
                Err(_) => state.spoiled = true,
            },
        );
    }

    /// Marks the result as not cacheable, because an entry could not be read completely.
    pub(super) fn spoil(&self) {
        self.with(|_, state| state.spoiled = true);
    }

    /// The validity of a result for the argument `given`, which was resolved to `path`. `may`: the rule that
    /// permitted the call.
    pub(super) fn basis(
        self,
        sandbox: &Arc<Sandbox>,
        given: &str,
        path: &Path,
        may: PermittedBy,
    ) -> Option<CacheValidity> {
        let (_, state) = self.notes?;
        let state = state.into_inner().unwrap_or_else(PoisonError::into_inner);
        if state.spoiled {
            return None;
        }
        Some(CacheValidity::Files(Arc::new(Evidence {
            sandbox: Arc::clone(sandbox),
            given: given.to_owned(),
            path: path.to_owned(),
            may,
            stood: state.stood.into(),
            content: state.content,
        })))
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    fn note(&mut self, path: &Path, stood: PathState) {
        if self.stood.len() == MAX_STAMPS {
            self.spoiled = true;
        }
        if !self.spoiled {
            self.stood.push((path.to_owned(), stood));
        }
    }

    fn is_local(&mut self, handle: impl AsFd, device: u64) -> bool {
        if self.local.contains(&device) {
            return true;
        }
        let local = is_local(handle);
        if local {
            self.local.push(device);
        }
        local
    }
}

/// The rule that permits a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PermittedBy {
    /// The path may be read.
    Read,
    /// The path may be searched.
    Search,
}

/// The recorded state of the files that a cached result depends on.
struct Evidence {
    sandbox: Arc<Sandbox>,
    given: String,
    path: PathBuf,
    may: PermittedBy,
    stood: Arc<[(PathBuf, PathState)]>,
    content: Option<ContentDigest>,
}

impl Evidence {
    /// Returns true if the path still resolves to the same file, is permitted, and all recorded states are
    /// current.
    fn stands(&self) -> bool {
        let Ok(place) = self.sandbox.resolve(&self.given) else {
            return false;
        };
        if place.path() != self.path {
            return false;
        }
        let may = match self.may {
            PermittedBy::Read => self.sandbox.check_read(&self.path),
            PermittedBy::Search => self.sandbox.check_search(&self.path),
        };
        // The path is opened as in a call, so that the same errors apply, and a network file system updates its
        // metadata.
        let (Ok(()), Ok(found)) = (may, place.open(&self.sandbox)) else {
            return false;
        };
        if !self.stood.iter().all(|(path, stood)| stood.stands(path)) {
            return false;
        }
        match (self.content, found) {
            (None, _) => true,
            (Some(digest), Found::File(file, _)) => self.reads(file, digest),
            (Some(_), Found::Dir(_)) => false,
        }
    }

    fn reads(&self, file: File, digest: ContentDigest) -> bool {
        let found = digest_of_file(file, &self.path, &CancellationToken::new());
        found.is_ok_and(|found| found == digest)
    }
}

#[async_trait]
impl FreshnessCheck for Evidence {
    async fn holds(&self) -> bool {
        let own = Self {
            sandbox: Arc::clone(&self.sandbox),
            given: self.given.clone(),
            path: self.path.clone(),
            may: self.may,
            stood: Arc::clone(&self.stood),
            content: self.content,
        };
        super::blocking(move || Ok(own.stands()))
            .await
            .unwrap_or(false)
    }

    fn bytes(&self) -> usize {
        let paths = self.stood.iter().map(|(path, _)| path.as_os_str().len());
        size_of::<Self>()
            + size_of_val(&*self.stood)
            + paths.sum::<usize>()
            + self.given.len()
            + self.path.as_os_str().len()
    }
}
