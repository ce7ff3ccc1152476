//! The one place of the crate with `unsafe`: what a command does between fork and exec, and
//! namespaces of a thread's own.

use std::process::Command;

/// Makes the process that `command` starts die (SIGKILL) when the supervisor's thread that
/// starts it ends: the second line of defence, for the case that the supervisor itself is killed.
#[cfg(target_os = "linux")]
#[allow(
    unsafe_code,
    reason = "pre_exec is unsafe; what it runs is audited here"
)]
pub(super) fn die_with_parent(command: &mut Command) {
    use std::io;
    use std::os::unix::process::CommandExt;

    use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal};

    let supervisor = getpid();
    // SAFETY: the closure runs in the forked child before exec, where only async-signal-safe
    // functions may be called. It makes two system calls (prctl, getppid), reads a captured
    // integer, allocates nothing, takes no lock, and its errors are plain numbers.
    unsafe {
        command.pre_exec(move || {
            set_parent_process_death_signal(Some(Signal::KILL))?;
            // The supervisor may have died before the line above took effect.
            if getppid() == Some(supervisor) {
                Ok(())
            } else {
                Err(io::Error::from_raw_os_error(
                    rustix::io::Errno::SRCH.raw_os_error(),
                ))
            }
        });
    }
}

/// Other systems have no parent-death signal.
#[cfg(not(target_os = "linux"))]
pub(super) fn die_with_parent(_command: &mut Command) {}

/// Gives the calling thread mounts of its own, and a working directory and a root of its own with
/// them; everything it starts shares these.
///
/// # Errors
/// EPERM for one who may not mount, and what else the kernel says.
#[cfg(target_os = "linux")]
#[allow(
    unsafe_code,
    reason = "unshare is unsafe for what it could do to descriptors; the call is audited here"
)]
pub(super) fn own_mounts() -> rustix::io::Result<()> {
    use rustix::thread::{UnshareFlags, unshare_unsafe};

    // SAFETY: unsafe is the call with `FILES`, since descriptors would then mean different files
    // in different threads. These flags leave them shared.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS | UnshareFlags::FS) }
}

/// Moves the process into a user namespace of its own, in which it may mount. It must have one
/// thread.
///
/// # Errors
/// EPERM and ENOSPC where that is not for this user, EINVAL for a process with several threads.
#[cfg(target_os = "linux")]
#[allow(
    unsafe_code,
    reason = "unshare is unsafe for what it could do to descriptors; the call is audited here"
)]
pub(super) fn own_user_namespace() -> rustix::io::Result<()> {
    use rustix::thread::{UnshareFlags, unshare_unsafe};

    // SAFETY: as above; the flag leaves descriptors alone.
    unsafe { unshare_unsafe(UnshareFlags::NEWUSER) }
}
