//! Systems without a sandbox that could be applied to a thread: nothing is enforced.

use std::io;
use std::path::PathBuf;

/// No Landlock.
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

/// No seccomp.
///
/// # Errors
/// None.
pub(super) fn cut_network() -> io::Result<bool> {
    Ok(false)
}

/// No mounts of a thread's own.
///
/// # Errors
/// None.
pub(super) fn cover(_paths: &[PathBuf]) -> io::Result<bool> {
    Ok(false)
}

/// Nothing to allow.
///
/// # Errors
/// None.
pub(super) fn allow() -> io::Result<()> {
    Ok(())
}
