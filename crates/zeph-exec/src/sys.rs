//! The only module of the crate with `unsafe`: code between fork and exec, separate namespaces of a thread, reports of
//! system calls, and a setting of the allocator.

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

/// Makes the process of `command` the leader of a new session. Its standard input, a terminal, becomes the controlling
/// terminal of the session.
#[allow(
    unsafe_code,
    reason = "pre_exec is unsafe; what it runs is audited here"
)]
pub(super) fn lead_session(command: &mut Command) {
    use std::os::unix::process::CommandExt;

    use rustix::process::{ioctl_tiocsctty, setsid};

    // SAFETY: the closure runs in the forked child before exec, where only async-signal-safe
    // functions may be called. It makes two system calls (setsid, ioctl), allocates nothing, takes
    // no lock, and its errors are plain numbers. Descriptor 0 is open: it was set before.
    unsafe {
        command.pre_exec(|| {
            setsid()?;
            ioctl_tiocsctty(rustix::stdio::stdin())?;
            Ok(())
        });
    }
}

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

/// A system call that a filter reported. Its thread waits for the response.
#[cfg(target_os = "linux")]
pub(super) struct SystemCall {
    id: u64,
    /// The id of the thread that makes the call.
    pub(super) thread: u32,
    pub(super) number: i64,
    pub(super) arguments: [u64; 6],
}

/// The response to a reported system call.
#[cfg(target_os = "linux")]
pub(super) enum Response {
    /// The kernel executes it.
    Continue,
    /// It fails.
    Fail(rustix::io::Errno),
}

#[cfg(target_os = "linux")]
fn last_error() -> rustix::io::Errno {
    let error = std::io::Error::last_os_error();
    rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::INVAL)
}

/// Installs a filter with the action `SECCOMP_RET_USER_NOTIF` for the calling thread and all processes that it starts.
/// Returns the descriptor that receives the reported system calls.
///
/// # Errors
/// ENOSYS or EINVAL if the kernel lacks it, EBUSY if another filter reports system calls already.
#[cfg(target_os = "linux")]
#[allow(
    unsafe_code,
    reason = "libraries offer this system call without the flag for a listener"
)]
pub(super) fn install_notifying_filter(
    program: &[seccompiler::sock_filter],
) -> rustix::io::Result<std::os::fd::OwnedFd> {
    use std::os::fd::{FromRawFd, OwnedFd};

    rustix::thread::set_no_new_privs(true)?;
    let mut filter: Vec<libc::sock_filter> = program
        .iter()
        .map(|it| libc::sock_filter {
            code: it.code,
            jt: it.jt,
            jf: it.jf,
            k: it.k,
        })
        .collect();
    let program = libc::sock_fprog {
        len: u16::try_from(filter.len()).map_err(|_| rustix::io::Errno::INVAL)?,
        filter: filter.as_mut_ptr(),
    };
    // SAFETY: `program` points to `len` instructions that live until the call returns; the kernel
    // copies them. A result of at least 0 is a new descriptor that nothing else owns.
    unsafe {
        let descriptor = libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_NEW_LISTENER,
            &raw const program,
        );
        match i32::try_from(descriptor) {
            Ok(descriptor @ 0..) => Ok(OwnedFd::from_raw_fd(descriptor)),
            _ => Err(last_error()),
        }
    }
}

/// Waits for the next reported system call.
///
/// # Errors
/// ENOENT if the thread died meanwhile, EINTR if a signal arrived.
#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "no library offers this ioctl")]
pub(super) fn next_system_call(listener: &std::os::fd::OwnedFd) -> rustix::io::Result<SystemCall> {
    use std::os::fd::AsRawFd;

    // SAFETY: the structure consists of integers, for which zero is valid. The kernel requires
    // zeros, and writes at most its size.
    let received = unsafe {
        let mut received: libc::seccomp_notif = std::mem::zeroed();
        let descriptor = listener.as_raw_fd();
        let request = libc::SECCOMP_IOCTL_NOTIF_RECV;
        if libc::ioctl(descriptor, request, &raw mut received) < 0 {
            return Err(last_error());
        }
        received
    };
    Ok(SystemCall {
        id: received.id,
        thread: received.pid,
        number: received.data.nr.into(),
        arguments: received.data.args,
    })
}

/// Responds to a reported system call.
///
/// # Errors
/// ENOENT if its thread died meanwhile.
#[cfg(target_os = "linux")]
#[allow(unsafe_code, reason = "no library offers this ioctl")]
pub(super) fn respond(
    listener: &std::os::fd::OwnedFd,
    call: &SystemCall,
    response: Response,
) -> rustix::io::Result<()> {
    use std::os::fd::AsRawFd;

    let (error, flags) = match response {
        Response::Continue => (0, libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE),
        Response::Fail(error) => (-error.raw_os_error(), 0),
    };
    let mut sent = libc::seccomp_notif_resp {
        id: call.id,
        val: 0,
        error,
        flags: u32::try_from(flags).unwrap_or(0),
    };
    // SAFETY: the kernel reads the structure, which lives until the call returns.
    let result = unsafe {
        let request = libc::SECCOMP_IOCTL_NOTIF_SEND;
        libc::ioctl(listener.as_raw_fd(), request, &raw mut sent)
    };
    match result {
        0.. => Ok(()),
        _ => Err(last_error()),
    }
}

/// Lets the allocator of this process return a large buffer to the system when it is freed.
///
/// By default, glibc stores buffers of the size of the largest freed one, up to 32 MiB: a long response of a model stays
/// resident several times. Call it at the start of the process.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[allow(unsafe_code, reason = "no library offers this call")]
pub fn return_large_buffers() {
    /// The size from which a buffer has pages of its own: the initial value of glibc, which it raises otherwise.
    const MIN_BYTES: libc::c_int = 128 * 1024;
    // SAFETY: the call takes two numbers, and changes only how the allocator finds memory.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, MIN_BYTES);
    }
}

/// Does nothing, because other allocators return large buffers.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn return_large_buffers() {}
