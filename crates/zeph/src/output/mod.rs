//! How a turn is printed for programs.

pub(crate) mod events;
mod recorder;

use std::io::Write as _;

pub(crate) use recorder::{Recorder, ResultObject};

/// Writes a line to standard error; a closed pipe is no reason to fail.
pub(crate) fn stderr_line(text: &str) {
    let mut err = std::io::stderr().lock();
    let _ = err.write_all(text.as_bytes());
    let _ = err.write_all(b"\n");
    let _ = err.flush();
}

/// Writes a line to standard output; `false` when nobody reads any more.
pub(crate) fn stdout_line(text: &str) -> bool {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.write_all(b"\n"))
        .and_then(|()| out.flush())
        .is_ok()
}
