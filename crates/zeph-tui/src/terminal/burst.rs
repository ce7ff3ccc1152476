//! The input of one dialog in bursts, to distinguish single keys from pasted text.
//!
//! All bytes that arrive without a pause are one burst. Only a key that is alone in its burst answers a dialog. A
//! paste, typed text, and a key that another follows immediately answer nothing.

use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// The time without a further key after which a key counts.
const SETTLE: Duration = Duration::from_millis(300);
/// The time without a key after which typed text is over.
const PAUSE: Duration = Duration::from_millis(1000);
/// The time between a key and Enter below which both were pasted.
const PASTE: Duration = Duration::from_millis(15);
/// The maximum number of bytes of a burst that are inspected.
const MAX_BYTES: usize = 4096;

const PASTE_BEGINS: &[u8] = b"\x1b[200~";
const PASTE_ENDS: &[u8] = b"\x1b[201~";
const CTRL_C: u8 = 0x03;
const CTRL_Z: u8 = 0x1a;

/// The input that a dialog acts on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Input {
    /// One key, alone.
    Key(u8),
    /// The arrow down or right: it decides nothing, so it counts at once.
    Next,
    /// The arrow up or left.
    Previous,
    /// Ctrl-C, at any position.
    Interrupt,
    /// Ctrl-Z: it decides nothing, so it counts immediately.
    Suspend,
    /// Other input: several keys, a paste.
    Other,
    /// The terminal is closed, or no caller waits for the decision.
    End,
}

/// Reads bursts.
#[derive(Debug, Default)]
pub(super) struct Bursts {
    /// The time of the last key of typed text: no key counts until a pause.
    typing: Option<Instant>,
}

impl Bursts {
    /// Waits for the next input.
    ///
    /// # Errors
    /// If the terminal cannot be read.
    pub(super) fn next(
        &mut self,
        terminal: &impl AsFd,
        stop: &OwnedFd,
    ) -> rustix::io::Result<Input> {
        let Some(first) = read(terminal, stop, None)? else {
            return Ok(Input::End);
        };
        if let Some(step) = arrow(&first) {
            return Ok(step);
        }
        if first == [CTRL_Z] {
            return Ok(Input::Suspend);
        }
        let typing = self.typing.take();
        let typing = typing.is_some_and(|last| last.elapsed() < PAUSE);
        let mut burst = Burst::default();
        burst.add(&first);
        let mut read_at = Instant::now();
        loop {
            if burst.interrupts {
                return Ok(Input::Interrupt);
            }
            // A paste ends with its end mark, even if it arrives slowly.
            let wait = if burst.pasting { PAUSE } else { SETTLE };
            match read(terminal, stop, Some(wait))? {
                None if is_over(terminal, stop)? => return Ok(Input::End),
                None => break,
                Some(more) => {
                    burst.enter = matches!(more.as_slice(), b"\r" | b"\n")
                        && burst.bytes.len() == 1
                        && read_at.elapsed() >= PASTE;
                    burst.add(&more);
                    read_at = Instant::now();
                }
            }
        }
        let key = burst.key().filter(|_| !typing);
        if key.is_none() && burst.is_text() {
            self.typing = Some(Instant::now());
        }
        Ok(key.map_or(Input::Other, Input::Key))
    }
}

/// The step of an arrow key.
fn arrow(bytes: &[u8]) -> Option<Input> {
    match bytes {
        b"\x1b[B" | b"\x1bOB" | b"\x1b[C" | b"\x1bOC" => Some(Input::Next),
        b"\x1b[A" | b"\x1bOA" | b"\x1b[D" | b"\x1bOD" => Some(Input::Previous),
        _ => None,
    }
}

/// The bytes that arrived without a pause.
#[derive(Debug, Default)]
struct Burst {
    bytes: Vec<u8>,
    /// Within a paste.
    pasting: bool,
    /// Part of it was pasted.
    pasted: bool,
    /// It is one key, and Enter after it.
    enter: bool,
    /// It has Ctrl-C in it, outside of a paste.
    interrupts: bool,
}

impl Burst {
    fn add(&mut self, bytes: &[u8]) {
        let before = self.bytes.len();
        let room = MAX_BYTES.saturating_sub(before);
        self.bytes
            .extend_from_slice(&bytes[..bytes.len().min(room)]);
        let last = |mark: &[u8]| {
            let windows = self.bytes.windows(mark.len());
            windows.enumerate().rfind(|(_, part)| *part == mark)
        };
        let begun = last(PASTE_BEGINS).map(|(at, _)| at);
        let ended = last(PASTE_ENDS).map(|(at, _)| at);
        self.pasted |= begun.is_some();
        self.pasting = begun.is_some() && begun > ended;
        self.interrupts |= !self.pasted && bytes.contains(&CTRL_C);
    }

    /// The key, if it is alone.
    fn key(&self) -> Option<u8> {
        match self.bytes.as_slice() {
            [key] => Some(*key),
            [key, _] if self.enter => Some(*key),
            _ => None,
        }
    }

    /// Whether it is typed or pasted text. A function key, such as an arrow, is not.
    fn is_text(&self) -> bool {
        self.pasted || !self.bytes.starts_with(b"\x1b")
    }
}

/// Whether no caller waits for the decision any longer, or the terminal is closed.
pub(super) fn is_over(terminal: &impl AsFd, stop: &OwnedFd) -> rustix::io::Result<bool> {
    let mut fds = [
        PollFd::new(stop, PollFlags::IN),
        PollFd::new(terminal, PollFlags::empty()),
    ];
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    poll(&mut fds, Some(&now))?;
    let gone = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
    Ok(!fds[0].revents().is_empty() || fds[1].revents().intersects(gone))
}

/// Waits for the bytes of one read. `None` if the terminal is closed, the caller no longer waits, or the time is
/// over.
///
/// # Errors
/// If the terminal cannot be read.
pub(super) fn read(
    terminal: &impl AsFd,
    stop: &OwnedFd,
    wait: Option<Duration>,
) -> rustix::io::Result<Option<Vec<u8>>> {
    let deadline = wait.map(|wait| Instant::now() + wait);
    let mut bytes = [0_u8; 256];
    loop {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        let mut fds = [
            PollFd::new(stop, PollFlags::IN),
            PollFd::new(terminal, PollFlags::IN),
        ];
        match poll(&mut fds, left.as_ref()) {
            Ok(0) => return Ok(None),
            Ok(_) if !fds[0].revents().is_empty() => return Ok(None),
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(error) => return Err(error),
        }
        match rustix::io::read(terminal, &mut bytes) {
            Ok(0) => return Ok(None),
            Ok(length) => return Ok(Some(bytes[..length].to_vec())),
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The key of the pieces of a burst, the time between them in milliseconds.
    fn key(pieces: &[&[u8]], apart: u64) -> Option<u8> {
        let mut burst = Burst::default();
        for (at, piece) in pieces.iter().enumerate() {
            burst.enter = at > 0
                && matches!(*piece, b"\r" | b"\n")
                && burst.bytes.len() == 1
                && Duration::from_millis(apart) >= PASTE;
            burst.add(piece);
        }
        burst.key()
    }

    /// Proves PERM-7a: only a single key is a decision.
    #[test]
    fn only_a_single_key_counts() {
        let check = |pieces: &[&[u8]], apart, expect| {
            assert_eq!(key(pieces, apart), expect, "{pieces:?}");
        };
        check(&[b"y"], 0, Some(b'y'));
        check(&[b"1"], 0, Some(b'1'));
        check(&[b"\x1b"], 0, Some(0x1b));
        check(&[b"y", b"\r"], 120, Some(b'y'));
        check(&[b"1", b"\n"], 120, Some(b'1'));
        check(&[b"1", b"\n"], 1, None);
        for text in [
            "y\n", "1\n", "1\r", "yes\n", "yy", "11", "why?", "y1", "\x1b[A", "\x1bOA", "\x1by",
            "é", "1é", " y", "y ",
        ] {
            check(&[text.as_bytes()], 0, None);
        }
        check(&[b"w", b"h", b"y", b"?"], 100, None);
        check(&[b"y", b"e", b"s", b"\r"], 100, None);
        check(&[b"\x1b[200~y\x1b[201~"], 0, None);
        check(&[b"\x1b[200~", b"y", b"\x1b[201~"], 100, None);
        check(&["é".as_bytes()], 0, None);
        check(&[b"\x1b", b"[A"], 50, None);
    }

    #[test]
    fn paste_is_detected_until_its_end() {
        let mut burst = Burst::default();
        burst.add(b"\x1b[200~y\x03");
        assert!(burst.pasting && burst.pasted && !burst.interrupts);
        burst.add(b"\x1b[201~");
        assert!(!burst.pasting && burst.is_text());
        let mut burst = Burst::default();
        burst.add(b"ab\x03");
        assert!(burst.interrupts);
        let mut arrow = Burst::default();
        arrow.add(b"\x1b[A");
        assert!(!arrow.is_text());
    }
}
