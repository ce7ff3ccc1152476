//! Shapes of fact lines, and the facts that follow from the line before.

use super::matcher::shape_alone;
use super::prefix::without_log_prefix;

/// The kind of fact that a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// An error, or its location.
    Error,
    /// The name of something that failed.
    Failing,
    /// A panic, an exception, a signal, or its message.
    Panic,
    /// The final summary of a tool.
    Summary,
    /// An operation that a program could not perform, often repeated for many files.
    Complaint,
    /// An error in a log, often repeated in the same words.
    Chatter,
    /// A warning.
    Warning,
}

impl Shape {
    /// The most lines of one form that are noted, for shapes that often repeat.
    pub(super) fn max_alike(self) -> u64 {
        match self {
            Self::Warning => 2,
            Self::Chatter => 5,
            Self::Complaint => 20,
            Self::Error | Self::Failing | Self::Panic | Self::Summary => u64::MAX,
        }
    }

    /// Whether each line of the shape counts.
    pub(super) fn is_strong(self) -> bool {
        self.max_alike() == u64::MAX
    }
}

/// Finds shapes in consecutive lines.
#[derive(Debug, Default)]
pub(crate) struct Shapes {
    follows: Continuation,
}

/// The facts that may follow the last line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
enum Continuation {
    #[default]
    Nothing,
    /// The location of an error: `--> src/main.rs:1:2`, or the first frame of a stack trace, within so many lines.
    Location(u8),
    /// The message of a panic: at most so many lines.
    Message(u8),
    /// Lines of pytest about a failure: so many of them are facts.
    Pytest(u8),
    /// The frames of a Python traceback, then the exception. The margin precedes each line of it.
    Traceback(String),
}

/// A panic's message, and the compared values: `left:` and `right:`.
const MESSAGE: u8 = 3;
/// Lines of pytest about a failure that are facts.
const MAX_PYTEST: u8 = 3;
/// Lines after an error within which its location follows.
const LOCATION: u8 = 4;
/// The start of a Python traceback.
const TRACEBACK: &str = "Traceback (most recent call last)";
/// Headlines whose next line is the message.
const HEADLINES: &[&str] = &[
    "Unhandled exception:",
    "* What went wrong:",
    "Warning message:",
    "Exception:",
    "Error:",
];

impl Shapes {
    /// Whether the last line belongs to a Python traceback that has not ended.
    pub(super) fn in_traceback(&self) -> bool {
        matches!(self.follows, Continuation::Traceback(_))
    }

    /// The shape of the next line, if it is a fact.
    pub(crate) fn of(&mut self, text: &str) -> Option<Shape> {
        if text.contains(TRACEBACK) {
            self.follows = Continuation::Traceback(margin(text));
            return Some(Shape::Panic);
        }
        match std::mem::take(&mut self.follows) {
            Continuation::Nothing => {}
            Continuation::Location(lines) => {
                if is_library_frame(text) {
                    self.follows = Continuation::Location(lines);
                } else if is_location(text) {
                    return Some(Shape::Error);
                } else if lines > 1 {
                    self.follows = Continuation::Location(lines - 1);
                }
            }
            Continuation::Message(lines) => {
                if lines > 1 {
                    self.follows = Continuation::Message(lines - 1);
                }
                if lines == MESSAGE || is_side(text) {
                    return Some(Shape::Panic);
                }
            }
            Continuation::Pytest(left) => {
                if text.starts_with("E ") {
                    self.follows = Continuation::Pytest(left);
                }
            }
            Continuation::Traceback(margin) => match traceback_line(text, &margin) {
                TracebackLine::Frame => {
                    self.follows = Continuation::Traceback(margin);
                    // Another program may print a failing test into a traceback.
                    return shape_alone(text).filter(|shape| *shape == Shape::Failing);
                }
                TracebackLine::Exception => return Some(Shape::Panic),
                TracebackLine::Other => {}
            },
        }
        if text.starts_with("E   ") {
            return self.pytest(text);
        }
        let shape = shape_alone(text)?;
        self.expect(shape, text);
        Some(shape)
    }

    /// Notes which facts may follow a line of this shape.
    fn expect(&mut self, shape: Shape, text: &str) {
        self.follows = match shape {
            Shape::Panic if text.contains("panicked at ") || is_group_rule(text) => {
                Continuation::Message(MESSAGE)
            }
            _ if HEADLINES
                .iter()
                .any(|headline| text.trim_end().ends_with(headline)) =>
            {
                Continuation::Message(MESSAGE)
            }
            Shape::Error | Shape::Panic => Continuation::Location(LOCATION),
            _ => return,
        };
    }

    /// A line of pytest about a failure: the first ones are facts, the origins of values are not.
    fn pytest(&mut self, text: &str) -> Option<Shape> {
        let left = match self.follows {
            Continuation::Pytest(left) => left,
            _ => MAX_PYTEST,
        };
        let message = text[1..].trim_ascii_start();
        let counts = left > 0 && !message.is_empty() && !message.starts_with('+');
        self.follows = Continuation::Pytest(left - u8::from(counts));
        counts.then_some(Shape::Panic)
    }
}

/// A line after the start of a traceback.
enum TracebackLine {
    /// A frame, a line of code or a marker.
    Frame,
    /// The exception that ends the traceback.
    Exception,
    /// A line of something else.
    Other,
}

/// The text before each line of the traceback that starts with this line.
fn margin(text: &str) -> String {
    let text = without_log_prefix(text);
    let before = text.find(TRACEBACK).map_or("", |at| &text[..at]);
    let before = before.strip_suffix("Exception Group ").unwrap_or(before);
    // The first line of a group has a plus instead of the margin.
    before.replace('+', "|")
}

fn traceback_line(text: &str, margin: &str) -> TracebackLine {
    let text = without_log_prefix(text);
    if text.trim().is_empty() {
        return TracebackLine::Other;
    }
    let is_margin = margin.trim_matches([' ', '\t', '|']).is_empty();
    let Some(rest) = text.strip_prefix(margin).or((!is_margin).then_some(text)) else {
        return TracebackLine::Other;
    };
    match rest.starts_with([' ', '\t']) {
        true => TracebackLine::Frame,
        false => TracebackLine::Exception,
    }
}

/// `+-+---------------- 1 ----------------`: the next line is an exception of a group.
fn is_group_rule(text: &str) -> bool {
    text.trim_start().starts_with("+-") && text.ends_with("--")
}

fn is_location(text: &str) -> bool {
    let text = text.trim_start();
    text.starts_with("--> ") || text.starts_with("└─ ") || text.starts_with("╭▸ ") || is_frame(text)
}

/// A frame with its location, of JavaScript, Java, .NET, Deno or Ruby.
fn is_frame(text: &str) -> bool {
    let text = text.trim_start();
    let is_frame = text.starts_with("at ") || text.starts_with("from ");
    is_frame && text.contains([':', '(']) && text.contains(|c: char| c.is_ascii_digit())
}

/// Parts of the paths and names of library code: a frame of it is not the location of an error.
const LIBRARIES: &[&str] = &[
    "site-packages/",
    "dist-packages/",
    "/lib/python",
    "<frozen ",
    "node_modules/",
    "node:",
    "at java.",
    "at jdk.",
    "at sun.",
    "at org.junit.",
    "at org.testng.",
    "at org.assertj.",
    "at kotlin.",
    "at scala.",
    "at System.",
    "at Xunit.",
    "at NUnit.",
    "/gems/",
    "/rustc/",
];

/// Whether a frame of a stack trace is library code.
pub(super) fn is_library_frame(text: &str) -> bool {
    let is_frame = is_frame(text) || text.contains("File \"");
    is_frame && LIBRARIES.iter().any(|part| text.contains(part))
}

fn is_side(text: &str) -> bool {
    let text = text.trim_start();
    text.starts_with("left:") || text.starts_with("right:")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves OUT-7.
    #[test]
    fn lines_have_their_shapes() {
        let check = |text: &str, expect| assert_eq!(Shapes::default().of(text), expect, "{text}");
        check("error[E0308]: mismatched types", Some(Shape::Error));
        check(
            "error: could not compile `shop` (lib) due to 1 previous error",
            Some(Shape::Error),
        );
        check("src/main.c:10:5: error: expected ';'", Some(Shape::Error));
        check(
            "src/main.c:10:5: fatal error: x.h: No such file or directory",
            Some(Shape::Error),
        );
        check(
            "src/app.ts(3,7): error TS2304: Cannot find name 'x'.",
            Some(Shape::Error),
        );
        check(
            "src/app.ts:3:7 - error TS2304: Cannot find name 'x'.",
            Some(Shape::Error),
        );
        check("App.java:3: error: ';' expected", Some(Shape::Error));
        check(
            "  12:5  error  'x' is not defined  no-undef",
            Some(Shape::Error),
        );
        check("main.c:1:2: Fehler: erwartet", Some(Shape::Error));
        check("test cart::total ... FAILED", Some(Shape::Failing));
        check("---- cart::total stdout ----", Some(Shape::Failing));
        check("--- FAIL: TestTotal (0.00s)", Some(Shape::Failing));
        check(
            "FAILED tests/test_cart.py::test_total - assert 1 == 2",
            Some(Shape::Failing),
        );
        check(
            "        FAIL [   0.005s] shop cart::total",
            Some(Shape::Failing),
        );
        check("not ok 3 - total", Some(Shape::Failing));
        check(
            "thread 'main' panicked at src/main.rs:1:2:",
            Some(Shape::Panic),
        );
        check(
            "thread 'main' (1234) panicked at src/main.rs:1:2:",
            Some(Shape::Panic),
        );
        check("ValueError: no", Some(Shape::Panic));
        check(
            "test result: ok. 3 passed; 0 failed; 0 ignored",
            Some(Shape::Summary),
        );
        check("=== 1 failed, 2 passed in 0.12s ===", Some(Shape::Summary));
        check("make: *** [Makefile:2: all] Error 2", Some(Shape::Summary));
        check(
            "2026-01-01T00:00:00Z ERROR pool: connection lost",
            Some(Shape::Chatter),
        );
        check(
            "2026/05/01 10:00:00 [error] 31#31: *7 open() \"/srv/a\" failed (2: No such file or directory)",
            Some(Shape::Chatter),
        );
        check(
            "ls: cannot access 'a': No such file or directory",
            Some(Shape::Complaint),
        );
        check("   Compiling thiserror v2.0.0", None);
        check("test errors::are_told ... ok", None);
        check("0 errors, 0 warnings", None);
        check("hello", None);
    }

    #[test]
    fn context_lines_belong_to_their_fact() {
        let mut shapes = Shapes::default();
        assert_eq!(
            shapes.of("error[E0308]: mismatched types"),
            Some(Shape::Error)
        );
        assert_eq!(shapes.of("  --> src/main.rs:3:5"), Some(Shape::Error));
        assert_eq!(shapes.of("  --> src/main.rs:3:5"), None);
        assert_eq!(
            shapes.of("thread 'main' panicked at src/main.rs:1:2:"),
            Some(Shape::Panic)
        );
        assert_eq!(
            shapes.of("assertion `left == right` failed"),
            Some(Shape::Panic)
        );
        assert_eq!(shapes.of("  left: 1"), Some(Shape::Panic));
        assert_eq!(shapes.of(" right: 2"), Some(Shape::Panic));
        assert_eq!(shapes.of("note: run with"), None);
        let said = [
            "E   a",
            "E    +  where b",
            "E   c",
            "E   d",
            "E   e",
            "",
            "E   e",
        ];
        let facts: Vec<bool> = said.iter().map(|text| shapes.of(text).is_some()).collect();
        assert_eq!(facts, [true, false, true, true, false, false, true]);
    }
}
