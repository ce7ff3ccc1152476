//! Undo of one step, with the same atomic operations on directory handles as the tools. The entry is compared
//! again immediately before its replacement.

use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags, fchmod, fstat, mkdirat, openat, symlinkat, unlinkat};
use rustix::io::Errno;
use tokio_util::sync::CancellationToken;

use super::plan::{has_content, is_in_editor, target};
use crate::error::ToolError;
use crate::file::atomic::{TEMPORARY, replace, take_over};
use crate::file::copy_tree::{rename_new, sync_dir};
use crate::file::editor::EditorFile;
use crate::file::locks;
use crate::file::move_path::carry;
use crate::file::resolved_path::{LIST, Target};
use crate::file::sandbox::Sandbox;
use crate::undo::{Attributes, Change, FileBackup, FileState, Step};

/// Undoes steps, then restores the modes of directories.
pub(super) struct Restorer<'a> {
    sandbox: &'a Sandbox,
    /// Recreated directories. Their modes are set last, because entries cannot be added to a read-only
    /// directory.
    made: Vec<(OwnedFd, Attributes)>,
}

impl<'a> Restorer<'a> {
    pub(super) fn new(sandbox: &'a Sandbox) -> Self {
        Self {
            sandbox,
            made: Vec::new(),
        }
    }

    /// Undoes `step` of `change`.
    ///
    /// # Errors
    /// If the entry changed concurrently, or the file system reports an error. Then nothing is changed.
    pub(super) fn undo(&mut self, change: &Change, step: &Step) -> Result<(), ToolError> {
        match step {
            Step::Parent { path } => match self.remove_directory(&self.target(path)?) {
                // An entry was added to the directory concurrently, so it is not removed.
                Err(ToolError::Io { source, .. })
                    if source.kind() == std::io::ErrorKind::DirectoryNotEmpty =>
                {
                    Ok(())
                }
                removed => removed,
            },
            Step::Put {
                path,
                before,
                after,
            } => self.put_back(change, &self.target(path)?, before, after),
            Step::Move { from, to, .. } => {
                let (from, to) = (self.target(from)?, self.target(to)?);
                carry(self.sandbox, &to, &from, &CancellationToken::new())
            }
        }
    }

    /// Restores modes and owners of the recreated directories, the deepest first.
    ///
    /// # Errors
    /// If the file system reports an error.
    pub(super) fn finish(self) -> Result<(), ToolError> {
        for (dir, attributes) in self.made.iter().rev() {
            give(dir, *attributes).map_err(|error| {
                ToolError::io("set the mode of", Path::new("a directory"), error.into())
            })?;
        }
        Ok(())
    }

    fn target(&self, path: &Path) -> Result<Target, ToolError> {
        target(self.sandbox, path)?
            .ok_or_else(|| ToolError::io("reach the directory of", path, Errno::NOENT.into()))
    }

    fn put_back(
        &mut self,
        change: &Change,
        target: &Target,
        before: &FileBackup,
        after: &FileState,
    ) -> Result<(), ToolError> {
        let go_on = CancellationToken::new();
        let _held = match after {
            FileState::File(_) => locks::hold_file(target, &go_on)?,
            _ => None,
        };
        if !has_content(self.sandbox, target, after)? {
            return Err(ToolError::permanent(format!(
                "another program is changing {} right now",
                self.sandbox.shown(&target.path)
            )));
        }
        match (before, after) {
            (
                FileBackup::File {
                    at, fingerprint, ..
                },
                FileState::File(_),
            ) => {
                let content = change.content(*at, fingerprint).ok_or_else(damaged)?;
                let editor = EditorFile::new(self.sandbox, &target.path, &go_on);
                if editor.is_written(Some(content)) && is_in_editor(self.sandbox, target)? {
                    return editor.write(None, content);
                }
                replace(target, content, target.existing()?.as_ref(), &go_on).map(drop)
            }
            (
                FileBackup::File {
                    at,
                    fingerprint,
                    attributes,
                },
                FileState::Absent,
            ) => {
                let content = change.content(*at, fingerprint).ok_or_else(damaged)?;
                create(target, content, *attributes)
            }
            (FileBackup::Link(text), FileState::Absent) => {
                symlinkat(text, &*target.dir, &target.name).map_err(|error| {
                    ToolError::io("create the link", &target.path, error.into())
                })?;
                sync_dir(&target.dir);
                Ok(())
            }
            (FileBackup::Directory(attributes), FileState::Absent) => {
                self.make_directory(target, *attributes)
            }
            (FileBackup::Absent, FileState::Directory) => self.remove_directory(target),
            (FileBackup::Absent, FileState::File(_) | FileState::Link(_)) => {
                unlinkat(&*target.dir, &target.name, AtFlags::empty())
                    .map_err(|error| ToolError::io("remove", &target.path, error.into()))?;
                sync_dir(&target.dir);
                Ok(())
            }
            (FileBackup::Absent, FileState::Absent)
            | (FileBackup::File { .. }, FileState::Directory | FileState::Link(_))
            | (
                FileBackup::Directory(_) | FileBackup::Link(_),
                FileState::Directory | FileState::File(_) | FileState::Link(_),
            ) => Err(damaged()),
        }
    }

    fn make_directory(&mut self, target: &Target, attributes: Attributes) -> Result<(), ToolError> {
        let failed =
            |error: Errno| ToolError::io("create the directory", &target.path, error.into());
        mkdirat(&*target.dir, &target.name, Mode::from_raw_mode(0o700)).map_err(failed)?;
        let dir = openat(&*target.dir, &target.name, LIST, Mode::empty()).map_err(failed)?;
        self.made.push((dir, attributes));
        sync_dir(&target.dir);
        Ok(())
    }

    fn remove_directory(&self, target: &Target) -> Result<(), ToolError> {
        unlinkat(&*target.dir, &target.name, AtFlags::REMOVEDIR)
            .map_err(|error| ToolError::io("remove the directory", &target.path, error.into()))?;
        sync_dir(&target.dir);
        Ok(())
    }
}

fn damaged() -> ToolError {
    ToolError::permanent("the record of this change is damaged")
}

/// Sets mode and owner of `file`. If the owner cannot be set, the mode is reduced.
fn give(file: impl AsFd, attributes: Attributes) -> Result<(), Errno> {
    let mut like = fstat(&file)?;
    if (like.st_uid, like.st_gid) == (attributes.uid, attributes.gid) {
        #[allow(
            clippy::useless_conversion,
            clippy::unnecessary_fallible_conversions,
            reason = "the types differ between systems"
        )]
        return fchmod(
            &file,
            Mode::from_raw_mode(attributes.mode.try_into().unwrap_or(0o600)),
        );
    }
    like.st_uid = attributes.uid;
    like.st_gid = attributes.gid;
    #[allow(
        clippy::useless_conversion,
        clippy::unnecessary_fallible_conversions,
        reason = "the types differ between systems"
    )]
    {
        like.st_mode = attributes.mode.try_into().unwrap_or(0o600);
    }
    take_over(file, &like)
}

/// Creates a file atomically. Its name must be free.
fn create(target: &Target, content: &[u8], attributes: Attributes) -> Result<(), ToolError> {
    let failed = |error: std::io::Error| ToolError::io("write", &target.path, error);
    let name = OsString::from(format!("{TEMPORARY}{}", uuid::Uuid::new_v4().simple()));
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(&*target.dir, &name, flags, Mode::from_raw_mode(0o600))
        .map_err(|error| failed(error.into()))?;
    let mut file = File::from(file);
    let written = file
        .write_all(content)
        .and_then(|()| give(&file, attributes).map_err(Into::into))
        .and_then(|()| file.sync_all())
        .and_then(|()| {
            rename_new((&target.dir, &name), (&target.dir, &target.name)).map_err(Into::into)
        });
    if let Err(error) = written {
        // A failure to remove the file is ignored: it is harmless.
        let _ = unlinkat(&*target.dir, &name, AtFlags::empty());
        return Err(failed(error));
    }
    sync_dir(&target.dir);
    Ok(())
}
