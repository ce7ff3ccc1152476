//! Parser for the TypeScript compiler: `src/a.ts(1,2): error TS2304: …`, or `src/a.ts:1:2 - error TS2304: …`
//! with a source excerpt (`--pretty`).

use super::by_file::{Reader, Remark, Remarks, keep_behind};
use super::{Line, OwnedLine, Sink};

#[derive(Default)]
struct Tsc {
    /// The last diagnostic, because an explanation may follow. Its memory is reused.
    last: OwnedLine,
    parts: Option<Parts>,
    pretty: bool,
    /// True inside the source excerpt after a diagnostic.
    excerpt: bool,
    /// True inside the table of errors by file.
    table: bool,
}

pub(super) fn start() -> Box<dyn Reader> {
    Box::new(Tsc::default())
}

/// The positions of the parts of a diagnostic.
#[derive(Debug, Clone, Copy)]
struct Parts {
    place: usize,
    level: &'static str,
    /// Start and end of the rule.
    code: (usize, usize),
    message: usize,
    /// True for the `--pretty` form.
    pretty: bool,
}

impl Parts {
    fn of(self, text: &str) -> Remark<'_> {
        Remark {
            level: self.level,
            code: &text[self.code.0..self.code.1],
            message: &text[self.message..],
            file: "",
            place: &text[..self.place],
        }
    }
}

/// Parses the parts of a diagnostic.
fn diagnostic(text: &str) -> Option<Parts> {
    let at = text.find(" TS").filter(|_| !text.starts_with(' '))?;
    let digits = text[at + 3..]
        .bytes()
        .take_while(u8::is_ascii_digit)
        .count();
    let message = text[at + 3 + digits..]
        .strip_prefix(": ")
        .filter(|_| digits > 0)?;
    let before = &text[..at];
    let (place, level, pretty) = match before.rsplit_once(" - ") {
        Some((place, level)) => (place, level, true),
        None => match before.rsplit_once(": ") {
            Some((place, level)) => (place, level, false),
            None => ("", before, false),
        },
    };
    let known = ["error", "warning", "message", "suggestion"];
    Some(Parts {
        place: place.len(),
        level: known.into_iter().find(|known| *known == level)?,
        code: (at + 1, at + 3 + digits),
        message: text.len() - message.len(),
        pretty,
    })
}

/// Returns true for a diagnostic of the compiler.
pub(super) fn is_diagnostic(text: &str) -> bool {
    diagnostic(text).is_some()
}

/// Returns true for a line of source or a line that marks a part of it: `7   use(1)`, `      ~~~`.
pub(super) fn is_source(text: &str) -> bool {
    let text = text.trim_ascii_start();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    if digits > 0 {
        return text[digits..].is_empty() || text[digits..].starts_with(' ');
    }
    text.starts_with('~') && text.bytes().all(|byte| b"~ ".contains(&byte)) || text == "..."
}

impl Tsc {
    /// Completes the last diagnostic.
    fn close(&mut self, remarks: &mut Remarks, out: &mut dyn Sink) {
        if let Some(parts) = self.parts.take() {
            remarks.add(self.last.number, parts.of(&self.last.text), out);
        }
    }
}

impl Reader for Tsc {
    fn line(&mut self, line: Line<'_>, remarks: &mut Remarks, out: &mut dyn Sink) {
        let text = line.text;
        if text.trim_ascii().is_empty() {
            self.excerpt = self.pretty;
            return;
        }
        if let Some(parts) = diagnostic(text) {
            self.close(remarks, out);
            self.last.set(line);
            self.parts = Some(parts);
            (self.pretty, self.excerpt, self.table) = (parts.pretty, false, false);
            return;
        }
        let indented = text.starts_with([' ', '\t']);
        if self.excerpt && is_source(text) {
            return;
        }
        if self.table && indented {
            return;
        }
        if text.starts_with("Errors  Files") {
            self.table = true;
            return;
        }
        if indented {
            // The line explains the last diagnostic, so both are emitted unchanged.
            if self.parts.take().is_some() {
                remarks.understood();
                out.keep(self.last.line());
            }
            out.keep(line);
            return;
        }
        self.close(remarks, out);
        self.excerpt = false;
        keep_behind(line, remarks, out);
    }

    fn finish(&mut self, remarks: &mut Remarks, out: &mut dyn Sink) {
        self.close(remarks, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_read() {
        let check = |text, expect: (&str, &str, &str, bool)| {
            let read = diagnostic(text).map(|parts| {
                let remark = parts.of(text);
                (remark.place, remark.code, remark.message, parts.pretty)
            });
            assert_eq!(read, Some(expect));
        };
        check(
            "src/a.ts(6,9): error TS6133: 'x' is unused.",
            ("src/a.ts(6,9)", "TS6133", "'x' is unused.", false),
        );
        check(
            "src/a.ts:6:9 - error TS6133: 'x' is unused.",
            ("src/a.ts:6:9", "TS6133", "'x' is unused.", true),
        );
        check(
            "error TS18003: No inputs were found.",
            ("", "TS18003", "No inputs were found.", false),
        );
        assert!(diagnostic("Found 2 errors. Watching TS files").is_none());
        assert!(
            is_source("12   use(1)") && is_source("      ~~~") && !is_source("    'b' is here.")
        );
    }
}
