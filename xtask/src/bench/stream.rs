//! Streams on the screen: 10,000 lines of Markdown in a terminal with 200 columns, while keys are pressed.
//!
//! The processor time is that of the process from the first line on the screen to the last one. The time of a key is
//! that from its write to the terminal until the terminal gets its echo.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rustix::fs::{Mode, OFlags, open};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use super::MIB;
use super::model::{Answer, Model};
use super::report::{Figure, Unit, median};
use super::subject::{Home, Memory};

/// The lines of the text.
const LINES: usize = 10_000;
/// The time between two lines.
const PAUSE: Duration = Duration::from_micros(2500);
/// The time between two keys.
const KEYS_APART: Duration = Duration::from_millis(700);
/// Characters that mark the first and the last line. Nothing else on the screen contains them.
const MARKS: (char, char) = ('‡', '⁂');
/// The keys. No text on the screen contains their characters.
const KEYS: std::ops::RangeInclusive<char> = 'α'..='ω';
/// The time without output after which the turn has ended.
const SILENCE: Duration = Duration::from_secs(1);
/// The time limit of a stream.
const LIMIT: Duration = Duration::from_secs(300);
const COLUMNS: u16 = 200;
const ROWS: u16 = 60;
/// The clock ticks of a second in `/proc`.
const TICKS: f64 = 100.0;

/// Measures both interfaces.
pub(super) fn measure(binary: &Path, figures: &mut Vec<Figure>) -> Result<()> {
    for (name, args) in [("line interface", &[][..]), ("full screen", &["--tui"])] {
        let streamed = stream(binary, args).with_context(|| format!("the stream, {name}"))?;
        let figure = |what: &str, unit, value| {
            Figure::new(
                format!("{name}, {LINES} streamed lines, {what}"),
                unit,
                value,
            )
        };
        let share = 100.0 * streamed.cpu / streamed.took.as_secs_f64();
        figures.push(figure("of a core", Unit::Percent, share).at_most(25.0));
        let peak = streamed.memory.peak as f64 / MIB;
        figures.push(
            figure("peak memory", Unit::MiB, peak)
                .at_most(38.1)
                .beside("before", streamed.before.peak as f64 / MIB)
                .beside("text", streamed.text as f64 / MIB),
        );
        let slowest = streamed.keys.iter().max().copied().unwrap_or_default();
        figures.push(
            figure("slowest key", Unit::Ms, ms(slowest))
                .at_most(50.0)
                .beside("median", median(&streamed.keys))
                .beside("time", ms(streamed.took))
                .beside("end after the server's", ms(streamed.behind)),
        );
    }
    Ok(())
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// The observations of a stream.
struct Streamed {
    /// The time from the first line to the last one.
    took: Duration,
    /// The time from the last byte of the server to the last line.
    behind: Duration,
    /// Seconds of processor time.
    cpu: f64,
    before: Memory,
    memory: Memory,
    keys: Vec<Duration>,
    /// Bytes of the text.
    text: usize,
}

fn stream(binary: &Path, args: &[&str]) -> Result<Streamed> {
    let lines = text();
    let home = Home::new()?;
    let model = Model::start(vec![Answer::paced(&lines, PAUSE).held()])?;
    home.configure(&model)?;
    let mut screen = Screen::start(&home, binary, args)?;
    model.next_held(LIMIT).context("no request came")?;
    let pid = screen.child.id();
    let before = Memory::of(pid);
    model.release();
    let start = screen.wait_for(MARKS.0)?;
    let cpu = processor_time(pid)?;
    let (mut keys, mut waiting): (Vec<Duration>, VecDeque<char>) = (Vec::new(), KEYS.collect());
    let mut next = start + KEYS_APART;
    let mut pressed: Option<(char, Instant)> = None;
    let end = loop {
        let due = pressed.map_or(next, |(_, at)| at + LIMIT);
        let shown = screen.next(due)?;
        match (pressed, shown) {
            (Some((key, at)), Some(shown)) if shown.text.contains(key) => {
                keys.push(shown.at.saturating_duration_since(at));
                pressed = None;
                next = shown.at + KEYS_APART;
            }
            (Some((key, _)), None) => anyhow::bail!("the key {key} had no echo"),
            (None, None) => match waiting.pop_front() {
                Some(key) => {
                    pressed = Some((key, Instant::now()));
                    write!(screen.keys, "{key}")?;
                }
                None => next += LIMIT,
            },
            _ => {}
        }
        if let Some(at) = screen.seen(MARKS.1) {
            break at;
        }
    };
    let cpu = processor_time(pid)? - cpu;
    // The end of the turn needs memory as well.
    while screen.next(Instant::now() + SILENCE)?.is_some() {}
    let memory = Memory::of(pid);
    screen.stop()?;
    let observed = model.observed()?;
    let ended = observed.exchanges.first().context("no request")?.ended;
    Ok(Streamed {
        took: end - start,
        behind: end.saturating_duration_since(ended),
        cpu,
        before,
        memory,
        keys,
        text: lines.iter().map(String::len).sum(),
    })
}

/// The lines of the text: paragraphs, lists and code in turn.
fn text() -> Vec<String> {
    let words = "the quick brown fox jumps over the lazy dog and the parser reads every word of it once more ";
    let mut lines: Vec<String> = (0..LINES)
        .map(|nth| match nth % 20 {
            0 => format!("## Part {nth}\n"),
            2 | 4 | 6 => format!("{nth}: *{words}* and `{words}`.\n"),
            8..=12 => format!("- item {nth} {words}{words}\n"),
            14 => "```rust\n".to_owned(),
            15..=17 => format!("let value_{nth} = compute(&input[{nth}], \"step {nth}\")?;\n"),
            18 => "```\n".to_owned(),
            _ => "\n".to_owned(),
        })
        .collect();
    lines[0] = format!("## {} begins\n", MARKS.0);
    lines.push(format!("\nThe end {}", MARKS.1));
    lines
}

/// The processor time of a process in seconds.
fn processor_time(pid: u32) -> Result<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).context("needs /proc")?;
    let (_, fields) = stat.rsplit_once(')').context("/proc/PID/stat")?;
    let ticks = fields.split_whitespace().skip(11).take(2);
    let ticks: Result<Vec<f64>, _> = ticks.map(str::parse).collect();
    Ok(ticks?.iter().sum::<f64>() / TICKS)
}

/// Output of the terminal.
struct Shown {
    at: Instant,
    text: String,
}

/// The binary at a pseudo terminal. Dropping it ends the process.
struct Screen {
    child: Child,
    keys: File,
    shown: Receiver<Shown>,
    /// The times at which the marks were shown.
    seen: [Option<Instant>; 2],
}

impl Screen {
    /// Starts the binary with a prompt.
    fn start(home: &Home, binary: &Path, args: &[&str]) -> Result<Self> {
        let main = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        grantpt(&main)?;
        unlockpt(&main)?;
        let name = ptsname(&main, Vec::new())?;
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let side = open(name.as_c_str(), flags, Mode::empty())?;
        let size = Winsize {
            ws_row: ROWS,
            ws_col: COLUMNS,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&main, size)?;
        let mut command: Command = home.command(Path::new("setsid"));
        command
            .arg("--ctty")
            .arg(binary)
            .args(args)
            .arg("write a long text")
            .env("TERM", "xterm-256color")
            .stdin(Stdio::from(side.try_clone()?))
            .stdout(Stdio::from(side.try_clone()?))
            .stderr(Stdio::from(side));
        let child = command.spawn().context("setsid")?;
        let keys = File::from(main);
        let (output, answers) = (keys.try_clone()?, keys.try_clone()?);
        let (sender, shown) = channel();
        std::thread::spawn(move || read(output, answers, &sender));
        Ok(Self {
            child,
            keys,
            shown,
            seen: [None; 2],
        })
    }

    /// The next output; `None` if it is silent until `due`.
    fn next(&mut self, due: Instant) -> Result<Option<Shown>> {
        match self
            .shown
            .recv_timeout(due.saturating_duration_since(Instant::now()))
        {
            Ok(shown) => {
                for (mark, seen) in [MARKS.0, MARKS.1].into_iter().zip(&mut self.seen) {
                    if seen.is_none() && shown.text.contains(mark) {
                        *seen = Some(shown.at);
                    }
                }
                Ok(Some(shown))
            }
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => anyhow::bail!("the program has ended"),
        }
    }

    /// The time at which the mark was shown at first.
    fn seen(&self, mark: char) -> Option<Instant> {
        self.seen[usize::from(mark == MARKS.1)]
    }

    fn wait_for(&mut self, mark: char) -> Result<Instant> {
        let due = Instant::now() + LIMIT;
        loop {
            if let Some(at) = self.seen(mark) {
                return Ok(at);
            }
            ensure!(self.next(due)?.is_some(), "{mark} is not on the screen");
        }
    }

    /// Ends the program as a closed window does.
    fn stop(mut self) -> Result<()> {
        kill_process(Pid::from_child(&self.child), Signal::HUP)?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Passes the output on, and responds to the query for the position of the cursor as a terminal does.
fn read(mut output: File, mut answers: File, shown: &Sender<Shown>) {
    const QUERY: &str = "\x1b[6n";
    let mut bytes = vec![0; 64 * 1024];
    let mut rest = Vec::new();
    while let Ok(length) = output.read(&mut bytes) {
        if length == 0 {
            return;
        }
        rest.extend_from_slice(&bytes[..length]);
        // A character may be cut at the end of a read.
        let end = match std::str::from_utf8(&rest) {
            Ok(text) => text.len(),
            Err(error) => error.valid_up_to(),
        };
        let text = String::from_utf8_lossy(&rest[..end]).into_owned();
        rest.drain(..end);
        if text.contains(QUERY) {
            let _ = write!(answers, "\x1b[1;1R");
        }
        let at = Instant::now();
        if shown.send(Shown { at, text }).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_and_keys_are_not_part_of_the_text() {
        let lines = text();
        let all = lines.concat();
        assert_eq!(all.matches(MARKS.0).count(), 1);
        assert_eq!(all.matches(MARKS.1).count(), 1);
        assert!(lines.last().is_some_and(|last| last.contains(MARKS.1)));
        assert!(!KEYS.into_iter().any(|key| all.contains(key)));
    }
}
