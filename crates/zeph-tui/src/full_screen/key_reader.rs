//! The reader of keys: a thread that waits for the terminal, and pauses while a command has it.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use crossterm::event::Event;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::pipe::pipe;
use crate::terminal::decode::Decoder;

/// The size of a read.
const PIECE_BYTES: usize = 4096;
/// The time after which an incomplete sequence is complete.
const PAUSE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 25_000_000,
};

/// An input of the terminal.
#[derive(Debug)]
pub(super) enum TerminalInput {
    /// A key, a paste or a click, and its arrival.
    Event(Event, Instant),
    /// The terminal is closed.
    Closed,
}

/// Reads keys until it is dropped.
pub(super) struct KeyReader {
    control: Arc<ReaderControl>,
    inputs: UnboundedReceiver<TerminalInput>,
    thread: Option<JoinHandle<()>>,
}

/// Pauses the reader.
pub(super) struct ReaderControl {
    state: Mutex<ReaderState>,
    changed: Condvar,
    /// A byte wakes the thread.
    wake: OwnedFd,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReaderState {
    Reading,
    /// The thread reads no key after it has confirmed the pause.
    Pausing,
    Paused,
    Ended,
}

impl KeyReader {
    /// Starts the thread. The terminal passes on single keys.
    ///
    /// # Errors
    /// If no thread can be started.
    pub(super) fn start() -> io::Result<Self> {
        let (woken, wake) = pipe()?;
        for end in [&woken, &wake] {
            fcntl_setfl(end, fcntl_getfl(end)? | OFlags::NONBLOCK)?;
        }
        let control = Arc::new(ReaderControl {
            state: Mutex::new(ReaderState::Reading),
            changed: Condvar::new(),
            wake,
        });
        let (sender, inputs) = unbounded_channel();
        let of_thread = Arc::clone(&control);
        let thread = std::thread::Builder::new()
            .name("keys".to_owned())
            .spawn(move || {
                // An error of the terminal is its end.
                let _ = of_thread.read(&woken, &sender);
                of_thread.set(ReaderState::Ended);
                let _ = sender.send(TerminalInput::Closed);
            })?;
        Ok(Self {
            control,
            inputs,
            thread: Some(thread),
        })
    }

    /// The next input. If the future is dropped, no input is lost.
    pub(super) async fn next(&mut self) -> TerminalInput {
        self.inputs.recv().await.unwrap_or(TerminalInput::Closed)
    }

    /// Discards inputs that have arrived.
    pub(super) fn discard(&mut self) {
        while self.inputs.try_recv().is_ok() {}
    }

    pub(super) fn control(&self) -> &Arc<ReaderControl> {
        &self.control
    }
}

impl Drop for KeyReader {
    fn drop(&mut self) {
        self.control.set(ReaderState::Ended);
        self.control.wake_up();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl ReaderControl {
    /// Returns after the thread has stopped reading.
    pub(super) fn pause(&self) {
        let mut state = self.state();
        if *state != ReaderState::Reading {
            return;
        }
        *state = ReaderState::Pausing;
        self.wake_up();
        while *state == ReaderState::Pausing {
            let waited = self.changed.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Continues to read.
    pub(super) fn resume(&self) {
        let mut state = self.state();
        if *state == ReaderState::Paused {
            *state = ReaderState::Reading;
            self.changed.notify_all();
        }
    }

    fn state(&self) -> MutexGuard<'_, ReaderState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, state: ReaderState) {
        *self.state() = state;
        self.changed.notify_all();
    }

    fn wake_up(&self) {
        // A full pipe wakes the thread as well.
        let _ = rustix::io::write(&self.wake, &[0]);
    }

    /// Returns `false` if the thread ends. Waits as long as the reader is paused.
    fn may_read(&self, woken: &OwnedFd) -> bool {
        let mut bytes = [0; 16];
        while rustix::io::read(woken, &mut bytes).is_ok_and(|length| length > 0) {}
        let mut state = self.state();
        loop {
            match *state {
                ReaderState::Reading => return true,
                ReaderState::Ended => return false,
                ReaderState::Pausing => {
                    *state = ReaderState::Paused;
                    self.changed.notify_all();
                }
                ReaderState::Paused => {
                    let waited = self.changed.wait(state);
                    state = waited.unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }

    fn read(&self, woken: &OwnedFd, inputs: &UnboundedSender<TerminalInput>) -> io::Result<()> {
        let stdin = io::stdin();
        let mut decoder = Decoder::default();
        let mut piece = [0; PIECE_BYTES];
        loop {
            let mut fds = [
                PollFd::new(woken, PollFlags::IN),
                PollFd::new(&stdin, PollFlags::IN),
            ];
            let ready = match poll(&mut fds, decoder.is_pending().then_some(&PAUSE)) {
                Err(Errno::INTR) => continue,
                polled => polled?,
            };
            let [woken_up, keys] = fds.map(|fd| fd.revents());
            if !woken_up.is_empty() {
                if !self.may_read(woken) {
                    return Ok(());
                }
                // The state of the keys may be old.
                continue;
            }
            let events = if ready == 0 {
                decoder.pause().into_iter().collect()
            } else if keys.contains(PollFlags::IN) {
                match rustix::io::read(&stdin, &mut piece) {
                    Ok(0) => return Ok(()),
                    Ok(length) => decoder.push(&piece[..length]),
                    Err(Errno::INTR | Errno::AGAIN) => Vec::new(),
                    Err(error) => return Err(error.into()),
                }
            } else {
                return Ok(());
            };
            let at = Instant::now();
            for event in events {
                if inputs.send(TerminalInput::Event(event, at)).is_err() {
                    return Ok(());
                }
            }
        }
    }
}
