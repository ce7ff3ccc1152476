//! The keys of the user while a turn runs: they edit the next input, or act at once.
//!
//! A thread reads them. It makes way for a dialog, a command that has the terminal, and the prompt. Keys that were
//! typed before a question opens remain in the input line, so they do not answer it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::OptionalActions;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::channel::Shared;
use super::key_press::{KeyDecoder, KeyPress};
use super::keyboard::{Keyboard, Mode, single_key_mode};
use super::restore::{self, LEAVE_PASTES, MARK_PASTES};

/// The time between two checks whether another reader waits. A longer pause ends a control sequence.
const CHECK: Duration = Duration::from_millis(30);

/// A key that acts on the turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TurnKey {
    /// Ctrl-C.
    Interrupt,
    /// Esc.
    Escape,
    /// Ctrl-Z.
    Suspend,
    /// Shift-Tab.
    NextMode,
    /// Ctrl-G.
    Edit,
}

/// Reads keys until it is dropped.
pub(super) struct TypeAhead {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    mode: Option<Mode<io::Stdin>>,
    keys: UnboundedReceiver<TurnKey>,
}

impl TypeAhead {
    /// Starts to read the keys of the terminal.
    ///
    /// # Errors
    /// If the terminal cannot be used, or no thread can be started.
    pub(super) fn start(shared: Arc<Shared>, keyboard: Keyboard) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let (sender, keys) = unbounded_channel();
        let reader = Reader {
            shared,
            keyboard,
            stop: Arc::clone(&stop),
            sender,
            decoder: KeyDecoder::default(),
        };
        let mode = Mode::change(io::stdin(), OptionalActions::Now, single_key_mode)?;
        let thread = std::thread::Builder::new().name("keys".to_owned());
        let thread = thread.spawn(move || reader.run())?;
        Ok(Self {
            stop,
            thread: Some(thread),
            mode: Some(mode),
            keys,
        })
    }

    /// Waits for a key that acts on the turn.
    pub(super) async fn next(&mut self) -> TurnKey {
        match self.keys.recv().await {
            Some(key) => key,
            // The terminal is closed. A signal ends the turn.
            None => std::future::pending().await,
        }
    }

    /// Whether Ctrl-C was pressed and not handled.
    pub(super) fn is_interrupted(&mut self) -> bool {
        std::iter::from_fn(|| self.keys.try_recv().ok()).any(|key| key == TurnKey::Interrupt)
    }

    /// Restores the mode of the terminal for the time in which the process is suspended.
    pub(super) fn suspend(&mut self) {
        self.mode = None;
    }

    /// Sets the mode of the terminal again.
    pub(super) fn resume(&mut self) {
        // The shell may have changed the mode.
        drop(self.mode.take());
        self.mode = Mode::change(io::stdin(), OptionalActions::Now, single_key_mode).ok();
    }
}

impl Drop for TypeAhead {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The thread that reads keys.
struct Reader {
    shared: Arc<Shared>,
    keyboard: Keyboard,
    stop: Arc<AtomicBool>,
    sender: UnboundedSender<TurnKey>,
    decoder: KeyDecoder,
}

impl Reader {
    fn run(mut self) {
        while !self.is_stopped() {
            let Some(_held) = self.keyboard.hold_in_background(CHECK) else {
                continue;
            };
            restore::note_pastes(true);
            self.shared.steer(MARK_PASTES);
            let read = self.read_until_wanted();
            self.shared.steer(LEAVE_PASTES);
            restore::note_pastes(false);
            // An error means that the terminal is closed.
            if read.is_err() {
                return;
            }
        }
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Reads keys until another reader waits. The last read takes the keys that were typed before.
    fn read_until_wanted(&mut self) -> rustix::io::Result<()> {
        loop {
            let is_last = self.is_stopped() || self.keyboard.is_wanted();
            let wait = if is_last { Duration::ZERO } else { CHECK };
            match read(wait)? {
                Some(bytes) => {
                    let keys = self.decoder.push(&bytes);
                    keys.into_iter().for_each(|key| self.press(key));
                }
                None if is_last => return Ok(()),
                None => {
                    if let Some(key) = self.decoder.pause() {
                        self.press(key);
                    }
                }
            }
        }
    }

    fn press(&self, key: KeyPress) {
        let action = match key {
            KeyPress::Ctrl('c') => TurnKey::Interrupt,
            KeyPress::Esc => TurnKey::Escape,
            KeyPress::Ctrl('z') => TurnKey::Suspend,
            KeyPress::BackTab => TurnKey::NextMode,
            KeyPress::Ctrl('g') => TurnKey::Edit,
            key => return self.shared.press(key),
        };
        // Without a receiver, the turn has ended.
        let _ = self.sender.send(action);
    }
}

/// Reads the bytes that arrive within `wait`; `None` if there are none.
fn read(wait: Duration) -> rustix::io::Result<Option<Vec<u8>>> {
    let stdin = io::stdin();
    let timeout = Timespec::try_from(wait).ok();
    let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
    match poll(&mut fds, timeout.as_ref()) {
        Ok(0) | Err(Errno::INTR) => return Ok(None),
        Ok(_) => {}
        Err(error) => return Err(error),
    }
    let mut bytes = [0_u8; 1024];
    match rustix::io::read(&stdin, &mut bytes) {
        Ok(0) => Err(Errno::IO),
        Ok(length) => Ok(Some(bytes[..length].to_vec())),
        Err(Errno::INTR | Errno::AGAIN) => Ok(None),
        Err(error) => Err(error),
    }
}
