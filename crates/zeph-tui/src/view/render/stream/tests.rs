//! Tests of Markdown that arrives in pieces.

use proptest::prelude::*;

use super::*;
use crate::view::render::render_markdown;

fn text(lines: &[Line<'static>]) -> String {
    let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

/// The stable lines after each piece, and the rest.
fn streamed<'a>(pieces: impl IntoIterator<Item = &'a str>, width: usize) -> Vec<Line<'static>> {
    let mut stream = MarkdownStream::default();
    let mut lines = Vec::new();
    for piece in pieces {
        stream.push(piece);
        lines.extend(stream.take_stable(width));
    }
    lines.extend(stream.finish(width));
    lines
}

/// Proves CLI-4a: text and rows of tables appear as they stream, and code line by line.
#[test]
fn open_part_is_shown_as_it_arrives() {
    let mut stream = MarkdownStream::default();
    let mut check = |piece: &str, stable: &str, open: &str| {
        stream.push(piece);
        assert_eq!(text(&stream.take_stable(40)), stable, "after {piece:?}");
        assert_eq!(text(&stream.open(40)), open, "after {piece:?}");
    };
    check("Hello wor", "", "Hello wor");
    check("ld\n\n- a\n- b", "Hello world", "\n• a\n• b");
    check("\n- c\n", "\n• a\n• b", "• c");
    check("\n|a|b|\n|-|-|\n|1|", "• c", "\na │ b\n──┼──\n1 │ ");
    check("2|\n|3|4|\n", "", "\na │ b\n──┼──\n1 │ 2\n3 │ 4");
    check(
        "\n```rust\nfn a(",
        "\na │ b\n──┼──\n1 │ 2\n3 │ 4\n",
        "fn a(",
    );
    check(") {}\n``", "fn a() {}", "");
    check("`\nend", "", "\nend");
}

/// Proves CLI-4a: marks of text that arrives are not shown and then taken away.
#[test]
fn open_strong_text_and_code_have_no_marks() {
    let check = |source: &str, expect: &str| {
        let mut stream = MarkdownStream::default();
        stream.push(source);
        stream.take_stable(40);
        assert_eq!(text(&stream.open(40)), expect, "{source:?}");
    };
    check("a **bold te", "a bold te");
    check("a **", "a");
    check("a `co", "a co");
    check("a `x` **b `c", "a x b c");
    check("a \\** b", "a ** b");
    check("2 * 3", "2 * 3");
    check("a **b** c", "a b c");
    check("old **x\n\nnew", "old **x\n\nnew");
}

/// Proves CLI-4a: a long paragraph and a long table are cut, and no text is lost.
#[test]
fn long_blocks_become_stable_in_parts() {
    let words = "many words of **one** paragraph and a `code` span ".repeat(400);
    let rows = "| a | some text |\n".repeat(400);
    let table = format!("| x | y |\n|---|---|\n{rows}");
    let item = format!(
        "1. item\n\n{}",
        "   a paragraph in the item\n\n".repeat(400)
    );
    for source in [&words, &table, &item] {
        let mut stream = MarkdownStream::default();
        let mut lines = Vec::new();
        for piece in source.as_bytes().chunks(7) {
            stream.push(std::str::from_utf8(piece).unwrap());
            lines.extend(stream.take_stable(80));
        }
        let stable = lines.len();
        lines.extend(stream.finish(80));
        let whole = render_markdown(source, 80);
        assert_eq!(text(&lines), text(&whole));
        assert!(stable * 10 > whole.len() * 7, "{stable} of {}", whole.len());
    }
}

/// Proves CLI-4a: the open part is bounded, so the time is linear in the length of the document.
#[test]
fn open_part_of_a_long_document_is_bounded() {
    let line = "x ".repeat(50);
    for unit in [line.as_str(), "x", "- item\n", "# title\n", "**open "] {
        let source = unit.repeat(160_000 / unit.len());
        let mut stream = MarkdownStream::default();
        for piece in source.as_bytes().chunks(64) {
            stream.push(&String::from_utf8_lossy(piece));
            stream.take_stable(200);
            assert!(stream.source.len() <= 2 * MAX_OPEN_BYTES, "{unit:?}");
        }
    }
}

/// Pieces of Markdown that meet in every order.
fn soup() -> impl Strategy<Value = String> {
    const ATOMS: &[&str] = &[
        "**",
        "*",
        "_",
        "`",
        "```",
        "\n```\n",
        "\n",
        "\n\n",
        " ",
        "- ",
        "\n- ",
        "\n2. ",
        "\n# ",
        "| ",
        "\n|a|b|\n|---|---|\n",
        "|c|\n",
        "\n> ",
        "[",
        "](u)",
        "~~",
        "\\",
        "&#27;",
        "&lt;",
        "<",
        ">",
        "\x1b[31m",
        "\x1b]0;",
        "\x07",
        "\u{9b}",
        "\r",
        "word",
        "two words",
        "é",
        "漢",
        "\t",
        "![",
        "\n---\n",
        "\n===\n",
        "    ",
        "\n    ",
        "\n  ",
        "[x] ",
        "\n```rust\n",
        "fn a() {",
        "\n[a]: http://b\n",
        "[a]",
        "<div>\n",
        "http://x",
        "1.",
        "~~~",
        "\n~~~\n",
        "\u{a0}",
    ];
    let atom = proptest::sample::select(ATOMS);
    proptest::collection::vec(atom, 0..60).prop_map(|atoms| atoms.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Proves CLI-4a: the pieces make no difference.
    #[test]
    fn chunking_has_no_effect(
        source in soup(),
        cuts in proptest::collection::vec(0_usize..300, 0..20),
        width in 10_usize..60,
    ) {
        let mut cuts: Vec<usize> =
            cuts.into_iter().filter(|cut| source.is_char_boundary(*cut)).collect();
        cuts.extend([0, source.len()]);
        cuts.sort_unstable();
        let pieces = cuts.windows(2).map(|pair| &source[pair[0]..pair[1]]);
        let whole = render_markdown(&source, width);
        prop_assert_eq!(streamed(pieces, width), whole.clone(), "{}", text(&whole));
    }

    /// Proves CLI-3: no control character reaches a line.
    #[test]
    fn no_control_reaches_a_line(source in soup(), width in 10_usize..60) {
        for line in render_markdown(&source, width) {
            for span in &line.spans {
                prop_assert!(!span.content.chars().any(char::is_control), "{:?}", line);
            }
        }
    }

    #[test]
    fn open_part_never_panics(source in soup()) {
        let mut stream = MarkdownStream::default();
        for c in source.chars() {
            stream.push(c.encode_utf8(&mut [0; 4]));
            stream.take_stable(30);
            stream.open(30);
        }
    }
}
