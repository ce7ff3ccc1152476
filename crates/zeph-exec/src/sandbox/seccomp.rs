//! seccomp: only AF_UNIX sockets for a thread and all processes that it starts.
//!
//! The filter also refuses `io_uring_setup`, because a ring creates sockets without the system call. It ends programs
//! for another architecture (32 bits on a 64-bit system).

use std::io;

/// Blocks the network for the calling thread. Returns `false` if the kernel or the architecture has no such filter.
///
/// # Errors
/// If the kernel has the filter and refuses it.
pub(super) fn cut_network() -> io::Result<bool> {
    let Some(program) = filter::program()? else {
        return Ok(false);
    };
    match seccompiler::apply_filter(&program) {
        Ok(()) => Ok(true),
        // The kernel has no seccomp (ENOSYS), or no filters (EINVAL).
        Err(seccompiler::Error::Seccomp(error)) if is_lacking(&error) => Ok(false),
        Err(error) => Err(io::Error::other(error)),
    }
}

fn is_lacking(error: &io::Error) -> bool {
    let errno = error.raw_os_error();
    [rustix::io::Errno::NOSYS, rustix::io::Errno::INVAL]
        .iter()
        .any(|lacking| errno == Some(lacking.raw_os_error()))
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod filter {
    use std::io;

    use rustix::io::Errno;
    use rustix::net::AddressFamily;
    use seccompiler::{
        BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
        SeccompFilter, SeccompRule, TargetArch,
    };

    /// `io_uring_setup` has the same number on every architecture.
    const IO_URING_SETUP: i64 = 425;
    /// The numbers of `socket` and `socketpair`. Both take the address family first.
    #[cfg(target_arch = "x86_64")]
    const SOCKETS: [i64; 2] = [41, 53];
    #[cfg(target_arch = "aarch64")]
    const SOCKETS: [i64; 2] = [198, 199];
    /// Offsets for the variants of a system call under this architecture: x32 shares the architecture of x86-64.
    #[cfg(target_arch = "x86_64")]
    const VARIANTS: &[i64] = &[0, 0x4000_0000];
    #[cfg(target_arch = "aarch64")]
    const VARIANTS: &[i64] = &[0];

    #[cfg(target_arch = "x86_64")]
    const ARCH: TargetArch = TargetArch::x86_64;
    #[cfg(target_arch = "aarch64")]
    const ARCH: TargetArch = TargetArch::aarch64;

    pub(super) fn program() -> io::Result<Option<BpfProgram>> {
        build().map(Some).map_err(io::Error::other)
    }

    fn build() -> Result<BpfProgram, BackendError> {
        let refused = SeccompAction::Errno(Errno::ACCESS.raw_os_error().unsigned_abs());
        let foreign = SeccompRule::new(vec![SeccompCondition::new(
            0,
            SeccompCmpArgLen::Dword,
            SeccompCmpOp::Ne,
            u64::from(AddressFamily::UNIX.as_raw()),
        )?])?;
        let rules = VARIANTS.iter().flat_map(|variant| {
            let sockets = SOCKETS.map(|number| (number + variant, vec![foreign.clone()]));
            // A rule without conditions.
            let ring = (IO_URING_SETUP + variant, Vec::new());
            sockets.into_iter().chain([ring])
        });
        SeccompFilter::new(rules.collect(), SeccompAction::Allow, refused, ARCH)?.try_into()
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod filter {
    use std::io;

    pub(super) fn program() -> io::Result<Option<seccompiler::BpfProgram>> {
        Ok(None)
    }
}
