//! Parser for one failure of pytest: frames with statement and place, the message, and the captured output.

use memchr::memchr_iter;

use super::super::excerpt::{Excerpt, keep_cut};
use super::pytest::rule;
use super::pytest_message::Message;
use super::python_traceback::{Frames, is_library};
use crate::line::{Line, OwnedLine, Sink};

/// Bytes of a line.
const MAX_LINE_BYTES: usize = 2000;
/// Places of own code before the place of the failure.
const MAX_PLACES: usize = 8;
const MAX_BRIEF_FRAMES: usize = 2;
/// First and last lines of the captured output of a failing test.
const PRINTED: (usize, usize) = (5, 8);
/// Last lines of a failure that has neither message nor place.
const UNKNOWN: usize = 40;

/// Processes the lines of one failure.
#[derive(Debug)]
pub(super) struct Failure {
    brief: bool,
    /// The statement that is shown together with its place.
    statement: Option<OwnedLine>,
    /// The last frame, its number of consecutive repetitions, and the number of its last line.
    frame: Option<(String, u64, u64)>,
    places: usize,
    /// The last place after the shown ones, with its source. It is shown if the message follows.
    last: Option<(OwnedLine, Option<OwnedLine>)>,
    /// True if the message began in the current frame.
    message: bool,
    said: Message,
    /// The captured output.
    printed: Option<Excerpt>,
    /// Other lines, for a failure with an unknown form.
    unknown: Excerpt,
    understood: bool,
    /// True if the source of the last place follows.
    source: bool,
    frames: Frames,
}

impl Failure {
    /// Creates a failure. `brief`: only message and place are shown.
    pub(super) fn new(brief: bool, most_frames: usize) -> Self {
        Self {
            brief,
            statement: None,
            frame: None,
            places: 0,
            last: None,
            message: false,
            said: Message::new(brief),
            printed: None,
            unknown: Excerpt::new(0, UNKNOWN),
            understood: false,
            source: false,
            frames: Frames::new(if brief { 2 } else { most_frames }),
        }
    }

    /// Processes the next line.
    pub(super) fn line(&mut self, line: Line<'_>, out: &mut dyn Sink) {
        let text = line.text;
        if text.starts_with('-')
            && let Some(title) = rule(text, '-')
            && title.starts_with("Captured ")
        {
            self.end_frame(out);
            self.end_printed(out);
            if !self.brief {
                let text = format!("-- {title} --");
                out.keep(Line {
                    text: &text,
                    ..line
                });
            }
            self.printed = Some(Excerpt::new(PRINTED.0, PRINTED.1));
            return;
        }
        if let Some(printed) = &mut self.printed {
            if !text.is_empty() && !self.brief {
                printed.line(line, out);
            }
            return;
        }
        if self.frames.line(line, out) {
            self.understood = true;
            return;
        }
        let source = std::mem::take(&mut self.source);
        if !text.starts_with('E') {
            self.said.end(out);
        }
        match text.as_bytes() {
            [] => {}
            [b'E', b' ', ..] | [b'E'] => {
                self.understood = true;
                self.end_repeats(out);
                self.tell_last(out);
                if let Some(statement) = self.statement.take()
                    && !self.brief
                {
                    out.keep(statement.line());
                }
                self.message = true;
                self.said.line(line, out);
            }
            [b'>', b' ', ..] => self.statement = Some(line.into()),
            [b'_', b' ', b'_', ..] => self.statement = None,
            [b'!', ..] => keep_cut(line, MAX_LINE_BYTES, out),
            [b' ', ..] => {
                if source && text.starts_with("    ") && !self.brief {
                    keep_cut(line, MAX_LINE_BYTES, out);
                } else if let Some((_, source @ None)) = &mut self.last {
                    *source = Some(line.into());
                } else {
                    self.rest(line, out);
                }
            }
            _ => match place(text) {
                Some((path, what)) => self.place(line, path, what, out),
                None if is_cause(text) => {
                    self.end_frame(out);
                    out.keep(line);
                }
                None => self.rest(line, out),
            },
        }
    }

    /// Records a line that is shown only if the failure has an unknown form.
    fn rest(&mut self, line: Line<'_>, out: &mut dyn Sink) {
        if !self.understood {
            self.unknown.line(line, out);
        }
    }

    fn place(&mut self, line: Line<'_>, path: &str, what: &str, out: &mut dyn Sink) {
        let raised =
            std::mem::take(&mut self.message) || (!what.is_empty() && !what.starts_with("in "));
        let statement = self.statement.take();
        if raised {
            self.end_repeats(out);
            self.understood = true;
            keep_cut(line, MAX_LINE_BYTES, out);
            return;
        }
        if is_library(path) {
            return;
        }
        if let Some((last, times, number)) = &mut self.frame
            && last == line.text
        {
            *times += 1;
            *number = line.number;
            return;
        }
        self.end_repeats(out);
        self.frame = Some((line.text.to_owned(), 1, line.number));
        self.places += 1;
        let most = if self.brief {
            MAX_BRIEF_FRAMES
        } else {
            MAX_PLACES
        };
        if self.places > most {
            self.last = what.starts_with("in ").then(|| (line.into(), None));
            return;
        }
        if self.brief {
            keep_cut(line, MAX_LINE_BYTES, out);
            return;
        }
        if let Some(statement) = statement {
            keep_cut(statement.line(), MAX_LINE_BYTES, out);
        }
        keep_cut(line, MAX_LINE_BYTES, out);
        self.source = what.starts_with("in ");
    }

    /// Shows the last place, because the message that follows belongs to it.
    fn tell_last(&mut self, out: &mut dyn Sink) {
        let Some((place, source)) = self.last.take() else {
            return;
        };
        keep_cut(place.line(), MAX_LINE_BYTES, out);
        if let Some(source) = source.filter(|_| !self.brief) {
            keep_cut(source.line(), MAX_LINE_BYTES, out);
        }
    }

    /// Ends the current frame, and shows its number of repetitions.
    fn end_repeats(&mut self, out: &mut dyn Sink) {
        if let Some((_, times, number)) = self.frame.take()
            && times > 1
            && !self.brief
        {
            out.say(
                number,
                &format!("[… the same frame {} times more …]", times - 1),
            );
        }
    }

    fn end_frame(&mut self, out: &mut dyn Sink) {
        self.end_repeats(out);
        self.frames.finish(out);
        self.statement = None;
    }

    fn end_printed(&mut self, out: &mut dyn Sink) {
        if let Some(mut printed) = self.printed.take() {
            printed.flush(out);
        }
    }

    /// Ends the failure.
    pub(super) fn finish(mut self, out: &mut dyn Sink) {
        self.said.end(out);
        if !self.understood {
            self.unknown.flush(out);
        }
        self.end_frame(out);
        self.end_printed(out);
    }
}

/// Parses path and rest from `tests/test_a.py:12: AssertionError` or `tests/test_a.py:12: in test_b`.
pub(super) fn place(text: &str) -> Option<(&str, &str)> {
    for at in memchr_iter(b':', text.as_bytes()) {
        let rest = &text[at + 1..];
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let behind = &rest[digits..];
        if digits > 0 && at > 0 && (behind == ":" || behind.starts_with(": ")) {
            let path = &text[..at];
            // A sentence is not a path.
            let plausible = path.contains(['.', '<']);
            return plausible.then(|| (path, behind[1..].trim_ascii_start()));
        }
    }
    None
}

/// Returns true for a line that links an exception to its cause.
fn is_cause(text: &str) -> bool {
    text.starts_with("The above exception was the direct cause")
        || text.starts_with("During handling of the above exception")
}
