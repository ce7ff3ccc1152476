//! The entry point: replaces an exact occurrence, or the one place that a fuzzy match finds. No byte outside of the
//! replaced spans changes.

use memchr::memmem::Finder;

use crate::encoding::Encoding;
use crate::fuzzy_match::{FuzzyMatch, ToleratedDifference, fuzzy_match};

/// Occurrences that an error names.
const MAX_NAMED: usize = 20;

/// A text and its replacement.
#[derive(Debug, Clone, Copy)]
pub struct Replacement<'a> {
    /// The text to replace.
    pub old: &'a str,
    /// The new text.
    pub new: &'a str,
    /// Whether every occurrence is replaced. Otherwise the text must occur exactly once.
    pub all: bool,
}

/// The content after an edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edited {
    /// The whole new content.
    pub bytes: Vec<u8>,
    /// The first and last line of each replacement in `bytes`, from 1, in order.
    pub lines: Vec<(usize, usize)>,
    /// The difference that was ignored to find the place; `None` for an exact match.
    pub ignored: Option<ToleratedDifference>,
}

/// The reason why nothing was replaced.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// The old and the new text are equal.
    #[error("the old and the new text are equal")]
    Equal,
    /// The old text is empty, and the content is not.
    #[error("the old text is empty, and the content is not")]
    EmptyOld,
    /// The old text occurs several times, on these lines; at most twenty places are named.
    #[error("the old text occurs several times, on lines {0:?}")]
    Ambiguous(Vec<usize>),
    /// The old text does not occur, and matches on several lines if the difference is ignored.
    #[error("the old text matches on lines {1:?} if {difference} are ignored", difference = .0.describe())]
    AmbiguousFuzzy(ToleratedDifference, Vec<usize>),
    /// The new text is already on this line.
    #[error("the edit is already applied, at line {0}")]
    AlreadyApplied(usize),
    /// The old text does not occur.
    #[error("the old text does not occur")]
    NotFound,
}

/// Replaces text in `content`.
///
/// The text must occur exactly once, unless all occurrences are requested. A text that does not occur is searched
/// again with one [`ToleratedDifference`] at a time. Line feeds in `new` beyond those of `old` take the ending of the
/// line in which the match ends; if `new` or `old` has carriage returns, `new` is inserted unchanged.
/// A line feed at the start of `old` includes the carriage return before it.
///
/// # Errors
/// [`EditError`] says why nothing was replaced.
pub fn edit(content: &[u8], change: Replacement<'_>) -> Result<Edited, EditError> {
    let Replacement { old, new, all } = change;
    if old == new {
        return Err(EditError::Equal);
    }
    let encoding = Encoding::of(content);
    if old.is_empty() {
        if !content.is_empty() {
            return Err(EditError::EmptyOld);
        }
        return Ok(Edited {
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
            let edited = edit_fuzzy_match(content, encoding, change);
            let is_certain = match &edited {
                Ok(Edited {
                    ignored: Some(ToleratedDifference::LineEndings),
                    ..
                })
                | Err(EditError::AmbiguousFuzzy(ToleratedDifference::LineEndings, _)) => {
                    has_foreign_ending(content, encoding, old)
                }
                Ok(_) | Err(EditError::AmbiguousFuzzy(..) | EditError::NotFound) => false,
                Err(_) => true,
            };
            if is_certain {
                return edited;
            }
            return match find_applied(content, encoding, change) {
                Some(place) => Err(EditError::AlreadyApplied(line_at(place))),
                None => edited,
            };
        }
        [place] if !all => {
            if let Some(start) = inside_new(content, encoding, *place, change) {
                return Err(EditError::AlreadyApplied(line_at(start)));
            }
        }
        several if !all => {
            let mut lines: Vec<usize> = several.iter().map(|place| line_at(*place)).collect();
            lines.dedup();
            return Err(EditError::Ambiguous(lines));
        }
        _ => {}
    }

    let finder = Finder::new(&needle);
    let cr = encoding.encode("\r");
    let mut bytes = Vec::with_capacity(content.len() + new.len());
    let mut lines = Vec::new();
    let mut line = 1;
    let mut from = 0;
    while let Some(place) = encoding.find(content, &finder, from) {
        let kept = &content[from..place];
        bytes.extend_from_slice(kept);
        line += encoding.line_feeds(kept);
        from = place + needle.len();
        let mut old_feeds = old.matches('\n').count();
        if old.starts_with('\n') && !new.starts_with('\n') && kept.ends_with(&cr) {
            bytes.truncate(bytes.len() - cr.len());
            old_feeds -= 1;
        }
        let inserted = with_endings(content, encoding, from, change, old_feeds);
        bytes.extend_from_slice(&encoding.encode(&inserted));
        lines.push((line, last_line(line, &inserted)));
        line += inserted.matches('\n').count();
    }
    bytes.extend_from_slice(&content[from..]);
    Ok(Edited {
        bytes,
        lines,
        ignored: None,
    })
}

/// Replaces the one place that matches if a difference is ignored.
fn edit_fuzzy_match(
    content: &[u8],
    encoding: Encoding,
    change: Replacement<'_>,
) -> Result<Edited, EditError> {
    let text = encoding.decode(content).ok_or(EditError::NotFound)?;
    match fuzzy_match(&text, change.old, change.new) {
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
            Ok(Edited {
                bytes: encoding.encode_all(bytes).ok_or(EditError::NotFound)?,
                lines: vec![(line, last)],
                ignored: Some(ignored),
            })
        }
        FuzzyMatch::Several(ignored, lines) => Err(EditError::AmbiguousFuzzy(ignored, lines)),
        FuzzyMatch::Applied(line) => Err(EditError::AlreadyApplied(line)),
        FuzzyMatch::Nothing => Err(EditError::NotFound),
    }
}

/// The number of the last line of `text` if the first one has the number `first`.
fn last_line(first: usize, text: &str) -> usize {
    let text = text.strip_suffix('\n').unwrap_or(text);
    first + text.matches('\n').count()
}

/// `new` with the line endings of the file around `end`, the end of the match. Its first
/// `old_feeds` line feeds replace line feeds without a carriage return.
fn with_endings(
    content: &[u8],
    encoding: Encoding,
    end: usize,
    change: Replacement<'_>,
    old_feeds: usize,
) -> String {
    let Replacement { old, new, .. } = change;
    if new.matches('\n').count() <= old_feeds
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
            text.push_str(if index <= old_feeds { "\n" } else { "\r\n" });
        }
        text.push_str(line);
    }
    text
}

/// The place of `new` in `content` if the occurrence is not a coincidence: `new` is not a part of `old`, and it is
/// either alone on its line, or long enough and not a part of a longer word.
fn find_applied(content: &[u8], encoding: Encoding, change: Replacement<'_>) -> Option<usize> {
    const MIN_CHARS: usize = 3;
    let trimmed = change.new.trim();
    if trimmed.is_empty() || change.old.contains(trimmed) {
        return None;
    }
    let long = trimmed.chars().count() >= MIN_CHARS;
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

/// Whether `old` has a line ending that does not occur in `content`. Then only a search that
/// ignores line endings finds it, and a single match is pending: an applied edit would mean that
/// two places matched before, which is refused.
fn has_foreign_ending(content: &[u8], encoding: Encoding, old: &str) -> bool {
    let feeds = encoding.line_feeds(content);
    let crlf = encoding.places(content, &encoding.encode("\r\n"), usize::MAX);
    // A line feed at the start may be the end of CR LF.
    let old = old.strip_prefix('\n').unwrap_or(old);
    let old_crlf = old.matches("\r\n").count();
    let has_lf = old.matches('\n').count() > old_crlf;
    (old_crlf > 0 && crlf.is_empty()) || (has_lf && crlf.len() == feeds)
}

/// The start of a text `new` that contains the match at `place`, if `new` adds enough that this is not a coincidence.
/// The edit is already applied then, and another one would apply it twice.
fn inside_new(
    content: &[u8],
    encoding: Encoding,
    place: usize,
    change: Replacement<'_>,
) -> Option<usize> {
    const MIN_ADDED_CHARS: usize = 6;
    let solid = |text: &str| text.chars().filter(|char| !char.is_whitespace()).count();
    if solid(change.new) < solid(change.old) + MIN_ADDED_CHARS {
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

/// The new text unchanged, and with CR LF line endings.
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
            let got = edit(content.as_bytes(), change);
            let expect = expect.map(|(text, lines)| Edited {
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
            Err(EditError::Ambiguous(vec![1, 2, 3])),
        );
        check("aaa", once("aa", "x"), Err(EditError::Ambiguous(vec![1])));
        check(
            "a\na\nb a\n",
            every("a", "x"),
            Ok(("x\nx\nb x\n", &[(1, 1), (2, 2), (3, 3)])),
        );
        check("aaa", every("aa", "x"), Ok(("xa", &[(1, 1)])));
        check("a", once("zz", "x"), Err(EditError::NotFound));
        check("a", every("zz", "x"), Err(EditError::NotFound));
    }

    /// Proves FILE-22 in part.
    #[test]
    fn applied_edit_is_reported() {
        let check = |content: &str, change, line| {
            assert_eq!(
                edit(content.as_bytes(), change),
                Err(EditError::AlreadyApplied(line)),
                "{content:?} {change:?}"
            );
        };
        check("x\nlet b = 2;\n", once("let a = 1;", "let b = 2;"), 2);
        check("x\r\nb1\r\nb2\r\n", once("a", "b1\nb2"), 2);
        check("x\nb\n", once("a1", "b"), 2);
        // The match is a part of its replacement.
        check(
            "x\nfn a() {}\nfn b() {}\n",
            once("fn a() {}", "fn a() {}\nfn b() {}"),
            2,
        );
        // Short texts that occur by chance are not evidence.
        assert_eq!(
            edit(b"fn f() {}\n", once("zz", "}")),
            Err(EditError::NotFound)
        );
        let absent = |content: &[u8], change| {
            assert_eq!(
                edit(content, change),
                Err(EditError::NotFound),
                "{change:?}"
            );
        };
        absent(b"concatenate\n", once("dog", "cat"));
        absent(b"run(foo)\n", once("foo(bar)", "foo"));
        absent(b"\xff\xfea\0c\0a\0t\0", once("dog", "cat"));
    }

    /// Proves FILE-22: an occurrence of the new text elsewhere does not prevent an edit that
    /// differs in line endings.
    #[test]
    fn pending_edit_in_a_crlf_file_is_applied_once() {
        let content =
            b"fn a() {\r\n    return 0;\r\n}\r\nfn b() {\r\n    x();\r\n    return 1;\r\n}\r\n";
        let change = once("    x();\n    return 1;", "    return 0;");
        let got = edit(content, change).expect("one place matches");
        let expect = "fn a() {\r\n    return 0;\r\n}\r\nfn b() {\r\n    return 0;\r\n}\r\n";
        assert_eq!(String::from_utf8_lossy(&got.bytes), expect);
        assert_eq!(got.lines, [(5, 5)]);
        assert_eq!(got.ignored, Some(ToleratedDifference::LineEndings));
        let again = edit(&got.bytes, change);
        assert_eq!(again, Err(EditError::AlreadyApplied(2)));
        assert_eq!(
            edit(b"new\r\na\r\nb\r\na\r\nb\r\n", once("a\nb", "new")),
            Err(EditError::AmbiguousFuzzy(
                ToleratedDifference::LineEndings,
                vec![2, 4]
            ))
        );
    }

    /// Proves FILE-22: a repeated edit does not change another place that only matches with a
    /// difference ignored.
    #[test]
    fn repeated_edit_with_a_similar_place_elsewhere_is_not_applied() {
        let check = |content: &str, change| {
            let got = edit(content.as_bytes(), change).expect("it occurs once");
            assert_eq!(got.ignored, None, "{content:?}");
            assert_eq!(
                edit(&got.bytes, change),
                Err(EditError::AlreadyApplied(1)),
                "{content:?}"
            );
        };
        check(
            "    a();\n    b();\n\n  a();\n  b();\n",
            once("    a();\n    b();", "    c();"),
        );
        check("a\nb\nx\na \nb\n", once("a\nb", "new"));
        check("say \"x\"\nsay “x”\n", once("say \"x\"", "tell y"));
        // Both endings occur, or the last line has none.
        check("a\nb\nx\na\r\nb\r\ny\nz\n", once("a\nb", "new"));
        check("b\na\nb", once("b\n", "new\n"));
    }

    /// Proves FILE-21: a text that occurs exactly once is replaced, also if the text around it looks like the result.
    #[test]
    fn similar_text_around_a_match_is_not_an_applied_edit() {
        let check = |content: &str, change, expect: &str| {
            let got = edit(content.as_bytes(), change).expect("it occurs once");
            assert_eq!(String::from_utf8_lossy(&got.bytes), expect, "{change:?}");
        };
        check("aab", once("b", "ab"), "aaab");
        check("x\n\ny\n", once("x\n", "x\n\n"), "x\n\n\ny\n");
        check("f(1, 1)", once("(1", "(1, 1"), "f(1, 1, 1)");
    }

    #[test]
    fn inserted_lines_take_the_ending_of_the_line_they_replace() {
        let check = |content: &str, change, expect: &str| {
            let got = edit(content.as_bytes(), change).expect("replaced");
            assert_eq!(String::from_utf8_lossy(&got.bytes), expect, "{content:?}");
        };
        check("a\r\nb\r\nc\r\n", once("b", "x\ny"), "a\r\nx\r\ny\r\nc\r\n");
        check("a\r\nb\nc\r\n", once("b", "x\ny"), "a\r\nx\ny\nc\r\n");
        check("a\nb\r\nc", once("b", "x\ny"), "a\nx\r\ny\r\nc");
        check("a\r\nb", once("b", "x\ny"), "a\r\nx\r\ny");
        check("b", once("b", "x\ny"), "x\ny");
        check("a\nb\r\n", once("a\nb", "a\nx\ny"), "a\nx\r\ny\r\n");
        check("a\nb\r\n", once("a\n", "x\ny\n"), "x\ny\nb\r\n");
        // A line feed at the start of the old text includes its carriage return.
        check("a\r\nfoo\r\nb\r\n", once("\nfoo", ""), "a\r\nb\r\n");
        check("a\r\nfoo\r\nb\r\n", once("\nfoo", "x"), "ax\r\nb\r\n");
        check(
            "a\r\nfoo\r\nb\r\n",
            once("\nfoo", "x\ny"),
            "ax\r\ny\r\nb\r\n",
        );
        check(
            "a\r\nfoo\r\nb\r\n",
            once("\nfoo", "\nx\ny"),
            "a\r\nx\r\ny\r\nb\r\n",
        );
        check("a\r\nb\r\nb\r\n", every("\nb", ""), "a\r\n");
        check("a\nfoo\nb\n", once("\nfoo", ""), "a\nb\n");
        // Explicit carriage returns are preserved.
        check("a\r\nb\r\n", once("a\r\nb\r\n", "a\nb\n"), "a\nb\n");
        check("a\r\nb\r\n", once("b", "x\r\ny"), "a\r\nx\r\ny\r\n");
    }

    #[test]
    fn other_encodings_are_preserved() {
        let latin1 = b"caf\xe9 one\r\n\xff\xfe two\n  three  ";
        let got = edit(latin1, once("two", "2")).expect("replaced");
        assert_eq!(got.bytes, b"caf\xe9 one\r\n\xff\xfe 2\n  three  ");

        let bom = b"\xef\xbb\xbfone\r\ntwo";
        let got = edit(bom, once("one", "1")).expect("replaced");
        assert_eq!(got.bytes, b"\xef\xbb\xbf1\r\ntwo");

        let wide = |text: &str| -> Vec<u8> {
            let units = "\u{FEFF}".encode_utf16().chain(text.encode_utf16());
            units.flat_map(u16::to_le_bytes).collect()
        };
        let got = edit(&wide("one\r\nzwei ä\r\n"), once("zwei", "2\n3")).expect("replaced");
        assert_eq!(got.bytes, wide("one\r\n2\r\n3 ä\r\n"));
        assert_eq!(got.lines, [(2, 3)]);
        let got = edit(&wide("one\r\nzwei\r\nö\r\n"), once("\nzwei", "")).expect("replaced");
        assert_eq!(got.bytes, wide("one\r\nö\r\n"));
        // The bytes of two neighbouring code units look like the character.
        let shifted = b"\xff\xfe\x00\x61\x00\x00";
        assert_eq!(edit(shifted, once("a", "b")), Err(EditError::NotFound));
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
            // The brackets occur nowhere else, so the place is unique.
            let old = format!("<{old}>");
            let content = [&before, old.as_bytes(), &after].concat();
            prop_assume!(Encoding::of(&content) == Encoding::Bytes);
            let got = edit(&content, once(&old, &new)).expect("it occurs once");
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
            let there = edit(&content, once(&old, &new)).expect("it occurs once");
            let back = edit(&there.bytes, once(&new, &old)).expect("it occurs once");
            prop_assert_eq!(back.bytes, content);
            prop_assert_eq!(there.lines, back.lines);
        }

        #[test]
        fn replacing_all_equals_str_replace(
            content in "[ab\n]{0,20}", old in "[ab]{1,2}", new in "[c]{0,3}",
        ) {
            match edit(content.as_bytes(), every(&old, &new)) {
                Ok(got) => prop_assert_eq!(
                    String::from_utf8(got.bytes).expect("UTF-8"),
                    content.replace(&old, &new)
                ),
                Err(refusal) => {
                    prop_assert!(!content.contains(&old));
                    prop_assert_eq!(refusal, EditError::NotFound);
                }
            }
        }

        #[test]
        fn no_input_panics(content in bytes(), old in ".{0,3}", new in ".{0,3}", all: bool) {
            let _ = edit(&content, Replacement { old: &old, new: &new, all });
            let wide = [b"\xff\xfe".as_slice(), &content].concat();
            let _ = edit(&wide, Replacement { old: &old, new: &new, all });
        }
    }
}
