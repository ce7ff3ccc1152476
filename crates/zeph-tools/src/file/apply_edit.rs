//! The edit engine: bytes in, bytes out. Not one byte outside the replaced spans changes.

use std::borrow::Cow;

use memchr::memmem::Finder;

use crate::file::fuzzy_match::{FuzzyMatch, ToleratedDifference, retry};

/// Places that are named when there are several.
const MAX_NAMED: usize = 20;

/// What is to be replaced by what.
#[derive(Debug, Clone, Copy)]
pub(super) struct Replacement<'a> {
    /// The text that is there.
    pub(super) old: &'a str,
    /// The text that shall be there.
    pub(super) new: &'a str,
    /// Every occurrence, not exactly one.
    pub(super) all: bool,
}

/// The new content.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct EditOutcome {
    /// All of it.
    pub(super) bytes: Vec<u8>,
    /// Where in it the replacements stand: first and last line, from 1, in order.
    pub(super) lines: Vec<(usize, usize)>,
    /// What was ignored to find the place; `None` when the text occurs as it was given.
    pub(super) ignored: Option<ToleratedDifference>,
}

/// Why nothing was replaced.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum EditError {
    /// `old` and `new` are the same.
    Equal,
    /// `old` is empty, and the content is not.
    EmptyOld,
    /// `old` occurs on these lines; the first twenty places are named.
    Several(Vec<usize>),
    /// `old` does not occur, and on several lines when that is ignored.
    Alike(ToleratedDifference, Vec<usize>),
    /// `new` stands on this line already, and `old` nowhere besides.
    Applied(usize),
    /// `old` does not occur.
    Absent,
}

/// How text stands in a content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Encoding {
    /// As UTF-8, whatever other bytes there are.
    Bytes,
    /// As UTF-16, after a byte order mark.
    Utf16Le,
    Utf16Be,
}

impl Encoding {
    fn of(content: &[u8]) -> Self {
        match content {
            [0xff, 0xfe, 0, 0, ..] => Self::Bytes,
            [0xff, 0xfe, ..] => Self::Utf16Le,
            [0xfe, 0xff, ..] => Self::Utf16Be,
            _ => Self::Bytes,
        }
    }

    fn encode(self, text: &str) -> Vec<u8> {
        match self {
            Self::Bytes => text.as_bytes().to_vec(),
            Self::Utf16Le => text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
            Self::Utf16Be => text.encode_utf16().flat_map(u16::to_be_bytes).collect(),
        }
    }

    /// `content` in UTF-8 where it is in UTF-16, as it is otherwise; `None` when it is malformed.
    fn decode(self, content: &[u8]) -> Option<Cow<'_, [u8]>> {
        let unit: fn([u8; 2]) -> u16 = match self {
            Self::Bytes => return Some(content.into()),
            Self::Utf16Le => u16::from_le_bytes,
            Self::Utf16Be => u16::from_be_bytes,
        };
        if !content.len().is_multiple_of(2) {
            return None;
        }
        let units = content.chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
        let text: Result<String, _> = char::decode_utf16(units).collect();
        Some(text.ok()?.into_bytes().into())
    }

    /// What [`Encoding::decode`] gave, after a change, as it is written.
    fn encode_all(self, text: Vec<u8>) -> Option<Vec<u8>> {
        match self {
            Self::Bytes => Some(text),
            Self::Utf16Le | Self::Utf16Be => Some(self.encode(std::str::from_utf8(&text).ok()?)),
        }
    }

    /// Bytes of a code unit.
    fn unit(self) -> usize {
        if self == Self::Bytes { 1 } else { 2 }
    }

    /// The first place at or after `from` where `needle` stands in `content`.
    fn find(self, content: &[u8], needle: &Finder<'_>, mut from: usize) -> Option<usize> {
        loop {
            let place = from + needle.find(content.get(from..)?)?;
            if place.is_multiple_of(self.unit()) {
                return Some(place);
            }
            from = place + 1;
        }
    }

    /// Where `needle` stands in `content`, overlapping places too; the first `most` of them.
    fn places(self, content: &[u8], needle: &[u8], most: usize) -> Vec<usize> {
        let needle = Finder::new(needle);
        let mut places = Vec::new();
        let mut from = 0;
        while places.len() < most
            && let Some(place) = self.find(content, &needle, from)
        {
            places.push(place);
            from = place + 1;
        }
        places
    }

    /// Whether a word goes on from the end of `left` into the start of `right`.
    fn joins(self, left: &[u8], right: &[u8]) -> bool {
        let is_word = |unit: Option<&[u8]>| match (self, unit) {
            (Self::Bytes, Some([byte]))
            | (Self::Utf16Le, Some([byte, 0]))
            | (Self::Utf16Be, Some([0, byte])) => {
                byte.is_ascii_alphanumeric() || *byte == b'_' || !byte.is_ascii()
            }
            (_, unit) => unit.is_some(),
        };
        is_word(left.rchunks_exact(self.unit()).next())
            && is_word(right.chunks_exact(self.unit()).next())
    }

    /// The number of line feeds in `content`.
    fn line_feeds(self, content: &[u8]) -> usize {
        match self {
            Self::Bytes => memchr::memchr_iter(b'\n', content).count(),
            Self::Utf16Le | Self::Utf16Be => {
                let feed = self.encode("\n");
                content.chunks(2).filter(|unit| *unit == feed).count()
            }
        }
    }

    /// Whether the line of `content` that `at` stands in ends with CR LF. A last line without an
    /// ending counts as the one before it.
    fn line_is_crlf(self, content: &[u8], at: usize) -> bool {
        let feed = self.encode("\n");
        let next = content[at..]
            .chunks_exact(self.unit())
            .position(|unit| unit == feed)
            .map(|units| at + units * self.unit());
        let feed_at = next.or_else(|| {
            content[..at]
                .chunks_exact(self.unit())
                .rposition(|unit| unit == feed)
                .map(|units| units * self.unit())
        });
        feed_at.is_some_and(|feed_at| content[..feed_at].ends_with(&self.encode("\r")))
    }
}

/// Replaces text in `content`.
///
/// The text must occur exactly once, unless all occurrences are meant. A text that does not occur is
/// searched again without regard to small differences (`fuzzy_match`). Line feeds in `new` beyond
/// those of `old` take the ending of the line in which the match ends; a `new` or `old` with
/// carriage returns of its own is taken as it is.
///
/// # Errors
/// [`EditError`]; `content` is as it was.
pub(super) fn splice(content: &[u8], change: Replacement<'_>) -> Result<EditOutcome, EditError> {
    let Replacement { old, new, all } = change;
    if old == new {
        return Err(EditError::Equal);
    }
    let encoding = Encoding::of(content);
    if old.is_empty() {
        if !content.is_empty() {
            return Err(EditError::EmptyOld);
        }
        return Ok(EditOutcome {
            bytes: new.as_bytes().to_vec(),
            lines: vec![(1, last_line(1, new))],
            ignored: None,
        });
    }
    let needle = encoding.encode(old);
    let line_at = |place: usize| encoding.line_feeds(&content[..place]) + 1;
    let named = if all { 1 } else { MAX_NAMED };
    match encoding.places(content, &needle, named).as_slice() {
        [] => {
            return match stands(content, encoding, change) {
                Some(place) => Err(EditError::Applied(line_at(place))),
                None => splice_alike(content, encoding, change),
            };
        }
        [place] if !all => {
            if let Some(start) = inside_new(content, encoding, *place, change) {
                return Err(EditError::Applied(line_at(start)));
            }
        }
        several if !all => {
            let mut lines: Vec<usize> = several.iter().map(|place| line_at(*place)).collect();
            lines.dedup();
            return Err(EditError::Several(lines));
        }
        _ => {}
    }

    let finder = Finder::new(&needle);
    let mut bytes = Vec::with_capacity(content.len() + new.len());
    let mut lines = Vec::new();
    let mut line = 1;
    let mut from = 0;
    while let Some(place) = encoding.find(content, &finder, from) {
        let kept = &content[from..place];
        bytes.extend_from_slice(kept);
        line += encoding.line_feeds(kept);
        from = place + needle.len();
        let inserted = with_endings(content, encoding, from, change);
        bytes.extend_from_slice(&encoding.encode(&inserted));
        lines.push((line, last_line(line, &inserted)));
        line += inserted.matches('\n').count();
    }
    bytes.extend_from_slice(&content[from..]);
    Ok(EditOutcome {
        bytes,
        lines,
        ignored: None,
    })
}

/// Replaces the one place that matches when a difference is ignored; see `fuzzy_match`.
fn splice_alike(
    content: &[u8],
    encoding: Encoding,
    change: Replacement<'_>,
) -> Result<EditOutcome, EditError> {
    let text = encoding.decode(content).ok_or(EditError::Absent)?;
    match retry(&text, change.old, change.new) {
        FuzzyMatch::One {
            start,
            end,
            text: inserted,
            line,
            ignored,
        } => {
            let last = inserted.strip_suffix(b"\n").unwrap_or(&inserted);
            let last = line + memchr::memchr_iter(b'\n', last).count();
            let bytes = [&text[..start], &inserted, &text[end..]].concat();
            Ok(EditOutcome {
                bytes: encoding.encode_all(bytes).ok_or(EditError::Absent)?,
                lines: vec![(line, last)],
                ignored: Some(ignored),
            })
        }
        FuzzyMatch::Several(ignored, lines) => Err(EditError::Alike(ignored, lines)),
        FuzzyMatch::Applied(line) => Err(EditError::Applied(line)),
        FuzzyMatch::Nothing => Err(EditError::Absent),
    }
}

/// The last line of `text` when its first is `first`.
fn last_line(first: usize, text: &str) -> usize {
    let text = text.strip_suffix('\n').unwrap_or(text);
    first + text.matches('\n').count()
}

/// `new` with the line endings that it takes where the match ends at `end`.
fn with_endings(content: &[u8], encoding: Encoding, end: usize, change: Replacement<'_>) -> String {
    let Replacement { old, new, .. } = change;
    let kept = old.matches('\n').count();
    if new.matches('\n').count() <= kept
        || old.contains('\r')
        || new.contains('\r')
        || old.ends_with('\n')
        || !encoding.line_is_crlf(content, end)
    {
        return new.to_owned();
    }
    let mut text = String::with_capacity(new.len() + 8);
    for (index, line) in new.split('\n').enumerate() {
        if index > 0 {
            text.push_str(if index <= kept { "\n" } else { "\r\n" });
        }
        text.push_str(line);
    }
    text
}

/// Where `new` stands in `content` and is no chance: it is not merely a part of `old`, and either
/// alone on its line, or long enough and not a piece of a longer word.
fn stands(content: &[u8], encoding: Encoding, change: Replacement<'_>) -> Option<usize> {
    const TELLING: usize = 3;
    let trimmed = change.new.trim();
    if trimmed.is_empty() || change.old.contains(trimmed) {
        return None;
    }
    let long = trimmed.chars().count() >= TELLING;
    let feed = encoding.encode("\n");
    variants(change).into_iter().find_map(|text| {
        let needle = encoding.encode(&text);
        let mut places = encoding.places(content, &needle, MAX_NAMED).into_iter();
        places.find(|place| {
            let (before, after) = (&content[..*place], &content[place + needle.len()..]);
            let alone = (before.is_empty() || before.ends_with(&feed))
                && (after.is_empty() || after.starts_with(&feed) || text.ends_with('\n'));
            let whole = !encoding.joins(before, &needle) && !encoding.joins(&needle, after);
            alone || long && whole
        })
    })
}

/// Where the text `new` begins that the match at `place` is a part of, if it is, and adds enough
/// to be no chance: then the edit has been made, and would be made a second time.
fn inside_new(
    content: &[u8],
    encoding: Encoding,
    place: usize,
    change: Replacement<'_>,
) -> Option<usize> {
    const TELLING: usize = 6;
    let solid = |text: &str| text.chars().filter(|char| !char.is_whitespace()).count();
    if solid(change.new) < solid(change.old) + TELLING {
        return None;
    }
    let needle = encoding.encode(change.old);
    variants(change).into_iter().find_map(|text| {
        let text = encoding.encode(&text);
        encoding
            .places(&text, &needle, MAX_NAMED)
            .into_iter()
            .find_map(|offset| {
                let start = place.checked_sub(offset)?;
                content[start..].starts_with(&text).then_some(start)
            })
    })
}

/// The new text as it is, and as it would stand among lines that end with CR LF.
fn variants(change: Replacement<'_>) -> Vec<String> {
    let Replacement { old, new, .. } = change;
    let mut variants = vec![new.to_owned()];
    if new.contains('\n') && !new.contains('\r') && !old.contains('\r') {
        variants.push(new.replace('\n', "\r\n"));
    }
    variants
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn once<'a>(old: &'a str, new: &'a str) -> Replacement<'a> {
        Replacement {
            old,
            new,
            all: false,
        }
    }

    fn every<'a>(old: &'a str, new: &'a str) -> Replacement<'a> {
        Replacement {
            old,
            new,
            all: true,
        }
    }

    /// Proves FILE-21.
    #[test]
    fn exactly_one_occurrence_is_replaced() {
        type Expect = Result<(&'static str, &'static [(usize, usize)]), EditError>;
        let check = |content: &str, change, expect: Expect| {
            let got = splice(content.as_bytes(), change);
            let expect = expect.map(|(text, lines)| EditOutcome {
                bytes: text.as_bytes().to_vec(),
                lines: lines.to_vec(),
                ignored: None,
            });
            assert_eq!(got, expect, "{content:?} {change:?}");
        };
        check("a b c", once("b", "x"), Ok(("a x c", &[(1, 1)])));
        check("a\nb\nc\n", once("b\n", ""), Ok(("a\nc\n", &[(2, 2)])));
        check(
            "a\nb\nc\n",
            once("b", "x\ny"),
            Ok(("a\nx\ny\nc\n", &[(2, 3)])),
        );
        check("", once("", "new\n"), Ok(("new\n", &[(1, 1)])));
        check("a", once("", "b"), Err(EditError::EmptyOld));
        check("a", once("a", "a"), Err(EditError::Equal));
        check(
            "a\na\nb a\n",
            once("a", "x"),
            Err(EditError::Several(vec![1, 2, 3])),
        );
        check("aaa", once("aa", "x"), Err(EditError::Several(vec![1])));
        check(
            "a\na\nb a\n",
            every("a", "x"),
            Ok(("x\nx\nb x\n", &[(1, 1), (2, 2), (3, 3)])),
        );
        check("aaa", every("aa", "x"), Ok(("xa", &[(1, 1)])));
        check("a", once("zz", "x"), Err(EditError::Absent));
        check("a", every("zz", "x"), Err(EditError::Absent));
    }

    /// Proves FILE-22 in part.
    #[test]
    fn an_edit_that_is_applied_says_so() {
        let check = |content: &str, change, line| {
            assert_eq!(
                splice(content.as_bytes(), change),
                Err(EditError::Applied(line)),
                "{content:?} {change:?}"
            );
        };
        check("x\nlet b = 2;\n", once("let a = 1;", "let b = 2;"), 2);
        check("x\r\nb1\r\nb2\r\n", once("a", "b1\nb2"), 2);
        check("x\nb\n", once("a1", "b"), 2);
        // The match is part of what would replace it.
        check(
            "x\nfn a() {}\nfn b() {}\n",
            once("fn a() {}", "fn a() {}\nfn b() {}"),
            2,
        );
        // Short texts that stand somewhere by chance are no sign.
        assert_eq!(
            splice(b"fn f() {}\n", once("zz", "}")),
            Err(EditError::Absent)
        );
        let absent = |content: &[u8], change| {
            assert_eq!(
                splice(content, change),
                Err(EditError::Absent),
                "{change:?}"
            );
        };
        absent(b"concatenate\n", once("dog", "cat"));
        absent(b"run(foo)\n", once("foo(bar)", "foo"));
        absent(b"\xff\xfea\0c\0a\0t\0", once("dog", "cat"));
    }

    /// Proves FILE-21: what occurs exactly once is replaced, also where the neighbourhood happens
    /// to look like the result.
    #[test]
    fn a_likeness_by_chance_is_no_applied_edit() {
        let check = |content: &str, change, expect: &str| {
            let got = splice(content.as_bytes(), change).expect("it occurs once");
            assert_eq!(String::from_utf8_lossy(&got.bytes), expect, "{change:?}");
        };
        check("aab", once("b", "ab"), "aaab");
        check("x\n\ny\n", once("x\n", "x\n\n"), "x\n\n\ny\n");
        check("f(1, 1)", once("(1", "(1, 1"), "f(1, 1, 1)");
    }

    #[test]
    fn inserted_lines_take_the_ending_of_the_line_they_replace() {
        let check = |content: &str, change, expect: &str| {
            let got = splice(content.as_bytes(), change).expect("replaced");
            assert_eq!(String::from_utf8_lossy(&got.bytes), expect, "{content:?}");
        };
        check("a\r\nb\r\nc\r\n", once("b", "x\ny"), "a\r\nx\r\ny\r\nc\r\n");
        check("a\r\nb\nc\r\n", once("b", "x\ny"), "a\r\nx\ny\nc\r\n");
        check("a\nb\r\nc", once("b", "x\ny"), "a\nx\r\ny\r\nc");
        check("a\r\nb", once("b", "x\ny"), "a\r\nx\r\ny");
        check("b", once("b", "x\ny"), "x\ny");
        check("a\nb\r\n", once("a\nb", "a\nx\ny"), "a\nx\r\ny\r\n");
        check("a\nb\r\n", once("a\n", "x\ny\n"), "x\ny\nb\r\n");
        // Who writes carriage returns means them.
        check("a\r\nb\r\n", once("a\r\nb\r\n", "a\nb\n"), "a\nb\n");
        check("a\r\nb\r\n", once("b", "x\r\ny"), "a\r\nx\r\ny\r\n");
    }

    #[test]
    fn other_encodings_stay_as_they_are() {
        let latin1 = b"caf\xe9 one\r\n\xff\xfe two\n  three  ";
        let got = splice(latin1, once("two", "2")).expect("replaced");
        assert_eq!(got.bytes, b"caf\xe9 one\r\n\xff\xfe 2\n  three  ");

        let bom = b"\xef\xbb\xbfone\r\ntwo";
        let got = splice(bom, once("one", "1")).expect("replaced");
        assert_eq!(got.bytes, b"\xef\xbb\xbf1\r\ntwo");

        let wide = |text: &str| -> Vec<u8> {
            let units = "\u{FEFF}".encode_utf16().chain(text.encode_utf16());
            units.flat_map(u16::to_le_bytes).collect()
        };
        let got = splice(&wide("one\r\nzwei ä\r\n"), once("zwei", "2\n3")).expect("replaced");
        assert_eq!(got.bytes, wide("one\r\n2\r\n3 ä\r\n"));
        assert_eq!(got.lines, [(2, 3)]);
        // Two bytes that look like a character across two others.
        let shifted = b"\xff\xfe\x00\x61\x00\x00";
        assert_eq!(splice(shifted, once("a", "b")), Err(EditError::Absent));
    }

    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            Just(b"a".to_vec()),
            Just(b"b".to_vec()),
            Just(b"\n".to_vec()),
            Just(b"\r\n".to_vec()),
            Just(b"\xe9".to_vec()),
            Just("ü".as_bytes().to_vec()),
            Just(b"\xef\xbb\xbf".to_vec()),
            Just(b"\xff\xfe".to_vec()),
            Just(b"\0".to_vec()),
            Just(b"  ".to_vec()),
        ];
        proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn no_byte_outside_the_span_changes(
            before in bytes(),
            after in bytes(),
            old in "[ab\nü]{1,4}",
            new in "[abc\nü]{0,6}",
        ) {
            // Something that stands nowhere else keeps the place unique.
            let old = format!("<{old}>");
            let content = [&before, old.as_bytes(), &after].concat();
            prop_assume!(Encoding::of(&content) == Encoding::Bytes);
            let got = splice(&content, once(&old, &new)).expect("it occurs once");
            prop_assert!(got.bytes.starts_with(&before));
            prop_assert!(got.bytes.ends_with(&after));
            let inserted = &got.bytes[before.len()..got.bytes.len() - after.len()];
            let inserted = String::from_utf8(inserted.to_vec()).expect("UTF-8");
            prop_assert_eq!(inserted.replace("\r\n", "\n"), new);
        }

        #[test]
        fn apply_and_reverse_is_identity(
            before in bytes(),
            after in bytes(),
            old in "[abü]{1,4}",
            new in "[abü]{1,4}",
        ) {
            let (old, new) = (format!("<{old}>"), format!("[{new}]"));
            let content = [&before, old.as_bytes(), &after].concat();
            prop_assume!(Encoding::of(&content) == Encoding::Bytes);
            let there = splice(&content, once(&old, &new)).expect("it occurs once");
            let back = splice(&there.bytes, once(&new, &old)).expect("it occurs once");
            prop_assert_eq!(back.bytes, content);
            prop_assert_eq!(there.lines, back.lines);
        }

        #[test]
        fn replacing_all_is_what_str_replace_does(
            content in "[ab\n]{0,20}", old in "[ab]{1,2}", new in "[c]{0,3}",
        ) {
            match splice(content.as_bytes(), every(&old, &new)) {
                Ok(got) => prop_assert_eq!(
                    String::from_utf8(got.bytes).expect("UTF-8"),
                    content.replace(&old, &new)
                ),
                Err(refusal) => {
                    prop_assert!(!content.contains(&old));
                    prop_assert_eq!(refusal, EditError::Absent);
                }
            }
        }

        #[test]
        fn no_input_panics(content in bytes(), old in ".{0,3}", new in ".{0,3}", all: bool) {
            let _ = splice(&content, Replacement { old: &old, new: &new, all });
            let wide = [b"\xff\xfe".as_slice(), &content].concat();
            let _ = splice(&wide, Replacement { old: &old, new: &new, all });
        }
    }
}
