//! The important lines of a long output: its end, and the lines before it that look like errors.

/// Lines at the end.
const MAX_LAST: usize = 8;
/// Lines that look like errors.
const MAX_ERRORS: usize = 6;

/// Words of lines that report an error. They are compared without regard to case.
const ERROR_WORDS: [&str; 8] = [
    "error",
    "failed",
    "failure",
    "panicked",
    "fatal",
    "exception",
    "traceback",
    "denied",
];

/// A part of an excerpt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Excerpt<'a> {
    /// A line at the end.
    Line(&'a str),
    /// A line that looks like an error.
    Error(&'a str),
    /// The number of lines that are hidden at this place.
    Hidden(u64),
}

/// The last lines of an output and its first errors. `total` is the number of lines that were printed; the lines that
/// are missing in `lines` count as hidden.
pub(super) fn excerpt<'a>(lines: &[&'a str], total: u64) -> Vec<Excerpt<'a>> {
    let count = u64::try_from(lines.len()).unwrap_or(u64::MAX);
    let mut hidden = total.saturating_sub(count);
    // A single hidden line takes as much room as the remark about it.
    let first_shown = match lines.len().saturating_sub(MAX_LAST) {
        1 if hidden == 0 => 0,
        first => first,
    };
    let mut parts = Vec::new();
    let mut errors = 0;
    for line in &lines[..first_shown] {
        if errors < MAX_ERRORS && is_error(line) {
            errors += 1;
            push_hidden(&mut parts, &mut hidden);
            parts.push(Excerpt::Error(line));
        } else {
            hidden += 1;
        }
    }
    push_hidden(&mut parts, &mut hidden);
    parts.extend(lines[first_shown..].iter().map(|line| Excerpt::Line(line)));
    parts
}

fn push_hidden(parts: &mut Vec<Excerpt<'_>>, hidden: &mut u64) {
    if *hidden > 0 {
        parts.push(Excerpt::Hidden(*hidden));
        *hidden = 0;
    }
}

/// Whether a line reports an error: it has one of the words, and does not count zero of them.
fn is_error(line: &str) -> bool {
    let line = line.to_ascii_lowercase();
    let is_none = |word: &str| {
        ["0 ", "no "]
            .iter()
            .any(|none| line.contains(&format!("{none}{word}")))
    };
    ERROR_WORDS
        .iter()
        .any(|word| line.contains(word) && !is_none(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(lines: &[&str], total: u64) -> Vec<String> {
        let line = |part: Excerpt<'_>| match part {
            Excerpt::Line(line) => line.to_owned(),
            Excerpt::Error(line) => format!("! {line}"),
            Excerpt::Hidden(count) => format!("({count})"),
        };
        excerpt(lines, total).into_iter().map(line).collect()
    }

    /// Proves CLI-4b: a long result shows its end and its errors.
    #[test]
    fn excerpt_has_the_end_and_the_errors() {
        let mut lines = vec!["line"; 100];
        lines[10] = "error[E0308]: mismatched types";
        lines[20] = "test result: ok. 3 passed; 0 failed";
        lines[99] = "the end";
        let mut expect = vec!["(10)", "! error[E0308]: mismatched types", "(81)"];
        expect.extend(vec!["line"; 7]);
        expect.push("the end");
        assert_eq!(shown(&lines, 100), expect);
        let many = vec!["error"; 100];
        assert_eq!(
            shown(&many, 100)
                .iter()
                .filter(|line| *line == "! error")
                .count(),
            6
        );
    }

    #[test]
    fn short_output_is_complete() {
        assert_eq!(shown(&["a", "b"], 2), ["a", "b"]);
        assert_eq!(shown(&["a"; 9], 9), ["a"; 9]);
        assert_eq!(shown(&["a"; 2], 50), ["(48)", "a", "a"]);
        assert_eq!(shown(&[], 0), [""; 0]);
    }
}
