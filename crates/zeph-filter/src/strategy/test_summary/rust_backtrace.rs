//! Backtraces of Rust programs, reduced to the frames of the program's own code.
//!
//! The form is that of `std::backtrace`: number and name of a frame on one line, its place on the next.

use crate::line::Sink;

/// Processes the lines after `stack backtrace:`.
#[derive(Debug, Default)]
pub(super) struct Trace {
    /// The frame whose place may follow.
    open: Option<Frame>,
    /// The last frame to show, and its number of occurrences.
    shown: Option<(Frame, u32)>,
    /// True if the trace has more than one own frame. A single frame that repeats the place of the panic is
    /// omitted.
    several: bool,
    left: usize,
    beyond: u64,
    panic_place: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Frame {
    number: u64,
    index: String,
    name: String,
    place: Option<String>,
}

impl Trace {
    /// Creates a parser for at most `most` frames of a panic at `panic_place`.
    pub(super) fn start(most: usize, panic_place: &str) -> Self {
        Self {
            left: most,
            panic_place: panic_place.to_owned(),
            ..Self::default()
        }
    }

    /// Processes a line without its indentation. Returns `false` if it is not part of a backtrace.
    pub(super) fn line(&mut self, number: u64, text: &str, out: &mut dyn Sink) -> bool {
        if let Some(place) = text.strip_prefix("at ") {
            match &mut self.open {
                Some(frame) => {
                    frame.place = Some(place.to_owned());
                    self.close(out);
                }
                // A place without a frame: the start of the trace is missing.
                None => return false,
            }
            return true;
        }
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let Some(name) = text[digits..].strip_prefix(':').filter(|_| digits > 0) else {
            return false;
        };
        self.close(out);
        let name = name.trim_start();
        let name = match name.strip_prefix("0x") {
            Some(address) => address.split_once(" - ").map_or(name, |(_, name)| name),
            None => name,
        };
        self.open = Some(Frame {
            number,
            index: text[..digits].to_owned(),
            name: name.to_owned(),
            place: None,
        });
        true
    }

    /// Ends the trace.
    pub(super) fn finish(&mut self, out: &mut dyn Sink) {
        self.close(out);
        let only = !self.several;
        if let Some((frame, _)) = &self.shown
            && only
            && frame.is_at(&self.panic_place)
        {
            self.shown = None;
        }
        let last = self.shown.as_ref().map_or(0, |(frame, _)| frame.number);
        self.show(out);
        if self.beyond > 0 {
            out.say(last, &format!("[… {} frames …]", self.beyond));
        }
        *self = Self::default();
    }

    /// Completes the open frame.
    fn close(&mut self, out: &mut dyn Sink) {
        let Some(frame) = self.open.take().filter(Frame::is_own) else {
            return;
        };
        if let Some((shown, times)) = &mut self.shown {
            if shown.name == frame.name && shown.place == frame.place {
                *times += 1;
                return;
            }
            // The test harness calls a closure around the test.
            if frame.name.strip_suffix("::{{closure}}") == Some(&shown.name)
                || frame.name.strip_suffix("::{closure#0}") == Some(&shown.name)
            {
                return;
            }
            self.several = true;
            self.show(out);
        }
        self.shown = Some((frame, 1));
    }

    fn show(&mut self, out: &mut dyn Sink) {
        let Some((frame, times)) = self.shown.take() else {
            return;
        };
        if self.left == 0 {
            self.beyond += u64::from(times);
            return;
        }
        self.left -= 1;
        let mut text = format!("{:>4}: {}", frame.index, frame.name);
        if let Some(place) = &frame.place {
            text.push_str(" at ");
            text.push_str(place);
        }
        if times > 1 {
            text.push_str(&format!(" ×{times}"));
        }
        out.say(frame.number, &text);
    }
}

/// Path parts of code that is not the program's own.
const OTHERS: &[&str] = &["/rustc/", "/rustlib/", "/registry/src/", "/git/checkouts/"];
/// Names of runtime frames, for frames without a place.
const RUNTIME: &[&str] = &[
    "std::",
    "core::",
    "alloc::",
    "test::",
    "__rust",
    "rust_",
    "_start",
    "main",
    "__libc",
    "clone",
    "start_thread",
    "<alloc::",
    "<core::",
    "<std::",
    "<unknown>",
    "__GI_",
    "<fn() ->",
    "_Unwind",
    "backtrace::",
    "__clone",
    "rust_out::",
];

impl Frame {
    fn is_own(&self) -> bool {
        match &self.place {
            Some(place) => !OTHERS.iter().any(|folder| place.contains(folder)),
            None => !RUNTIME.iter().any(|prefix| self.name.starts_with(prefix)),
        }
    }

    fn is_at(&self, place: &str) -> bool {
        let own = self.place.as_deref().unwrap_or_default();
        let own = own.strip_prefix("./").unwrap_or(own);
        !own.is_empty() && place.ends_with(own)
    }
}
