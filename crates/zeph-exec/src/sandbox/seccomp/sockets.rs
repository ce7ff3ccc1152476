//! The filter without reports: it refuses sockets.
//!
//! It also refuses `io_uring_setup`, because a ring creates sockets without the system call. It ends programs for another
//! architecture (32 bits on a 64-bit system).

use std::io;

use crate::sandbox::plan::Sockets;
use rustix::io::Errno;
use seccompiler::{BackendError, BpfProgram, SeccompAction, SeccompFilter};

use super::system_calls::{ARCH, socket_rules};

/// Refuses the sockets that `sockets` does not allow, for the calling thread. Returns `false` if the kernel has no such
/// filter.
///
/// # Errors
/// If the kernel has the filter and refuses it.
pub(in crate::sandbox) fn refuse_sockets(sockets: Sockets) -> io::Result<bool> {
    let program = program(sockets).map_err(io::Error::other)?;
    match seccompiler::apply_filter(&program) {
        Ok(()) => Ok(true),
        // The kernel has no seccomp (ENOSYS), or no filters (EINVAL).
        Err(seccompiler::Error::Seccomp(error)) if is_lacking(&error) => Ok(false),
        Err(error) => Err(io::Error::other(error)),
    }
}

fn is_lacking(error: &io::Error) -> bool {
    let errno = error.raw_os_error();
    [Errno::NOSYS, Errno::INVAL]
        .iter()
        .any(|lacking| errno == Some(lacking.raw_os_error()))
}

fn program(sockets: Sockets) -> Result<BpfProgram, BackendError> {
    let refused = SeccompAction::Errno(Errno::ACCESS.raw_os_error().unsigned_abs());
    let rules = socket_rules(sockets)?;
    SeccompFilter::new(rules, SeccompAction::Allow, refused, ARCH)?.try_into()
}
