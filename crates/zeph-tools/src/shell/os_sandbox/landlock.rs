//! Landlock: where a thread, and everything it starts, may write.
//!
//! Only what writes is handled, so reading stays as it is. The kernel refuses the rest with EACCES
//! (EXDEV for some links and renames), and mounting altogether.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, AccessFs, BitFlags, LandlockStatus, PathBeneath, Ruleset, RulesetAttr, RulesetCreatedAttr,
    RulesetStatus,
};
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat2};

/// The version whose rights are handled: Linux 6.10. Where the kernel's is lower, those it has.
const VERSION: ABI = ABI::V5;

/// Lets the calling thread write only below `writable`. The version that holds, or `None` where
/// the kernel has no Landlock.
///
/// What cannot be opened is not granted. No path may lead through a symbolic link: a command that
/// can write a directory's parent could have put one into its place.
///
/// # Errors
/// When the kernel has Landlock and refuses, as for lack of memory or descriptors.
pub(super) fn confine_writes(writable: &[PathBuf]) -> io::Result<Option<u32>> {
    let handled = AccessFs::from_write(VERSION);
    let mut ruleset = Ruleset::default()
        .handle_access(handled)
        .map_err(io::Error::other)?
        .create()
        .map_err(io::Error::other)?;
    for path in writable {
        if let Ok(opened) = open(path) {
            let granted = grant(handled, &opened)?;
            ruleset = ruleset
                .add_rule(PathBeneath::new(opened, granted))
                .map_err(io::Error::other)?;
        }
    }
    let status = ruleset.restrict_self().map_err(io::Error::other)?;
    match (status.ruleset, status.landlock) {
        (RulesetStatus::NotEnforced, _) => Ok(None),
        (_, LandlockStatus::Available { effective_abi, .. }) => Ok(Some(effective_abi as u32)),
        _ => Ok(None),
    }
}

fn open(path: &Path) -> rustix::io::Result<OwnedFd> {
    openat2(
        CWD,
        path,
        OFlags::PATH | OFlags::CLOEXEC,
        Mode::empty(),
        ResolveFlags::NO_SYMLINKS,
    )
}

/// All that writes, but the making of devices: root could reach any disk through one.
fn grant(handled: BitFlags<AccessFs>, opened: &OwnedFd) -> io::Result<BitFlags<AccessFs>> {
    let directory = FileType::from_raw_mode(fstat(opened)?.st_mode) == FileType::Directory;
    let granted = if directory {
        handled
    } else {
        handled & AccessFs::from_file(VERSION)
    };
    Ok(granted & !(AccessFs::MakeChar | AccessFs::MakeBlock))
}
