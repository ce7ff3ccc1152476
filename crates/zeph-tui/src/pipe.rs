//! A pipe that no started program inherits, on every Unix.

use std::io;
use std::os::fd::OwnedFd;

/// Creates a pipe: the end to read, and the end to write.
///
/// # Errors
/// If the process has too many open files.
pub(crate) fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (reader, writer) = io::pipe()?;
    Ok((reader.into(), writer.into()))
}
