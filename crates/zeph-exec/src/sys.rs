//! The only module of the crate with `unsafe`: code between fork and exec, and separate namespaces of a thread.

use std::process::Command;

/// Lets the process of `command` die (SIGKILL) when the supervisor's thread that starts it ends. This protects against
/// a killed supervisor.
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

/// Does nothing, because other systems have no parent-death signal.
#[cfg(not(target_os = "linux"))]
pub(super) fn die_with_parent(_command: &mut Command) {}

/// Gives the calling thread its own mounts, working directory and root. Processes that it starts share them.
///
/// # Errors
/// EPERM if the user may not mount, or another error of the kernel.
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

/// Moves the process into a new user namespace, in which it may mount. The process must have one thread.
///
/// # Errors
/// EPERM and ENOSPC if the user may not create one, EINVAL if the process has several threads.
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
