//! Lines and characters of a content, normalized for comparison by [`fuzzy_match`](crate::fuzzy_match).

use std::borrow::Cow;

/// Contents with more lines are not split.
const MAX_LINES: usize = 200_000;

/// The byte offsets of a line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Line {
    pub(crate) start: usize,
    /// The start of its ending.
    pub(crate) body: usize,
    pub(crate) end: usize,
}

/// The lines of `text` without their endings; after a final ending, an empty one.
pub(crate) fn segments(text: &str) -> Vec<&str> {
    let mut segments: Vec<&str> = text.split('\n').collect();
    let last = segments.len() - 1;
    for segment in &mut segments[..last] {
        *segment = segment.strip_suffix('\r').unwrap_or(segment);
    }
    segments
}

/// The lines of `content` after a byte order mark; `None` if there are too many.
pub(crate) fn lines(content: &[u8]) -> Option<Vec<Line>> {
    let mut start = if content.starts_with(b"\xef\xbb\xbf") {
        3
    } else {
        0
    };
    let mut lines = Vec::new();
    for feed in memchr::memchr_iter(b'\n', content) {
        let cr = feed > start && content[feed - 1] == b'\r';
        lines.push(Line {
            start,
            body: feed - usize::from(cr),
            end: feed + 1,
        });
        start = feed + 1;
        if lines.len() == MAX_LINES {
            return None;
        }
    }
    lines.push(Line {
        start,
        body: content.len(),
        end: content.len(),
    });
    Some(lines)
}

/// `text` without white space at its end.
pub(crate) fn trimmed(text: &[u8]) -> &[u8] {
    text.trim_ascii_end()
}

/// The leading white space of `text`, and the rest.
pub(crate) fn indent(text: &[u8]) -> (&[u8], &[u8]) {
    let width = text
        .iter()
        .take_while(|byte| matches!(byte, b' ' | b'\t'))
        .count();
    text.split_at(width)
}

/// The plain sign for a typographic one.
fn plain_sign(sign: char) -> Option<char> {
    match sign {
        '\u{2018}'..='\u{201B}' | '\u{2032}' => Some('\''),
        '\u{201C}'..='\u{201F}' | '\u{2033}' => Some('"'),
        '\u{2010}'..='\u{2015}' | '\u{2212}' => Some('-'),
        _ => None,
    }
}

/// `text` with plain quotes and dashes; the number of characters does not change.
pub(crate) fn plain(text: &[u8]) -> Cow<'_, [u8]> {
    // All typographic signs begin with this byte in UTF-8.
    if memchr::memchr(0xe2, text).is_none() {
        return text.into();
    }
    let mut plain = Vec::with_capacity(text.len());
    for chunk in text.utf8_chunks() {
        for sign in chunk.valid().chars() {
            let sign = plain_sign(sign).unwrap_or(sign);
            plain.extend_from_slice(sign.encode_utf8(&mut [0; 4]).as_bytes());
        }
        plain.extend_from_slice(chunk.invalid());
    }
    plain.into()
}

/// The lengths of the characters of `text` in bytes; an invalid byte counts as a character.
pub(crate) fn widths(text: &[u8]) -> impl Iterator<Item = usize> {
    text.utf8_chunks().flat_map(|chunk| {
        let valid = chunk.valid().chars().map(char::len_utf8);
        valid.chain(chunk.invalid().iter().map(|_| 1))
    })
}

/// The offset of the character with the index `count` in `text`.
pub(crate) fn offset(text: &[u8], count: usize) -> usize {
    widths(text).take(count).sum()
}

/// `new` with the signs of `there` at its start and end, as long as it equals `old` there.
pub(crate) fn with_signs(there: &[u8], old: &str, new: &str) -> Vec<u8> {
    let (asked, wanted): (Vec<char>, Vec<char>) = (old.chars().collect(), new.chars().collect());
    let count = widths(there).count();
    if count != asked.len() {
        return new.as_bytes().to_vec();
    }
    let room = asked.len().min(wanted.len());
    let head = std::iter::zip(&asked, &wanted)
        .take_while(|(a, b)| a == b)
        .count();
    let tail = std::iter::zip(asked.iter().rev(), wanted.iter().rev())
        .take(room - head)
        .take_while(|(a, b)| a == b)
        .count();
    let mut text = there[..offset(there, head)].to_vec();
    let middle: String = wanted[head..wanted.len() - tail].iter().collect();
    text.extend_from_slice(middle.as_bytes());
    text.extend_from_slice(&there[offset(there, count - tail)..]);
    text
}
