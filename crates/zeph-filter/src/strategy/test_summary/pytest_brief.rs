//! Failures of pytest that are shown in brief: each is merged into the line of the short summary that names it.

use std::collections::{HashMap, VecDeque};

use super::super::excerpt::keep_cut;
use super::pytest_failure::place;
use super::pytest_message::said;
use crate::line::{Line, OwnedLine, Sink};

/// Bytes that are buffered.
const MAX_BYTES: usize = 1024 * 1024;
/// Places of one failure.
const MAX_PLACES: usize = 6;
/// Bytes of a line.
const MAX_LINE_BYTES: usize = 2000;

/// A failure that waits for its line in the short summary.
#[derive(Debug, Default)]
struct Brief {
    title: OwnedLine,
    lines: Vec<OwnedLine>,
}

/// The brief failures of one run, in order.
#[derive(Debug, Default)]
pub(super) struct Briefs {
    failures: Vec<Option<Brief>>,
    /// Indices by name. Several files may contain the same name.
    names: HashMap<String, VecDeque<usize>>,
    bytes: usize,
}

/// A sink that buffers the lines of a failure.
pub(super) struct Collect<'b>(&'b mut Vec<OwnedLine>, &'b mut usize);

impl Sink for Collect<'_> {
    fn keep(&mut self, line: Line<'_>) {
        *self.1 += line.text.len() + size_of::<OwnedLine>();
        self.0.push(line.into());
    }

    fn say(&mut self, number: u64, text: &str) {
        self.keep(Line { number, text });
    }
}

impl Briefs {
    /// Begins a failure with this title. If too many bytes are buffered, the earlier failures are shown.
    pub(super) fn begin(&mut self, title: &str, line: Line<'_>, out: &mut dyn Sink) {
        if self.bytes > MAX_BYTES {
            self.finish(out);
        }
        let name = name_of_title(title);
        self.bytes += 2 * title.len() + size_of::<Brief>();
        self.names
            .entry(name)
            .or_default()
            .push_back(self.failures.len());
        self.failures.push(Some(Brief {
            title: OwnedLine {
                number: line.number,
                text: format!("__ {title} __"),
            },
            lines: Vec::new(),
        }));
    }

    /// The sink for the lines of the last failure.
    pub(super) fn sink(&mut self) -> Option<Collect<'_>> {
        let last = self.failures.last_mut()?.as_mut()?;
        Some(Collect(&mut last.lines, &mut self.bytes))
    }

    /// Shows a line of the list, `FAILED tests/test_a.py::test_b - assert 1 == 2`, with the buffered details of
    /// its failure. Returns false if no brief failure has this name.
    pub(super) fn listed(&mut self, line: Line<'_>, out: &mut dyn Sink) -> bool {
        let Some((_, rest)) = line.text.split_once(' ') else {
            return false;
        };
        let (id, message) = split_message(rest);
        let Some(found) = self.names.get_mut(name_of_id(id)) else {
            return false;
        };
        let Some(brief) = found.pop_front().and_then(|at| self.failures[at].take()) else {
            return false;
        };
        let (messages, others): (Vec<&OwnedLine>, Vec<&OwnedLine>) = brief
            .lines
            .iter()
            .partition(|held| held.text.starts_with('E'));
        let mut text = line.text.to_owned();
        let places = others.iter().filter(|held| is_place(&held.text));
        for place in places.take(MAX_PLACES) {
            text.push_str(if text.len() == line.text.len() {
                " --> "
            } else {
                "; "
            });
            text.push_str(&place.text);
        }
        // The title contains another form of the name.
        let title = brief.title.text.trim_matches(['_', ' ']);
        if !text.contains(title) {
            text.push_str(&format!(" ({title})"));
        }
        let line = Line {
            text: &text,
            ..line
        };
        keep_cut(line, MAX_LINE_BYTES, out);
        let told = messages
            .first()
            .is_some_and(|first| said(&first.text) == message);
        for held in messages.iter().skip(usize::from(told)) {
            out.keep(held.line());
        }
        for held in others.iter().filter(|held| !is_place(&held.text)) {
            out.keep(held.line());
        }
        true
    }

    /// Shows the failures that the list did not name.
    pub(super) fn finish(&mut self, out: &mut dyn Sink) {
        for brief in self.failures.drain(..).flatten() {
            out.keep(brief.title.line());
            for line in &brief.lines {
                out.keep(line.line());
            }
        }
        self.names.clear();
        self.bytes = 0;
    }
}

/// Returns true for a place: `tests/test_a.py:12: AssertionError`.
fn is_place(text: &str) -> bool {
    !text.starts_with(' ') && place(text).is_some()
}

/// Splits at the ` - ` between the id and the message. The id may contain ` - ` in its brackets.
pub(super) fn split_message(text: &str) -> (&str, &str) {
    let after = text.find("] - ").map(|at| at + 1);
    let blank = text.find(" - ");
    let at = match (after, blank) {
        // The bracket of the id precedes the first separator.
        (Some(after), Some(blank)) if text[..blank].contains('[') => after.max(blank.min(after)),
        (_, Some(blank)) => blank,
        _ => return (text, ""),
    };
    (
        &text[..at],
        text[at..].trim_start_matches(" - ").trim_ascii(),
    )
}

/// Converts `ERROR at setup of TestA.test_b[1.5]` to the name `TestA::test_b[1.5]`.
fn name_of_title(title: &str) -> String {
    if let Some(path) = title.strip_prefix("ERROR collecting ") {
        return path.to_owned();
    }
    let name = match title.strip_prefix("ERROR at ") {
        Some(rest) => rest.split_once(" of ").map_or(rest, |(_, name)| name),
        None => title,
    };
    match name.split_once('[') {
        Some((name, parameters)) => format!("{}[{parameters}", name.replace('.', "::")),
        None => name.replace('.', "::"),
    }
}

/// Returns `TestA::test_b` for `tests/test_a.py::TestA::test_b`. An id that is only a path is returned
/// unchanged.
fn name_of_id(id: &str) -> &str {
    let end = id.find('[').unwrap_or(id.len());
    id[..end].find("::").map_or(id, |at| &id[at + 2..])
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use super::super::super::testing::Texts;
    use super::*;

    #[test]
    fn titles_match_their_ids() {
        let check = |title: &str, listed: &str, message: &str| {
            let (id, said) = split_message(listed);
            assert_eq!(name_of_title(title), name_of_id(id), "{listed}");
            assert_eq!(said, message, "{listed}");
        };
        check("test_a", "t/a.py::test_a - assert 1 == 2", "assert 1 == 2");
        check("TestA.test_b", "t/a.py::TestA::test_b", "");
        check("test_c[a - b]", "a.py::test_c[a - b] - no", "no");
        check("test_c[1.5-x]", "a.py::test_c[1.5-x]", "");
        check(
            "ERROR at setup of A.test_d",
            "a.py::A::test_d - E: x",
            "E: x",
        );
        check(
            "ERROR collecting t/x.py",
            "t/x.py - ImportError",
            "ImportError",
        );
        check(
            "test_e",
            "a.py::test_e - list[0] - [1] - [2]",
            "list[0] - [1] - [2]",
        );
    }

    /// Proves OUT-7.
    #[test]
    fn failure_is_shown_with_its_summary_line() {
        let mut briefs = Briefs::default();
        let mut out = Texts::default();
        let line = |text| Line { number: 1, text };
        for name in ["A.test_a", "test_b"] {
            briefs.begin(name, line(""), &mut out);
            let mut sink = briefs.sink().unwrap();
            sink.keep(line("E       ValueError: 7 is too much"));
            sink.keep(line("a.py:4: ValueError"));
        }
        assert!(briefs.listed(
            line("FAILED a.py::A::test_a - ValueError: 7 is to..."),
            &mut out
        ));
        assert!(!briefs.listed(
            line("FAILED a.py::A::test_a - ValueError: 7 is to..."),
            &mut out
        ));
        assert!(!briefs.listed(line("FAILED a.py::test_c"), &mut out));
        briefs.finish(&mut out);
        assert_eq!(
            out.0,
            [
                "FAILED a.py::A::test_a - ValueError: 7 is to... --> a.py:4: ValueError (A.test_a)",
                "E       ValueError: 7 is too much",
                "__ test_b __",
                "E       ValueError: 7 is too much",
                "a.py:4: ValueError",
            ]
        );
    }
}
