//! How a turn is printed for programs.

pub(crate) mod events;
mod recorder;
pub(crate) mod redact;

use std::io::{ErrorKind, Write as _};

pub(crate) use recorder::{Recorder, ResultObject};

/// Writes a line to standard error, without the values of secrets; a closed pipe is no reason to
/// fail.
pub(crate) fn stderr_line(text: &str) {
    let mut err = std::io::stderr().lock();
    let _ = err.write_all(redact::redacted(text).as_bytes());
    let _ = err.write_all(b"\n");
    let _ = err.flush();
}

/// Writes a line to standard output; a closed pipe is no reason to fail. `false` when it could not
/// be written for another reason: a full disk.
pub(crate) fn stdout_line(text: &str) -> bool {
    let mut out = std::io::stdout().lock();
    let written = out
        .write_all(text.as_bytes())
        .and_then(|()| out.write_all(b"\n"))
        .and_then(|()| out.flush());
    written.map_or_else(|error| error.kind() == ErrorKind::BrokenPipe, |()| true)
}
