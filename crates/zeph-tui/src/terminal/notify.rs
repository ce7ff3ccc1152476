//! The title of the window, and the notification for a user of another window.

use std::time::Duration;

use crate::config::{Notify, TerminalConfig};
use crate::sanitize::first_line;

/// Saves the title of the window (xterm control sequences).
pub(super) const SAVE_TITLE: &str = "\x1b[22;2t";
/// Restores the saved title.
pub(super) const RESTORE_TITLE: &str = "\x1b[23;2t";
/// The most characters of a text in a title or a notification.
const MAX_CHARS: usize = 60;

/// The sequence that sets the title of the window.
pub(crate) fn title(text: &str) -> String {
    format!("\x1b]2;zeph: {}\x07", first_line(text, MAX_CHARS))
}

/// The sequence that signals `text` after the user waited for `waited`. Empty if the wait was short.
pub(crate) fn signal(config: &TerminalConfig, text: &str, waited: Duration) -> String {
    if waited < Duration::from_secs(config.notify_after_secs) {
        return String::new();
    }
    match config.notify {
        Notify::Bell => "\x07".to_owned(),
        Notify::Osc9 => format!("\x1b]9;zeph: {}\x07", first_line(text, MAX_CHARS)),
        Notify::Off => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves CLI-4c: only a long wait is signalled, as configured.
    #[test]
    fn long_wait_is_signalled_as_configured() {
        let check = |notify, after, waited, expect: &str| {
            let config = TerminalConfig {
                notify,
                notify_after_secs: after,
                ..TerminalConfig::default()
            };
            let shown = signal(&config, "done\x1b[2J\nx", Duration::from_secs(waited));
            assert_eq!(shown, expect, "{notify:?} {after} {waited}");
        };
        check(Notify::Bell, 10, 9, "");
        check(Notify::Bell, 10, 10, "\x07");
        check(Notify::Bell, 0, 0, "\x07");
        check(Notify::Osc9, 10, 11, "\x1b]9;zeph: done\\u{1b}[2J…\x07");
        check(Notify::Off, 0, 100, "");
    }

    #[test]
    fn title_is_safe() {
        assert_eq!(
            title("a\x07\x1b[2Jb"),
            "\x1b]2;zeph: a\\u{7}\\u{1b}[2Jb\x07"
        );
    }
}
