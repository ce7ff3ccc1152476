//! The alternate screen of the terminal, which every exit leaves.

use std::io;
use std::sync::Once;
use std::time::Duration;

use rustix::process::{Signal, getpid, kill_process};

use crate::terminal::{enter_full_screen, leave_full_screen};

/// The time in which the process stops after the signal.
const STOPPING: Duration = Duration::from_millis(50);

/// The full screen, which is left when this is dropped.
pub(super) struct FullScreen(());

impl FullScreen {
    /// Enters the full screen. A panic leaves it before its message is printed.
    ///
    /// # Errors
    /// If the terminal cannot be used.
    pub(super) fn enter() -> io::Result<Self> {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let next = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                leave_full_screen();
                next(panic);
            }));
        });
        let screen = Self(());
        enter_full_screen()?;
        Ok(screen)
    }
}

impl Drop for FullScreen {
    fn drop(&mut self) {
        leave_full_screen();
    }
}

/// Stops this process until it is continued, with the terminal restored meanwhile.
///
/// # Errors
/// If the terminal cannot be used afterwards.
pub(super) fn suspend() -> io::Result<()> {
    leave_full_screen();
    let _ = kill_process(getpid(), Signal::TSTP);
    // Another thread may handle the signal, a little later.
    std::thread::park_timeout(STOPPING);
    enter_full_screen()
}
