//! Keys of a dialog, read from the terminal itself: a single key acts without Enter ([`super::burst`]).
//!
//! Every exit, a panic included, restores the mode of the terminal. A reader of keys holds the [`Keyboard`], so that
//! an abandoned dialog has ended before another reader starts.

use std::io::{self, IsTerminal as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Signal, getpid, kill_process};
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr,
};
use zeph_tools::Confirmation;
use zeph_tools::gate::Grant;
use zeph_tools::layers::grants::GrantScope;

use super::burst::{Bursts, Input, read};
use super::call_question::REASON;
use super::line::{self, Line};
use super::remember_dialog::{Choice, choose};
use super::screen::columns;
use crate::pipe::pipe;
use crate::view::permission_answers::{Answer, AnswerOption, default_option, options};

/// The most bytes of a reason.
const REASON_BYTES: usize = 8 * 1024;
/// How long an interrupted dialog waits to be abandoned.
const ABANDON: Timespec = Timespec {
    tv_sec: 2,
    tv_nsec: 0,
};

const NOW: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 0,
};

/// The decision of the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Pressed {
    /// Run it.
    Once,
    /// Run it and its like until the session ends.
    Session,
    /// Run it and what these cover from now on.
    Always(Vec<Grant>, GrantScope),
    /// Do not run it, with an optional reason.
    No(Option<String>),
}

/// The right to read keys.
#[derive(Debug, Clone, Default)]
pub(crate) struct Keyboard(Arc<Readers>);

#[derive(Debug, Default)]
struct Readers {
    state: Mutex<ReaderState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct ReaderState {
    is_held: bool,
    /// Readers that wait. The reader in the background makes way for them.
    waiting: usize,
}

/// The right to read keys, returned when dropped.
pub(super) struct Held(Arc<Readers>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.lock().is_held = false;
        self.0.changed.notify_all();
    }
}

impl Readers {
    fn lock(&self) -> MutexGuard<'_, ReaderState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Keyboard {
    /// Waits until no other reader holds the keyboard.
    pub(super) fn hold(&self) -> Held {
        let mut state = self.0.lock();
        state.waiting += 1;
        while state.is_held {
            let changed = self.0.changed.wait(state);
            state = changed.unwrap_or_else(PoisonError::into_inner);
        }
        state.waiting -= 1;
        state.is_held = true;
        Held(Arc::clone(&self.0))
    }

    /// Holds the keyboard in the background if no other reader wants it. Otherwise waits for at most `wait`.
    pub(super) fn hold_in_background(&self, wait: Duration) -> Option<Held> {
        let mut state = self.0.lock();
        if state.is_held || state.waiting > 0 {
            let changed = self.0.changed.wait_timeout(state, wait);
            state = changed.unwrap_or_else(PoisonError::into_inner).0;
        }
        if state.is_held || state.waiting > 0 {
            return None;
        }
        state.is_held = true;
        Some(Held(Arc::clone(&self.0)))
    }

    /// Whether another reader waits for the keyboard.
    pub(super) fn is_wanted(&self) -> bool {
        self.0.lock().waiting > 0
    }

    /// Asks on standard input. A failure counts as no.
    ///
    /// `show` is called after earlier input has been discarded, and again for each change of the display. A `plain`
    /// terminal gets no escape sequences. Dropping the future ends the dialog.
    pub(super) async fn ask(
        &self,
        asked: Confirmation,
        plain: bool,
        show: impl Fn(Show<'_>) + Send + 'static,
    ) -> Pressed {
        let pressed = self.read(move |terminal, stop| {
            dialog(
                terminal,
                stop,
                (&asked, plain),
                show,
                interrupt_this_process,
            )
        });
        pressed.await.unwrap_or(Pressed::No(None))
    }

    /// Runs a dialog on standard input, on a thread of its own. `None` if it fails. Dropping the future ends the dialog
    /// through the pipe that it gets.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        dialog: impl FnOnce(&io::Stdin, &OwnedFd) -> rustix::io::Result<T> + Send + 'static,
    ) -> Option<T> {
        let (stop, _abandoned_when_dropped) = pipe().ok()?;
        let keyboard = self.clone();
        let dialog = tokio::task::spawn_blocking(move || {
            let _reading = keyboard.hold();
            dialog(&io::stdin(), &stop)
        });
        dialog.await.ok().and_then(Result::ok)
    }
}

/// Whether standard input is a terminal that is still connected.
pub(crate) fn is_connected() -> bool {
    let stdin = io::stdin();
    let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
    let gone = poll(&mut fds, Some(&NOW)).is_ok()
        && fds[0]
            .revents()
            .intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL);
    stdin.is_terminal() && !gone
}

/// Sends SIGINT to this process, as the terminal does for Ctrl-C outside of dialogs.
fn interrupt_this_process() {
    let _ = kill_process(getpid(), Signal::INT);
}

/// A terminal's mode, restored when dropped.
pub(super) struct Mode<T: AsFd> {
    terminal: T,
    before: Termios,
}

impl<T: AsFd> Mode<T> {
    /// Changes the mode with `change`.
    ///
    /// # Errors
    /// If it is not a terminal, or is disconnected.
    pub(super) fn change(
        terminal: T,
        action: OptionalActions,
        change: impl FnOnce(&mut Termios),
    ) -> rustix::io::Result<Self> {
        let before = tcgetattr(&terminal)?;
        let mut mode = before.clone();
        change(&mut mode);
        tcsetattr(&terminal, action, &mode)?;
        Ok(Self { terminal, before })
    }

    /// Turns off the echo of keys while a turn runs; typed text waits for the next prompt.
    ///
    /// # Errors
    /// If it is not a terminal, or is disconnected.
    pub(super) fn without_echo(terminal: T) -> rustix::io::Result<Self> {
        Self::change(terminal, OptionalActions::Now, |mode| {
            mode.local_modes.remove(LocalModes::ECHO);
        })
    }
}

impl<T: AsFd> Drop for Mode<T> {
    fn drop(&mut self) {
        let _ = tcsetattr(&self.terminal, OptionalActions::Now, &self.before);
    }
}

/// Makes the terminal pass on single keys, and discards earlier input. Others may write meanwhile.
///
/// # Errors
/// If it is not a terminal, or is disconnected.
pub(super) fn single_keys(terminal: &impl AsFd) -> rustix::io::Result<Mode<BorrowedFd<'_>>> {
    Mode::change(terminal.as_fd(), OptionalActions::Flush, single_key_mode)
}

/// Changes a mode so that the terminal passes on single keys. Output modes are not changed.
pub(super) fn single_key_mode(mode: &mut Termios) {
    mode.local_modes
        .remove(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG | LocalModes::IEXTEN);
    mode.special_codes[SpecialCodeIndex::VMIN] = 1;
    mode.special_codes[SpecialCodeIndex::VTIME] = 0;
}

/// The part of the dialog to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Show<'a> {
    /// The question.
    Question,
    /// Its keys, once more.
    Keys,
    /// The selected answer.
    Select(usize),
    /// That the input is ignored, and the keys.
    Ignored,
    /// The whole text of the question.
    Expand,
    /// The reason so far, with the column of the cursor.
    Reason(&'a str, usize),
    /// A text of the dialog.
    Text(&'a str),
    /// Ctrl-Z: the process stops. After it continues, the question is shown again.
    Suspend,
}

/// The hint after input that is not a decision.
pub(super) const ONE_KEY: &str = "ignored: press only one of the keys of the question";
const CTRL_D: u8 = 0x04;
const CTRL_O: u8 = 0x0f;
const ESC: u8 = 0x1b;

/// The whole dialog.
fn dialog(
    terminal: &impl AsFd,
    stop: &OwnedFd,
    (asked, plain): (&Confirmation, bool),
    show: impl Fn(Show<'_>),
    interrupt: impl FnOnce(),
) -> rustix::io::Result<Pressed> {
    // Abandoned before it began, a question changes nothing.
    if is_abandoned(stop)? {
        return Ok(Pressed::No(None));
    }
    let mode = single_keys(terminal)?;
    // Abandoned before it began, a question is not shown.
    if is_abandoned(stop)? {
        return Ok(Pressed::No(None));
    }
    show(Show::Question);
    let options = options(asked);
    let mut selected = default_option(&options);
    let mut bursts = Bursts::default();
    let key = loop {
        let key = match bursts.next(terminal, stop)? {
            Input::End => break Key::Answer(Answer::No),
            Input::Interrupt => break Key::Interrupt,
            Input::Suspend => {
                show(Show::Suspend);
                continue;
            }
            // A plain terminal shows no selection.
            Input::Other => None,
            Input::Next | Input::Previous if plain => None,
            step @ (Input::Next | Input::Previous) => {
                let steps = if step == Input::Next {
                    1
                } else {
                    options.len() - 1
                };
                selected = (selected + steps) % options.len();
                show(Show::Select(selected));
                continue;
            }
            Input::Key(CTRL_O) => {
                show(Show::Expand);
                continue;
            }
            Input::Key(b'\r' | b'\n') if !plain => options
                .get(selected)
                .map(|option| Key::Answer(option.answer)),
            Input::Key(byte) => key(byte, &options),
        };
        match key {
            None => show(Show::Ignored),
            Some(Key::Answer(Answer::Always)) => {
                match choose(terminal, stop, (asked, plain), &show)? {
                    Choice::Chosen(grants, scope) => return Ok(Pressed::Always(grants, scope)),
                    Choice::Back => show(Show::Keys),
                    Choice::Key(key) => break key,
                }
            }
            Some(Key::Answer(Answer::NoBecause)) if !plain => {
                match type_reason(terminal, stop, &show)? {
                    Typed::Done(reason) => return Ok(Pressed::No(reason)),
                    Typed::Back => show(Show::Keys),
                    Typed::Interrupt => break Key::Interrupt,
                }
            }
            Some(key) => break key,
        }
    };
    drop(mode);
    match key {
        Key::Answer(Answer::Once) => Ok(Pressed::Once),
        Key::Answer(Answer::Session) => Ok(Pressed::Session),
        Key::Answer(Answer::No | Answer::Always) => Ok(Pressed::No(None)),
        Key::Answer(Answer::NoBecause) => {
            let _mode = Mode::change(terminal.as_fd(), OptionalActions::Now, |mode| {
                mode.local_modes |= LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG;
            })?;
            show(Show::Reason("", 0));
            Ok(Pressed::No(read_reason(terminal, stop)?))
        }
        Key::Interrupt => {
            interrupt();
            // The handler of SIGINT cancels the turn and drops this dialog. Otherwise the call is refused.
            let _ = wait(terminal, stop, PollFlags::empty(), Some(&ABANDON));
            Ok(Pressed::No(None))
        }
    }
}

/// A key that means something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    Answer(Answer),
    Interrupt,
}

/// The meaning of a key; `None` for a key without one, such as an unavailable decision.
fn key(byte: u8, options: &[AnswerOption]) -> Option<Key> {
    if matches!(byte, CTRL_D | ESC) {
        return Some(Key::Answer(Answer::No));
    }
    let key = char::from(byte).to_ascii_lowercase();
    let option = options
        .iter()
        .find(|option| option.key == key || option.answer.alias() == Some(key))?;
    Some(Key::Answer(option.answer))
}

/// The end of the input of a reason.
enum Typed {
    Done(Option<String>),
    Back,
    Interrupt,
}

/// Reads a reason that is edited in place.
fn type_reason(
    terminal: &impl AsFd,
    stop: &OwnedFd,
    show: &impl Fn(Show<'_>),
) -> rustix::io::Result<Typed> {
    let mut line = Line::default();
    loop {
        let (text, cursor) = line.drawn(columns().saturating_sub(REASON.len()));
        show(Show::Reason(&text, cursor));
        let Some(bytes) = read(terminal, stop, None)? else {
            return Ok(Typed::Done(None));
        };
        match line.typed(&bytes) {
            line::Typed::More => {}
            line::Typed::Back => return Ok(Typed::Back),
            line::Typed::Interrupt => return Ok(Typed::Interrupt),
            line::Typed::Suspend => show(Show::Suspend),
            line::Typed::Done => {
                let text = line.text().trim().to_owned();
                return Ok(Typed::Done((!text.is_empty()).then_some(text)));
            }
        }
    }
}

/// Reads a line that the terminal edits.
fn read_reason(terminal: &impl AsFd, stop: &OwnedFd) -> rustix::io::Result<Option<String>> {
    let mut line = Vec::new();
    let mut bytes = [0_u8; 1024];
    while line.len() < REASON_BYTES && wait(terminal, stop, PollFlags::IN, None)? {
        match rustix::io::read(terminal, &mut bytes) {
            Ok(0) => break,
            Ok(length) => {
                line.extend_from_slice(&bytes[..length]);
                if bytes[..length].contains(&b'\n') {
                    break;
                }
            }
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(error) => return Err(error),
        }
    }
    let text = String::from_utf8_lossy(&line).trim().to_owned();
    Ok((!text.is_empty()).then_some(text))
}

/// Whether the caller no longer waits for the decision.
pub(super) fn is_abandoned(stop: &OwnedFd) -> rustix::io::Result<bool> {
    let mut fds = [PollFd::new(stop, PollFlags::IN)];
    Ok(poll(&mut fds, Some(&NOW))? > 0)
}

/// Waits for keys; `false` if the dialog was abandoned or the time is up.
fn wait(
    terminal: &impl AsFd,
    stop: &OwnedFd,
    interest: PollFlags,
    timeout: Option<&Timespec>,
) -> rustix::io::Result<bool> {
    loop {
        let mut fds = [
            PollFd::new(stop, PollFlags::IN),
            PollFd::new(terminal, interest),
        ];
        match poll(&mut fds, timeout) {
            Ok(0) => return Ok(false),
            Ok(_) => return Ok(fds[0].revents().is_empty()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use rustix::fs::{Mode as FileMode, OFlags, open};
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

    use super::*;

    fn pty() -> (OwnedFd, OwnedFd) {
        let main = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&main).unwrap();
        unlockpt(&main).unwrap();
        let name = ptsname(&main, Vec::new()).unwrap();
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let side = open(name.as_c_str(), flags, FileMode::empty()).unwrap();
        (main, side)
    }

    struct Ended {
        pressed: Pressed,
        interrupted: bool,
        restored: bool,
        /// How often input was ignored.
        ignored: usize,
    }

    /// Runs a dialog. The first of `typed` is written when the question is shown, each further one when the previous
    /// one was ignored, and `reason` when the dialog asks for it.
    fn run(before: &str, typed: &[&str], reason: &str) -> Ended {
        let (main, side) = pty();
        let modes = tcgetattr(&side).unwrap().local_modes;
        rustix::io::write(&main, before.as_bytes()).unwrap();
        if !before.is_empty() {
            // The kernel passes it on in its own time.
            poll(&mut [PollFd::new(&side, PollFlags::IN)], None).unwrap();
        }
        let (stop, keep) = pipe().unwrap();
        let mut keep = Some(keep);
        let mut interrupted = false;
        let write = |keys: &str| {
            let written = rustix::io::write(&main, keys.as_bytes());
            assert_eq!(written, Ok(keys.len()));
        };
        let ignored = std::cell::Cell::new(0);
        let show = |show: Show<'_>| match show {
            Show::Question => write(typed[0]),
            Show::Reason("", _) => write(reason),
            Show::Ignored => {
                ignored.set(ignored.get() + 1);
                // Typed text ends with a pause.
                std::thread::park_timeout(std::time::Duration::from_millis(1100));
                write(typed.get(ignored.get()).copied().unwrap_or("n"));
            }
            _ => {}
        };
        let pressed = dialog(
            &side,
            &stop,
            (&Confirmation::default(), false),
            show,
            || {
                interrupted = true;
                keep = None;
            },
        )
        .unwrap();
        let restored = tcgetattr(&side).unwrap().local_modes == modes;
        Ended {
            pressed,
            interrupted,
            restored,
            ignored: ignored.get(),
        }
    }

    /// Proves AGT-5a, PERM-7a: a key acts without Enter. Keys typed before the question do not.
    #[test]
    fn one_key_answers() {
        let check = |typed, reason, pressed: Pressed| {
            let ended = run("y1\n", &[typed], reason);
            assert_eq!(ended.pressed, pressed, "{typed:?}");
            assert!(ended.restored && !ended.interrupted);
        };
        check("1", "", Pressed::Once);
        check("y", "", Pressed::Once);
        check("4", "", Pressed::No(None));
        check("n", "", Pressed::No(None));
        check("\x1b", "", Pressed::No(None));
        check("\x04", "", Pressed::No(None));
        check(
            "5",
            "use trash, not rm\n",
            Pressed::No(Some("use trash, not rm".to_owned())),
        );
        check("5", "\n", Pressed::No(None));
        check("5", "grün\n", Pressed::No(Some("grün".to_owned())));
    }

    /// Proves PERM-7, PERM-7a: text that contains the key of a decision is not a decision, and the question stays
    /// open.
    #[test]
    fn text_does_not_answer() {
        let check = |text: &str| {
            let ended = run("", &[text, "n"], "");
            assert_eq!(ended.pressed, Pressed::No(None), "{text:?}");
            assert!(!ended.interrupted && ended.restored, "{text:?}");
            assert_eq!(ended.ignored, 1, "{text:?}");
        };
        std::thread::scope(|scope| {
            for text in [
                "why?",
                "yes\n",
                "1\n",
                "y\r",
                "11",
                "x1",
                "2341",
                "q",
                "2",
                "3",
                "é",
                "jé1",
                "\x1b[3~",
                "\x1b[200~y\x1b[201~",
                "\x1b[200~1\n\x1b[201~",
                "\x1b[200~5\x03\x1b[201~",
            ] {
                scope.spawn(move || check(text));
            }
        });
    }

    /// Proves AGT-5a, CLI-4b: arrows select an answer, Enter takes it, and the first selected answer declines.
    #[test]
    fn arrows_and_enter_answer() {
        let check = |keys: &[&str], pressed: Pressed| {
            let (main, side) = pty();
            let (stop, _keep) = pipe().unwrap();
            let left = std::cell::RefCell::new(keys.iter());
            let show = |show: Show<'_>| {
                if matches!(show, Show::Question | Show::Select(_))
                    && let Some(key) = left.borrow_mut().next()
                {
                    rustix::io::write(&main, key.as_bytes()).unwrap();
                }
            };
            let asked = Confirmation::default();
            let answer = dialog(&side, &stop, (&asked, false), show, || {}).unwrap();
            assert_eq!(answer, pressed, "{keys:?}");
        };
        check(&["\r"], Pressed::No(None));
        check(&["\x1b[A", "\r"], Pressed::Once);
        check(&["\x1b[B", "\x1b[B", "\r"], Pressed::Once);
        check(&["\x1bOA", "\x1bOB", "\n"], Pressed::No(None));
    }

    /// Proves CLI-4d: Ctrl-Z suspends at a question and in its reason, and answers nothing.
    #[test]
    fn ctrl_z_suspends_and_the_question_remains() {
        let (main, side) = pty();
        let (stop, _keep) = pipe().unwrap();
        let keys = std::cell::RefCell::new(["\x1a", "5", "\x1a", "\r"].into_iter());
        let suspended = std::cell::Cell::new(0);
        let show = |show: Show<'_>| {
            if show == Show::Suspend {
                suspended.set(suspended.get() + 1);
            }
            if let Some(key) = keys.borrow_mut().next() {
                rustix::io::write(&main, key.as_bytes()).unwrap();
            }
        };
        let asked = Confirmation::default();
        let answer = dialog(&side, &stop, (&asked, false), show, || {}).unwrap();
        assert_eq!(answer, Pressed::No(None));
        assert_eq!(suspended.get(), 2);
    }

    #[test]
    fn ctrl_c_interrupts_with_the_mode_restored() {
        for typed in ["\x03", "wh\x03"] {
            let ended = run("", &[typed], "");
            assert_eq!(ended.pressed, Pressed::No(None));
            assert!(ended.interrupted && ended.restored);
        }
    }

    #[test]
    fn abandoned_dialog_ends() {
        let (_main, side) = pty();
        let modes = tcgetattr(&side).unwrap().local_modes;
        let (stop, keep) = pipe().unwrap();
        let keep = std::cell::Cell::new(Some(keep));
        let show = |_: Show<'_>| drop(keep.take());
        let pressed = dialog(&side, &stop, (&Confirmation::default(), false), show, || {}).unwrap();
        assert_eq!(pressed, Pressed::No(None));
        assert_eq!(tcgetattr(&side).unwrap().local_modes, modes);
    }

    #[test]
    fn closed_terminal_refuses() {
        let (main, side) = pty();
        let (stop, _keep) = pipe().unwrap();
        let (send, receive) = mpsc::channel();
        std::thread::spawn(move || {
            let main = std::cell::Cell::new(Some(main));
            let show = |_: Show<'_>| drop(main.take());
            let asked = Confirmation::default();
            let _ = send.send(dialog(&side, &stop, (&asked, false), show, || {}));
        });
        let ended = receive
            .recv_timeout(std::time::Duration::from_secs(10))
            .unwrap();
        assert!(matches!(ended, Ok(Pressed::No(None)) | Err(_)));
    }
}
