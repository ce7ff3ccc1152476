//! Output: text that is safe to print, JSON events, and redaction.

pub(crate) mod events;
pub(crate) mod local_time;
mod recorder;
pub(crate) mod redact;

use std::io::{ErrorKind, IsTerminal as _, Write as _};

use serde::Serialize;
use zeph_tools::hidden::revealed_json;

use self::sanitize::clean;

pub(crate) use recorder::{Recorder, ResultObject};
pub(crate) use zeph_tui::sanitize;

/// The target of log records for the file alone: standard error shows their text already, or it should be quiet.
pub(crate) const SHOWN: &str = "zeph::shown";

/// Writes a line to standard error, without secrets and control sequences. A warning or an error is logged too. A closed
/// pipe is not an error.
pub(crate) fn stderr_line(text: &str) {
    record_in_file(text);
    write_stderr(text);
}

/// Writes a line as [`stderr_line`] does, or with `is_quiet`, only the record of a warning or an error.
pub(crate) fn stderr_line_unless(is_quiet: bool, text: &str) {
    match is_quiet {
        true => record_in_file(text),
        false => stderr_line(text),
    }
}

/// Writes a text to the log file alone, if it is a warning or an error.
fn record_in_file(text: &str) {
    if let Some(text) = text.strip_prefix("error: ") {
        tracing::error!(target: SHOWN, "{text}");
    } else if let Some(text) = text.strip_prefix("warning: ") {
        tracing::warn!(target: SHOWN, "{text}");
    }
}

/// Writes a line to standard error as [`stderr_line`] does, and logs nothing. It would destroy the full screen, so nothing
/// is written there: warnings and errors are in the log.
pub(crate) fn write_stderr(text: &str) {
    let mut err = std::io::stderr().lock();
    if zeph_tui::has_full_screen() && err.is_terminal() {
        return;
    }
    let text = redact::redacted(text);
    let text = match err.is_terminal() {
        true => clean(&text).into(),
        false => text,
    };
    let _ = err.write_all(text.as_bytes());
    let _ = err.write_all(b"\n");
    let _ = err.flush();
}

/// JSON on one line for standard output: without known values, and on a terminal with escapes for
/// everything that steers one.
pub(crate) fn json_line(value: &impl Serialize) -> serde_json::Result<String> {
    let mut value = serde_json::to_value(value)?;
    redact::secrets().redact_known_json(&mut value);
    Ok(for_terminal(value.to_string()))
}

/// Formats a value as indented JSON, without the values of secrets.
pub(crate) fn json_lines(value: &impl Serialize) -> serde_json::Result<String> {
    let mut value = serde_json::to_value(value)?;
    redact::secrets().redact_known_json(&mut value);
    Ok(for_terminal(serde_json::to_string_pretty(&value)?))
}

/// JSON of stored data, which contains text of models, commands and users: without the values of
/// all secrets.
pub(crate) fn stored_json(value: &impl Serialize) -> serde_json::Result<String> {
    let mut value = serde_json::to_value(value)?;
    redact::secrets().redact_json(&mut value);
    Ok(for_terminal(serde_json::to_string_pretty(&value)?))
}

/// JSON text as standard output takes it.
pub(crate) fn for_terminal(json: String) -> String {
    match std::io::stdout().is_terminal() {
        true => revealed_json(&json),
        false => json,
    }
}

/// Writes a line to standard output. A closed pipe is not an error. `false` if another error occurs, such as a full
/// disk.
pub(crate) fn stdout_line(text: &str) -> bool {
    let mut out = std::io::stdout().lock();
    let written = out
        .write_all(text.as_bytes())
        .and_then(|()| out.write_all(b"\n"))
        .and_then(|()| out.flush());
    written.map_or_else(|error| error.kind() == ErrorKind::BrokenPipe, |()| true)
}
