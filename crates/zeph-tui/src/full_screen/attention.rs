//! The title of the window, and the notifications for a user of another window.

use std::io::{Write as _, stdout};
use std::time::Duration;

use crate::config::TerminalConfig;
use crate::terminal::{note_title, notification, title_sequence};

/// The title and the signals, as `[terminal]` configures them.
#[derive(Debug)]
pub(super) struct Attention {
    config: TerminalConfig,
    /// The title that was set last.
    title: Option<String>,
}

impl Attention {
    pub(super) fn new(config: TerminalConfig) -> Self {
        if config.title {
            note_title();
        }
        Self {
            config,
            title: None,
        }
    }

    /// Sets the title to the state of the session and its name.
    pub(super) fn show_title(&mut self, state: &str, session: Option<&str>) {
        let text = match session {
            Some(session) => format!("{state}: {session}"),
            None => state.to_owned(),
        };
        if self.config.title && self.title.as_ref() != Some(&text) {
            write(&title_sequence(&text));
            self.title = Some(text);
        }
    }

    /// Signals an event to a user who waited for `waited`.
    pub(super) fn signal(&self, text: &str, waited: Duration) {
        write(&notification(&self.config, text, waited));
    }
}

/// Writes a sequence that the user does not see. A terminal that is gone ends the session elsewhere.
fn write(sequence: &str) {
    let mut out = stdout().lock();
    let _ = out
        .write_all(sequence.as_bytes())
        .and_then(|()| out.flush());
}
