//! Credentials in URLs: `scheme://user:password@host`, `?sig=…`.

use std::ops::Range;

use super::kind::Kind;
use super::line_buffer::Line;
use super::token;
use super::value::{is_placeholder, is_wordy, variety};

/// The literals that are searched.
pub(super) const LITERALS: &[&str] = &["://", "sig="];

/// The maximum number of characters before the host.
const MAX_PREFIX_CHARS: usize = 1024;

/// The value that follows the literal at `at`.
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
    if line.lacks(start, MAX_PREFIX_CHARS, b'@') {
        return None;
    }
    let end = line.run(start, MAX_PREFIX_CHARS, |byte| !ends_authority(byte));
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
        // Without a password, the user can be a token.
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

/// Whether a byte ends the authority (RFC 3986, section 3.2), or is not valid in it.
fn ends_authority(byte: u8) -> bool {
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
}

/// Whether the URL at a literal has no user part, so that it holds no value. Most URLs have none. `text` has whole
/// lines.
pub(super) fn is_bare(text: &[u8], at: usize) -> bool {
    let Some(rest) = text.get(at..).and_then(|rest| rest.strip_prefix(b"://")) else {
        return false;
    };
    let rest = &rest[..MAX_PREFIX_CHARS.min(rest.len())];
    let mut ends = rest
        .iter()
        .filter(|byte| **byte == b'@' || ends_authority(**byte));
    ends.next() != Some(&b'@')
}

/// Whether the text between `:` and `@` is a password, not a common word or a placeholder.
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
        && (!text.contains(['$', ',', ')', '(', ':']) || is_generated(text))
        && !is_placeholder(text)
        && variety(text) >= 3
        && !(text.bytes().all(|byte| byte.is_ascii_digit()) && text.len() <= 5)
}

/// Whether a text with signs that also occur in code, as in `user(:pass)`, is a generated password.
///
/// The marks that replace values have brackets, which are not valid in a password (RFC 3986,
/// section 3.2.1).
fn is_generated(text: &str) -> bool {
    text.len() >= 8
        && !text.contains(['[', ']'])
        && !is_wordy(text)
        && text.bytes().any(|byte| byte.is_ascii_digit())
}

/// The signature of a shared access signature: base64 of 32 bytes, percent-encoded.
fn signature(line: &Line<'_>, at: usize) -> Option<(Range<usize>, Kind)> {
    if !matches!(line.before(at), Some(b'?' | b'&' | b';')) {
        return None;
    }
    let start = at + "sig=".len();
    let end = line.run(start, 256, |byte| {
        super::line_buffer::is_base64(byte) || byte == b'%'
    });
    let value = line.slice(start, end);
    (value.len() >= 43 && variety(value) >= 16).then_some((start..end, Kind::AZURE))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;

    /// Proves OUT-21.
    #[test]
    fn password_with_any_valid_sign_is_redacted() {
        let secrets = Arc::new(crate::SecurityPatterns::default());
        for (start, password) in [
            ("postgres://app", "S3cr$et9!"),
            ("redis://", "pa:ss,w0rd9"),
            ("amqp://a", "k3(Vq)9Zt"),
        ] {
            let text = format!("{start}:{password}@db/x");
            let expect = format!("{start}:[redacted:url_credentials]@db/x");
            assert_eq!(secrets.redact(&text).text, expect);
        }
        for text in [
            "https://user:$PASS@h",
            "scheme://user(:pass)@host",
            "https://user:pass,word@h",
            "http://localhost:8080,admin@example.org",
        ] {
            assert_eq!(secrets.redact(text).text, text);
        }
        // A mark is not part of a password that hides the token after it.
        let body = "aB3dE6fG9hJ2kL5mN8pQ1rS4tU7vW0xY3zA6";
        let text = format!("https://[redacted:url_credentials]:ghp_{body}@h");
        let redacted = secrets.redact(&text).text;
        assert!(!redacted.contains(body), "{redacted}");
    }

    proptest! {
        /// Proves OUT-20: a full search finds no value in a skipped URL.
        #[test]
        fn no_bare_url_has_a_value(
            text in "(https?://|ftp://|[a-z]{1,9}|[A-Za-z0-9]{20,24}|:|/|@|\\?|#|\"| |\n|%|\\$|é|x{1000,1030}|host\\.org){0,12}",
        ) {
            let places = text.match_indices("://").map(|(at, _)| at);
            for at in places.filter(|at| is_bare(text.as_bytes(), *at)) {
                let start = text[..at].rfind('\n').map_or(0, |before| before + 1);
                let end = text[at..].find('\n').map_or(text.len(), |behind| at + behind);
                let line = Line::new(&text[start..end], true);
                prop_assert!(find(&line, at - start).is_none());
            }
            prop_assert!(is_bare(b"see https://example.org/a@b", 9));
            prop_assert!(!is_bare(b"https://user:word@example.org", 5));
        }
    }
}
