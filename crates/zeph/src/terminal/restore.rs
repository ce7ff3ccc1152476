//! Restoration of the terminal's mode at every exit of the program.
//!
//! Guards restore the mode when they are dropped. A signal may end the program while a thread still waits for a key;
//! then [`put_back`] does the work of that thread's guard.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};

/// The mode in which the terminal was found.
static FOUND: OnceLock<Option<Termios>> = OnceLock::new();
/// Whether the terminal marks pastes for a question.
static MARKS_PASTES: AtomicBool = AtomicBool::new(false);

/// Makes the terminal mark pasted text.
pub(super) const MARK_PASTES: &str = "\x1b[?2004h";
/// Ends [`MARK_PASTES`].
pub(super) const LEAVE_PASTES: &str = "\x1b[?2004l";

/// Notes the mode of the terminal, before anything changes it.
pub(super) fn note() {
    let stdin = io::stdin();
    FOUND.get_or_init(|| {
        stdin
            .is_terminal()
            .then(|| tcgetattr(&stdin).ok())
            .flatten()
    });
}

/// The mode in which the terminal was found.
pub(super) fn found() -> Option<&'static Termios> {
    FOUND.get()?.as_ref()
}

/// Notes whether the terminal marks pastes.
pub(super) fn note_pastes(marked: bool) {
    MARKS_PASTES.store(marked, Ordering::Relaxed);
}

/// Restores the terminal. No effect if it was not changed.
pub(crate) fn put_back() {
    let stdin = io::stdin();
    if let Some(Some(found)) = FOUND.get()
        && tcgetattr(&stdin).is_ok_and(|now| differs(&now, found))
    {
        let _ = tcsetattr(&stdin, OptionalActions::Now, found);
    }
    if MARKS_PASTES.swap(false, Ordering::Relaxed) {
        let _ = io::stderr().write_all(LEAVE_PASTES.as_bytes());
    }
}

fn differs(one: &Termios, other: &Termios) -> bool {
    one.local_modes != other.local_modes
        || one.input_modes != other.input_modes
        || one.output_modes != other.output_modes
}
