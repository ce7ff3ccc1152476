//! A window of numbered lines from a stream, in constant memory.

use std::io::{self, BufRead};

use memchr::{memchr, memchr_iter};

use crate::file::budget::{Budget, Stop};

/// Characters of a line that are shown. The rest is truncated.
pub(super) const MAX_LINE_CHARS: usize = 2000;
/// Bytes of a line that are buffered: enough for [`MAX_LINE_CHARS`] characters and one more.
const KEPT: usize = 4 * (MAX_LINE_CHARS + 1);
/// Bytes of text after which a window ends, regardless of the requested number of lines.
const MAX_WINDOW_BYTES: usize = 1 << 20;

/// The line endings of the shown lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Endings {
    /// Line feeds, or no line ending.
    Lf,
    /// Carriage return and line feed.
    CrLf,
    /// Both kinds.
    Mixed,
}

/// The lines after a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Remaining {
    /// The number of lines.
    Lines(u64),
    /// An unknown number of lines, because the time limit was reached.
    Uncounted,
}

/// A window of lines.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Window {
    /// The lines, each with its number and a tab before it and a line feed after it.
    pub(super) text: String,
    /// The number of lines in `text`.
    pub(super) shown: u64,
    /// The lines after the window.
    pub(super) remaining: Remaining,
    /// The number of truncated lines.
    pub(super) cut: u64,
    /// Whether invalid UTF-8 or a NUL was replaced.
    pub(super) lossy: bool,
    /// The line endings.
    pub(super) endings: Endings,
    /// Whether the last line of the stream is shown and has no line feed.
    pub(super) unterminated: bool,
}

/// A line while it is read.
#[derive(Default)]
struct Line {
    kept: Vec<u8>,
    /// The length of the line without its ending.
    len: u64,
}

/// Reads at most `limit` lines from line `offset` (from 1) on. If the line does not exist, the number of lines
/// is returned instead.
///
/// # Errors
/// Errors of `reader`; [`io::ErrorKind::TimedOut`] if the window was not reached in time;
/// [`io::ErrorKind::Other`] if the call was cancelled.
pub(super) fn window(
    reader: &mut impl BufRead,
    offset: u64,
    limit: u64,
    budget: &Budget,
) -> io::Result<Result<Window, u64>> {
    let mut window = Window {
        text: String::new(),
        shown: 0,
        remaining: Remaining::Lines(0),
        cut: 0,
        lossy: false,
        endings: Endings::Lf,
        unterminated: false,
    };
    let mut crlf = 0;
    let mut before: u64 = 0;
    let mut line = Line::default();
    while window.shown < limit && window.text.len() < MAX_WINDOW_BYTES {
        match budget.spent() {
            Some(Stop::Cancelled) => return Err(io::ErrorKind::Other.into()),
            Some(Stop::Time) => return Err(io::ErrorKind::TimedOut.into()),
            None => {}
        }
        let buffer = reader.fill_buf()?;
        let inside = before + 1 >= offset;
        if buffer.is_empty() {
            if line.len > 0 && inside {
                window.push(&line, offset);
                window.unterminated = true;
            } else if line.len > 0 {
                before += 1;
            }
            break;
        }
        let end = memchr(b'\n', buffer);
        let part = &buffer[..end.unwrap_or(buffer.len())];
        if inside {
            let room = KEPT.saturating_sub(line.kept.len());
            line.kept.extend_from_slice(&part[..part.len().min(room)]);
        }
        line.len += part.len() as u64;
        let used = part.len() + usize::from(end.is_some());
        reader.consume(used);
        if end.is_some() {
            if inside {
                if line.len == line.kept.len() as u64 && line.kept.last() == Some(&b'\r') {
                    line.kept.pop();
                    line.len -= 1;
                    crlf += 1;
                }
                window.push(&line, offset);
            } else {
                before += 1;
            }
            line.kept.clear();
            line.len = 0;
        }
    }
    if window.shown == 0 {
        return Ok(Err(before));
    }
    window.endings = match crlf {
        0 => Endings::Lf,
        count if count + u64::from(window.unterminated) == window.shown => Endings::CrLf,
        _ => Endings::Mixed,
    };
    window.remaining = count(reader, budget)?;
    Ok(Ok(window))
}

/// Counts the remaining lines in `reader`.
fn count(reader: &mut impl BufRead, budget: &Budget) -> io::Result<Remaining> {
    let mut lines = 0;
    let mut open = false;
    loop {
        match budget.spent() {
            Some(Stop::Cancelled) => return Err(io::ErrorKind::Other.into()),
            Some(Stop::Time) => return Ok(Remaining::Uncounted),
            None => {}
        }
        let buffer = reader.fill_buf()?;
        if buffer.is_empty() {
            return Ok(Remaining::Lines(lines + u64::from(open)));
        }
        lines += memchr_iter(b'\n', buffer).count() as u64;
        open = buffer.last() != Some(&b'\n');
        let used = buffer.len();
        reader.consume(used);
    }
}

impl Window {
    fn push(&mut self, line: &Line, offset: u64) {
        use std::fmt::Write as _;
        let text = String::from_utf8_lossy(&line.kept);
        let (shown, cut) = cut(&text);
        // An invalid character that results from the truncation is after the shown part.
        self.lossy |= shown.contains('\0')
            || (matches!(text, std::borrow::Cow::Owned(_)) && shown.contains('\u{FFFD}'));
        let number = offset + self.shown;
        let _ = write!(self.text, "{number:>6}\t");
        if shown.contains('\0') {
            self.text.push_str(&shown.replace('\0', "\u{FFFD}"));
        } else {
            self.text.push_str(shown);
        }
        if cut {
            let _ = write!(
                self.text,
                " [line cut at {MAX_LINE_CHARS} characters; it has {} bytes]",
                line.len
            );
            self.cut += 1;
        }
        self.text.push('\n');
        self.shown += 1;
    }
}

/// Returns the first [`MAX_LINE_CHARS`] characters of `line`, and whether there are more.
pub(super) fn cut(line: &str) -> (&str, bool) {
    if line.len() <= MAX_LINE_CHARS {
        return (line, false);
    }
    match line.char_indices().nth(MAX_LINE_CHARS) {
        Some((end, _)) => (&line[..end], true),
        None => (line, false),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufReader, Read};
    use std::time::Duration;

    use proptest::prelude::*;
    use tokio_util::sync::CancellationToken;

    use super::*;

    fn budget() -> Budget {
        Budget::new(CancellationToken::new(), Duration::from_secs(60))
    }

    fn run(text: &[u8], offset: u64, limit: u64, buffer: usize) -> Result<Window, u64> {
        let mut reader = BufReader::with_capacity(buffer, text);
        window(&mut reader, offset, limit, &budget()).expect("no I/O")
    }

    /// Proves FILE-10.
    #[test]
    fn window_has_line_numbers_and_the_remaining_count() {
        let check = |text: &str, offset, limit, expect: &str, remaining| {
            for buffer in [1, 2, 3, 64] {
                let window = run(text.as_bytes(), offset, limit, buffer).expect("a window");
                assert_eq!(window.text, expect, "{text:?} {buffer}");
                assert_eq!(window.remaining, Remaining::Lines(remaining), "{text:?}");
            }
        };
        check("a\nb\nc\n", 1, 10, "     1\ta\n     2\tb\n     3\tc\n", 0);
        check("a\nb\nc", 2, 1, "     2\tb\n", 1);
        check("a\nb\nc\n", 2, 1, "     2\tb\n", 1);
        check("a\n\nc", 2, 2, "     2\t\n     3\tc\n", 0);
        check("\n", 1, 10, "     1\t\n", 0);
        check("a\r\nb\r\n", 1, 10, "     1\ta\n     2\tb\n", 0);
        check("a\rb\n", 1, 10, "     1\ta\rb\n", 0);
    }

    #[test]
    fn offset_past_the_end_returns_the_line_count() {
        assert_eq!(run(b"", 1, 5, 8), Err(0));
        assert_eq!(run(b"a\nb", 3, 5, 8), Err(2));
        assert_eq!(run(b"a\nb\n", 3, 5, 8), Err(2));
    }

    #[test]
    fn line_endings_are_detected() {
        let endings = |text: &[u8]| run(text, 1, 9, 8).expect("a window").endings;
        assert_eq!(endings(b"a\nb\n"), Endings::Lf);
        assert_eq!(endings(b"a"), Endings::Lf);
        assert_eq!(endings(b"a\r\nb\r\n"), Endings::CrLf);
        assert_eq!(endings(b"a\r\nb"), Endings::CrLf);
        assert_eq!(endings(b"a\r\nb\n"), Endings::Mixed);
    }

    /// Proves FILE-10, FILE-11.
    #[test]
    fn long_lines_are_cut_and_bad_bytes_replaced() {
        let long = "ä".repeat(2500) + "\nb\n";
        let window = run(long.as_bytes(), 1, 9, 64).expect("a window");
        assert_eq!((window.cut, window.shown, window.lossy), (1, 2, false));
        let first = window.text.lines().next().expect("a line");
        assert_eq!(first.matches('ä').count(), MAX_LINE_CHARS);
        assert!(
            first.ends_with("[line cut at 2000 characters; it has 5000 bytes]"),
            "{first}"
        );

        let window = run(b"caf\xe9\n", 1, 9, 64).expect("a window");
        assert_eq!(
            (window.text.as_str(), window.lossy),
            ("     1\tcaf\u{FFFD}\n", true)
        );
        let window = run("a \u{FFFD} that is there\n".as_bytes(), 1, 9, 64).expect("a window");
        assert!(!window.lossy);
    }

    /// A line without an end, with the given length.
    struct Endless(u64);

    impl Read for Endless {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let size = buffer
                .len()
                .min(usize::try_from(self.0).unwrap_or(usize::MAX));
            buffer[..size].fill(b'x');
            self.0 -= size as u64;
            Ok(size)
        }
    }

    /// Proves FILE-10.
    #[test]
    fn giant_line_takes_no_memory() {
        let mut reader = BufReader::with_capacity(1 << 16, Endless(1 << 28));
        let window = window(&mut reader, 1, 10, &budget())
            .expect("no I/O")
            .expect("a window");
        assert!(window.text.len() < 3000);
        assert!(window.text.contains("it has 268435456 bytes"));
    }

    #[test]
    fn window_ends_at_its_cap_and_counts_the_rest() {
        let text = format!("{}\n", "y".repeat(1500)).repeat(2000);
        let first = run(text.as_bytes(), 1, 5000, 1 << 16).expect("a window");
        assert!(first.text.len() < MAX_WINDOW_BYTES + 3000);
        assert_eq!(first.remaining, Remaining::Lines(2000 - first.shown));
    }

    #[test]
    fn cancelled_call_stops() {
        let cancel = CancellationToken::new();
        cancel.cancel();
        let budget = Budget::new(cancel, Duration::from_secs(60));
        assert!(window(&mut &b"a\n"[..], 1, 1, &budget).is_err());
    }

    proptest! {
        /// Proves FILE-10.
        #[test]
        fn consecutive_windows_are_the_whole_file(
            lines in proptest::collection::vec("[a-zé\r]{0,5}", 0..12),
            limit in 1_u64..5,
            buffer in 1_usize..9,
        ) {
            let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
            let mut seen = Vec::new();
            let mut offset = 1;
            loop {
                match run(text.as_bytes(), offset, limit, buffer) {
                    Ok(window) => {
                        seen.extend(window.text.split_terminator('\n').map(|line| line[7..].to_owned()));
                        offset += window.shown;
                    }
                    Err(count) => {
                        prop_assert_eq!(count, lines.len() as u64);
                        break;
                    }
                }
            }
            let expect: Vec<String> = lines
                .iter()
                .map(|line| line.strip_suffix('\r').unwrap_or(line).to_owned())
                .collect();
            prop_assert_eq!(seen, expect);
        }
    }
}
