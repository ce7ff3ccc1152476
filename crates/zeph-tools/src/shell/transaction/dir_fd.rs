//! Directory access through handles, which never follows a link.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, chmodat, fstat, openat, statat, unlinkat,
};
use rustix::io::Errno;

/// The maximum nesting depth of directories; each level needs a handle.
pub(super) const MAX_DEPTH: usize = 128;

/// The flags that open a directory to list it.
pub(super) const LIST: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Opens the directory `name` in `dir`.
pub(super) fn open_dir(dir: &OwnedFd, name: &OsStr) -> Result<OwnedFd, Errno> {
    openat(dir, name, LIST, Mode::empty())
}

/// Opens the regular file `name` in `dir` for reading. Another kind of file, which may have replaced it, is opened
/// without blocking and refused.
pub(super) fn open_file(dir: &OwnedFd, name: &OsStr) -> Result<File, Errno> {
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = openat(dir, name, flags, Mode::empty())?;
    match FileType::from_raw_mode(fstat(&file)?.st_mode) {
        FileType::RegularFile => Ok(File::from(file)),
        _ => Err(Errno::INVAL),
    }
}

/// The status of `name` in `dir`; `None` if it does not exist.
pub(super) fn look(dir: &OwnedFd, name: &OsStr) -> Result<Option<Stat>, Errno> {
    match statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(stat)),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The names in a directory, without `.` and `..`.
pub(super) fn entries(dir: &OwnedFd) -> Result<Vec<OsString>, Errno> {
    // A separate handle, because reading changes the position.
    let mut dir = Dir::new(openat(dir, ".", LIST, Mode::empty())?)?;
    let mut names = Vec::new();
    while let Some(entry) = dir.read() {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            names.push(OsStr::from_bytes(name).to_owned());
        }
    }
    Ok(names)
}

/// Opens the directory `name` in `dir` to change its entries. If its mode forbids that to its owner, the mode is
/// widened. Also returns the previous status.
pub(super) fn open_to_change(dir: &OwnedFd, name: &OsStr) -> Result<(OwnedFd, Stat), Errno> {
    let stood = look(dir, name)?.ok_or(Errno::NOENT)?;
    let mode = stood.st_mode & 0o7777;
    let opened = match open_dir(dir, name) {
        Err(Errno::ACCESS) => {
            change_mode(dir, name, mode | 0o700)?;
            return Ok((open_dir(dir, name)?, stood));
        }
        opened => opened?,
    };
    if mode & 0o700 != 0o700 {
        // A directory of another user stays unchanged. The following steps report the failure.
        let _ = rustix::fs::fchmod(&opened, Mode::from_raw_mode(mode | 0o700));
    }
    Ok((opened, stood))
}

/// Changes the mode of the directory `name` in `dir`, which cannot be opened. It does not follow a link of this name.
#[cfg(target_os = "linux")]
fn change_mode(dir: &OwnedFd, name: &OsStr, mode: rustix::fs::RawMode) -> Result<(), Errno> {
    use std::os::fd::AsRawFd as _;

    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let handle = openat(dir, name, flags, Mode::empty())?;
    let link = format!("/proc/self/fd/{}", handle.as_raw_fd());
    chmodat(CWD, link, Mode::from_raw_mode(mode), AtFlags::empty())
}

/// Changes the mode of the directory `name` in `dir`, which cannot be opened. It does not follow a link of this name.
#[cfg(not(target_os = "linux"))]
fn change_mode(dir: &OwnedFd, name: &OsStr, mode: rustix::fs::RawMode) -> Result<(), Errno> {
    let mode = Mode::from_raw_mode(mode);
    chmodat(dir, name, mode, AtFlags::SYMLINK_NOFOLLOW)
}

/// Removes the entry `name` of `dir` with all entries below it. A link is removed, but not its target. Adds the number
/// of removed entries to `removed`.
pub(super) fn remove(
    dir: &OwnedFd,
    name: &OsStr,
    own: &ProtectedFiles,
    depth: usize,
    removed: &mut usize,
) -> io::Result<()> {
    let Some(stat) = look(dir, name)? else {
        return Ok(());
    };
    let mut how = AtFlags::empty();
    if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
        if depth > MAX_DEPTH {
            let message = format!("it is more than {MAX_DEPTH} directories deep");
            return Err(io::Error::other(message));
        }
        let (inner, _) = open_to_change(dir, name)?;
        let here = identity(&stat);
        let names = entries(&inner)?;
        if own.is_base(here) || names.iter().any(|name| own.has(here, name)) {
            return Err(io::Error::other("it contains the files of Zeph"));
        }
        for name in names {
            remove(&inner, &name, own, depth + 1, removed)?;
        }
        how = AtFlags::REMOVEDIR;
    }
    match unlinkat(dir, name, how) {
        Ok(()) => {
            *removed += 1;
            Ok(())
        }
        Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// The unique identity of a file: its file system and its inode number.
pub(super) type Identity = (u64, u64);

#[allow(clippy::unnecessary_cast, reason = "the types differ between systems")]
pub(super) fn identity(stat: &Stat) -> Identity {
    (stat.st_dev as u64, stat.st_ino as u64)
}

/// The program's own files, which no transaction touches: the database, even in the working directory, and the
/// snapshots.
#[derive(Debug)]
pub(super) struct ProtectedFiles {
    /// The directory and the name of the database.
    database: Option<(Identity, OsString)>,
    base: Identity,
}

impl ProtectedFiles {
    /// Finds the program's own files; `base` is the directory of the snapshots.
    pub(super) fn find(database: Option<&Path>, base: &Path) -> io::Result<Self> {
        let place = |path: &Path| -> io::Result<Identity> {
            // The path is the program's own, so links in it are followed.
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let dir = openat(CWD, path, flags, Mode::empty())?;
            Ok(identity(&fstat(dir)?))
        };
        let database = match database.and_then(|file| Some((file.parent()?, file.file_name()?))) {
            None => None,
            Some((dir, name)) => Some((place(dir)?, name.to_owned())),
        };
        Ok(Self {
            database,
            base: place(base)?,
        })
    }

    /// Whether the entry `name` of the directory `dir` is the database, or a file with the same name and a suffix that
    /// begins with `-`.
    pub(super) fn has(&self, dir: Identity, name: &OsStr) -> bool {
        self.database.as_ref().is_some_and(|(place, own)| {
            *place == dir
                && name
                    .as_bytes()
                    .strip_prefix(own.as_bytes())
                    .is_some_and(|rest| matches!(rest.first(), None | Some(b'-')))
        })
    }

    /// Whether a directory is the directory of the snapshots.
    pub(super) fn is_base(&self, dir: Identity) -> bool {
        self.base == dir
    }
}
