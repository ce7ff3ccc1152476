//! Tokens that begin with a prefix of their own.
//!
//! The formats are those that the services document, or that their secret-scanning partners
//! publish.

use std::ops::Range;

use super::kind::Kind;
use super::line_buffer::{Line, is_alphanumeric, is_word};
use super::value::{is_placeholder, turns, variety};

/// How a token goes on behind its prefix.
struct Shape {
    prefix: &'static str,
    kind: Kind,
    chars: fn(u8) -> bool,
    /// The fewest and the most characters behind the prefix.
    length: Range<usize>,
    needs: EntropyRule,
}

/// What a run of characters must have to be no word.
#[derive(Clone, Copy, PartialEq)]
enum EntropyRule {
    /// Nothing more: the prefix says it all.
    Nothing,
    /// A digit and a letter, or upper and lower case as no word has them.
    Digit,
    /// Upper and lower case as no word has them.
    Cases,
    /// A run of 20 letters and digits, with both.
    LongRun,
}

const LONG: usize = 4096;

fn is_upper(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit()
}

fn is_dotted(byte: u8) -> bool {
    is_word(byte) || byte == b'.'
}

fn is_snake(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn is_hex(byte: u8) -> bool {
    byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte)
}

const fn shape(
    prefix: &'static str,
    kind: Kind,
    chars: fn(u8) -> bool,
    length: Range<usize>,
    needs: EntropyRule,
) -> Shape {
    Shape {
        prefix,
        kind,
        chars,
        length,
        needs,
    }
}

/// Longer prefixes stand before their own beginnings.
const SHAPES: &[Shape] = &[
    shape("AKIA", Kind::AWS, is_upper, 16..16, EntropyRule::Nothing),
    shape("ASIA", Kind::AWS, is_upper, 16..16, EntropyRule::Nothing),
    shape("ABIA", Kind::AWS, is_upper, 16..16, EntropyRule::Nothing),
    shape("ACCA", Kind::AWS, is_upper, 16..16, EntropyRule::Nothing),
    shape("AIza", Kind::GOOGLE, is_word, 35..35, EntropyRule::Nothing),
    shape(
        "GOCSPX-",
        Kind::GOOGLE,
        is_word,
        24..32,
        EntropyRule::Nothing,
    ),
    shape(
        "ya29.",
        Kind::GOOGLE,
        is_dotted,
        30..LONG,
        EntropyRule::Digit,
    ),
    shape(
        "github_pat_",
        Kind::GITHUB,
        is_snake,
        40..120,
        EntropyRule::Digit,
    ),
    shape("ghp_", Kind::GITHUB, is_snake, 30..255, EntropyRule::Digit),
    shape("gho_", Kind::GITHUB, is_snake, 30..255, EntropyRule::Digit),
    shape("ghu_", Kind::GITHUB, is_snake, 30..255, EntropyRule::Digit),
    shape(
        "ghs_",
        Kind::GITHUB,
        is_dotted,
        30..LONG,
        EntropyRule::Digit,
    ),
    shape("ghr_", Kind::GITHUB, is_snake, 30..255, EntropyRule::Digit),
    shape(
        "glpat-",
        Kind::GITLAB,
        is_dotted,
        20..300,
        EntropyRule::Nothing,
    ),
    shape("gldt-", Kind::GITLAB, is_word, 20..64, EntropyRule::Nothing),
    shape(
        "glrt-",
        Kind::GITLAB,
        is_dotted,
        20..300,
        EntropyRule::Nothing,
    ),
    shape(
        "glptt-",
        Kind::GITLAB,
        is_word,
        40..64,
        EntropyRule::Nothing,
    ),
    shape(
        "glcbt-",
        Kind::GITLAB,
        is_word,
        20..80,
        EntropyRule::Nothing,
    ),
    shape("glft-", Kind::GITLAB, is_word, 20..64, EntropyRule::Nothing),
    shape(
        "glsoat-",
        Kind::GITLAB,
        is_word,
        20..64,
        EntropyRule::Nothing,
    ),
    shape(
        "glimt-",
        Kind::GITLAB,
        is_word,
        20..64,
        EntropyRule::Nothing,
    ),
    shape(
        "glagent-",
        Kind::GITLAB,
        is_word,
        40..64,
        EntropyRule::Nothing,
    ),
    shape(
        "GR1348941",
        Kind::GITLAB,
        is_word,
        20..40,
        EntropyRule::Nothing,
    ),
    shape(
        "npm_",
        Kind::REGISTRY,
        is_alphanumeric,
        36..36,
        EntropyRule::Digit,
    ),
    shape(
        "pypi-AgE",
        Kind::REGISTRY,
        is_word,
        50..LONG,
        EntropyRule::Digit,
    ),
    shape(
        "rubygems_",
        Kind::REGISTRY,
        is_hex,
        48..48,
        EntropyRule::Digit,
    ),
    shape(
        "dckr_pat_",
        Kind::REGISTRY,
        is_word,
        24..64,
        EntropyRule::Nothing,
    ),
    shape(
        "xoxe.xox",
        Kind::SLACK,
        is_word,
        20..400,
        EntropyRule::Digit,
    ),
    shape("xox", Kind::SLACK, is_word, 20..400, EntropyRule::Digit),
    shape("xapp-", Kind::SLACK, is_word, 20..400, EntropyRule::Digit),
    shape(
        "sk_live_",
        Kind::STRIPE,
        is_alphanumeric,
        16..255,
        EntropyRule::Digit,
    ),
    shape(
        "sk_test_",
        Kind::STRIPE,
        is_alphanumeric,
        16..255,
        EntropyRule::Digit,
    ),
    shape(
        "rk_live_",
        Kind::STRIPE,
        is_alphanumeric,
        16..255,
        EntropyRule::Digit,
    ),
    shape(
        "rk_test_",
        Kind::STRIPE,
        is_alphanumeric,
        16..255,
        EntropyRule::Digit,
    ),
    shape(
        "whsec_",
        Kind::STRIPE,
        super::line_buffer::is_base64,
        24..128,
        EntropyRule::Digit,
    ),
    shape(
        "sk-ant-",
        Kind::ANTHROPIC,
        is_word,
        24..255,
        EntropyRule::Digit,
    ),
    shape(
        "sk-proj-",
        Kind::OPENAI,
        is_word,
        20..255,
        EntropyRule::Digit,
    ),
    shape(
        "sk-svcacct-",
        Kind::OPENAI,
        is_word,
        20..255,
        EntropyRule::Digit,
    ),
    shape(
        "sk-admin-",
        Kind::OPENAI,
        is_word,
        20..255,
        EntropyRule::Digit,
    ),
    shape(
        "sk-or-v1-",
        Kind::OPENAI,
        is_word,
        20..255,
        EntropyRule::Digit,
    ),
    shape("sk-", Kind::OPENAI, is_word, 20..255, EntropyRule::LongRun),
    shape(
        "hf_",
        Kind::HUGGINGFACE,
        is_alphanumeric,
        30..40,
        EntropyRule::Cases,
    ),
    shape(
        "api_org_",
        Kind::HUGGINGFACE,
        is_alphanumeric,
        30..40,
        EntropyRule::Cases,
    ),
    shape("SG.", Kind::SERVICE, is_dotted, 60..80, EntropyRule::Digit),
    shape("SK", Kind::SERVICE, is_hex, 32..32, EntropyRule::Digit),
    shape("key-", Kind::SERVICE, is_hex, 32..32, EntropyRule::Digit),
    shape("dop_v1_", Kind::SERVICE, is_hex, 64..64, EntropyRule::Digit),
    shape("shpat_", Kind::SERVICE, is_hex, 32..32, EntropyRule::Digit),
    shape(
        "gsk_",
        Kind::SERVICE,
        is_alphanumeric,
        40..64,
        EntropyRule::Digit,
    ),
    shape(
        "xai-",
        Kind::SERVICE,
        is_alphanumeric,
        60..100,
        EntropyRule::Digit,
    ),
    shape(
        "r8_",
        Kind::SERVICE,
        is_alphanumeric,
        37..37,
        EntropyRule::Digit,
    ),
    shape(
        "lin_api_",
        Kind::SERVICE,
        is_alphanumeric,
        32..48,
        EntropyRule::Digit,
    ),
    shape(
        "ntn_",
        Kind::SERVICE,
        is_alphanumeric,
        40..50,
        EntropyRule::Digit,
    ),
    shape("glsa_", Kind::SERVICE, is_snake, 32..48, EntropyRule::Digit),
    shape("hvs.", Kind::SERVICE, is_word, 24..200, EntropyRule::Digit),
    shape(
        "AGE-SECRET-KEY-1",
        Kind::PRIVATE_KEY,
        is_upper,
        50..64,
        EntropyRule::Digit,
    ),
];

/// The prefixes that are looked for: those of [`SHAPES`] and what they share.
pub(super) const LITERALS: &[&str] = &[
    "AKIA",
    "ASIA",
    "ABIA",
    "ACCA",
    "AIza",
    "GOCSPX-",
    "ya29.",
    "github_pat_",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "glpat-",
    "gldt-",
    "glrt-",
    "glptt-",
    "glcbt-",
    "glft-",
    "glsoat-",
    "glimt-",
    "glagent-",
    "GR1348941",
    "npm_",
    "pypi-AgE",
    "rubygems_",
    "dckr_pat_",
    "xox",
    "xapp-",
    "sk_live_",
    "sk_test_",
    "rk_live_",
    "rk_test_",
    "whsec_",
    "sk-",
    "hf_",
    "api_org_",
    "SG.",
    "key-",
    "dop_v1_",
    "shpat_",
    "gsk_",
    "xai-",
    "r8_",
    "lin_api_",
    "ntn_",
    "glsa_",
    "hvs.",
    "AGE-SECRET-KEY-1",
    "eyJ",
    "hooks.slack.com/services/",
];

/// The token that begins at a place.
pub(super) fn find(line: &Line<'_>, at: usize) -> Option<(Range<usize>, Kind)> {
    let first = line.at(at)?;
    if first == b'e' {
        return jwt(line, at).map(|range| (range, Kind::JWT));
    }
    if first == b'h' && line.has(at, "hooks.slack.com/services/") {
        return webhook(line, at).map(|range| (range, Kind::SLACK));
    }
    let shape = SHAPES
        .iter()
        .find(|shape| shape.prefix.as_bytes()[0] == first && line.has(at, shape.prefix))?;
    let is_joined = line.before(at) == Some(b'_') && is_distinctive(shape.prefix);
    if !is_free(line, at) && !is_joined {
        return None;
    }
    let start = at + shape.prefix.len();
    // `xoxb-`, `xoxp-`, …
    let is_slack = || {
        line.at(start).is_some_and(|byte| byte.is_ascii_lowercase())
            && line.at(start + 1) == Some(b'-')
    };
    if shape.prefix == "xox" && !is_slack() {
        return None;
    }
    let (least, most) = (shape.length.start, shape.length.end);
    let end = line.run(start, most, shape.chars);
    let exact = least == most;
    let more = exact && line.at(end).is_some_and(is_snake);
    if end - start < least || more {
        return None;
    }
    let body = line.slice(start, end).trim_end_matches(['.', '-']);
    let is_random = match shape.needs {
        EntropyRule::Nothing => true,
        EntropyRule::Digit => has_digit_and_letter(body) || is_mixed(body),
        EntropyRule::Cases => is_mixed(body),
        EntropyRule::LongRun => body
            .split(['_', '-'])
            .any(|run| run.len() >= 20 && has_digit_and_letter(run)),
    };
    let fits = is_random && variety(body) >= 8 && !is_placeholder(body);
    fits.then_some((at..start + body.len(), shape.kind))
}

fn has_digit_and_letter(text: &str) -> bool {
    text.bytes().any(|byte| byte.is_ascii_digit())
        && text.bytes().any(|byte| byte.is_ascii_alphabetic())
}

/// Whether upper and lower case follow each other often.
fn is_mixed(text: &str) -> bool {
    turns(text) * 4 >= text.len()
}

/// Whether a word may begin at a place: nothing of a word stands before it, but for an escape
/// (`\n`, `%3D`).
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

/// Whether a prefix marks a token also inside a longer name, such as `tool_ghp_…`.
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
        // Five parts.
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

/// The secret part of an address that takes messages.
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

    use super::*;

    #[test]
    fn each_prefix_is_looked_for() {
        // What begins with two letters is named so where another pattern finds it.
        for shape in SHAPES.iter().filter(|shape| shape.prefix != "SK") {
            let is = |literal: &&&str| {
                shape.prefix.starts_with(**literal) || literal.starts_with(shape.prefix)
            };
            assert!(
                LITERALS.iter().any(|literal| is(&literal)),
                "{}",
                shape.prefix
            );
        }
    }

    /// Proves OUT-21.
    #[test]
    fn token_inside_a_longer_name_is_found() {
        // Joined here, so that no file holds a token.
        let body = "aB3dE6fG9hJ2kL5mN8pQ1rS4tU7vW0xY3zA6";
        let check = |before: &str, prefix: &str, expect: bool| {
            let text = format!("{before}{prefix}{body}");
            let redacted = Arc::new(crate::secrets::SecurityPatterns::default())
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
            Arc::new(crate::secrets::SecurityPatterns::default())
                .redact(&text)
                .text,
            text
        );
    }
}
