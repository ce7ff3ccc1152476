//! The sandbox on systems without one that applies to a thread: it enforces nothing.

use std::io;
use std::path::PathBuf;

/// Does nothing, because the system lacks Landlock.
///
/// # Errors
/// None.
pub(super) fn confine(
    _writable: &[PathBuf],
    _unreadable: &[PathBuf],
    _shared: &[PathBuf],
) -> io::Result<Option<u32>> {
    Ok(None)
}

/// Does nothing, because the system lacks seccomp.
///
/// # Errors
/// None.
pub(super) fn cut_network() -> io::Result<bool> {
    Ok(false)
}

/// Does nothing, because a thread has no mounts of its own.
///
/// # Errors
/// None.
pub(super) fn cover(_paths: &[PathBuf]) -> io::Result<bool> {
    Ok(false)
}

/// Does nothing, because there is nothing to allow.
///
/// # Errors
/// None.
pub(super) fn allow() -> io::Result<()> {
    Ok(())
}
