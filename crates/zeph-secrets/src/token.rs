//! Search for tokens with a unique prefix.

use std::ops::Range;

use super::kind::Kind;
use super::line_buffer::{Line, is_alphanumeric, is_word};
use super::token_formats::{EntropyRule, FORMATS, LONG, is_snake};
use super::value::{is_placeholder, turns, variety};

/// The token that begins at `at`.
pub(super) fn find(line: &Line<'_>, at: usize) -> Option<(Range<usize>, Kind)> {
    let first = line.at(at)?;
    if first == b'e' {
        return jwt(line, at).map(|range| (range, Kind::JWT));
    }
    if first == b'h' && line.has(at, "hooks.slack.com/services/") {
        return webhook(line, at).map(|range| (range, Kind::SLACK));
    }
    let format = FORMATS
        .iter()
        .find(|format| format.prefix.as_bytes()[0] == first && line.has(at, format.prefix))?;
    let is_joined = line.before(at) == Some(b'_') && is_distinctive(format.prefix);
    if !is_free(line, at) && !is_joined {
        return None;
    }
    let start = at + format.prefix.len();
    // `xoxb-`, `xoxp-`, …
    let is_slack = || {
        line.at(start).is_some_and(|byte| byte.is_ascii_lowercase())
            && line.at(start + 1) == Some(b'-')
    };
    if format.prefix == "xox" && !is_slack() {
        return None;
    }
    let (least, most) = (format.length.start, format.length.end);
    let end = line.run(start, most, format.chars);
    let exact = least == most;
    let more = exact && line.at(end).is_some_and(is_snake);
    if end - start < least || more {
        return None;
    }
    let body = line.slice(start, end).trim_end_matches(['.', '-']);
    let is_random = match format.needs {
        EntropyRule::Nothing | EntropyRule::Certain => true,
        EntropyRule::Digit => has_digit_and_letter(body) || is_mixed(body),
        EntropyRule::Cases => is_mixed(body),
        EntropyRule::LongRun => body
            .split(['_', '-'])
            .any(|run| run.len() >= 20 && has_digit_and_letter(run)),
    };
    // A long value in base64 can contain a word such as `todo` by chance.
    let is_certain = format.needs == EntropyRule::Certain;
    let fits = is_random && variety(body) >= 8 && (is_certain || !is_placeholder(body));
    fits.then_some((at..start + body.len(), format.kind))
}

fn has_digit_and_letter(text: &str) -> bool {
    text.bytes().any(|byte| byte.is_ascii_digit())
        && text.bytes().any(|byte| byte.is_ascii_alphabetic())
}

/// Whether upper and lower case alternate often.
fn is_mixed(text: &str) -> bool {
    turns(text) * 4 >= text.len()
}

/// Whether a token may begin at a position: no character of a word precedes it, except an escape (`\n`, `%3D`).
fn is_free(line: &Line<'_>, at: usize) -> bool {
    match line.before(at) {
        Some(byte) if is_snake(byte) => {
            let two = at >= 2 && line.text().as_bytes()[at - 2] == b'\\';
            let three = at >= 3 && line.text().as_bytes()[at - 3] == b'%';
            (two && matches!(byte, b'n' | b't' | b'r')) || (three && byte.is_ascii_hexdigit())
        }
        _ => true,
    }
}

/// Whether a prefix marks a token also inside of a longer name, such as `tool_ghp_…`.
fn is_distinctive(prefix: &str) -> bool {
    // `cache_key-<digest>` is common and holds no secret.
    prefix.len() >= 4 && prefix != "key-"
}

/// A JSON Web Token (RFC 7519): three parts, or five of an encrypted one (RFC 7516).
fn jwt(line: &Line<'_>, at: usize) -> Option<Range<usize>> {
    if !is_free(line, at) {
        return None;
    }
    let part = |from: usize| line.run(from, 4 * LONG, is_word);
    let header = part(at);
    if header - at < 12 || line.at(header) != Some(b'.') {
        return None;
    }
    let payload = part(header + 1);
    if payload - header < 9 || line.at(payload) != Some(b'.') {
        return None;
    }
    let mut end = part(payload + 1);
    let is_signed = line.slice(header + 1, payload).starts_with("eyJ");
    if !is_signed || end - payload < 17 {
        // An encrypted token has five parts.
        if line.at(end) != Some(b'.') {
            return None;
        }
        let text = part(end + 1);
        if text - end < 9 || line.at(text) != Some(b'.') {
            return None;
        }
        end = part(text + 1);
    }
    Some(at..end)
}

/// The secret part of a Slack webhook address.
fn webhook(line: &Line<'_>, at: usize) -> Option<Range<usize>> {
    let start = at + "hooks.slack.com/services/".len();
    let end = line.run(start, 200, |byte| is_alphanumeric(byte) || byte == b'/');
    let path = line.slice(start, end);
    let fits = path.len() >= 30 && has_digit_and_letter(path) && !is_placeholder(path);
    (fits && variety(path) >= 10).then_some(start..end)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    /// Proves OUT-21.
    #[test]
    fn token_inside_a_longer_name_is_found() {
        // The parts are joined here, so that no file contains a token.
        let body = "aB3dE6fG9hJ2kL5mN8pQ1rS4tU7vW0xY3zA6";
        let check = |before: &str, prefix: &str, expect: bool| {
            let text = format!("{before}{prefix}{body}");
            let redacted = Arc::new(crate::SecurityPatterns::default())
                .redact(&text)
                .text;
            assert_eq!(!redacted.contains(body), expect, "{redacted}");
        };
        check("", "ghp_", true);
        check("tool_", "ghp_", true);
        check("mcp__server__", "ghp_", true);
        check("call_", "gho_", true);
        check("a_", "glpat-", true);
        check("_", "npm_", true);
        check("tool", "ghp_", false);
        let digest = "a1b2c3d4e5f60718293a4b5c6d7e8f90";
        let text = format!("cache_key-{digest}");
        assert_eq!(
            Arc::new(crate::SecurityPatterns::default())
                .redact(&text)
                .text,
            text
        );
    }
}
