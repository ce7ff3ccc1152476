//! Redaction of the program's own output (logs, errors, warnings), so that it contains no secret.

use std::borrow::Cow;
use std::io::{self, Write};
use std::sync::{Arc, PoisonError, RwLock};

use tracing_subscriber::fmt::MakeWriter;
use zeph_tools::secrets::SecurityPatterns;

/// The active patterns; the built-in ones until the configuration is loaded.
static SECRETS: RwLock<Option<Arc<SecurityPatterns>>> = RwLock::new(None);

/// Redacts the matches of `secrets` in all later output.
pub(crate) fn keep_out(secrets: Arc<SecurityPatterns>) {
    *SECRETS.write().unwrap_or_else(PoisonError::into_inner) = Some(secrets);
}

/// The active patterns.
pub(crate) fn secrets() -> Arc<SecurityPatterns> {
    let secrets = SECRETS.read().unwrap_or_else(PoisonError::into_inner);
    secrets.clone().unwrap_or_default()
}

/// A text without the values of known secrets, such as the keys of providers.
pub(crate) fn without_known(text: &str) -> Cow<'_, str> {
    match secrets().redact_known(text) {
        Cow::Owned(redacted) => redacted.into(),
        Cow::Borrowed(_) => text.into(),
    }
}

/// A text without the values of secrets.
pub(crate) fn redacted(text: &str) -> Cow<'_, str> {
    secrets().redact(text).text
}

/// Standard error for logs: each event is written immediately, without the values of secrets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LogWriter;

impl<'a> MakeWriter<'a> for LogWriter {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        Self
    }
}

impl Write for LogWriter {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        // A line break in a value would begin a line that looks like another event.
        let line = text.trim_end_matches('\n').replace('\n', "\\n");
        let line = redacted(&line).into_owned() + "\n";
        io::stderr().lock().write_all(line.as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().lock().flush()
    }
}
