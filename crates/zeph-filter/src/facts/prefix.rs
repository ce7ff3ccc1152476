//! Prefixes that loggers and build tools add to a line.

use std::sync::LazyLock;

use regex::bytes::Regex;

use super::matcher::build;

/// The most prefixes of one line.
const MAX_PREFIXES: usize = 6;

/// A time, the number of a build step, the name of a container, a host and its program.
const LOG: &str = r"^(?:#\d+ (?:\d+\.\d+ )?|\d+\.\d{3} |\[?\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?(?: ?(?:Z|UTC|GMT|[+-]\d\d:?\d\d))?\]?:? |\[?\d\d:\d\d:\d\d(?:[.,]\d+)?\]?:? |\[ *\d+\.\d+\] |(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [ \d]\d \d\d:\d\d:\d\d (?:\S+ )?[\w./@()-]+(?:\[\d+\])?: |[\w.-]+ +\| |\[[a-z\d@][\w./:@ -]*\] |remote: |stderr: |##\[\w+\] ?)";
/// The margins of boxes and trees. Indentation alone is not a prefix: an indented line belongs to the one before it.
const MARGIN: &str = r"^[ \t]*(?:│|┃|\||╷|┌|└|├|╰|╭|>|•|╵|┆)+ ?";

static LOG_PATTERN: LazyLock<Option<Regex>> = LazyLock::new(|| build(LOG));
static MARGIN_PATTERN: LazyLock<Option<Regex>> = LazyLock::new(|| build(MARGIN));

fn strip<'t>(pattern: &LazyLock<Option<Regex>>, text: &'t str) -> Option<&'t str> {
    let found = pattern.as_ref()?.find(text.as_bytes())?;
    text.get(found.end()..)
}

/// The line without the prefixes of loggers; its indentation stays.
pub(super) fn without_log_prefix(text: &str) -> &str {
    let mut rest = text;
    for _ in 0..MAX_PREFIXES {
        match strip(&LOG_PATTERN, rest) {
            Some(shorter) => rest = shorter,
            None => break,
        }
    }
    rest
}

/// The line without prefixes and margins.
pub(super) fn without_prefix(text: &str) -> &str {
    let mut rest = text;
    for _ in 0..MAX_PREFIXES {
        let shorter = strip(&LOG_PATTERN, rest).or_else(|| strip(&MARGIN_PATTERN, rest));
        match shorter {
            Some(shorter) => rest = shorter,
            None => break,
        }
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves OUT-7a.
    #[test]
    fn prefixes_are_stripped() {
        let check = |text: &str, expect: &str| assert_eq!(without_prefix(text), expect, "{text}");
        check("error: a", "error: a");
        check("#12 1.234 npm warn x", "npm warn x");
        check("#12 ERROR: x", "ERROR: x");
        check("2026-11-24T10:00:00.123Z error", "error");
        check("2026-11-24 10:00:00,123 Traceback", "Traceback");
        check("[2026-11-24 10:00:00] x", "x");
        check("10:00:00 x", "x");
        check("[   12.345678] Killed process", "Killed process");
        check("Nov 24 10:00:00 host prog[12]: x", "x");
        check("web-1  | Killed", "Killed");
        check("[web] Error: x", "Error: x");
        check("│ Error: x", "Error: x");
        check("  |   | ValueError: 1", "ValueError: 1");
        check("remote: error: x", "error: x");
        check("  x", "  x");
        check("a | b", "b");
        check("0.700 x", "x");
        check("", "");
        assert_eq!(without_log_prefix("#5 1.0   File"), "  File");
        assert_eq!(without_log_prefix("web-1  |   File"), "  File");
    }
}
