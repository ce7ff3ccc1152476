//! The one place of the crate with `unsafe`: what a command does between fork and exec.

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
