//! Resolution of a path with directory handles, safe against concurrent changes.
//!
//! It emulates `openat2(RESOLVE_BENEATH)` in user space: each directory is opened without following links, and
//! the target of a link is resolved instead of it. This is portable, and supports absolute links that point
//! into an allowed directory.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{CWD, Mode, openat, readlinkat};
use rustix::io::Errno;

use crate::error::ToolError;
use crate::file::resolved_path::Place;
use crate::file::sandbox::{PASS, Sandbox};

/// The maximum number of links on one path. The kernel has the same limit.
const MAX_LINKS: u32 = 40;

/// A component that is not processed yet.
enum Step {
    Up,
    Into(OsString),
}

/// The current position.
enum WalkPosition {
    /// Outside of the allowed directories, at [`Walk::path`]. Nothing is opened there.
    Outside,
    /// Inside an allowed directory: the handles from it down to [`Walk::path`]. `..` removes the last handle,
    /// so renamed directories have no effect.
    Inside(Vec<Arc<OwnedFd>>),
}

/// The treatment of a link in the last component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FinalLinkMode {
    /// The link is followed to its target.
    Followed,
    /// The link itself is the result.
    Itself,
}

struct Walk<'a> {
    sandbox: &'a Sandbox,
    given: &'a Path,
    last: FinalLinkMode,
    here: WalkPosition,
    path: PathBuf,
    /// The remaining components in reverse order.
    pending: Vec<Step>,
    links: u32,
}

/// Resolves `given`, as described at [`Sandbox::resolve`].
pub(super) fn resolve(
    sandbox: &Sandbox,
    given: &Path,
    last: FinalLinkMode,
) -> Result<Place, ToolError> {
    let mut walk = Walk {
        sandbox,
        given,
        last,
        here: WalkPosition::Outside,
        path: PathBuf::new(),
        pending: Vec::new(),
        links: 0,
    };
    if given.is_relative() {
        walk.push(given);
        walk.restart(sandbox.cwd());
    } else {
        walk.restart(given);
    }
    walk.run()
}

impl Walk<'_> {
    /// Adds the components of `path` before the pending ones.
    fn push(&mut self, path: &Path) {
        let steps = path.components().rev().filter_map(|part| match part {
            Component::ParentDir => Some(Step::Up),
            Component::Normal(name) => Some(Step::Into(name.to_owned())),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
        });
        self.pending.extend(steps);
    }

    /// Starts at the absolute `path`: at the allowed directory that is its prefix, else at `/`. Roots are
    /// canonical and disjoint, so the prefix only shortens the walk.
    fn restart(&mut self, path: &Path) {
        for root in self.sandbox.roots() {
            if let Ok(rest) = path.strip_prefix(&root.path) {
                self.path.clone_from(&root.path);
                self.here = WalkPosition::Inside(vec![Arc::clone(&root.dir)]);
                self.push(rest);
                return;
            }
        }
        self.path = PathBuf::from("/");
        self.here = WalkPosition::Outside;
        self.push(path);
    }

    /// Enters the allowed directory at [`Walk::path`], if there is one.
    fn enter_root(&mut self) {
        let mut roots = self.sandbox.roots().iter();
        if let Some(root) = roots.find(|root| root.path == self.path) {
            self.here = WalkPosition::Inside(vec![Arc::clone(&root.dir)]);
        }
    }

    fn run(mut self) -> Result<Place, ToolError> {
        while let Some(step) = self.pending.pop() {
            match step {
                Step::Up => self.up(),
                Step::Into(name) => {
                    let dir = match &self.here {
                        WalkPosition::Outside => None,
                        WalkPosition::Inside(handles) => handles.last().map(Arc::clone),
                    };
                    match dir {
                        None => self.pass_outside(&name)?,
                        Some(dir) => {
                            if let Some(place) = self.pass_inside(&dir, name)? {
                                return Ok(place);
                            }
                        }
                    }
                }
            }
        }
        match self.here {
            WalkPosition::Inside(mut handles) => match handles.pop() {
                // The position is below an allowed directory: the result is its entry in the parent.
                Some(_) if self.last == FinalLinkMode::Itself && !handles.is_empty() => {
                    match (handles.pop(), self.path.file_name()) {
                        (Some(above), Some(name)) => {
                            let rest = vec![name.to_owned()];
                            Ok(Place::new(above, rest, self.path))
                        }
                        _ => Err(self.sandbox.outside(self.given)),
                    }
                }
                Some(dir) => Ok(Place::new(dir, Vec::new(), self.path)),
                None => Err(self.sandbox.outside(self.given)),
            },
            WalkPosition::Outside => Err(self.sandbox.outside(self.given)),
        }
    }

    fn up(&mut self) {
        self.path.pop();
        if let WalkPosition::Inside(handles) = &mut self.here
            && handles.len() > 1
        {
            handles.pop();
        } else {
            self.here = WalkPosition::Outside;
            self.enter_root();
        }
    }

    /// Processes a component outside. Links are followed, because they may point into an allowed directory.
    fn pass_outside(&mut self, name: &OsString) -> Result<(), ToolError> {
        let next = self.path.join(name);
        match readlinkat(CWD, &next, Vec::new()) {
            Ok(_) if self.stays() => Err(self.sandbox.outside(self.given)),
            Ok(target) => self.follow(target.into_bytes()),
            // A missing path contains no allowed directory.
            Err(Errno::NOENT) => Err(self.sandbox.outside(self.given)),
            Err(_) => {
                self.path = next;
                self.enter_root();
                Ok(())
            }
        }
    }

    /// Processes a component inside. Returns the place if the walk ends with it.
    fn pass_inside(
        &mut self,
        dir: &Arc<OwnedFd>,
        name: OsString,
    ) -> Result<Option<Place>, ToolError> {
        if self.stays() {
            return self.end(dir, name).map(Some);
        }
        if self.pending.is_empty() {
            return match readlinkat(dir, &name, Vec::new()) {
                Ok(target) => self.follow(target.into_bytes()).map(|()| None),
                Err(Errno::INVAL | Errno::NOENT) => self.end(dir, name).map(Some),
                Err(error) => Err(self.failed(&name, error)),
            };
        }
        match openat(dir, &name, PASS, Mode::empty()) {
            Ok(handle) => {
                self.path.push(&name);
                if let WalkPosition::Inside(handles) = &mut self.here {
                    handles.push(Arc::new(handle));
                }
                Ok(None)
            }
            Err(Errno::NOENT) => self.end(dir, name).map(Some),
            Err(error @ (Errno::LOOP | Errno::NOTDIR | Errno::MLINK)) => {
                match readlinkat(dir, &name, Vec::new()) {
                    Ok(target) => self.follow(target.into_bytes()).map(|()| None),
                    Err(_) => Err(self.failed(&name, error)),
                }
            }
            Err(error) => Err(self.failed(&name, error)),
        }
    }

    /// Returns true if the current component is the last one and must not be followed.
    fn stays(&self) -> bool {
        self.last == FinalLinkMode::Itself && self.pending.is_empty()
    }

    /// Continues with the target of a link.
    fn follow(&mut self, target: Vec<u8>) -> Result<(), ToolError> {
        self.links += 1;
        if self.links > MAX_LINKS {
            return Err(ToolError::io("resolve", self.given, Errno::LOOP.into()));
        }
        let target = PathBuf::from(OsString::from_vec(target));
        if target.is_absolute() {
            self.restart(&target);
        } else {
            self.push(&target);
        }
        Ok(())
    }

    /// The place `name` in `dir`, with the pending components below it. `..` among these is rejected.
    fn end(&mut self, dir: &Arc<OwnedFd>, name: OsString) -> Result<Place, ToolError> {
        let mut rest = vec![name];
        while let Some(step) = self.pending.pop() {
            match step {
                Step::Into(name) => rest.push(name),
                Step::Up => {
                    return Err(ToolError::blocked(format!(
                        "{} has a `..` after a directory that does not exist; write the path \
                         without `..`",
                        crate::file::sandbox::printable(self.given)
                    )));
                }
            }
        }
        let path = rest
            .iter()
            .fold(self.path.clone(), |path, name| path.join(name));
        Ok(Place::new(Arc::clone(dir), rest, path))
    }

    fn failed(&self, name: &OsString, error: Errno) -> ToolError {
        ToolError::io("open", &self.path.join(name), error.into())
    }
}
