//! Progress of a download in one line of the terminal.

use std::io::{IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

/// The minimum time between two updates of the line.
const PACE: Duration = Duration::from_millis(150);
/// The width of the bar in characters.
const BAR: u64 = 24;

/// A progress line. Without a terminal at standard error, it prints nothing.
#[derive(Debug)]
pub(super) struct Progress {
    label: String,
    shown: Option<Instant>,
    is_on: bool,
}

impl Progress {
    /// Creates a line that begins with `label`.
    pub(super) fn new(label: &str, quiet: bool) -> Self {
        Self {
            label: label.to_owned(),
            shown: None,
            is_on: !quiet && std::io::stderr().is_terminal(),
        }
    }

    /// Shows that `at` bytes have arrived. `whole` is the size of the file, if it is known.
    pub(super) fn show(&mut self, at: u64, whole: Option<u64>) {
        let is_due = self.shown.is_none_or(|shown| shown.elapsed() >= PACE);
        if !self.is_on || !(is_due || whole == Some(at)) {
            return;
        }
        self.shown = Some(Instant::now());
        write(&format!("\r\x1b[K{}", line(&self.label, at, whole)));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.shown.is_some() {
            write("\r\x1b[K");
        }
    }
}

fn write(text: &str) {
    let mut stderr = std::io::stderr();
    // A closed standard error has no reader, so the error is ignored.
    let _ = stderr
        .write_all(text.as_bytes())
        .and_then(|()| stderr.flush());
}

fn line(label: &str, at: u64, whole: Option<u64>) -> String {
    let mega = |bytes: u64| bytes as f64 / 1e6;
    let Some(whole) = whole.filter(|whole| *whole > 0) else {
        return format!("{label} {:.1} MB", mega(at));
    };
    let done = (at.min(whole) * BAR / whole) as usize;
    format!(
        "{label} [{}{}] {:.1} of {:.1} MB",
        "#".repeat(done),
        "-".repeat(BAR as usize - done),
        mega(at),
        mega(whole)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_line_has_a_bar_and_sizes() {
        for (at, whole, expect) in [
            (
                0,
                Some(4_000_000),
                "x [------------------------] 0.0 of 4.0 MB",
            ),
            (
                1_000_000,
                Some(4_000_000),
                "x [######------------------] 1.0 of 4.0 MB",
            ),
            (
                9_000_000,
                Some(4_000_000),
                "x [########################] 9.0 of 4.0 MB",
            ),
            (1_500_000, None, "x 1.5 MB"),
            (1_500_000, Some(0), "x 1.5 MB"),
        ] {
            assert_eq!(line("x", at, whole), expect);
        }
    }
}
