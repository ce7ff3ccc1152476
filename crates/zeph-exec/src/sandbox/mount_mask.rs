//! Private mounts of a command that cover denied files and directories.
//!
//! `/dev/null` on a mount without devices covers a file: opening it fails with EACCES, even for root. An empty
//! directory without permissions, mounted read-only, covers a directory. The cover belongs to the directory entry, not
//! to its path: it stays when a parent directory is renamed. A covered entry cannot be renamed, removed or linked.
//!
//! A command cannot remove a cover. A thread that Landlock restricts cannot unmount. Without Landlock, the capability
//! to unmount is dropped, and a nested user namespace inherits the mounts locked. Capabilities that give access around
//! the covers are dropped: those for the mounts of other processes, and for files by their handles.

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

use crate::sys;

/// The file that covers files.
const COVER: &str = "/dev/null";
/// Files in which a process in a new user namespace sets its identity.
const IDENTITY: [&str; 3] = [
    "/proc/self/setgroups",
    "/proc/self/uid_map",
    "/proc/self/gid_map",
];
/// Capabilities that give access around the covers: unmounting, other processes' roots, files by their handles.
const LEADS_AROUND: [CapabilitySet; 3] = [
    CapabilitySet::SYS_ADMIN,
    CapabilitySet::SYS_PTRACE,
    CapabilitySet::DAC_READ_SEARCH,
];

/// Whether the error means that this process may not mount.
fn is_lacking(error: Errno) -> bool {
    matches!(
        error,
        Errno::PERM | Errno::ACCESS | Errno::NOSYS | Errno::INVAL | Errno::NOSPC | Errno::NOENT
    )
}

/// Covers `paths` (real, absolute) for the calling thread and all processes that it starts. This cannot be undone.
/// Returns `false` if this process may not mount.
///
/// Paths that no longer exist are skipped.
///
/// # Errors
/// If the kernel refuses although mounting is allowed, or a path contains a link.
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
        // The mount is missing if `/dev/null` itself is covered.
        Ok(()) | Err(Errno::NOENT) => {}
        Err(error) => return Err(error.into()),
    }
    drop_capabilities()?;
    Ok(true)
}

/// Creates mounts that only this thread sees, and prepares the cover for files.
fn own_mounts() -> rustix::io::Result<()> {
    sys::own_mounts()?;
    mount_change(
        "/",
        MountPropagationFlags::PRIVATE | MountPropagationFlags::REC,
    )?;
    mount_bind(COVER, COVER)?;
    let laid_out = lay_out();
    if laid_out.is_err() {
        // The command continues without covers, and needs the device.
        unmount(COVER, UnmountFlags::DETACH)?;
    }
    laid_out
}

/// Makes the mount of `/dev/null` the cover for files, and checks that directories can be covered.
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
        // Processes of this thread cannot reach the path either.
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

/// An empty directory that is not mounted yet.
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

/// Drops the capabilities that give access around the covers, also for processes that this thread starts.
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

/// Lets the threads of this process cover paths. If they may not yet, the process enters a new user namespace with the
/// same user and group. Does nothing if that is not allowed. The process must have one thread.
///
/// # Errors
/// If the process is in the new namespace but its user or group is not mapped. It is then not usable.
pub(super) fn allow() -> io::Result<()> {
    let may = capabilities(None).is_ok_and(|own| own.effective.contains(CapabilitySet::SYS_ADMIN));
    // The user and the group must be mapped in the namespace. Inside another sandbox, that may be refused, and the
    // process would have no user.
    let writable = |path| open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty()).is_ok();
    let [setgroups, users, groups] = IDENTITY;
    // `setgroups` is not checked: it is writable only for a process that may mount, as in the new namespace.
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
