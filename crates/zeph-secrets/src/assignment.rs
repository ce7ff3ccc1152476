//! Values after a name that indicates a secret: `password=…`, `"api_key": "…"`, `Authorization: Bearer …`,
//! `--token …`, `<secret>…</secret>`.

use std::ops::Range;

use super::kind::Kind;
use super::line_buffer::{Line, is_base64};
use super::name::{NAME, Name, NameKind};
use super::token;
use super::value::{NameHint, Written, is_placeholder, is_secret, is_wordy};

/// The parts of names that are searched: those that are rare in other words.
pub(super) const LITERALS: &[&str] = &[
    "assw", "ASSW", "assph", "ASSPH", "pwd", "PWD", "_pass", "_PASS", "ecret", "ECRET", "oken",
    "OKEN", "_key", "-key", "Key", "_KEY", "-KEY", "pikey", "PIKEY", "redent", "REDENT", "uthori",
    "UTHORI", "earer ", "\"auth\"", "_auth=",
];

/// The maximum length of a value in characters.
const VALUE: usize = 4096;

/// The separator between a name and its value.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Separator {
    /// The start of the value, including its quotes.
    end: usize,
    sign: Sign,
    /// Whether only the sign is between the name and the value.
    tight: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Sign {
    Equals,
    Colon,
    Arrow,
    Tag,
    Space,
}

/// The value of the name around `at`.
pub(super) fn find(line: &Line<'_>, at: usize) -> Option<(Range<usize>, Kind)> {
    if line.has(at, "earer ") {
        return bearer(line, at + "earer ".len());
    }
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let start = line.run_before(at, NAME, is_name);
    // The quote belongs to the literal `"auth"`.
    let inner = if line.has(at, "\"") { at + 1 } else { at };
    let end = line.run(inner, NAME, is_name);
    let start = start.max(if inner > at { inner } else { 0 });
    if !may_be_separated(line, start, end) {
        return None;
    }
    let written = line.slice(start, end);
    let name = Name::of(written)?;
    let separator = separator(line, start, end, name.promise)?;
    let (value, style) = match name.kind {
        NameKind::Header => header(line, separator)?,
        _ => value(line, &name, start, separator)?,
    };
    let text = line.slice(value.start, value.end);
    if let Some((range, kind)) = token::find(line, value.start)
        && range.end >= value.end
    {
        return Some((range, kind));
    }
    let fits = match name.kind {
        // The value of a header is not a word.
        NameKind::Header => {
            text.len() >= 8
                && !is_wordy(text)
                && !is_placeholder(text)
                && !text.starts_with(['$', '{', '<', '%'])
        }
        NameKind::Auth => {
            text.len() >= 12
                && text.bytes().all(is_base64)
                && is_secret(text, NameHint::Secret, Written::Quoted)
        }
        NameKind::Plain => is_secret(text, name.promise, style),
    };
    fits.then_some((value, name.label))
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// The position after a closing quote, which may be escaped.
fn behind_quote(line: &Line<'_>, at: usize) -> usize {
    let quote = line.run(at, 3, |byte| byte == b'\\');
    match line.at(quote) {
        Some(b'"' | b'\'' | b'`') => quote + 1,
        _ => at,
    }
}

/// Whether a separator may follow the name at `start..end`. This fast check excludes most names, because they are part
/// of sentences.
fn may_be_separated(line: &Line<'_>, start: usize, end: usize) -> bool {
    let bytes = line.text().as_bytes();
    let run = |from: usize, most: usize, is: fn(&u8) -> bool| {
        let rest = bytes.iter().skip(from).take(most);
        from + rest.take_while(|byte| is(byte)).count()
    };
    let quote = run(end, 3, |byte| *byte == b'\\');
    let quoted = match bytes.get(quote) {
        // An escaped quote may follow.
        None => return true,
        Some(b'"' | b'\'' | b'`') => quote + 1,
        _ => end,
    };
    match bytes.get(run(quoted, 40, |byte| is_blank(*byte))) {
        None | Some(b'=' | b':' | b'?' | b'>' | b'v' | b'"' | b'\'') => true,
        // An option, or a word of `.netrc`.
        Some(_) => line.has(start, "--") || is_netrc(line, start),
    }
}

/// The separator after the name at `start..end`.
fn separator(line: &Line<'_>, start: usize, end: usize, promise: NameHint) -> Option<Separator> {
    let quoted = behind_quote(line, end);
    let sign_at = line.run(quoted, 40, is_blank);
    let spaced = sign_at > quoted;
    let (sign, mut after) = match line.at(sign_at)? {
        b'=' if line.at(sign_at + 1) == Some(b'>') => (Sign::Arrow, sign_at + 2),
        b'=' => (Sign::Equals, line.run(sign_at, 3, |byte| byte == b'=')),
        b':' if line.at(sign_at + 1) == Some(b'=') => (Sign::Equals, sign_at + 2),
        b':' if line.at(sign_at + 1) == Some(b':') => return None,
        b':' => (Sign::Colon, sign_at + 1),
        b'?' if line.at(sign_at + 1) == Some(b'=') => (Sign::Equals, sign_at + 2),
        b'>' if line.before(start) == Some(b'<') => (Sign::Tag, sign_at + 1),
        // `key="ApiKey" value="…"`
        b'v' if spaced && quoted > end && line.has(sign_at, "value=") => {
            (Sign::Equals, sign_at + 6)
        }
        _ if spaced && quoted == end && is_flag(line, start, promise) => (Sign::Space, sign_at),
        b'"' | b'\'' if spaced && quoted == end && promise == NameHint::Password => {
            (Sign::Space, sign_at)
        }
        _ => return None,
    };
    let value = line.run(after, 40, is_blank);
    let tight = !spaced && value == after;
    after = value;
    Some(Separator {
        end: after,
        sign,
        tight,
    })
}

/// Whether the name is that of an option, or a keyword of `.netrc`.
fn is_flag(line: &Line<'_>, start: usize, promise: NameHint) -> bool {
    line.has(start, "--") || promise == NameHint::Password && is_netrc(line, start)
}

/// Whether keywords of `.netrc` precede a position.
fn is_netrc(line: &Line<'_>, start: usize) -> bool {
    let before = line.shortly_before(start);
    ["login ", "machine "]
        .iter()
        .any(|word| before.contains(word))
}

/// The value after a separator.
fn value(
    line: &Line<'_>,
    name: &Name,
    start: usize,
    separator: Separator,
) -> Option<(Range<usize>, Written)> {
    let Separator {
        end: at,
        sign,
        tight,
    } = separator;
    if sign == Sign::Tag {
        let end = line.run(at, VALUE, |byte| byte != b'<');
        return Some((at..end, Written::Quoted));
    }
    if let Some(range) = quoted(line, at) {
        let environment = name.is_upper && tight && sign == Sign::Equals;
        let written = if environment {
            Written::Environment
        } else {
            Written::Quoted
        };
        return Some((range, written));
    }
    let environment =
        tight && sign == Sign::Equals && (name.is_upper || line.is_first(start, &[' ', '\t']));
    let ends = |byte: u8| {
        byte.is_ascii_whitespace()
            || matches!(byte, b'"' | b'\'' | b'`' | b'<')
            || (!environment && b",;&>()[]{}|".contains(&byte))
    };
    let end = line.run(at, VALUE, |byte| !ends(byte));
    if sign == Sign::Colon
        && let Some(at) = behind_type(line, at)
    {
        return quoted(line, at).map(|range| (range, Written::Quoted));
    }
    if matches!(line.at(end), Some(b'(' | b'[')) {
        return None;
    }
    // A value that ends at a quote or a closing bracket is part of a program.
    let cut = matches!(
        line.at(end),
        Some(b')' | b']' | b'}' | b'"' | b'\'' | b'`' | b'<')
    );
    let last = line.run(end, 8, |byte| matches!(byte, b' ' | b'\t' | b'\r'));
    let alone = matches!(line.at(last), None | Some(b'\n'));
    let first = line.is_first(start, &['-', '+', ' ', '\t', '#', '>']);
    let written = if environment {
        Written::Environment
    } else if sign == Sign::Space || (tight && sign == Sign::Equals && !cut) || (alone && first) {
        Written::Alone
    } else {
        Written::Code
    };
    Some((at..end, written))
}

/// The start of the value after a type: `NAME: &'static str = "…"`, `name: string = '…'`.
fn behind_type(line: &Line<'_>, at: usize) -> Option<usize> {
    let is_type = |byte: u8| {
        byte.is_ascii_alphanumeric()
            || matches!(byte, b'_' | b'&' | b'\'' | b'<' | b'>' | b' ' | b':')
    };
    let end = line.run(at, 40, is_type);
    (end > at && line.at(end) == Some(b'=')).then(|| line.run(end + 1, 8, is_blank))
}

/// The text inside quotes. The prefix of a literal (`b"…"`) may precede them.
fn quoted(line: &Line<'_>, at: usize) -> Option<Range<usize>> {
    let prefix = line.run(at, 2, |byte| {
        matches!(byte, b'b' | b'r' | b'f' | b'u' | b'@')
    });
    let escapes = line.run(prefix, 3, |byte| byte == b'\\');
    let quote = line
        .at(escapes)
        .filter(|byte| matches!(byte, b'"' | b'\'' | b'`'))?;
    let start = escapes + 1;
    let depth = escapes - prefix;
    let mut end = start;
    while end - start < VALUE {
        match line.at(end) {
            None | Some(b'\n') => break,
            Some(byte) if byte == quote && depth == 0 => break,
            Some(b'\\') if depth == 0 => end += 2,
            // The closing quote is escaped like the opening one.
            Some(b'\\') => {
                let more = line.run(end, 8, |byte| byte == b'\\');
                if more - end <= depth && line.at(more) == Some(quote) {
                    break;
                }
                end = more + 1;
            }
            Some(_) => end += 1,
        }
    }
    let text = line.text();
    let end = text.floor_char_boundary(end.min(text.len()));
    Some(start..end.max(start))
}

/// The value of a header, after the name of its scheme.
fn header(line: &Line<'_>, separator: Separator) -> Option<(Range<usize>, Written)> {
    let ends =
        |byte: u8| byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'' | b'`' | b'\\' | b'<');
    let mut start = separator.end;
    if matches!(line.at(start), Some(b'"' | b'\'' | b'`')) {
        start += 1;
    }
    let word = line.run(start, VALUE, |byte| !ends(byte));
    let scheme = line.slice(start, word);
    const SCHEMES: &[&str] = &["bearer", "basic", "token", "apikey", "negotiate", "key"];
    if SCHEMES
        .iter()
        .any(|known| scheme.eq_ignore_ascii_case(known))
    {
        let at = line.run(word, 8, is_blank);
        let end = line.run(at, VALUE, |byte| !ends(byte));
        return Some((at..end, Written::Alone));
    }
    // Without a known scheme, only a long token counts. Other schemes have fields, and other texts are code.
    let text = scheme.len() >= 16
        && scheme
            .bytes()
            .all(|byte| is_base64(byte) || super::line_buffer::is_word(byte) || byte == b'.');
    text.then_some((start..word, Written::Alone))
}

/// The value after `Bearer `, anywhere in a line.
fn bearer(line: &Line<'_>, at: usize) -> Option<(Range<usize>, Kind)> {
    let is_value = |byte: u8| is_base64(byte) || matches!(byte, b'-' | b'_' | b'.' | b'~');
    let end = line.run(at, VALUE, is_value);
    if let Some((range, kind)) = token::find(line, at) {
        return Some((range, kind));
    }
    let text = line.slice(at, end).trim_end_matches('.');
    let digit = text.bytes().any(|byte| byte.is_ascii_digit());
    let fits = text.len() >= 16 && digit && !is_wordy(text) && !is_placeholder(text);
    fits.then_some((at..at + text.len(), Kind::ASSIGNMENT))
}
