//! Failure details of JavaScript test tools: a message, a comparison, a source excerpt and a stack.
//!
//! The parser retains the message, the differences and the places in the project's own code. It knows the forms
//! of Jest, Vitest, Mocha, AVA, Playwright and the test runner of Node.

use memchr::memrchr;

use super::super::excerpt::keep_cut;
use crate::line::{Line, OwnedLine, Sink};

/// Lines of a message.
const MESSAGE: usize = 40;
const BRIEF_MESSAGE: usize = 8;
/// Changed lines of a comparison.
const CHANGES: usize = 120;
const BRIEF_CHANGES: usize = 10;
/// Stack frames in the project's own code.
const FRAMES: usize = 8;
/// Bytes of a line.
const MAX_LINE_BYTES: usize = 2000;
const MAX_BRIEF_LINE_BYTES: usize = 600;

/// Processes the lines of one failure.
#[derive(Debug)]
pub(super) struct Failure {
    brief: bool,
    /// Frames of own code that may still be shown.
    frames: usize,
    /// The first other frame, which is shown if the stack has no own frame.
    foreign: Option<OwnedLine>,
    own_frames: bool,
    last_frame: String,
    message: usize,
    changes: usize,
    /// True if expected and received values were shown: the source line is not needed.
    compared: bool,
    /// True inside the lines of a comparison.
    in_diff: bool,
    /// The last equal line of a comparison, and the number of equal lines that were omitted before it.
    context: Option<OwnedLine>,
    context_gone: usize,
    /// A source line that the excerpt marks or points at.
    source: Option<OwnedLine>,
    /// True inside the braces with the properties of an error, after its stack.
    properties: bool,
    beyond: u64,
    beyond_at: u64,
}

impl Failure {
    /// Creates a failure. `brief`: it is shown in brief, because there are many; `frames`: the limit for its
    /// stack.
    pub(super) fn new(brief: bool, frames: usize) -> Self {
        Self {
            brief,
            frames: if brief { 1 } else { frames.min(FRAMES) },
            foreign: None,
            own_frames: false,
            last_frame: String::new(),
            message: if brief { BRIEF_MESSAGE } else { MESSAGE },
            changes: if brief { BRIEF_CHANGES } else { CHANGES },
            compared: false,
            in_diff: false,
            context: None,
            context_gone: 0,
            source: None,
            properties: false,
            beyond: 0,
            beyond_at: 0,
        }
    }

    /// Processes the next line.
    pub(super) fn line(&mut self, line: Line<'_>, out: &mut dyn Sink) {
        let text = line.text.trim_ascii();
        if text.is_empty() {
            return;
        }
        if self.properties {
            self.property(line, text, out);
            return;
        }
        if let Some(frame) = frame(text) {
            self.end_diff();
            self.show_source(out);
            self.frame(line, frame, out);
            self.properties = text.ends_with(" {") && frame.place.is_some();
            return;
        }
        match source(text) {
            Some(Source::Marked) => {
                self.end_diff();
                OwnedLine::put(&mut self.source, line);
                return;
            }
            Some(Source::Plain) => {
                self.end_diff();
                // The last line before a pointer is the failing line.
                if self
                    .source
                    .as_ref()
                    .is_none_or(|held| !is_marked(&held.text))
                {
                    OwnedLine::put(&mut self.source, line);
                }
                return;
            }
            Some(Source::Pointer) => {
                if let Some(held) = self.source.take() {
                    self.source = Some(mark(held));
                }
                return;
            }
            None => {}
        }
        let change = matches!(text.as_bytes(), [b'-' | b'+', ..]);
        if self.in_diff && !change {
            self.equal(line, text);
            return;
        }
        if is_diff_header(text) && !text.ends_with(':') {
            self.in_diff = true;
            self.compared = true;
            self.keep(line, out);
            return;
        }
        if change && (self.in_diff || self.compared) {
            self.change(line, out);
            return;
        }
        let side = text.trim_start_matches(['-', '+', ' ']);
        self.compared |= SIDES.iter().any(|start| side.starts_with(start));
        if is_advice(text) {
            return;
        }
        self.show_source(out);
        self.say(line, out);
    }

    /// Ends the failure.
    pub(super) fn finish(&mut self, out: &mut dyn Sink) {
        self.end_diff();
        self.show_source(out);
        if let Some(frame) = self.foreign.take().filter(|_| !self.own_frames) {
            self.keep(frame.line(), out);
        }
        if self.beyond > 0 {
            out.say(self.beyond_at, &format!("[… {} lines …]", self.beyond));
            self.beyond = 0;
        }
    }

    /// Shows a line of the message.
    fn say(&mut self, line: Line<'_>, out: &mut dyn Sink) {
        if self.message == 0 {
            self.beyond += 1;
            self.beyond_at = line.number;
            return;
        }
        self.message -= 1;
        self.keep(line, out);
    }

    fn keep(&self, line: Line<'_>, out: &mut dyn Sink) {
        keep_cut(
            line,
            if self.brief {
                MAX_BRIEF_LINE_BYTES
            } else {
                MAX_LINE_BYTES
            },
            out,
        );
    }

    /// Shows a changed line of a comparison.
    fn change(&mut self, line: Line<'_>, out: &mut dyn Sink) {
        if self.changes == 0 {
            self.beyond += 1;
            self.beyond_at = line.number;
            return;
        }
        self.changes -= 1;
        if let Some(context) = self.context.take() {
            if self.context_gone > 0 {
                out.say(context.number, "…");
            }
            self.keep(context.line(), out);
        }
        self.context_gone = 0;
        self.keep(line, out);
    }

    /// Records an equal line of a comparison. The last equal line before a change is shown.
    fn equal(&mut self, line: Line<'_>, text: &str) {
        // Closing brackets give no context.
        if text.len() < 4
            && text.bytes().all(|byte| b"[](){},".contains(&byte))
            && self.context.is_some()
        {
            self.context_gone += 1;
            return;
        }
        self.context_gone += usize::from(self.context.is_some());
        OwnedLine::put(&mut self.context, line);
    }

    fn end_diff(&mut self) {
        self.in_diff = false;
        self.context = None;
        self.context_gone = 0;
    }

    fn show_source(&mut self, out: &mut dyn Sink) {
        if let Some(held) = self.source.take()
            && !self.compared
            && is_marked(&held.text)
        {
            self.keep(held.line(), out);
        }
    }

    fn frame(&mut self, line: Line<'_>, frame: Frame<'_>, out: &mut dyn Sink) {
        if !frame.is_own() {
            if self.foreign.is_none() && frame.place.is_some() {
                self.foreign = Some(line.into());
            }
            return;
        }
        if self.frames == 0 || frame.place == Some(self.last_frame.as_str()) {
            return;
        }
        self.frames -= 1;
        self.own_frames = true;
        self.last_frame.clear();
        self.last_frame.push_str(frame.place.unwrap_or_default());
        self.keep(line, out);
    }

    /// Processes a line between the braces after a stack.
    fn property(&mut self, line: Line<'_>, text: &str, out: &mut dyn Sink) {
        if text == "}" {
            self.properties = false;
            return;
        }
        if PROPERTIES.iter().any(|start| text.starts_with(start)) || self.brief {
            return;
        }
        self.say(line, out);
    }
}

/// The starts of lines with an expected or received value.
const SIDES: &[&str] = &["Expected", "Received", "expected"];

/// The starts of error properties that add nothing to the message.
const PROPERTIES: &[&str] = &[
    "generatedMessage:",
    "operator:",
    "diff:",
    "code: 'ERR_ASSERTION'",
];

/// A stack frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Frame<'t> {
    /// File, line and column.
    place: Option<&'t str>,
}

impl Frame<'_> {
    fn is_own(self) -> bool {
        self.place.is_some_and(|place| {
            ![
                "node_modules",
                "node:",
                "internal/",
                "<anonymous>",
                "native",
            ]
            .iter()
            .any(|foreign| place.contains(foreign))
        })
    }
}

/// Parses `at name (file:1:2)`, `at file:1:2`, `❯ name file:1:2` or `› file:1:2`.
fn frame(text: &str) -> Option<Frame<'_>> {
    if !matches!(text.as_bytes(), [b'a', b't', b' ', ..] | [0xe2, ..]) {
        return None;
    }
    let rest = text
        .strip_prefix("at ")
        .or_else(|| text.strip_prefix("❯ "))
        .or_else(|| text.strip_prefix("› "))?;
    let rest = rest.trim_end_matches([' ', '{']);
    let place = match rest.strip_suffix(')') {
        Some(rest) => &rest[memrchr(b'(', rest.as_bytes())? + 1..],
        None => memrchr(b' ', rest.as_bytes()).map_or(rest, |at| &rest[at + 1..]),
    };
    if ends_in_position(place) {
        return Some(Frame { place: Some(place) });
    }
    // The forms without a place: `at <anonymous>`, `at Promise.all (index 0)`.
    let known = text.starts_with("at ")
        && (rest.contains("<anonymous>") || rest.ends_with(')') || rest.starts_with("async "));
    known.then_some(Frame { place: None })
}

/// Returns whether a stack frame is in the project's own code; `None` if the text is not a stack frame.
pub(super) fn own_frame(text: &str) -> Option<bool> {
    frame(text).map(Frame::is_own)
}

/// Returns true for a line that a package manager prints before a script: `> shop@1.0.0 test`, `> vitest run`.
pub(super) fn is_preamble(text: &str) -> bool {
    match text.as_bytes() {
        [b'>' | b'$', b' ', ..] => true,
        [b'y', ..] => text.starts_with("yarn run v"),
        _ => false,
    }
}

/// Returns true if the text ends in `:LINE:COLUMN` or `:LINE`.
fn ends_in_position(place: &str) -> bool {
    let digits = place.bytes().rev().take_while(u8::is_ascii_digit).count();
    let rest = &place[..place.len() - digits];
    digits > 0 && rest.len() > 1 && rest.ends_with(':')
}

/// The kind of a line in a source excerpt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// The failing line: `> 12 | code`.
    Marked,
    /// A line before or after it.
    Plain,
    /// A pointer at a column: `   |   ^`.
    Pointer,
}

/// Parses `12 | code`, `> 12 | code`, `12| code` or `| ^`; `│` is also a separator.
fn source(text: &str) -> Option<Source> {
    if !matches!(text.as_bytes(), [b'0'..=b'9' | b'>' | b'|' | 0xe2, ..]) {
        return None;
    }
    let marked = text.strip_prefix("> ");
    let rest = marked.unwrap_or(text).trim_ascii_start();
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let behind = rest[digits..].trim_ascii_start();
    let code = behind
        .strip_prefix('|')
        .or_else(|| behind.strip_prefix('│'))?;
    if digits > 6 {
        return None;
    }
    if digits > 0 {
        return Some(if marked.is_some() {
            Source::Marked
        } else {
            Source::Plain
        });
    }
    let pointer = code.trim_ascii();
    let points = pointer.is_empty() || pointer.bytes().all(|byte| b"^~ ".contains(&byte));
    points.then_some(Source::Pointer)
}

fn is_marked(text: &str) -> bool {
    text.trim_ascii_start().starts_with("> ")
}

/// The failing source line with a mark, which is added if the tool did not print one.
fn mark(held: OwnedLine) -> OwnedLine {
    if is_marked(&held.text) {
        return held;
    }
    OwnedLine {
        text: format!("> {}", held.text.trim_ascii_start()),
        ..held
    }
}

/// Returns true for a line that precedes a comparison.
fn is_diff_header(text: &str) -> bool {
    const HEADERS: &[&str] = &[
        "- Expected",
        "+ Received",
        "- Snapshot",
        "+ expected - actual",
        "+ actual - expected",
        "Difference (- actual, + expected",
        "Difference:",
    ];
    HEADERS.iter().any(|start| text.starts_with(start))
}

/// Returns true for advice that a tool prints with every failure of a kind.
fn is_advice(text: &str) -> bool {
    const ADVICE: &[&str] = &[
        "If this is a long-running test, pass a timeout value",
        "Add a timeout value to this test to increase",
        "It might mean one of the following:",
        "- The error was thrown, while Vitest was running this test",
        "- If the error occurred after the test had been completed",
        "The latest test that might've caused the error is",
        "This error originated in ",
        "Out of the box Jest supports Babel",
        "By default \"node_modules\" folder is ignored",
        "Here's what you can do:",
        "• If you ",
        "• To have some of your",
        "You'll find more details and examples",
        "https://jestjs.io/docs/",
        "For information about custom transformations",
        "Jest failed to parse a file. This happens",
    ];
    ADVICE.iter().any(|start| text.starts_with(start))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;

    use super::super::super::testing::Texts;
    use super::*;

    proptest! {
        #[test]
        fn position_is_digits_after_a_colon(place in "[a:12ä]{0,6}") {
            let parts = place.rsplit_once(':');
            let expect = parts.is_some_and(|(rest, last)| {
                let digits = last.bytes().all(|byte| byte.is_ascii_digit());
                !rest.is_empty() && !last.is_empty() && digits
            });
            prop_assert_eq!(ends_in_position(&place), expect);
        }
    }

    fn told(brief: bool, input: &str) -> Vec<String> {
        let mut failure = Failure::new(brief, 50);
        let mut out = Texts::default();
        for (number, text) in (1..).zip(input.lines()) {
            failure.line(Line { number, text }, &mut out);
        }
        failure.finish(&mut out);
        out.0.iter().map(|line| line.trim().to_owned()).collect()
    }

    /// Proves OUT-7.
    #[test]
    fn message_differences_and_own_places_stay() {
        let jest = "
    expect(received).toEqual(expected) // deep equality

    - Expected  - 1
    + Received  + 1

      Object {
        \"a\": 1,
        \"b\": 2,
    -   \"c\": 3,
    +   \"c\": 4,
      }

       9 |   test('reports', () => {
    > 11 |     expect(l).toEqual(x)
         |               ^
      12 |   })

      at Object.toEqual (__tests__/a.test.js:11:24)
      at run (node_modules/jest/x.js:1:2)
";
        assert_eq!(
            told(false, jest),
            [
                "expect(received).toEqual(expected) // deep equality",
                "- Expected  - 1",
                "+ Received  + 1",
                "…",
                "\"b\": 2,",
                "-   \"c\": 3,",
                "+   \"c\": 4,",
                "at Object.toEqual (__tests__/a.test.js:11:24)",
            ]
        );
    }

    #[test]
    fn source_line_is_retained_without_a_comparison() {
        let vitest = "
CartError: cart is empty
 ❯ total src/cart.ts:4:33
      2| export class
      4|   if (items.length === 0) throw new CartError()
       |                                 ^
      5|   return
 ❯ test/cart.test.ts:6:51
 ❯ node_modules/@vitest/runner/dist/index.js:3:4
";
        assert_eq!(
            told(false, vitest),
            [
                "CartError: cart is empty",
                "❯ total src/cart.ts:4:33",
                "> 4|   if (items.length === 0) throw new CartError()",
                "❯ test/cart.test.ts:6:51",
            ]
        );
    }

    #[test]
    fn first_frame_stays_if_no_frame_is_of_the_project() {
        let text = "Error: x\n    at open (node:internal/fs:1:2)\n    at read (node:fs:3:4) {\n  errno: -2,\n  code: 'ENOENT',\n  operator: 'x'\n}\nmore";
        assert_eq!(
            told(false, text),
            [
                "Error: x",
                "errno: -2,",
                "code: 'ENOENT',",
                "more",
                "at open (node:internal/fs:1:2)"
            ]
        );
    }

    #[test]
    fn frames_and_source_are_recognized_by_form() {
        let check = |text: &str, place: Option<Option<&str>>| {
            assert_eq!(frame(text).map(|frame| frame.place), place, "{text}");
        };
        check("at f (a/b.js:1:2)", Some(Some("a/b.js:1:2")));
        check(
            "at async file:///home/user/a.js:4:29",
            Some(Some("file:///home/user/a.js:4:29")),
        );
        check("❯ src/a.ts:1:2", Some(Some("src/a.ts:1:2")));
        check(
            "❯ Timeout._onTimeout src/a.ts:1:2",
            Some(Some("src/a.ts:1:2")),
        );
        check("at async Promise.all (index 0)", Some(None));
        check("at new Promise (<anonymous>)", Some(None));
        check("at first we looked", None);
        check("❯ a folder", None);
        assert_eq!(source("12 | a"), Some(Source::Plain));
        assert_eq!(source("> 12 | a"), Some(Source::Marked));
        assert_eq!(source("|   ^"), Some(Source::Pointer));
        assert_eq!(source("| a table |"), None);
        assert_eq!(source("12 a"), None);
    }
}
