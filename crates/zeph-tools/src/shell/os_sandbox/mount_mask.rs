//! Mounts of a command's own, in which denied files and directories are covered.
//!
//! Over a file lies `/dev/null` on a mount without devices: opening it fails with EACCES, for root
//! too. Over a directory lies an empty one that cannot be written and has no permissions. The
//! cover lies on the entry, not on its path: it stays when a directory above is renamed, and what is
//! covered cannot be renamed, removed or linked itself.
//!
//! Nothing uncovers it: a thread that Landlock restricts does not unmount, without Landlock the
//! capability to do so is gone, and a user namespace made inside inherits the mounts locked. The
//! capabilities are dropped that would lead around: into the mounts of other processes, and to files
//! by their numbers.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, open, openat2};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountFlags, MountPropagationFlags, MoveMountFlags,
    OpenTreeFlags, UnmountFlags, fsconfig_create, fsconfig_set_flag, fsconfig_set_string, fsmount,
    fsopen, mount_bind, mount_change, mount_remount, move_mount, open_tree, unmount,
};
use rustix::process::{getegid, geteuid};
use rustix::thread::{
    CapabilitySet, capabilities, clear_ambient_capability_set, remove_capability_from_bounding_set,
    set_capabilities,
};

use crate::shell::sys;

/// What covers files.
const COVER: &str = "/dev/null";
/// Where a process in a new user namespace says who it is.
const IDENTITY: [&str; 3] = [
    "/proc/self/setgroups",
    "/proc/self/uid_map",
    "/proc/self/gid_map",
];
/// What would lead around the covers: unmounting, other processes' roots, files by their numbers.
const LEADS_AROUND: [CapabilitySet; 3] = [
    CapabilitySet::SYS_ADMIN,
    CapabilitySet::SYS_PTRACE,
    CapabilitySet::DAC_READ_SEARCH,
];

/// Where one cannot mount, what the kernel says.
fn is_lacking(error: Errno) -> bool {
    matches!(
        error,
        Errno::PERM | Errno::ACCESS | Errno::NOSYS | Errno::INVAL | Errno::NOSPC | Errno::NOENT
    )
}

/// Covers `paths` (real, absolute) for the calling thread and everything it starts, for good. `false`
/// where this process may not.
///
/// What is gone meanwhile is passed over.
///
/// # Errors
/// When it may, and the kernel refuses, or a path leads through a link by now.
pub(super) fn cover(paths: &[PathBuf]) -> io::Result<bool> {
    match own_mounts() {
        Ok(()) => {}
        Err(error) if is_lacking(error) => return Ok(false),
        Err(error) => return Err(error.into()),
    }
    for path in paths {
        cover_one(path)
            .map_err(|error| io::Error::other(format!("{}: {error}", path.display())))?;
    }
    match unmount(COVER, UnmountFlags::DETACH) {
        // Not there when it is covered itself.
        Ok(()) | Err(Errno::NOENT) => {}
        Err(error) => return Err(error.into()),
    }
    drop_capabilities()?;
    Ok(true)
}

/// Mounts that only this thread sees, with the cover for files laid out.
fn own_mounts() -> rustix::io::Result<()> {
    sys::own_mounts()?;
    mount_change(
        "/",
        MountPropagationFlags::PRIVATE | MountPropagationFlags::REC,
    )?;
    mount_bind(COVER, COVER)?;
    let laid_out = lay_out();
    if laid_out.is_err() {
        // The command goes on without covers, and needs the device.
        unmount(COVER, UnmountFlags::DETACH)?;
    }
    laid_out
}

/// Makes the cover for files out of what is mounted there, and tries that for directories.
fn lay_out() -> rustix::io::Result<()> {
    let nothing = MountFlags::RDONLY | MountFlags::NODEV | MountFlags::NOEXEC | MountFlags::NOSUID;
    mount_remount(COVER, MountFlags::BIND | nothing, "")?;
    empty_directory().map(drop)
}

fn cover_one(path: &Path) -> rustix::io::Result<()> {
    let place = openat2(
        CWD,
        path,
        OFlags::PATH | OFlags::CLOEXEC,
        Mode::empty(),
        ResolveFlags::NO_SYMLINKS,
    );
    let place = match place {
        // What this thread cannot reach, what it starts cannot reach either.
        Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS) => return Ok(()),
        place => place?,
    };
    let cover = if FileType::from_raw_mode(fstat(&place)?.st_mode) == FileType::Directory {
        empty_directory()?
    } else {
        open_tree(
            CWD,
            COVER,
            OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC,
        )?
    };
    move_mount(
        &cover,
        "",
        &place,
        "",
        MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH,
    )
}

/// A directory with nothing in it, that is mounted nowhere yet.
fn empty_directory() -> rustix::io::Result<OwnedFd> {
    let made = fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(&made, "mode", "000")?;
    fsconfig_set_flag(&made, "ro")?;
    fsconfig_create(&made)?;
    fsmount(
        &made,
        FsMountFlags::FSMOUNT_CLOEXEC,
        MountAttrFlags::MOUNT_ATTR_RDONLY
            | MountAttrFlags::MOUNT_ATTR_NODEV
            | MountAttrFlags::MOUNT_ATTR_NOEXEC
            | MountAttrFlags::MOUNT_ATTR_NOSUID,
    )
}

/// Takes from what this thread starts what leads around the covers.
fn drop_capabilities() -> rustix::io::Result<()> {
    clear_ambient_capability_set()?;
    for capability in LEADS_AROUND {
        remove_capability_from_bounding_set(capability)?;
    }
    let mut own = capabilities(None)?;
    for capability in LEADS_AROUND {
        own.inheritable.remove(capability);
        own.permitted.remove(capability);
        own.effective.remove(capability);
    }
    set_capabilities(None, own)
}

/// Lets the threads of this process cover paths, if they may not yet: a user namespace of its own,
/// with the same user and group in it. Does nothing where that is not allowed. For a process with
/// one thread.
///
/// # Errors
/// When it is in a namespace now without being known there: it can do nothing of use then.
pub(super) fn allow() -> io::Result<()> {
    let may = capabilities(None).is_ok_and(|own| own.effective.contains(CapabilitySet::SYS_ADMIN));
    // The user and the group have to be mapped afterwards. Within another sandbox that may be
    // refused, and would leave this process without a user.
    let writable = |path| open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty()).is_ok();
    let [setgroups, users, groups] = IDENTITY;
    // The first can be opened for writing by one who may mount alone, as in the namespace to be.
    if may || !writable(users) || !writable(groups) {
        return Ok(());
    }
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    if sys::own_user_namespace().is_err() {
        return Ok(());
    }
    std::fs::write(setgroups, "deny")?;
    std::fs::write(users, format!("{user} {user} 1"))?;
    std::fs::write(groups, format!("{group} {group} 1"))
}
