//! Private keys in textual form (RFC 7468 and similar formats: OpenSSH, PGP, RFC 4716), from BEGIN to END, on one line
//! or on many.

use std::ops::Range;

use super::line_buffer::{Line, is_base64};

/// The literals that are searched.
pub(super) const LITERALS: &[&str] = &["-----BEGIN ", "---- BEGIN "];

/// The maximum length in characters of a key on one line.
pub(super) const MAX_KEY_CHARS: usize = 16 * 1024;
/// The minimum number of base64 characters in a key.
const MIN_KEY_CHARS: usize = 16;
/// The width from which on a line of base64 belongs to a key, regardless of the line before it.
const WIDE: usize = 40;
/// The maximum number of bytes before a line of a key: a file name with a line number, or the time in a log.
const PREFIX: usize = 240;

/// The text that begins at a BEGIN literal.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Beginning {
    /// A whole key.
    Whole(Range<usize>),
    /// A key with its first part on this line.
    Part(usize),
    /// A header that begins a key if the next lines belong to one.
    Header(usize),
}

/// Finds the key that begins at `at`, the position of one of [`LITERALS`].
pub(super) fn find(line: &Line<'_>, at: usize) -> Option<Beginning> {
    let start = at;
    let label = at + LITERALS[0].len();
    let end = line.run(label, 60, |byte| {
        byte.is_ascii_alphanumeric() || byte == b' '
    });
    if !line.slice(label, end).contains("PRIVATE KEY") {
        return None;
    }
    let body = line.run(end, 5, |byte| byte == b'-');
    if body - end < 4 {
        return None;
    }
    // Escaped line breaks, quotes and signs of programs can be between the parts of a key on one line.
    let is_body = |byte: u8| {
        is_base64(byte)
            || matches!(
                byte,
                b' ' | b'\\'
                    | b'"'
                    | b'\''
                    | b','
                    | b'\t'
                    | b'\r'
                    | b':'
                    | b'.'
                    | b'('
                    | b')'
                    | b'%'
                    | b'_'
                    | b';'
                    | b'|'
                    | b'$'
            )
    };
    let mut stop = line.run(body, MAX_KEY_CHARS, is_body);
    // `Proc-Type`, `DEK-Info` and similar headers, and hyphens of base64url.
    while stop - body < MAX_KEY_CHARS
        && line.at(stop) == Some(b'-')
        && !line.has(stop, "---")
        && !line.has(stop, "-- ")
    {
        stop = line.run(stop + 1, MAX_KEY_CHARS, is_body);
    }
    let text = line.slice(body, stop);
    let amount = base64_amount(text);
    if line.at(stop) == Some(b'-') {
        let dashes = line.run(stop, 5, |byte| byte == b'-');
        let gap = line.run(dashes, 1, |byte| byte == b' ');
        if line.has(gap, "END ") {
            let label = line.run(gap + 4, 60, |byte| {
                byte.is_ascii_alphanumeric() || byte == b' '
            });
            let whole = line.run(label, 5, |byte| byte == b'-');
            return (amount >= MIN_KEY_CHARS).then_some(Beginning::Whole(start..whole));
        }
    }
    if amount >= WIDE {
        return Some(Beginning::Part(start));
    }
    let rest = &line.text()[body..];
    let is_bare = rest
        .trim()
        .trim_end_matches(['"', '\'', '+', ',', '\\', ' ', '`', '(', ')'])
        .trim_end_matches("\\n")
        .trim_end_matches(['\\', ' '])
        .trim_end_matches("\\r")
        .is_empty();
    (is_bare && text.len() <= 80).then_some(Beginning::Header(start))
}

/// The number of base64 characters in a text, without those of escapes and headers.
fn base64_amount(text: &str) -> usize {
    text.split(|c: char| !(c.is_ascii() && is_base64(c as u8)))
        .map(str::len)
        .filter(|length| *length >= 12)
        .sum()
}

/// The role of a line in a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// This number of base64 characters.
    Body(usize),
    /// An empty line, or a header: `Proc-Type: 4,ENCRYPTED`.
    Filler,
    /// The end of the key, at this position.
    End(usize),
    /// A line that does not belong to the key.
    Other,
}

/// The role of a line in a key. `prefix` is the normalized prefix of the key's lines, from [`prefix`].
pub(super) fn part(line: &str, prefix: &str) -> Part {
    if let Some(at) = line.find("--END ").or_else(|| line.find("-- END "))
        && line[at..].contains("PRIVATE KEY")
    {
        let label = at + line[at..].find("KEY").unwrap_or_default();
        let dashes = line[label..].find("--").map_or(label, |dash| label + dash);
        let end = line[dashes..]
            .bytes()
            .take_while(|byte| *byte == b'-')
            .count();
        return Part::End(dashes + end);
    }
    let text = trimmed(line);
    if is_decoration(text) {
        return Part::Filler;
    }
    let run = text
        .bytes()
        .rev()
        .take_while(|byte| is_base64(*byte))
        .count();
    let (before, body) = text.split_at(text.len() - run);
    let fits = before.len() <= PREFIX && (is_decoration(before) || self::prefix(before) == prefix);
    if fits && !body.is_empty() {
        return Part::Body(body.len());
    }
    if fits || is_header(text) {
        return Part::Filler;
    }
    Part::Other
}

/// A line without the characters that follow base64 in programs and on terminals.
fn trimmed(line: &str) -> &str {
    let mut text = line.trim_end();
    loop {
        let before = text.len();
        text = text.trim_end_matches(['"', '\'', ',', ';', '\\', ' ', '`', ')', '|']);
        for end in ["\" +", "' +", "\\n", "\\r"] {
            text = text.strip_suffix(end).unwrap_or(text);
        }
        // An end can appear before another one, so the loop repeats until no end is left.
        if text.len() == before {
            return text;
        }
    }
}

/// The text before a line of a key, without the parts that differ from line to line.
pub(super) fn prefix(before: &str) -> String {
    let start = before.ceil_char_boundary(before.len().saturating_sub(PREFIX));
    before[start..]
        .chars()
        .filter(|c| !c.is_ascii_digit() && !c.is_whitespace())
        .map(|c| if c == '-' { ':' } else { c })
        .collect()
}

fn is_decoration(before: &str) -> bool {
    before.chars().all(|c| {
        c.is_ascii_digit()
            || c.is_whitespace()
            || matches!(
                c,
                '"' | '\''
                    | '+'
                    | '-'
                    | '>'
                    | '<'
                    | '|'
                    | '#'
                    | '*'
                    | ':'
                    | '.'
                    | '`'
                    | '│'
                    | '→'
                    | '('
                    | ';'
            )
    })
}

fn is_header(text: &str) -> bool {
    [
        "Proc-Type:",
        "DEK-Info:",
        "Comment:",
        "Version:",
        "Hash:",
        "Subject:",
        "Charset:",
    ]
    .iter()
    .any(|name| text.contains(name))
}

/// A key that continues on the next lines.
#[derive(Debug, Clone)]
pub(super) struct Key {
    /// The normalized prefix of its lines.
    prefix: String,
    /// The number of base64 characters per line; 0 before the first line.
    width: usize,
    /// Whether a shorter line was read. The end is next.
    last: bool,
}

impl Key {
    /// Returns a key with `before` before its first line.
    pub(super) fn new(before: &str) -> Self {
        Self {
            prefix: prefix(before),
            width: 0,
            last: false,
        }
    }

    /// Returns a key with its first part on the line of BEGIN.
    pub(super) fn going_on(before: &str) -> Self {
        Self {
            width: WIDE,
            ..Self::new(before)
        }
    }

    /// Takes the next line, and returns its role.
    pub(super) fn take(&mut self, line: &str) -> Part {
        let part = part(line, &self.prefix);
        let Part::Body(run) = part else {
            return part;
        };
        if self.width == 0 {
            if run < MIN_KEY_CHARS {
                return Part::Other;
            }
            self.width = run.min(WIDE.max(run));
            return part;
        }
        if run >= self.width.min(WIDE) && !self.last {
            return part;
        }
        let is_checksum = run == 5
            && trimmed(line).ends_with(|c: char| c != ' ')
            && trimmed(line)[trimmed(line).len() - 5..].starts_with('=');
        if self.last && !is_checksum {
            return Part::Other;
        }
        self.last = true;
        part
    }

    /// Whether a line of it has been seen.
    pub(super) fn is_certain(&self) -> bool {
        self.width > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves OUT-20.
    #[test]
    fn key_lines_are_classified() {
        let wide = "A".repeat(64);
        let check = |line: &str, expect: Part| {
            assert_eq!(part(line, &prefix("k.pem:1:")), expect, "{line:?}")
        };
        check(&wide, Part::Body(64));
        check(&format!("+{wide}\r\n"), Part::Body(65));
        check(&format!("  \"{wide}\\n\" +\n"), Part::Body(64));
        check(&format!("k.pem-12-{wide}\n"), Part::Body(64));
        check(&format!("   12\t{wide}\n"), Part::Body(64));
        check("\n", Part::Filler);
        check("Proc-Type: 4,ENCRYPTED\n", Part::Filler);
        check("some words here\n", Part::Other);
        check("-----END PRIVATE KEY----- x\n", Part::End(25));
        check("-----END CERTIFICATE-----\n", Part::Other);
    }
}
