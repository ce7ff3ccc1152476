//! The binary at a terminal: a PTY with an emulated screen.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::num::NonZeroU16;
use std::os::fd::{AsFd as _, OwnedFd};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{InputModes, LocalModes, OutputModes, Winsize, tcgetattr, tcsetwinsize};

use super::{DEADLINE, Home, KEY, wait_for};

const ROWS: NonZeroU16 = NonZeroU16::new(40).unwrap();
const COLUMNS: NonZeroU16 = NonZeroU16::new(100).unwrap();

/// The time after which the reader checks for the end of the connection.
const LOOK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 20_000_000,
};

/// The mode flags of a terminal.
type Modes = (InputModes, OutputModes, LocalModes);

/// The binary at a terminal. Dropping it kills the process.
pub(crate) struct Terminal {
    child: Child,
    keys: File,
    /// The child's side, which stays open so that its mode can be read.
    side: OwnedFd,
    before: Modes,
    screen: Arc<Mutex<vt100::Parser>>,
    raw: Arc<Mutex<Vec<u8>>>,
    /// The length of the output when Enter was last pressed.
    entered: usize,
    /// Reads the output.
    reader: Option<JoinHandle<()>>,
    /// The end of the connection to the terminal.
    is_cut: Arc<AtomicBool>,
}

/// A shell with job control: it reports that the binary has stopped, and continues it after a line of input.
const JOB: &str = "set -m; \"$0\" \"$@\"; echo \"stopped with $?\"; read -r line; fg > /dev/null; echo \"ended with $?\"";

impl Terminal {
    #[track_caller]
    pub(crate) fn start(home: &Home, args: &[&str]) -> Self {
        Self::sized(home, args, ROWS, COLUMNS)
    }

    /// Starts the binary with other environment variables; `None` removes one.
    #[track_caller]
    pub(crate) fn under(home: &Home, args: &[&str], env: &[(&str, Option<&str>)]) -> Self {
        Self::of(home, args, env, ROWS, COLUMNS)
    }

    /// Starts the binary at a terminal of another size.
    #[track_caller]
    pub(crate) fn sized(home: &Home, args: &[&str], rows: NonZeroU16, columns: NonZeroU16) -> Self {
        Self::of(home, args, &[], rows, columns)
    }

    /// Starts the binary as a job of a shell, which can be stopped and continued.
    #[track_caller]
    pub(crate) fn job(home: &Home, args: &[&str]) -> Self {
        let mut command = command(home);
        command.args(["bash", "-c", JOB, env!("CARGO_BIN_EXE_zeph")]);
        command.args(args);
        Self::spawn(command, &[], ROWS, COLUMNS)
    }

    /// Starts the binary so that it does not get the signal of a closed terminal.
    #[cfg(target_os = "linux")]
    #[track_caller]
    pub(crate) fn without_hangup(home: &Home, args: &[&str]) -> Self {
        let mut command = command(home);
        command.args(["env", "--block-signal=HUP", env!("CARGO_BIN_EXE_zeph")]);
        command.args(args);
        Self::spawn(command, &[], ROWS, COLUMNS)
    }

    #[track_caller]
    fn of(
        home: &Home,
        args: &[&str],
        env: &[(&str, Option<&str>)],
        rows: NonZeroU16,
        columns: NonZeroU16,
    ) -> Self {
        let mut command = command(home);
        command.arg(env!("CARGO_BIN_EXE_zeph")).args(args);
        Self::spawn(command, env, rows, columns)
    }

    #[track_caller]
    fn spawn(
        mut command: Command,
        env: &[(&str, Option<&str>)],
        rows: NonZeroU16,
        columns: NonZeroU16,
    ) -> Self {
        let main = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&main).unwrap();
        unlockpt(&main).unwrap();
        let name = ptsname(&main, Vec::new()).unwrap();
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let side = open(name.as_c_str(), flags, Mode::empty()).unwrap();
        let size = Winsize {
            ws_row: rows.get(),
            ws_col: columns.get(),
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&main, size).unwrap();
        let before = modes(&side);
        let stream = || Stdio::from(side.try_clone().unwrap());
        for (name, value) in env {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let child = command
            .stdin(stream())
            .stdout(stream())
            .stderr(stream())
            .spawn()
            .expect("the binary starts");
        let keys = File::from(main);
        let screen = Arc::new(Mutex::new(vt100::Parser::new(rows, columns, 0)));
        let raw = Arc::new(Mutex::new(Vec::new()));
        let (shown, kept) = (Arc::clone(&screen), Arc::clone(&raw));
        let (mut output, mut answers) = (keys.try_clone().unwrap(), keys.try_clone().unwrap());
        let is_cut = Arc::new(AtomicBool::new(false));
        let cut = Arc::clone(&is_cut);
        let reader = std::thread::spawn(move || {
            let mut bytes = [0_u8; 4096];
            loop {
                let mut fds = [PollFd::new(&output, PollFlags::IN)];
                let ready = poll(&mut fds, Some(&LOOK));
                if cut.load(Ordering::SeqCst) {
                    return;
                }
                if ready == Ok(0) {
                    continue;
                }
                let Ok(length @ 1..) = output.read(&mut bytes) else {
                    return;
                };
                let piece = &bytes[..length];
                let mut screen = shown.lock().unwrap();
                screen.process(piece);
                kept.lock().unwrap().extend_from_slice(piece);
                // A terminal responds to the query for the cursor position.
                for _ in 0..piece
                    .windows(4)
                    .filter(|window| window == b"\x1b[6n")
                    .count()
                {
                    let (row, column) = screen.screen().cursor_position();
                    let _ = write!(answers, "\x1b[{};{}R", row + 1, column + 1);
                }
            }
        });
        Self {
            child,
            keys,
            side,
            before,
            screen,
            raw,
            entered: 0,
            reader: Some(reader),
            is_cut,
        }
    }

    /// Closes the other end of the terminal, as a closed window does, and waits for the end of the process.
    #[track_caller]
    pub(crate) fn closes(mut self) -> ExitStatus {
        self.is_cut.store(true, Ordering::SeqCst);
        self.reader.take().unwrap().join().unwrap();
        // No descriptor of this end remains.
        self.keys = File::open("/dev/null").unwrap();
        wait_for("the end", || self.child.try_wait().unwrap())
    }

    /// Whether the alternate screen is visible.
    pub(crate) fn is_full_screen(&self) -> bool {
        self.screen.lock().unwrap().screen().alternate_screen()
    }

    pub(crate) fn type_keys(&mut self, keys: &str) {
        if keys.ends_with('\r') {
            self.entered = self.raw.lock().unwrap().len();
        }
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Types a key that acts without a text, and waits until the prompt reads again.
    #[track_caller]
    pub(crate) fn type_key_at_prompt(&mut self, key: &str) {
        const READS: &str = "\x1b[?2004h";
        let reads = |terminal: &Self| terminal.raw().matches(READS).count();
        let before = reads(self);
        self.type_keys(key);
        wait_for("the next prompt", || (reads(self) > before).then_some(()));
        self.prompts("");
    }

    /// Changes the size of the terminal.
    pub(crate) fn resize(&self, rows: NonZeroU16, columns: NonZeroU16) {
        let size = Winsize {
            ws_row: rows.get(),
            ws_col: columns.get(),
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        let mut screen = self.screen.lock().unwrap();
        screen.set_size(rows, columns);
        tcsetwinsize(&self.keys, size).unwrap();
    }

    pub(crate) fn text(&self) -> String {
        self.screen.lock().unwrap().screen().contents()
    }

    /// The grid of the emulator.
    pub(crate) fn grid(&self) -> vt100::Screen {
        self.screen.lock().unwrap().screen().clone()
    }

    /// The complete output, including escape sequences.
    pub(crate) fn raw(&self) -> String {
        String::from_utf8_lossy(&self.raw.lock().unwrap()).into_owned()
    }

    /// Whether keys are not echoed, as in a turn.
    pub(crate) fn echoes_nothing(&self) -> bool {
        !modes(&self.side).2.contains(LocalModes::ECHO)
    }

    /// Waits until the screen shows `words`, which may be wrapped between two words.
    #[track_caller]
    pub(crate) fn shows(&self, words: &str) {
        self.until(&format!("{words:?}"), |text| {
            text.contains(words) || unwrapped(text).contains(words)
        });
    }

    /// Waits until the last line is a prompt that contains `text`.
    #[track_caller]
    pub(crate) fn prompts(&self, text: &str) {
        const READS: &[u8] = b"\x1b[?2004h";
        let expect = format!("› {text}");
        self.until(&format!("the prompt {expect:?}"), |_| {
            let is_raw = !modes(&self.side).2.contains(LocalModes::ICANON);
            // A prompt from before the last Enter does not count: the editor must have started to read again.
            let is_next = !text.is_empty()
                || self.entered == 0
                || self.raw.lock().unwrap()[self.entered..]
                    .windows(READS.len())
                    .any(|window| window == READS);
            // The screen is read after both conditions are known.
            let screen = self.text();
            let last = screen.trim_end().lines().last().unwrap_or_default();
            // The permission mode precedes the sign.
            let last = last.find('›').map_or(last, |at| &last[at..]);
            is_raw && is_next && last.trim_end() == expect.trim_end()
        });
    }

    /// Waits until the screen fulfils the condition.
    #[track_caller]
    pub(crate) fn until(&self, what: &str, found: impl Fn(&str) -> bool) {
        self.until_within(DEADLINE, what, found);
    }

    /// As [`Terminal::until`], with another time limit.
    #[track_caller]
    pub(crate) fn until_within(&self, limit: Duration, what: &str, found: impl Fn(&str) -> bool) {
        let start = Instant::now();
        loop {
            let text = self.text();
            if found(&text) {
                return;
            }
            assert!(
                start.elapsed() < limit,
                "{what} is not on the screen:\n{text}"
            );
            std::thread::park_timeout(Duration::from_millis(2));
        }
    }

    /// Ends the session by Ctrl-D. Waits for the editor first, because a terminal that is not raw consumes
    /// the key.
    #[track_caller]
    pub(crate) fn leaves(mut self) -> (ExitStatus, String) {
        self.prompts("");
        self.type_keys("\x04");
        self.ends()
    }

    /// Waits for the end, and asserts that the terminal mode is restored.
    #[track_caller]
    pub(crate) fn ends(mut self) -> (ExitStatus, String) {
        let status = wait_for("the end", || self.child.try_wait().unwrap());
        assert_eq!(
            modes(&self.side),
            self.before,
            "the terminal's mode is as it was"
        );
        // The last output is read shortly after the process has ended.
        let raw = wait_for("the end of bracketed paste", || {
            let before = self.raw.lock().unwrap().len();
            std::thread::park_timeout(std::time::Duration::from_millis(150));
            if before != self.raw.lock().unwrap().len() {
                return None;
            }
            let raw = String::from_utf8_lossy(&self.raw.lock().unwrap()).into_owned();
            let (on, off) = (raw.rfind("\x1b[?2004h"), raw.rfind("\x1b[?2004l"));
            (on < off || on.is_none()).then_some(raw)
        });
        (status, raw)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A text without line breaks and indents.
fn unwrapped(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn modes(side: &OwnedFd) -> Modes {
    let mode = tcgetattr(side.as_fd()).unwrap();
    (mode.input_modes, mode.output_modes, mode.local_modes)
}

/// A command that starts the program in its arguments as a session leader with its standard input as the controlling terminal.
#[allow(
    clippy::disallowed_methods,
    reason = "the terminal's binary is started here"
)]
fn command(home: &Home) -> Command {
    let mut command = Command::new("setsid");
    command
        .arg("--ctty")
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", home.home())
        .env("XDG_DATA_HOME", home.data())
        .env("TMPDIR", home.tmp())
        .env("TERM", "xterm-256color")
        .env("TZ", "UTC")
        .env("TEST_KEY", KEY)
        .current_dir(home.project());
    command
}
