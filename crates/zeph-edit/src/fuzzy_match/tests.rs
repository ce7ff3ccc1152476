//! Tests of the fuzzy match: it finds the requested place and no other one.

use proptest::prelude::*;

use super::*;

/// The content after the edit, and the ignored difference.
fn edited(content: &str, old: &str, new: &str) -> (String, ToleratedDifference) {
    match fuzzy_match(content.as_bytes(), old, new) {
        FuzzyMatch::One {
            start,
            end,
            text,
            ignored,
            ..
        } => {
            let bytes = content.as_bytes();
            let bytes = [&bytes[..start], &text, &bytes[end..]].concat();
            (String::from_utf8(bytes).expect("UTF-8"), ignored)
        }
        other => panic!("{content:?} {old:?}: {other:?}"),
    }
}

/// Proves FILE-22: the order of the attempts, and the endings of inserted lines.
#[test]
fn differences_are_ignored_in_order() {
    use ToleratedDifference::{Indentation, LineEndings, TrailingSpace, Typography};
    let check = |content: &str, old: &str, new: &str, expect: &str, ignored| {
        assert_eq!(
            edited(content, old, new),
            (expect.to_owned(), ignored),
            "{content:?} {old:?}"
        );
    };
    check("a\nb", "b\n", "c\n", "a\nc", LineEndings);
    check("a\nb", "a\nb\n", "a\nc\nb\n", "a\nc\nb", LineEndings);
    check("a\r\nb", "a\nb\n", "a\nc", "a\r\nc", LineEndings);
    check("x\r\nb", "b\n", "b\nc\n", "x\r\nb\r\nc", LineEndings);
    check(
        "\ta\n\tb",
        "    a\n    b\n",
        "    c\n    b\n",
        "\tc\n\tb",
        Indentation,
    );
    check(
        "a\r\nb\r\nc\r\n",
        "a\nb",
        "a\nB",
        "a\r\nB\r\nc\r\n",
        LineEndings,
    );
    check(
        "a\nb\nc\n",
        "a\r\nb\r\n",
        "a\r\nB\r\n",
        "a\nB\nc\n",
        LineEndings,
    );
    // Every inserted line takes the ending of the line that it replaces.
    check(
        "a\r\nb\nc\r\nd",
        "a\nb\nc\n",
        "a\nx\ny\nc\nz\n",
        "a\r\nx\ny\nc\r\nz\r\nd",
        LineEndings,
    );
    check("a\r\nb", "a\nb", "a\nb\nc", "a\r\nb\r\nc", LineEndings);
    check("x a\r\nb y", "a\nb", "1\n2", "x 1\r\n2 y", LineEndings);
    // The line endings around the match are not an added blank line.
    check(
        "a\r\nb\r\nc\r\n",
        "b\nc",
        "\nb\nc",
        "a\r\n\r\nb\r\nc\r\n",
        LineEndings,
    );
    check(
        "a\r\nb\r\nc\r\n",
        "b\nc",
        "b\nc\n",
        "a\r\nb\r\nc\r\n\r\n",
        LineEndings,
    );

    check(
        "a  \nb\nc\n",
        "a\nb\n",
        "a\nB\n",
        "a  \nB\nc\n",
        TrailingSpace,
    );
    check(
        "a\nb\t\nc\n",
        "a\nb\nc",
        "a\nB\nc",
        "a\nB\nc\n",
        TrailingSpace,
    );
    check("one\ntwo\n", "two  ", "2", "one\n2\n", TrailingSpace);
    check(
        "a \r\nb\r\n",
        "a\nb",
        "a\nb\nc",
        "a \r\nb\r\nc\r\n",
        TrailingSpace,
    );
    check(
        "a \nb \nx\n",
        "a\nb",
        "a\nb\nc",
        "a \nb \nc\nx\n",
        TrailingSpace,
    );

    check(
        "fn f() {\n    if x {\n        y();\n    }\n}\n",
        "if x {\n    y();\n}",
        "if x {\n    z();\n    y();\n}",
        "fn f() {\n    if x {\n        z();\n        y();\n    }\n}\n",
        Indentation,
    );
    check(
        "\tif x {\n\t\ty();\n\t}\n",
        "\t\tif x {\n\t\t\ty();\n\t\t}\n",
        "\t\tif x {\n\t\t\ty();\n\n\t\t\tz();\n\t\t}\n",
        "\tif x {\n\t\ty();\n\n\t\tz();\n\t}\n",
        Indentation,
    );
    check("  a: 1\n", "    a: 1", "    a: 2", "  a: 2\n", Indentation);

    check(
        "He said “no” – once.\n",
        "said \"no\" - once",
        "said \"no\" - twice",
        "He said “no” – twice.\n",
        Typography,
    );
    check(
        "it’s\r\nbob’s\r\n",
        "it's\nbob's",
        "it's\nann's",
        "it’s\r\nann’s\r\n",
        Typography,
    );
    check(
        "say \"x\"\n",
        "say “x”",
        "tell “x”",
        "tell \"x\"\n",
        Typography,
    );
}

/// Proves FILE-22: a blank line after the match does not change.
#[test]
fn preserves_trailing_blank_line() {
    use ToleratedDifference::{Indentation, LineEndings, TrailingSpace, Typography};
    let check = |content: &str, old: &str, new: &str, expect: &str, ignored| {
        assert_eq!(
            edited(content, old, new),
            (expect.to_owned(), ignored),
            "{content:?} {old:?} {new:?}"
        );
    };
    check("\"\n\t", "“\n", "\na", "\na\t", Typography);
    check("‘a’\n \nb\n", "'a'\n", "\nc\n", "\nc\n \nb\n", Typography);
    check("a \nb\n \n", "a\nb\n", "\nc\n", "\nc\n \n", TrailingSpace);
    check(
        "a\r\nb\r\n \r\n",
        "a\nb\n",
        "\nc\n",
        "\r\nc\r\n \r\n",
        LineEndings,
    );
    check(
        "  a\n  b\n \n",
        "a\nb\n",
        "\nc\n",
        "\n  c\n \n",
        Indentation,
    );
}

/// Proves FILE-22: exactly one place matches, or the edit is refused.
#[test]
fn ambiguous_edit_is_rejected() {
    let check = |content: &str, old: &str, new: &str, expect: &FuzzyMatch| {
        assert_eq!(
            fuzzy_match(content.as_bytes(), old, new),
            *expect,
            "{content:?} {old:?}"
        );
    };
    let several = |ignored, lines: &[usize]| FuzzyMatch::Several(ignored, lines.to_vec());
    check(
        "a\r\nb\r\na\r\nb\r\n",
        "a\nb",
        "x",
        &several(ToleratedDifference::LineEndings, &[1, 3]),
    );
    // The first difference with a match decides, also if it matches several places.
    check(
        "  a\n  b \n  a\n  b\t\n a\n b\n",
        "  a\n  b\n",
        "x",
        &several(ToleratedDifference::TrailingSpace, &[1, 3]),
    );
    check(
        " a\n  a\n",
        "    a\n",
        "x\n",
        &several(ToleratedDifference::Indentation, &[1, 2]),
    );
    check(
        "“x” and “x”\n",
        "\"x\"",
        "y",
        &several(ToleratedDifference::Typography, &[1]),
    );
    for (content, old, new) in [
        // The indentation does not differ by the same amount on every line.
        ("  a\n    b\n", "a\nb\n", "x\n"),
        ("\ta\n  b\n", "a\nb\n", "x\n"),
        // A new line cannot be indented less.
        ("a\nb\n", "  a\n  b\n", "  a\nx\n  b\n"),
        // Similar text does not match.
        ("let count = 1;\n", "let counts = 1;", "x"),
        ("a\nb\n", "a\n\nb", "x"),
        ("a b\n", "a  b", "x"),
        ("A\r\nb\n", "a\nb", "x"),
        ("a\r\nb", "  ", "x"),
        ("", "a", "b"),
        // The edit changes only the difference that would be ignored.
        ("a\n", "  a\n", "a\n"),
        ("a\nb\n", "a  \nb\n", "a \nb\n"),
        ("  foo\n", "    foo\n", "  foo\n"),
        ("a\r\nb", "a\nb", "a\r\nb"),
        ("‘a’", "'a'", "‘a‘"),
        ("'a'\n", "‘a’  \n", "'a'  \n"),
    ] {
        check(content, old, new, &FuzzyMatch::Nothing);
    }
}

/// Proves FILE-22: an edit that a fuzzy match applied is not applied again.
#[test]
fn fuzzy_edit_is_not_applied_twice() {
    let check = |content: &str, old: &str, new: &str| {
        let (after, _) = edited(content, old, new);
        match fuzzy_match(after.as_bytes(), old, new) {
            FuzzyMatch::Applied(_) => {}
            other => panic!("{after:?}: {other:?}"),
        }
    };
    check("a\r\nb\r\n", "a\nb", "a\nb\nc");
    check("a\nb", "b\n", "b\nc\n");
    check("a\r\nb", "b\n", "b\nc\n");
    check("a\r\nb\r\n", "a\nb", "c\na\nb");
    check("a \nb\n", "a\nb\n", "a\nb\nc\n");
    check("    a\n    b\n", "a\nb\n", "a\nb\nc\n");
    check("say “x”\n", "say \"x\"", "say \"x\" twice");
}

/// A line that is unique by its number.
fn line(number: usize, word: &str, indent: usize) -> String {
    format!("{}{word}<{number}>", " ".repeat(indent))
}

/// A line of a file: body, white space after it, ending.
#[derive(Debug, Clone)]
struct Row {
    body: String,
    space: &'static str,
    crlf: bool,
}

fn rows() -> impl Strategy<Value = Vec<Row>> {
    let row = (
        "[a-z“”’–]{1,6}",
        0_usize..3,
        prop_oneof![4 => Just(""), 1 => Just("  "), 1 => Just("\t")],
        any::<bool>(),
    );
    proptest::collection::vec(row, 2..9).prop_map(|rows| {
        let rows = rows.into_iter().enumerate();
        rows.map(|(number, (word, indent, space, crlf))| Row {
            body: line(number, &word, 2 * indent),
            space,
            crlf,
        })
        .collect()
    })
}

fn file(rows: &[Row]) -> String {
    rows.iter()
        .map(|row| {
            let ending = if row.crlf { "\r\n" } else { "\n" };
            format!("{}{}{ending}", row.body, row.space)
        })
        .collect()
}

/// The lines as a model requests them.
fn asked(rows: &[Row], kind: ToleratedDifference) -> String {
    let lines = rows.iter().map(|row| match kind {
        ToleratedDifference::LineEndings => format!("{}{}\n", row.body, row.space),
        ToleratedDifference::TrailingSpace => format!("{}\n", row.body),
        ToleratedDifference::Indentation => format!("    {}\n", row.body),
        ToleratedDifference::Typography => {
            let plain = plain(row.body.as_bytes()).into_owned();
            format!("{}\n", String::from_utf8(plain).expect("UTF-8"))
        }
    });
    lines.collect()
}

fn kinds() -> impl Strategy<Value = ToleratedDifference> {
    prop_oneof![
        Just(ToleratedDifference::LineEndings),
        Just(ToleratedDifference::TrailingSpace),
        Just(ToleratedDifference::Indentation),
        Just(ToleratedDifference::Typography),
    ]
}

/// `text` without all differences that a search may ignore.
fn essence(text: &[u8]) -> Vec<u8> {
    let flat = plain(text).into_owned();
    flat.into_iter()
        .filter(|byte| !byte.is_ascii_whitespace())
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    /// Proves FILE-22: for any lines, the requested ones change, and every byte of the others stays.
    #[test]
    fn only_the_requested_lines_change(
        rows in rows(), kind in kinds(), from in 0_usize..8, count in 1_usize..4, at in 0_usize..4,
    ) {
        let from = from % rows.len();
        let to = (from + count).min(rows.len());
        let at = from + at % (to - from);
        let content = file(&rows);
        let old = asked(&rows[from..to], kind);
        // One line is replaced.
        let indent = if kind == ToleratedDifference::Indentation { "    " } else { "" };
        let new = [
            asked(&rows[from..at], kind),
            format!("{indent}NEW\n"),
            asked(&rows[at + 1..to], kind),
        ]
        .concat();
        prop_assume!(!content.contains(&old));
        let mut expect = rows.clone();
        expect[at].body = "NEW".to_owned();
        expect[at].space = "";
        match fuzzy_match(content.as_bytes(), &old, &new) {
            FuzzyMatch::One { start, end, text, .. } => {
                let bytes = content.as_bytes();
                let bytes = [&bytes[..start], &text, &bytes[end..]].concat();
                prop_assert_eq!(String::from_utf8(bytes).expect("UTF-8"), file(&expect));
            }
            other => prop_assert!(false, "{other:?}"),
        }
    }

    /// Proves FILE-22: the replaced text differs from the requested one only in white space and in the kind of quotes
    /// and dashes.
    #[test]
    fn nothing_else_is_ever_replaced(
        content in "[ab \t\n\r\"“”–-]{0,24}", old in "[ab \t\n\r\"“-]{1,8}", new in "[abc \n\"-]{0,8}",
    ) {
        if let FuzzyMatch::One { start, end, .. } = fuzzy_match(content.as_bytes(), &old, &new) {
            let there = &content.as_bytes()[start..end];
            prop_assert_eq!(essence(there), essence(old.as_bytes()));
            let lines = |text: &[u8]| memchr::memchr_iter(b'\n', text).count();
            // The text may end with a last line that has no ending.
            let lacks = end == content.len() && old.ends_with('\n') && !there.ends_with(b"\n");
            prop_assert_eq!(lines(there) + usize::from(lacks), lines(old.as_bytes()));
        }
    }

    #[test]
    fn no_bytes_panic(
        content in proptest::collection::vec(
            prop_oneof![
                Just(b'a'), Just(b' '), Just(b'\n'), Just(b'\r'), Just(0xe2), Just(0x80),
                Just(0x9c), Just(0xff),
            ],
            0..24,
        ),
        old in "[a \n\r“]{1,6}", new in "[ab \n\r“]{0,6}",
    ) {
        let _ = fuzzy_match(&content, &old, &new);
    }
}
