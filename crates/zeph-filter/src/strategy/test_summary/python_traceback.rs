//! Tracebacks of Python: `File "path", line N, in name`, the source below it.

use super::super::excerpt::keep_cut;
use crate::find::Find as _;
use crate::line::{Line, OwnedLine, Sink};

/// Bytes of a line.
const MAX_LINE_BYTES: usize = 2000;

/// Whether a path belongs to Python or to what is installed.
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
    .any(|part| path.place_of(part).is_some())
}

/// Whether a frame is of what runs tests: where it fails, an assertion was wrong.
fn is_harness(frame: &str) -> bool {
    ["/unittest/", "/_pytest/", "/pluggy/"]
        .iter()
        .any(|part| frame.place_of(part).is_some())
}

/// Hands on the frames of own code, and the last one of all.
#[derive(Debug)]
pub(super) struct Frames {
    left: usize,
    /// The lines of the last frame of a library.
    last: Vec<OwnedLine>,
    own: bool,
    inside: bool,
}

impl Frames {
    /// At most `most` frames.
    pub(super) fn new(most: usize) -> Self {
        Self {
            left: most.max(1),
            last: Vec::new(),
            own: false,
            inside: false,
        }
    }

    /// The next line; whether it is of a frame.
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
        // Signs under the source add nothing.
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

    /// No frame follows: the last one of a library, where it failed, stays.
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
