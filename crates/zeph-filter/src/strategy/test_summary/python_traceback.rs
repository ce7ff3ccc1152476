//! Tracebacks of Python: lines `File "path", line N, in name`, each with its source below.

use super::super::excerpt::keep_cut;
use crate::line::{Line, OwnedLine, Sink};

/// Bytes of a line.
const MAX_LINE_BYTES: usize = 2000;

/// Returns true if a path belongs to Python or to an installed package.
pub(super) fn is_library(path: &str) -> bool {
    [
        "site-packages/",
        "dist-packages/",
        "/lib/python3",
        "lib/python3.",
        "<frozen ",
        "\\Lib\\",
    ]
    .iter()
    .any(|part| path.contains(part))
}

/// Returns true if a frame is in a test runner. A failure there is a failed assertion.
fn is_harness(frame: &str) -> bool {
    ["/unittest/", "/_pytest/", "/pluggy/"]
        .iter()
        .any(|part| frame.contains(part))
}

/// Emits the frames of own code, or the last library frame if the traceback ends in a library.
#[derive(Debug)]
pub(super) struct Frames {
    left: usize,
    /// The lines of the last library frame.
    last: Vec<OwnedLine>,
    own: bool,
    inside: bool,
}

impl Frames {
    /// Creates a parser that shows at most `most` frames.
    pub(super) fn new(most: usize) -> Self {
        Self {
            left: most.max(1),
            last: Vec::new(),
            own: false,
            inside: false,
        }
    }

    /// Processes the next line. Returns true if it is part of a frame.
    pub(super) fn line(&mut self, line: Line<'_>, out: &mut dyn Sink) -> bool {
        let text = line.text.trim_ascii_start();
        let text = text.strip_prefix("| ").map_or(text, str::trim_ascii_start);
        if let Some(rest) = text.strip_prefix("File \"")
            && let Some((path, rest)) = rest.split_once('"')
            && rest.starts_with(", line ")
        {
            self.inside = true;
            self.last.clear();
            self.own = !is_library(path) && self.left > 0;
            if self.own {
                self.left -= 1;
                keep_cut(line, MAX_LINE_BYTES, out);
            } else {
                self.last.push(line.into());
            }
            return true;
        }
        if !self.inside {
            return false;
        }
        if text.is_empty() || !line.text.starts_with([' ', '|']) {
            self.finish(out);
            return false;
        }
        // Marks below the source are omitted.
        if text.bytes().all(|sign| b"~^ |".contains(&sign)) {
            return true;
        }
        if self.own {
            keep_cut(line, MAX_LINE_BYTES, out);
        } else if self.last.len() < 3 {
            self.last.push(line.into());
        }
        true
    }

    /// Ends the traceback. If it ends in a library, the last frame is shown.
    pub(super) fn finish(&mut self, out: &mut dyn Sink) {
        if self
            .last
            .first()
            .is_some_and(|frame| is_harness(&frame.text))
        {
            self.last.clear();
        }
        for held in self.last.drain(..) {
            keep_cut(held.line(), MAX_LINE_BYTES, out);
        }
        self.inside = false;
    }
}
