//! Restoration of the terminal's mode at every exit of the program.
//!
//! Guards restore the mode when they are dropped. A signal may end the program while a thread still waits for a key;
//! then [`put_back`] does the work of that thread's guard.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crossterm::terminal::disable_raw_mode;
#[cfg(feature = "full-screen")]
use crossterm::terminal::enable_raw_mode;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};

use super::notify::{RESTORE_TITLE, SAVE_TITLE};

/// The mode in which the terminal was found.
static FOUND: OnceLock<Option<Termios>> = OnceLock::new();
/// Whether the terminal marks pastes for a question.
static MARKS_PASTES: AtomicBool = AtomicBool::new(false);
/// Whether Zeph shows the full screen.
static HAS_FULL_SCREEN: AtomicBool = AtomicBool::new(false);

/// Whether the alternate screen is shown.
static HAS_ALTERNATE: AtomicBool = AtomicBool::new(false);
/// Shows the cursor, and leaves the alternate screen.
const LEAVE_ALTERNATE: &str = "\x1b[?25h\x1b[?1049l";
/// Whether the title of the window was saved.
static HAS_TITLE: AtomicBool = AtomicBool::new(false);

/// Makes the terminal mark pasted text.
pub(super) const MARK_PASTES: &str = "\x1b[?2004h";
/// Ends [`MARK_PASTES`].
pub(super) const LEAVE_PASTES: &str = "\x1b[?2004l";

/// Enters the alternate screen, hides the cursor, and reports pastes and the buttons of the mouse.
#[cfg(feature = "full-screen")]
const ENTER_FULL_SCREEN: &str = "\x1b[?1049h\x1b[?25l\x1b[?2004h\x1b[?1000h\x1b[?1006h";
/// Restores the main screen, the cursor and the mouse.
const LEAVE_FULL_SCREEN: &str = "\x1b[?1006l\x1b[?1000l\x1b[?2004l\x1b[0m\x1b[?25h\x1b[?1049l";

/// Starts the full screen. [`put_back`] and [`leave_full_screen`] end it.
///
/// # Errors
/// If the terminal cannot be used.
#[cfg(feature = "full-screen")]
pub(crate) fn enter_full_screen() -> io::Result<()> {
    enable_raw_mode()?;
    HAS_FULL_SCREEN.store(true, Ordering::SeqCst);
    let mut out = io::stdout().lock();
    out.write_all(ENTER_FULL_SCREEN.as_bytes())?;
    out.flush()
}

/// Ends the full screen. No effect without one. A terminal that is gone is not an error.
pub(crate) fn leave_full_screen() {
    if HAS_FULL_SCREEN.swap(false, Ordering::SeqCst) {
        // Without the lock, which a thread may hold that waits for the terminal.
        let _ = rustix::io::write(io::stdout(), LEAVE_FULL_SCREEN.as_bytes());
        let _ = disable_raw_mode();
    }
}

/// Whether the full screen is active, which output on standard error would overwrite.
pub fn has_full_screen() -> bool {
    HAS_FULL_SCREEN.load(Ordering::SeqCst)
}

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

/// Notes whether the alternate screen is shown.
pub(super) fn note_alternate(shown: bool) {
    HAS_ALTERNATE.store(shown, Ordering::Relaxed);
}

/// Saves the title of the window, which the session changes.
pub(crate) fn note_title() {
    if !HAS_TITLE.swap(true, Ordering::Relaxed) {
        let _ = io::stdout().write_all(SAVE_TITLE.as_bytes());
    }
}

/// Restores the terminal. No effect if it was not changed.
pub fn put_back() {
    leave_full_screen();
    if HAS_ALTERNATE.swap(false, Ordering::Relaxed) {
        let _ = io::stderr().write_all(LEAVE_ALTERNATE.as_bytes());
    }
    let stdin = io::stdin();
    if let Some(Some(found)) = FOUND.get()
        && tcgetattr(&stdin).is_ok_and(|now| differs(&now, found))
    {
        let _ = tcsetattr(&stdin, OptionalActions::Now, found);
    }
    if MARKS_PASTES.swap(false, Ordering::Relaxed) {
        let _ = io::stderr().write_all(LEAVE_PASTES.as_bytes());
    }
    if HAS_TITLE.swap(false, Ordering::Relaxed) {
        let _ = io::stderr().write_all(RESTORE_TITLE.as_bytes());
    }
}

fn differs(one: &Termios, other: &Termios) -> bool {
    one.local_modes != other.local_modes
        || one.input_modes != other.input_modes
        || one.output_modes != other.output_modes
}
