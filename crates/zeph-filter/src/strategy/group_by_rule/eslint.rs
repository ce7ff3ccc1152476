//! Parser for ESLint: the `stylish` format (a file, then lines of place, level, message and rule), `unix` and
//! `compact`.
//!
//! Stylelint and other tools also print the `stylish` format.

use super::by_file::{Reader, Remark, Remarks, keep_behind, release};
use super::{Line, OwnedLine, Sink};

#[derive(Default)]
struct Eslint {
    /// A line that is the name of a file if a diagnostic follows.
    maybe_file: Option<OwnedLine>,
    file: String,
}

pub(super) fn start() -> Box<dyn Reader> {
    Box::new(Eslint::default())
}

/// Splits after a position such as `12:5`.
fn position(text: &str) -> Option<(&str, &str)> {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let line = digits(text);
    let rest = text[line..].strip_prefix(':').filter(|_| line > 0)?;
    let column = digits(rest);
    (column > 0).then(|| text.split_at(line + 1 + column))
}

/// Parses `  12:5  error  'x' is not defined  no-undef`.
fn stylish(text: &str) -> Option<Remark<'_>> {
    let (place, rest) = position(text.trim_ascii_start())?;
    let rest = rest.strip_prefix(' ')?.trim_ascii();
    let level = match rest.as_bytes().first()? {
        b'e' => "error",
        b'w' => "warning",
        _ if rest.starts_with('✖') => "✖",
        _ => "⚠",
    };
    let rest = rest.strip_prefix(level)?.strip_prefix(' ')?;
    let rest = rest.trim_ascii_start();
    // A message may end without a rule: a file that cannot be parsed.
    let (message, code) = match rest.rsplit_once("  ") {
        Some((message, code)) if !code.contains(' ') => (message.trim_ascii_end(), code),
        _ => (rest, ""),
    };
    Some(Remark {
        level,
        code,
        message,
        file: "",
        place,
    })
}

/// Parses `/src/a.js:12:5: message [Error/no-undef]`.
fn unix(text: &str) -> Option<Remark<'_>> {
    let (rest, what) = text.strip_suffix(']')?.rsplit_once(" [")?;
    let (level, code) = what.split_once('/').unwrap_or((what, ""));
    if !["Error", "Warning"].contains(&level) {
        return None;
    }
    let (place, message) = rest.split_once(": ")?;
    let (path, _) = place.rsplit_once(':')?;
    path.contains(':').then_some(Remark {
        level,
        code,
        message,
        file: "",
        place,
    })
}

/// Parses `/src/a.js: line 12, col 5, Error - message (no-undef)`.
fn compact(text: &str) -> Option<Remark<'_>> {
    let (file, rest) = text.split_once(": line ")?;
    let level_at = rest
        .find(", Error - ")
        .or_else(|| rest.find(", Warning - "))?;
    let place_end = text.len() - rest.len() + level_at;
    let place = &text[file.len() + 2..place_end];
    let (level, message) = rest[level_at + 2..].split_once(" - ")?;
    let (message, code) = match message
        .strip_suffix(')')
        .and_then(|rest| rest.rsplit_once(" ("))
    {
        Some((message, code)) if !code.contains(' ') => (message, code),
        _ => (message, ""),
    };
    Some(Remark {
        level,
        code,
        message,
        file,
        place,
    })
}

impl Reader for Eslint {
    fn line(&mut self, line: Line<'_>, remarks: &mut Remarks, out: &mut dyn Sink) {
        let text = line.text;
        if text.trim_ascii().is_empty() {
            return;
        }
        let indented = text.starts_with([' ', '\t']);
        if indented && let Some(remark) = stylish(text) {
            if let Some(held) = self.maybe_file.take() {
                self.file = held.text;
            }
            let file = &self.file;
            remarks.add(line.number, Remark { file, ..remark }, out);
            return;
        }
        release(&mut self.maybe_file, remarks, out);
        if let Some(remark) = unix(text).or_else(|| compact(text)) {
            remarks.add(line.number, remark, out);
        } else if indented || text.starts_with('✖') {
            keep_behind(line, remarks, out);
        } else {
            self.maybe_file = Some(line.into());
        }
    }

    fn finish(&mut self, remarks: &mut Remarks, out: &mut dyn Sink) {
        release(&mut self.maybe_file, remarks, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_is_read() {
        let check = |remark: Option<Remark<'_>>, expect: (&str, &str, &str, &str)| {
            let remark = remark.map(|r| (r.level, r.code, r.message, r.place));
            assert_eq!(remark, Some(expect));
        };
        check(
            stylish("   9:7   error    'a  b' is never used   @typescript-eslint/no-unused-vars"),
            (
                "error",
                "@typescript-eslint/no-unused-vars",
                "'a  b' is never used",
                "9:7",
            ),
        );
        check(
            stylish("  4:1  error  Parsing error: Unexpected token }"),
            ("error", "", "Parsing error: Unexpected token }", "4:1"),
        );
        check(
            unix("/src/a.js:2:10: 'm' is unused. [Error/no-unused-vars]"),
            (
                "Error",
                "no-unused-vars",
                "'m' is unused.",
                "/src/a.js:2:10",
            ),
        );
        check(
            compact("/src/a.js: line 2, col 10, Warning - Too long. (max-len)"),
            ("Warning", "max-len", "Too long.", "line 2, col 10"),
        );
        assert_eq!(stylish("  src/a.js"), None);
        assert_eq!(unix("at x [Error/y]"), None);
    }
}
