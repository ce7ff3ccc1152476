//! Credentials in URLs: `scheme://user:password@host`, `?sig=…`.

use std::ops::Range;

use super::kind::Kind;
use super::line::Line;
use super::token;
use super::value::{is_placeholder, is_wordy, variety};

/// What is looked for.
pub(super) const LITERALS: &[&str] = &["://", "sig="];

/// The most characters of what stands before the host.
const LONGEST: usize = 1024;

/// The value that begins behind what was found.
pub(super) fn find(line: &Line<'_>, at: usize) -> Option<(Range<usize>, Kind)> {
    if line.has(at, "sig=") {
        return signature(line, at);
    }
    if !line
        .before(at)
        .is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'+')
    {
        return None;
    }
    let start = at + 3;
    if line.lacks(start, LONGEST, b'@') {
        return None;
    }
    // RFC 3986, section 3.2: the authority ends with the next of these, or what cannot be in it.
    let ends = |byte: u8| {
        byte.is_ascii_whitespace()
            || matches!(
                byte,
                b'/' | b'?'
                    | b'#'
                    | b'"'
                    | b'\''
                    | b'`'
                    | b'<'
                    | b'>'
                    | b'\\'
                    | b'|'
                    | b'^'
                    | b'}'
                    | b'{'
            )
    };
    let end = line.run(start, LONGEST, |byte| !ends(byte));
    let authority = line.slice(start, end);
    let at_sign = authority.rfind('@')?;
    let (user, password) = match authority[..at_sign].split_once(':') {
        Some((user, password)) => (user, Some(password)),
        None => (&authority[..at_sign], None),
    };
    let host = &authority[at_sign + 1..];
    if host.is_empty()
        || !host
            .starts_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '[' | '$' | '%' | '_'))
    {
        return None;
    }
    let range = match password {
        Some(password) => {
            let from = start + user.len() + 1;
            from..from + password.len()
        }
        // A token in place of the user.
        None => start..start + user.len(),
    };
    let value = line.slice(range.start, range.end);
    if let Some((found, kind)) = token::find(line, range.start)
        && found.end >= range.end
    {
        return Some((range, kind));
    }
    let fits = match password {
        Some(_) => is_password(value),
        None => {
            value.len() >= 20
                && !is_wordy(value)
                && !is_placeholder(value)
                && value.bytes().any(|byte| byte.is_ascii_digit())
        }
    };
    fits.then_some((range, Kind::URL))
}

/// Whether what stands between `:` and `@` is no word that stands for a password.
fn is_password(text: &str) -> bool {
    const WORDS: &[&str] = &[
        "pass",
        "password",
        "passwd",
        "pwd",
        "pw",
        "secret",
        "token",
        "user",
        "username",
        "x",
        "p",
        "key",
        "test",
        "foo",
        "bar",
        "baz",
        "guest",
        "root",
        "admin",
        "postgres",
        "mysql",
        "x-oauth-basic",
    ];
    let lower = text
        .trim_end_matches(|c: char| c.is_ascii_digit())
        .to_ascii_lowercase();
    text.len() >= 4
        && !WORDS.contains(&lower.as_str())
        && !text.starts_with(['$', '{', '[', '(', '*', '%'])
        && !text.contains(['$', ',', ')', '('])
        && !is_placeholder(text)
        && variety(text) >= 3
        && !text.contains(':')
        && !(text.bytes().all(|byte| byte.is_ascii_digit()) && text.len() <= 5)
}

/// The signature of a shared access signature: base64 of 32 bytes, percent-encoded.
fn signature(line: &Line<'_>, at: usize) -> Option<(Range<usize>, Kind)> {
    if !matches!(line.before(at), Some(b'?' | b'&' | b';')) {
        return None;
    }
    let start = at + "sig=".len();
    let end = line.run(start, 256, |byte| {
        super::line::is_base64(byte) || byte == b'%'
    });
    let value = line.slice(start, end);
    (value.len() >= 43 && variety(value) >= 16).then_some((start..end, Kind::AZURE))
}
