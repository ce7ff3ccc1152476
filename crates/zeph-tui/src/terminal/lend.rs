//! The terminal lent to a command of the user.
//!
//! The command runs at a pseudo terminal. One thread passes the keys of the user to it, and its output to the user and to the
//! recorder. So a full-screen program works, and its output is also known. Ctrl-C is a key: it interrupts the command, not Zeph.

use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use async_trait::async_trait;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode as FileMode, OFlags, fcntl_getfl, fcntl_setfl, open};
use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{OptionalActions, tcgetwinsize, tcsetattr, tcsetwinsize};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use zeph_tools::user_terminal::{LentTerminal, UserTerminal};

use super::alternate_screen::AlternateScreen;
use super::keyboard::{Keyboard, Mode};
use super::restore;
use crate::pipe::pipe;

/// No started program inherits the pseudo terminal.
#[cfg(target_os = "linux")]
const CLOSE_AT_EXEC: OpenptFlags = OpenptFlags::CLOEXEC;
#[cfg(not(target_os = "linux"))]
const CLOSE_AT_EXEC: OpenptFlags = OpenptFlags::empty();
/// The size of a read.
const PIECE_BYTES: usize = 16 * 1024;
/// Pieces of output that wait for the recorder. A faster program waits.
const MAX_QUEUED_PIECES: usize = 64;
/// The time to wait for more output after the command has ended.
const LAST_OUTPUT: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 50_000_000,
};
/// The maximum number of pieces that are read after the command has ended. A process that it left behind may never stop.
const MAX_LAST_PIECES: usize = 256;
/// The time to wait until another reader of keys makes way.
const MAX_HANDOVER: Duration = Duration::from_millis(500);
/// Restores the attributes, the cursor and the mouse after a program that did not.
const RESET: &str = "\x1b[0m\x1b[?25h\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?2004l";
/// Leaves the alternate screen.
const LEAVE_ALTERNATE: &str = "\x1b[?1049l";

/// The output of Zeph on the terminal, which stops while a command has the terminal.
pub(crate) trait LendableScreen: Send + Sync {
    /// Stops the output of Zeph.
    fn lend(&self);

    /// Continues the output of Zeph.
    fn take_back(&self, end: &OutputEnd);
}

/// Lends the terminal of this process.
pub(crate) struct TerminalLender {
    screen: Arc<dyn LendableScreen>,
    keyboard: Keyboard,
}

impl TerminalLender {
    /// Lends the terminal on which `screen` is shown, while no other reader holds the `keyboard`.
    pub(crate) fn new(screen: Arc<dyn LendableScreen>, keyboard: Keyboard) -> Self {
        Self { screen, keyboard }
    }
}

impl UserTerminal for TerminalLender {
    fn lend(&self) -> io::Result<Box<dyn LentTerminal>> {
        let (main, side) = pseudo_terminal()?;
        let main = Arc::new(main);
        let (stop, stopped_when_dropped) = pipe()?;
        let (sender, output) = channel(MAX_QUEUED_PIECES);
        let relay = Relay {
            main: Arc::clone(&main),
            stop,
            sender,
            keys: Vec::new(),
            end: OutputEnd::default(),
        };
        let keyboard = self.keyboard.clone();
        let (start, started) = std::sync::mpsc::channel();
        let (hold, held) = std::sync::mpsc::channel();
        let thread = std::thread::Builder::new().name("terminal".to_owned());
        let thread = thread.spawn(move || {
            let _reading = keyboard.hold();
            let _ = hold.send(());
            // An error means that the terminal is not lent after all.
            match started.recv() {
                Ok(()) => relay.run(),
                Err(_) => OutputEnd::default(),
            }
        })?;
        // Keys that are typed after the command starts are for the command.
        let _ = held.recv_timeout(MAX_HANDOVER);
        self.screen.lend();
        let raw = Mode::change(io::stdin(), OptionalActions::Now, |mode| mode.make_raw());
        let _ = start.send(());
        Ok(Box::new(Lent {
            screen: Arc::clone(&self.screen),
            main,
            side: Some(side),
            output: Some(output),
            resized: signal(SignalKind::window_change()).ok(),
            stop: Some(stopped_when_dropped),
            thread: Some(thread),
            // Without raw mode, the command gets whole lines.
            mode: raw.ok(),
        }))
    }
}

/// A pseudo terminal with the mode and the size of the terminal of this process: the side of Zeph, which does not block, and
/// the side of the command.
fn pseudo_terminal() -> io::Result<(OwnedFd, OwnedFd)> {
    let main = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | CLOSE_AT_EXEC)?;
    // A system without the flag, as macOS, takes it here.
    fcntl_setfd(&main, FdFlags::CLOEXEC)?;
    grantpt(&main)?;
    unlockpt(&main)?;
    let name = ptsname(&main, Vec::new())?;
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let side = open(name.as_c_str(), flags, FileMode::empty())?;
    if let Some(found) = restore::found() {
        tcsetattr(&side, OptionalActions::Now, found)?;
    }
    if let Ok(size) = tcgetwinsize(io::stdout()) {
        tcsetwinsize(&side, size)?;
    }
    fcntl_setfl(&main, fcntl_getfl(&main)? | OFlags::NONBLOCK)?;
    Ok((main, side))
}

/// A terminal that is lent. Dropping it returns the terminal.
struct Lent {
    screen: Arc<dyn LendableScreen>,
    main: Arc<OwnedFd>,
    side: Option<OwnedFd>,
    output: Option<Receiver<Vec<u8>>>,
    /// Reports changes of the size of the terminal.
    resized: Option<Signal>,
    /// Stops the relay when it is dropped.
    stop: Option<OwnedFd>,
    thread: Option<JoinHandle<OutputEnd>>,
    mode: Option<Mode<io::Stdin>>,
}

#[async_trait]
impl LentTerminal for Lent {
    fn side(&self) -> io::Result<OwnedFd> {
        match &self.side {
            Some(side) => side.try_clone(),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    async fn read(&mut self) -> Option<Vec<u8>> {
        let output = self.output.as_mut()?;
        loop {
            let Some(resized) = &mut self.resized else {
                return output.recv().await;
            };
            tokio::select! {
                piece = output.recv() => return piece,
                _ = resized.recv() => {
                    // The kernel notifies the command.
                    if let Ok(size) = tcgetwinsize(io::stdout()) {
                        let _ = tcsetwinsize(&*self.main, size);
                    }
                }
            }
        }
    }

    fn close(&mut self) {
        self.side = None;
        self.stop = None;
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.close();
        // The relay must not wait for a recorder.
        self.output = None;
        let end = self.thread.take().and_then(|thread| thread.join().ok());
        self.mode = None;
        self.screen.take_back(&end.unwrap_or_default());
    }
}

/// The state of the terminal after the last output of a command.
#[derive(Debug, Default)]
pub(crate) struct OutputEnd {
    screen: AlternateScreen,
    is_midline: bool,
}

impl OutputEnd {
    /// The control sequences that restore the terminal.
    pub(crate) fn reset(&self) -> String {
        match (self.screen.is_active(), self.screen.has_sequences()) {
            (true, _) => format!("{LEAVE_ALTERNATE}{RESET}"),
            (false, true) => RESET.to_owned(),
            (false, false) => String::new(),
        }
    }

    /// Whether the cursor is after text.
    pub(super) fn is_midline(&self) -> bool {
        self.is_midline
    }
}

/// Passes keys and output on.
struct Relay {
    main: Arc<OwnedFd>,
    /// It ends when the command has ended.
    stop: OwnedFd,
    sender: Sender<Vec<u8>>,
    /// Keys that the command has not accepted.
    keys: Vec<u8>,
    end: OutputEnd,
}

impl Relay {
    fn run(mut self) -> OutputEnd {
        // An error ends the relay: one of the terminals is gone.
        if self.pass_on().is_ok() {
            let _ = self.pass_rest();
        }
        self.end
    }

    /// Passes keys and output on until the command has ended.
    fn pass_on(&mut self) -> rustix::io::Result<()> {
        let stdin = io::stdin();
        loop {
            let (has_keys, mut wanted) = (!self.keys.is_empty(), PollFlags::IN);
            if has_keys {
                wanted |= PollFlags::OUT;
            }
            let for_keys = match has_keys {
                true => PollFlags::empty(),
                false => PollFlags::IN,
            };
            let mut fds = [
                PollFd::new(&self.stop, PollFlags::IN),
                PollFd::new(&*self.main, wanted),
                PollFd::new(&stdin, for_keys),
            ];
            match poll(&mut fds, None) {
                Err(Errno::INTR) => continue,
                polled => polled?,
            };
            let [stopped, output, keys] = fds.map(|fd| fd.revents());
            if output.contains(PollFlags::IN) {
                self.pass_output()?;
            }
            if !stopped.is_empty() {
                return Ok(());
            }
            if has_keys && output.contains(PollFlags::OUT) {
                self.pass_keys()?;
            }
            if keys.contains(PollFlags::IN) {
                self.keys = vec![0; PIECE_BYTES];
                let length = rustix::io::read(&stdin, &mut self.keys)?;
                self.keys.truncate(length);
                self.pass_keys()?;
            }
            if keys.intersects(PollFlags::HUP | PollFlags::ERR) {
                return Err(Errno::IO);
            }
        }
    }

    /// Passes on the output that the terminal still holds.
    fn pass_rest(&mut self) -> rustix::io::Result<()> {
        for _ in 0..MAX_LAST_PIECES {
            let mut fds = [PollFd::new(&*self.main, PollFlags::IN)];
            match poll(&mut fds, Some(&LAST_OUTPUT)) {
                Err(Errno::INTR) => continue,
                Ok(0) => return Ok(()),
                polled => polled?,
            };
            if !fds[0].revents().contains(PollFlags::IN) || self.pass_output()? == 0 {
                return Ok(());
            }
        }
        Ok(())
    }

    fn pass_keys(&mut self) -> rustix::io::Result<()> {
        match rustix::io::write(&*self.main, &self.keys) {
            Ok(length) => {
                self.keys.drain(..length);
                Ok(())
            }
            Err(Errno::AGAIN | Errno::INTR) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Reads one piece of output, shows it and sends it to the recorder. Returns its length.
    fn pass_output(&mut self) -> rustix::io::Result<usize> {
        let mut piece = vec![0; PIECE_BYTES];
        let length = match rustix::io::read(&*self.main, &mut piece) {
            Err(Errno::AGAIN | Errno::INTR) => return Ok(0),
            read => read?,
        };
        piece.truncate(length);
        let mut stdout = io::stdout().lock();
        let shown = stdout.write_all(&piece).and_then(|()| stdout.flush());
        shown.map_err(|_| Errno::IO)?;
        drop(stdout);
        let recorded = self.end.screen.push(&piece);
        if let (Some(last), false) = (recorded.last(), self.end.screen.is_active()) {
            self.end.is_midline = *last != b'\n';
        }
        if !recorded.is_empty() {
            // Without a recorder, the output is only shown.
            let _ = self.sender.blocking_send(recorded);
        }
        Ok(length)
    }
}
