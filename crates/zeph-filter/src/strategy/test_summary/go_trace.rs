//! Goroutine stacks of a Go program after a panic, a deadlock, a data race or a signal, with the reason.

use memchr::memchr_iter;

use super::super::excerpt::keep_cut;
use crate::line::{Line, OwnedLine, Sink};

/// Distinct stacks that are shown. Further stacks are omitted.
const MAX_STACKS: usize = 8;
const MAX_LINE_BYTES: usize = 1000;

/// Processes the lines of goroutine stacks.
#[derive(Debug)]
pub(super) struct Trace {
    most_frames: usize,
    /// True after a reason: stacks follow.
    inside: bool,
    /// True inside the report of a race, between its rules of `=`.
    race: bool,
    rule: Option<OwnedLine>,
    /// The header of the current stack: `goroutine 7 [running]:`.
    header: Option<OwnedLine>,
    frames: Vec<OwnedLine>,
    /// The function whose place may follow.
    function: OwnedLine,
    has_function: bool,
    stacks: Vec<(String, u64)>,
    beyond: u64,
    number: u64,
}

const REASONS: &[&str] = &[
    "panic: ",
    "\tpanic: ",
    "fatal error: ",
    "runtime: ",
    "SIGQUIT: ",
    "unexpected fault ",
];

/// Returns true if a place is in the standard library or runtime of Go.
fn is_library(place: &str) -> bool {
    const DIRECTORIES: &[&str] = &[
        "go/src/",
        "go-1.",
        "go1.",
        "libexec/src/",
        "pkg/mod/golang.org/toolchain",
        "src/testing/",
        "src/runtime/",
    ];
    let begins = |rest: &str| DIRECTORIES.iter().any(|start| rest.starts_with(start));
    memchr_iter(b'/', place.as_bytes()).any(|slash| begins(&place[slash + 1..]))
        || place.contains("_testmain.go")
}

impl Trace {
    /// Creates a parser that shows at most `most_frames` frames per stack.
    pub(super) fn new(most_frames: usize) -> Self {
        Self {
            most_frames: most_frames.max(1),
            inside: false,
            race: false,
            rule: None,
            header: None,
            frames: Vec::new(),
            function: OwnedLine::default(),
            has_function: false,
            stacks: Vec::new(),
            beyond: 0,
            number: 0,
        }
    }

    /// Processes the next line. Returns true if it is part of a stack or of its reason.
    pub(super) fn line(&mut self, line: Line<'_>, out: &mut dyn Sink) -> bool {
        let text = line.text;
        if let Some(rule) = self.rule.take()
            && text != "WARNING: DATA RACE"
        {
            out.keep(rule.line());
        }
        let race = matches!(text.as_bytes(), [b'=' | b'W', ..]);
        if race && text == "==================" {
            if self.race {
                self.finish(out);
                self.race = false;
            } else {
                self.rule = Some(line.into());
            }
            return true;
        }
        if race && text == "WARNING: DATA RACE" {
            self.race = true;
            self.inside = true;
            out.keep(line);
            return true;
        }
        if REASONS.iter().any(|start| text.starts_with(start)) {
            self.end_stack(out);
            self.inside = true;
            self.number = line.number;
            keep_cut(line, 2 * MAX_LINE_BYTES, out);
            return true;
        }
        if !self.inside {
            return false;
        }
        if text.is_empty() {
            self.end_stack(out);
            return true;
        }
        if self.race {
            self.race_line(line, out);
            return true;
        }
        if text.starts_with("goroutine ") && text.ends_with(':') {
            self.end_stack(out);
            self.header = Some(line.into());
            return true;
        }
        if self.header.is_some() {
            if let Some(place) = text.strip_prefix('\t') {
                if std::mem::take(&mut self.has_function)
                    && self.frames.len() < 2 * self.most_frames
                    && !is_library(place)
                {
                    self.frames.push(self.function.clone());
                    self.frames.push(line.into());
                }
                return true;
            }
            if text.ends_with(')') || text.starts_with("created by ") {
                self.hold_function(line);
                return true;
            }
            if text.starts_with("...") {
                return true;
            }
        } else if text.starts_with('\t')
            || text.starts_with('[')
            || text.starts_with("running tests:")
        {
            // These lines belong to the reason: further panics, the signal, running tests.
            keep_cut(line, MAX_LINE_BYTES, out);
            return true;
        }
        self.finish(out);
        false
    }

    /// Processes a line in the report of a race. Frames are indented by two spaces, their places by six.
    fn race_line(&mut self, line: Line<'_>, out: &mut dyn Sink) {
        let text = line.text;
        if let Some(place) = text.strip_prefix("      ") {
            if std::mem::take(&mut self.has_function) && !is_library(place) {
                out.keep(self.function.line());
                out.keep(line);
            }
        } else if text.starts_with("  ") {
            self.hold_function(line);
        } else {
            self.has_function = false;
            out.keep(line);
        }
    }

    fn hold_function(&mut self, line: Line<'_>) {
        self.has_function = true;
        self.function.set(line);
    }

    fn end_stack(&mut self, out: &mut dyn Sink) {
        self.has_function = false;
        let Some(header) = self.header.take() else {
            return;
        };
        let frames = std::mem::take(&mut self.frames);
        self.number = header.number;
        if frames.is_empty() {
            return;
        }
        // Goroutines at the same place differ only by their numbers and addresses.
        let state = header.text.split_once('[').map_or("", |(_, state)| state);
        let length = frames.iter().map(|frame| frame.text.len()).sum::<usize>();
        let mut key = String::with_capacity(state.len() + length);
        key.push_str(state);
        for frame in frames.iter().filter(|frame| frame.text.starts_with('\t')) {
            key.push_str(&frame.text);
        }
        if let Some((_, times)) = self.stacks.iter_mut().find(|(known, _)| *known == key) {
            *times += 1;
            return;
        }
        if self.stacks.len() >= MAX_STACKS {
            self.beyond += 1;
            return;
        }
        self.stacks.push((key, 0));
        keep_cut(header.line(), MAX_LINE_BYTES, out);
        for frame in &frames {
            keep_cut(frame.line(), MAX_LINE_BYTES, out);
        }
    }

    /// Ends the stacks.
    pub(super) fn finish(&mut self, out: &mut dyn Sink) {
        if let Some(rule) = self.rule.take() {
            out.keep(rule.line());
        }
        self.end_stack(out);
        let same: u64 = self.stacks.iter().map(|(_, times)| times).sum();
        if same > 0 {
            out.say(
                self.number,
                &format!("[… {same} goroutines at the same places …]"),
            );
        }
        if self.beyond > 0 {
            out.say(self.number, &format!("[… {} goroutines …]", self.beyond));
        }
        self.stacks.clear();
        self.beyond = 0;
        self.inside = false;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn library_frame_is_found_in_any_directory(place in "(/go|/src|/testing/|/runtime/|/go1|/|[.]|-1|a){0,4}") {
            let parts = ["/go/src/", "/go-1.", "/go1.", "/src/testing/", "/src/runtime/"];
            let expect = parts.iter().any(|part| place.contains(part));
            prop_assert_eq!(is_library(&place), expect);
        }
    }
}
