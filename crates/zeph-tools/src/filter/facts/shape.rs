//! Which lines look like a fact: errors with code and place, failing tests, panics, a tool's own
//! summary.
//!
//! The shapes are those of the tools' own formats, seen at the start of a line or after a place;
//! words in the middle of a sentence are no fact.

use std::sync::LazyLock;

use regex::bytes::{Regex, RegexBuilder};

use super::worth::{has_stem_of_word, has_word};

/// Why a line is a fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::filter) enum Shape {
    /// An error, or the place of one.
    Error,
    /// The name of something that failed.
    Failing,
    /// A panic, an exception, a signal; or what it says.
    Panic,
    /// What a tool says in the end.
    Summary,
    /// What a program could not do, told for one file after the other.
    Complaint,
    /// An error in a log: told often in the same words.
    Chatter,
}

/// Finds shapes in consecutive lines.
#[derive(Debug, Default)]
pub(in crate::filter) struct Shapes {
    /// What may follow the last line.
    follows: Follows,
}

/// What the lines after a fact may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Follows {
    #[default]
    Nothing,
    /// The place of an error: `--> src/main.rs:1:2`.
    Place,
    /// What a panic says: so many lines more.
    Message(u8),
    /// What pytest says of a failure: so many of its lines are a fact.
    Said(u8),
}

const SHAPES: &[(Shape, &str)] = &[
    // npm error code …; what is set off there is a list, or the output of a compiler.
    (Shape::Error, r"^npm (?:ERR!|error) \S"),
    // error[E0308]: …, error: …, ERROR: …, error TS2304: …
    (
        Shape::Error,
        r"^\s*(?:error|ERROR|Error|fatal|FATAL|ERR!|ERR_[A-Z_]+|\[ERROR\]|\[error\]|E:)(?:$|[\[: \t!(])",
    ),
    // src/main.c:10:5: error: …, X.java:3: error: …, src/a.ts(1,2): error TS2304: …
    (
        Shape::Error,
        r"^\s*\S+?[:(]\d+(?:[:,.]\d+)*\)?:? ?-? ?(?:fatal )?(?:error|Error|ERROR|Fehler|erreur|fout|errore|schwerwiegender)\b",
    ),
    //   12:5  error  'x' is not defined  no-undef
    (Shape::Error, r"^\s+\d+:\d+\s+(?:error|Error)\s"),
    (Shape::Error, r"^fatal|^CONFLICT \(|undefined reference to "),
    (
        Shape::Failing,
        r"^test .* \.\.\. FAILED|^---- .* ----$|^\s*--- FAIL: |^\s*(?:FAIL|FAILED|TIMEOUT|ABORT|SIG[A-Z]+|ERROR)\b[: \t]|^\s*not ok \d|^\s*(?:✕|✗|✖|×|●) ",
    ),
    (
        Shape::Panic,
        r"panicked at |^panic: |^fatal error: |^\s*(?:\w+\.)*\w*(?:Error|Exception|Failure)(?:: |$)|[Ss]egmentation fault|\(core dumped\)|^Caused by: |signal: \d+, SIG|^Traceback \(",
    ),
    (
        Shape::Summary,
        r"^test result: |^=+ .*\b(?:passed|failed|errors?|skipped)\b.* =+$|^\s*Summary \[|^\s*(?:Tests|Test Suites|Test Files|Snapshots):?\s+.*\d|could not compile|aborting due to|^\S*make(?:\[\d+\])?: \*\*\*|^Plan: |^Ran \d+ tests|^FAILED \(|^BUILD FAIL|^(?:FAIL|ok)\t|Error: Process completed|^\d+ examples?, \d+ failures?|^Tests run: |^# (?:fail|tests|pass) \d|^\d+ (?:passing|failing)|^✖ \d+ problems?|^Found \d+ errors?",
    ),
    // 2026/05/01 10:00:00 [error] …: in a log.
    (
        Shape::Chatter,
        r"^\[?\d[\d/:.T -]*\d.*(?: No such file or directory|[Pp]ermission denied|: command not found|: cannot )",
    ),
    (
        Shape::Complaint,
        r": (?:No such file or directory|[Pp]ermission denied|command not found|cannot )",
    ),
    (
        Shape::Chatter,
        r"\b(?:ERROR|FATAL|CRITICAL|PANIC|Exception)\b|\blevel=error\b",
    ),
];

/// The patterns of [`SHAPES`]. Most lines have none of the shapes: of many an output none has, and what tells the
/// shapes apart is not compiled.
struct Patterns {
    /// All that begin with a line: most lines are told from them by their first word.
    begins: Regex,
    /// All others: these are found by what they begin with.
    within: Regex,
    /// By shape.
    single: Vec<(Shape, OnePattern)>,
}

/// A pattern that is compiled when it is first asked about.
type OnePattern = LazyLock<Option<Regex>, Box<dyn FnOnce() -> Option<Regex> + Send>>;

static PATTERNS: LazyLock<Option<Patterns>> = LazyLock::new(|| {
    let all = SHAPES.iter().flat_map(|(_, pattern)| parts(pattern));
    let (begins, within): (Vec<&str>, Vec<&str>) = all.partition(|part| part.starts_with('^'));
    let single = SHAPES.chunk_by(|(a, _), (b, _)| a == b).map(|alike| {
        let pattern = || {
            let patterns: Vec<&str> = alike.iter().map(|(_, pattern)| *pattern).collect();
            build(&patterns.join("|"))
        };
        let pattern: OnePattern = LazyLock::new(Box::new(pattern));
        Some((alike.first()?.0, pattern))
    });
    Some(Patterns {
        begins: build(&begins.join("|"))?,
        within: build(&within.join("|"))?,
        single: single.collect::<Option<_>>()?,
    })
});

/// What stands between the `|` of a pattern that are in no group.
fn parts(pattern: &str) -> Vec<&str> {
    let (mut depth, mut in_class, mut escaped) = (0, false, false);
    let is_between = |c: char| {
        if std::mem::take(&mut escaped) {
            return false;
        }
        match c {
            '\\' => escaped = true,
            ']' => in_class = false,
            '[' => in_class = true,
            '(' if !in_class => depth += 1,
            ')' if !in_class => depth -= 1,
            _ => {}
        }
        c == '|' && depth == 0 && !in_class
    };
    pattern.split(is_between).collect()
}

/// Compiles a pattern whose classes mean ASCII, and whose `.` is any byte: in Unicode they take several times as long.
pub(super) fn build(pattern: &str) -> Option<Regex> {
    let pattern = pattern.replace(r"\s", r"[ \t]").replace(r"\S", r"[^ \t]");
    RegexBuilder::new(&pattern).unicode(false).build().ok()
}

impl Shapes {
    /// Whether this line, the next one, may be what it is because of the last one.
    pub(super) fn expects(&self, text: &str) -> bool {
        match self.follows {
            Follows::Nothing => text.starts_with("E   "),
            Follows::Place => is_place(text) || text.starts_with("E   "),
            Follows::Message(_) | Follows::Said(_) => true,
        }
    }

    /// Whether the next line may be what it is because of the last one, whatever it is.
    pub(super) fn awaits_any(&self) -> bool {
        matches!(self.follows, Follows::Message(_) | Follows::Said(_))
    }

    /// The shape of the next line, if it is a fact.
    pub(in crate::filter) fn of(&mut self, text: &str) -> Option<Shape> {
        match self.follows {
            Follows::Nothing => {}
            Follows::Place => {
                if is_place(text) {
                    self.follows = Follows::Nothing;
                    return Some(Shape::Error);
                }
            }
            Follows::Message(lines) => {
                self.follows = match lines {
                    0 | 1 => Follows::Nothing,
                    more => Follows::Message(more - 1),
                };
                if lines == MESSAGE || is_side(text) {
                    return Some(Shape::Panic);
                }
            }
            Follows::Said(_) if !text.starts_with("E ") => self.follows = Follows::Nothing,
            Follows::Said(_) => {}
        }
        if text.starts_with("E   ") {
            return self.said(text);
        }
        let shape = shape_alone(text)?;
        self.expect(shape, text);
        Some(shape)
    }

    /// A line of this shape has come: what follows it may be a fact.
    pub(super) fn expect(&mut self, shape: Shape, text: &str) {
        self.follows = match shape {
            Shape::Error => Follows::Place,
            Shape::Panic if text.contains("panicked at ") => Follows::Message(MESSAGE),
            _ => Follows::Nothing,
        };
    }

    /// A line of what pytest says: the first ones are facts, not where their values come from.
    fn said(&mut self, text: &str) -> Option<Shape> {
        let left = match self.follows {
            Follows::Said(left) => left,
            _ => SAID,
        };
        let said = text[1..].trim_ascii_start();
        let counts = left > 0 && !said.is_empty() && !said.starts_with('+');
        self.follows = Follows::Said(left - u8::from(counts));
        counts.then_some(Shape::Panic)
    }
}

/// Lines of what pytest says that are facts.
const SAID: u8 = 3;

/// The shape of a line by itself.
pub(super) fn shape_alone(text: &str) -> Option<Shape> {
    if !has_stem_of_word(text) || !may_have_shape(text) || !has_word(text) {
        return None;
    }
    let single = &PATTERNS.as_ref()?.single;
    let is_match = |pattern: &OnePattern| {
        let pattern = LazyLock::force(pattern).as_ref();
        pattern.is_some_and(|pattern| pattern.is_match(text.as_bytes()))
    };
    let found = single.iter().find(|(_, pattern)| is_match(pattern));
    found.map(|(shape, _)| *shape)
}

/// Whether a line has a shape by itself, if it has one of the words that facts have.
pub(super) fn may_have_shape(text: &str) -> bool {
    let patterns = PATTERNS.as_ref();
    let bytes = text.as_bytes();
    patterns.is_some_and(|any| any.begins.is_match(bytes) || any.within.is_match(bytes))
}

/// A panic's message, and what was compared: `left:` and `right:`.
const MESSAGE: u8 = 3;

fn is_place(text: &str) -> bool {
    // Most lines begin with something else.
    let first = text.as_bytes().first();
    first.is_some_and(|byte| !byte.is_ascii_alphanumeric()) && text.trim_start().starts_with("--> ")
}

fn is_side(text: &str) -> bool {
    let text = text.trim_start();
    text.starts_with("left:") || text.starts_with("right:")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles() {
        let single = &PATTERNS.as_ref().unwrap().single;
        for (shape, pattern) in single {
            assert!(LazyLock::force(pattern).is_some(), "{shape:?}");
        }
    }

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
    fn what_follows_belongs_to_it() {
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
