//! The system calls that create sockets or change files by their paths, with the positions of their arguments.
//!
//! The numbers are those of `asm/unistd.h`. Architectures newer than x86-64 have only the calls that take a directory.

use std::collections::BTreeMap;

use crate::sandbox::plan::Sockets;
use rustix::net::AddressFamily;
use seccompiler::{
    BackendError, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompRule, TargetArch,
};

/// The architecture of the filters.
#[cfg(target_arch = "x86_64")]
pub(super) const ARCH: TargetArch = TargetArch::x86_64;
#[cfg(target_arch = "aarch64")]
pub(super) const ARCH: TargetArch = TargetArch::aarch64;

/// `io_uring_setup` has the same number on every architecture.
pub(super) const IO_URING_SETUP: i64 = 425;
/// `socket` and `socketpair`. Both take the address family first.
pub(super) const SOCKETS: [i64; 2] = [libc::SYS_socket, libc::SYS_socketpair];
/// Offsets for the variants of a system call under this architecture: x32 shares the architecture of x86-64.
#[cfg(target_arch = "x86_64")]
pub(super) const VARIANTS: &[i64] = &[0, 0x4000_0000];
#[cfg(target_arch = "aarch64")]
pub(super) const VARIANTS: &[i64] = &[0];

/// How a system call changes a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// It creates the path.
    Creates,
    /// It creates the path as a directory.
    CreatesDirectory,
    /// It changes or removes an existing path.
    Changes,
    /// The flags of `open` at this position decide.
    ByFlags(usize),
}

/// An argument with a path that is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PathArgument {
    /// The position of the path.
    pub(super) path: usize,
    /// The position of the descriptor of its directory.
    pub(super) directory: Option<usize>,
    pub(super) access: Access,
}

const fn at(directory: usize, path: usize, access: Access) -> PathArgument {
    PathArgument {
        path,
        directory: Some(directory),
        access,
    }
}

#[cfg(target_arch = "x86_64")]
const fn plain(path: usize, access: Access) -> PathArgument {
    PathArgument {
        path,
        directory: None,
        access,
    }
}

use Access::{ByFlags, Changes, Creates, CreatesDirectory};

/// The calls that exist on every architecture.
const CALLS: &[(i64, &[PathArgument])] = &[
    (libc::SYS_openat, &[at(0, 1, ByFlags(2))]),
    (libc::SYS_mkdirat, &[at(0, 1, CreatesDirectory)]),
    (libc::SYS_mknodat, &[at(0, 1, Creates)]),
    (libc::SYS_unlinkat, &[at(0, 1, Changes)]),
    (libc::SYS_renameat2, &[at(0, 1, Changes), at(2, 3, Creates)]),
    (libc::SYS_renameat, &[at(0, 1, Changes), at(2, 3, Creates)]),
    (libc::SYS_linkat, &[at(2, 3, Creates)]),
    (libc::SYS_symlinkat, &[at(1, 2, Creates)]),
];

/// The calls without a directory.
#[cfg(target_arch = "x86_64")]
const PLAIN_CALLS: &[(i64, &[PathArgument])] = &[
    (libc::SYS_open, &[plain(0, ByFlags(1))]),
    (libc::SYS_creat, &[plain(0, Creates)]),
    (libc::SYS_truncate, &[plain(0, Changes)]),
    (libc::SYS_mkdir, &[plain(0, CreatesDirectory)]),
    (libc::SYS_mknod, &[plain(0, Creates)]),
    (libc::SYS_rmdir, &[plain(0, Changes)]),
    (libc::SYS_unlink, &[plain(0, Changes)]),
    (libc::SYS_rename, &[plain(0, Changes), plain(1, Creates)]),
    (libc::SYS_link, &[plain(1, Creates)]),
    (libc::SYS_symlink, &[plain(1, Creates)]),
];
#[cfg(target_arch = "aarch64")]
const PLAIN_CALLS: &[(i64, &[PathArgument])] = &[];

/// The arguments of a call with the paths that it changes.
pub(super) fn changed_paths(number: i64) -> &'static [PathArgument] {
    let mut calls = CALLS.iter().chain(PLAIN_CALLS);
    calls
        .find(|(listed, _)| *listed == number)
        .map_or(&[], |(_, paths)| paths)
}

/// Whether the flags of `open` create the file.
pub(super) fn creates(flags: u64) -> bool {
    flags & u64::from(libc::O_CREAT.unsigned_abs()) != 0
}

/// The rules of a filter that match every listed call which may change a file.
pub(super) fn write_rules() -> Result<BTreeMap<i64, Vec<SeccompRule>>, BackendError> {
    let mut rules = BTreeMap::new();
    for (number, paths) in CALLS.iter().chain(PLAIN_CALLS) {
        let of_flags = match paths {
            [
                PathArgument {
                    access: ByFlags(flags),
                    ..
                },
            ] => opens_for_writing(u8::try_from(*flags).unwrap_or(u8::MAX))?,
            // A rule without conditions.
            _ => Vec::new(),
        };
        for variant in VARIANTS {
            rules.insert(number + variant, of_flags.clone());
        }
    }
    Ok(rules)
}

/// The rules of a filter that match the creation of sockets that `sockets` does not allow.
pub(super) fn socket_rules(
    sockets: Sockets,
) -> Result<BTreeMap<i64, Vec<SeccompRule>>, BackendError> {
    let mut rules = BTreeMap::new();
    if sockets == Sockets::All {
        return Ok(rules);
    }
    let unix = u64::from(AddressFamily::UNIX.as_raw());
    let other = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, unix)?;
    let foreign = vec![SeccompRule::new(vec![other])?];
    let [socket, pair] = SOCKETS;
    for variant in VARIANTS {
        let of_socket = match sockets {
            // A rule without conditions.
            Sockets::None => Vec::new(),
            _ => foreign.clone(),
        };
        rules.insert(socket + variant, of_socket);
        rules.insert(pair + variant, foreign.clone());
        // A ring creates sockets without the system call.
        rules.insert(IO_URING_SETUP + variant, Vec::new());
    }
    Ok(rules)
}

/// Rules for flags of `open` at a position: writing, creating or truncating.
fn opens_for_writing(position: u8) -> Result<Vec<SeccompRule>, BackendError> {
    let mask = |mask: i32, value: i32| {
        let (mask, value) = (
            u64::from(mask.unsigned_abs()),
            u64::from(value.unsigned_abs()),
        );
        let compare = SeccompCmpOp::MaskedEq(mask);
        let condition = SeccompCondition::new(position, SeccompCmpArgLen::Dword, compare, value)?;
        SeccompRule::new(vec![condition])
    };
    Ok(vec![
        mask(libc::O_ACCMODE, libc::O_WRONLY)?,
        mask(libc::O_ACCMODE, libc::O_RDWR)?,
        mask(libc::O_CREAT, libc::O_CREAT)?,
        mask(libc::O_TRUNC, libc::O_TRUNC)?,
    ])
}
