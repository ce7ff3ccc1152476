//! Comparisons of the terminal model with a real terminal, and tests with large inputs.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use proptest::prelude::*;

use super::*;

/// The lines of a text that arrives in pieces.
fn lines(pieces: &[&str]) -> Vec<(u64, String)> {
    told(pieces).0
}

/// The lines of a text that arrives in pieces, and whether visible text is missing.
fn told(pieces: &[&str]) -> (Vec<(u64, String)>, bool) {
    let mut sanitizer = Sanitizer::new();
    let mut lines = Vec::new();
    let mut add = |line: Line<'_>| lines.push((line.number, line.text.to_owned()));
    for piece in pieces {
        sanitizer.push(piece, &mut add);
    }
    sanitizer.finish(&mut add);
    (lines, sanitizer.dropped_visible())
}

/// Splits the text into pieces.
fn cut_at<'t>(text: &'t str, cuts: &[prop::sample::Index]) -> Vec<&'t str> {
    let cuts = cuts.iter().map(|cut| cut.index(text.len() + 1));
    let mut cuts: Vec<_> = cuts.map(|cut| text.floor_char_boundary(cut)).collect();
    cuts.extend([0, text.len()]);
    cuts.sort_unstable();
    let pieces = cuts.windows(2).map(|ends| &text[ends[0]..ends[1]]);
    pieces.collect()
}

/// Proves OUT-1.
#[test]
fn erased_line_has_one_number_for_any_cuts() {
    let (head, tail) = ("\na\x1b[1K\x1b[70Ax\n", "\n".repeat(99) + "end\n");
    let whole = lines(&[&format!("{head}{tail}")]);
    assert_eq!(lines(&[head, &tail]), whole);
    for at in 1..tail.len() {
        let (first, second) = tail.split_at(at);
        assert_eq!(lines(&[head, first, second]), whole, "{at}");
        assert_eq!(lines(&[&format!("{head}{first}"), second]), whole, "{at}");
    }
}

/// Proves OUT-1.
#[test]
fn trailing_blanks_of_a_long_edited_line_are_equal_for_any_cuts() {
    let text = format!(" \ra{} ", "ä".repeat(2000));
    let whole = lines(&[&text]);
    for at in (0..text.len()).filter(|at| text.is_char_boundary(*at)) {
        assert_eq!(lines(&[&text[..at], &text[at..]]), whole, "{at}");
    }
}

/// Proves OUT-1.
#[test]
fn fully_erased_line_is_empty_for_any_cuts() {
    for text in ["_\ra\t\x1b[1K\r \x08", "\x1b[1K\x1b[K\r \x08"] {
        let characters: Vec<&str> = text.split_inclusive(|_| true).collect();
        assert_eq!(lines(&[text]), lines(&characters), "{text:?}");
    }
}

fn drops(text: &str) -> bool {
    let mut sanitizer = Sanitizer::new();
    sanitizer.push(text, &mut |_| {});
    sanitizer.finish(&mut |_| {});
    sanitizer.dropped_visible()
}

fn check(text: &str, expect: &str) {
    assert_eq!(sanitize_output(text), expect, "{text:?}");
}

/// Proves OUT-1.
#[test]
fn escape_sequences_are_removed_and_their_text_stays() {
    check("", "");
    check("plain\ttext\n", "plain\ttext\n");
    check("no line break", "no line break");
    check("\x1b[31mred\x1b[0m\n", "red\n");
    check("\x1b[38;2;1;2;3mx\x1b[38:5:1my\x1b[?25l\x1b[!pz", "xyz");
    check("a\x1b]0;title\x07b", "ab");
    check("a\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\b", "alinkb");
    check("a\x1b]8;id=1;http://x\x07link\x1b]8;;\x07b", "alinkb");
    check(
        "a\x1bP1;2|hidden\x1b\\b\x1b_apc\x1b\\c\x1b^pm\x1b\\d\x1bXsos\x1b\\e",
        "abcde",
    );
    check("\u{9b}31mx\u{9d}0;t\u{9c}y\u{90}dcs\u{9c}z", "xyz");
    check("\x1b(Bx\x1b)0y\x1b#8z\x1b=\x1b>", "xyz");
    check("a\x07b\x00c\x7fd\x0e\x0fe", "abcde");
    check("\x1b\x1b[31mx\x1béy\x1b[31\u{fc}z", "xéyüz");
    check("a «b» ä·ö\u{a0}漢", "a «b» ä·ö\u{a0}漢");
}

/// Proves OUT-1.
#[test]
fn unterminated_sequence_hides_only_its_line() {
    check("a\x1b]0;never closed\nnext\n", "a\nnext\n");
    check("a\x1b[", "a");
    check("a\x1b", "a");
    let text = format!("a\x1b[{}b\n", "1".repeat(100));
    check(&text, &format!("a{}b\n", "1".repeat(36)));
    for lossy in ["\x1b]0;error\nx", "\x1b]0;error", "\x1bPx\x1b[1mx", &text] {
        assert!(drops(lossy), "{lossy:?}");
    }
    for whole in ["\x1b]0;t\x07x", "\x1b[31mx", "x\x1b", "x\x1b[3", "\x1b]\n"] {
        assert!(!drops(whole), "{whole:?}");
    }
}

/// Proves OUT-1.
#[test]
fn progress_is_resolved_to_its_last_state() {
    check("10%\r50%\r100%\n", "100%\n");
    check("a\r\nb\r\n", "a\nb\n");
    check("a\r\r\nb\n", "a\nb\n");
    check("downloading\rdone\n", "doneloading\n");
    check("downloading\r\x1b[Kdone\n", "done\n");
    check("downloading\x1b[2K\rdone\n", "done\n");
    check("downloading\x1b[2K\x1b[1Gdone\n", "done\n");
    check("downloading\rdone       \n", "done\n");
    check("100%\r", "100%");
    check("abc\x1b[2DX\n", "aXc\n");
    check("ab\x1b[3Cc\n", "ab   c\n");
    check("abcdef\r\x1b[2Cxy\n", "abxyef\n");
    check("abcdef\x1b[4D\x1b[1Kx\n", "  xdef\n");
    check("abcdef\r\x1b[2C\x1b[2Xx\n", "abx ef\n");
    check("a\tb\rX\n", "X\tb\n");
    check("\rabc\n", "abc\n");
}

/// Proves OUT-1.
#[test]
fn backspaces_move_back_by_columns() {
    check("|\x08/\x08-\x08 \x08\n", "\n");
    check("ab\x08c\n", "ac\n");
    check("ab\x08\x08\x08\x08xyz", "xyz");
    check("漢\x08\x08x\n", "x\n");
    check("漢\x08x\n", " x\n");
    check("e\u{301}\x08x", "x");
    check("bo\x08old _\x08u_\x08n", "bold un");
    assert!(!drops("bo\x08old _\x08u"));
    assert!(drops("ab\x08c"));
}

/// Proves OUT-1.
#[test]
fn redrawn_lines_appear_once() {
    check(
        "a 1%\nb 1%\n\x1b[2A\x1b[2Ka 9%\n\x1b[2Kb 9%\nend\n",
        "a 9%\nb 9%\nend\n",
    );
    check("a\nb\n\x1b[2A\x1b[Jx\n", "x\n");
    check("a\nb\nc\x1b[1A\rX\x1b[1B\rY\n", "a\nX\nY\n");
    check("a\n\x1b[1F\x1b[Kb\x1b[1Ec\n", "b\nc\n");
    check("a\n\x1bMb\n", "b\n");
    // Docker prints its lines once and returns to each.
    let start = "a: Waiting\r\nb: Waiting\r\n";
    let redraw = "\x1b[2A\x1b[2K\ra: Done\r\x1b[2B\x1b[1A\x1b[2K\rb: Done\r\x1b[1B";
    check(&format!("{start}{redraw}"), "a: Done\nb: Done\n");
    // Lines that are out of reach do not change.
    let many: String = (0..200).map(|n| format!("{n}\n")).collect();
    let up = format!("{many}\x1b[500Atop");
    let clean = sanitize_output(&up);
    assert_eq!(clean.lines().count(), 200);
    assert_eq!(clean.lines().nth(136), Some("top"));
}

/// Proves OUT-1.
#[test]
fn screen_clear_removes_no_text() {
    check("a\x1b[2J\x1b[Hb\n", "a\nb\n");
    check("a\n\x1b[H\x1b[2J\x1b[3Jb\n\x1b[5Ac\n", "a\nc\n");
    check("\x1bca\n", "a\n");
    check("a\x1b[?1049hb\x1b[?1049lc", "a\nb\nc");
    assert!(!drops("a\x1b[2J\x1b[Hb\n"));
    // A status line at the bottom of the screen.
    let status = "\x1b7\x1b[24;0f\x1b[42mProgress: [ 10%]\x1b[49m \x1b8";
    check(&format!("Get:1\n{status}Get:2\n{status}"), "Get:1\nGet:2\n");
    assert!(drops(status));
}

/// Proves OUT-1.
#[test]
fn runs_of_blank_lines_become_one() {
    check("a\n\n\n\nb\n\nc\n", "a\n\nb\n\nc\n");
    check("\n\n\na\n", "\na\n");
    check("a\n \n\t\n\nb", "a\n \nb");
    check("a\n\n\n", "a\n\n");
    check("a\n\x1b[0m\n\r\n\nb", "a\n\nb");
}

#[test]
fn line_numbers_match_raw_output() {
    let check = |text: &str, expect: &[(u64, &str)]| {
        let expect: Vec<_> = expect.iter().map(|(n, t)| (*n, (*t).to_owned())).collect();
        assert_eq!(lines(&[text]), expect, "{text:?}");
    };
    check("a\nb", &[(1, "a"), (2, "b")]);
    check("a\n\n\n\nb\n", &[(1, "a"), (2, ""), (5, "b")]);
    check("1%\r2%\nb\n", &[(1, "2%"), (2, "b")]);
    check("a\nb\n\x1b[2A\x1b[2Kc\nd\n", &[(3, "c"), (4, "d")]);
    let mut sanitizer = Sanitizer::new();
    sanitizer.push("a\nb\x1b[31m", &mut |_| {});
    assert_eq!(sanitizer.raw_lines(), 2);
    sanitizer.push("\n", &mut |_| {});
    assert_eq!(sanitizer.raw_lines(), 2);
}

/// Proves OUT-1: text after the last editable column of an edited line grows as one line.
#[test]
fn edited_line_grows_equally_for_any_cuts() {
    for (head, long) in [
        ("x\x08", "i"),
        ("x\rab", "i"),
        ("x\x1b[1D", "ä"),
        ("\t\x08", "i"),
    ] {
        let text = format!("{head}{}\rend\nnext\n", long.repeat(1100));
        let whole = lines(&[&text]);
        for at in (0..text.len()).filter(|at| text.is_char_boundary(*at)) {
            assert_eq!(lines(&[&text[..at], &text[at..]]), whole, "{head:?} {at}");
        }
    }
}

/// Proves OUT-1.
#[test]
fn overlong_line_retains_its_ends() {
    let whole = format!("{}\nnext", "x".repeat(64 * 1024));
    assert_eq!(sanitize_output(&whole), whole);
    let long = format!("start{}end\nnext\n", "ä".repeat(2_500_000));
    let clean = sanitize_output(&long);
    assert!(clean.starts_with("startä") && clean.ends_with("äend\nnext\n"));
    assert!(clean.contains(" bytes of this line omitted …]"));
    assert!(clean.len() < 64 * 1024 && drops(&long));
    assert_eq!(sanitize_output(&clean), clean);
    // A long line between many others is cut, too.
    let among = format!("{}{long}{}", "a\n".repeat(500), "b\n".repeat(500));
    assert_eq!(sanitize_output(&among).len(), clean.len() + 2000);
    assert!(drops(&among));
    // A long line is retained if it is overwritten.
    let overwritten = format!("{}\rx\n", "y".repeat(5000));
    check(&overwritten, &format!("{}\nx\n", "y".repeat(5000)));
}

/// Proves OUT-1, OUT-11.
#[test]
fn floods_take_linear_time_and_bounded_memory() {
    let start = std::time::Instant::now();
    let flood = |piece: &str, times: usize| sanitize_output(&piece.repeat(times)).len();
    assert_eq!(flood("\r", 200_000), 0);
    assert_eq!(flood("\rstep 12 of 100", 60_000), 14);
    assert!(flood("\x1b[", 200_000) < 400_000);
    assert_eq!(flood("\x1b]0;", 200_000), 0);
    assert!(flood("x\x08", 200_000) <= 1);
    assert!(flood("\x1b[1024CX\r", 20_000) < 2_000);
    assert!(flood("\x1b[A\x1b[J", 100_000) <= 1);
    assert!(flood("\x1b[999B", 20_000) <= 2);
    assert!(flood("e\u{301}\x08\x1b[C\u{301}\r", 50_000) < 1000);
    assert!(flood("\x1b7\x1b8\x1b[s\x1b[H", 200_000) == 0);
    assert!(start.elapsed().as_secs() < 60, "{:?}", start.elapsed());
}

/// Text, and sequences that move the cursor within the window.
fn sequence() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => "[a-z é漢\t]{1,6}",
        1 => Just("e\u{301}".to_owned()),
        4 => Just("\n".to_owned()),
        2 => Just("\r\n".to_owned()),
        2 => Just("\r".to_owned()),
        1 => Just("\x08".to_owned()),
        1 => "\x1b\\[[0-9]{0,1}[ABCDEFG]",
        1 => "\x1b\\[[012]{0,1}K",
        1 => Just("\x1b[J".to_owned()),
        1 => "\x1b\\[[0-9]{0,1}X",
        1 => "\x1b\\[[0-9;]{0,4}m",
    ]
}

/// The lines of a terminal's screen, without trailing blanks.
fn screen(text: &str) -> Vec<String> {
    let mut terminal = vt100::Parser::new(200.try_into().unwrap(), 400.try_into().unwrap(), 0);
    terminal.process(text.replace('\n', "\r\n").as_bytes());
    let screen = terminal.screen();
    screen
        .rows(0, 400)
        .map(|row| row.trim_end().to_owned())
        .collect()
}

/// Replaces tabs by blanks, and removes trailing blanks.
fn flat(line: &str) -> String {
    use unicode_width::UnicodeWidthChar as _;
    let mut out = String::new();
    let mut column = 0;
    for c in line.chars() {
        if c == '\t' {
            let next = (column / 8 + 1) * 8;
            out.extend(std::iter::repeat_n(' ', next - column));
            column = next;
        } else if column > 0 || c.width() != Some(0) {
            out.push(c);
            column += c.width().unwrap_or(0);
        }
    }
    out.trim_end().to_owned()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    /// Proves OUT-1: the result is equal to the screen of a terminal.
    #[test]
    fn lines_equal_those_of_a_terminal(text in proptest::collection::vec(sequence(), 0..40)) {
        let text = text.concat();
        let mut expect = screen(&text);
        let mut ours: Vec<String> = sanitize_output(&text).lines().map(flat).collect();
        for lines in [&mut expect, &mut ours] {
            lines.dedup_by(|a, b| a.is_empty() && b.is_empty());
            while lines.last().is_some_and(String::is_empty) {
                lines.pop();
            }
        }
        prop_assert_eq!(ours, expect);
    }

    /// Proves OUT-1.
    #[test]
    fn chunk_boundaries_have_no_effect(
        pieces in proptest::collection::vec(
            prop_oneof![
                4 => sequence(),
                1 => "[\\x00-\u{ff}]{0,8}",
                1 => "(x{0,3}\n){50,90}",
                1 => (1000_usize..1100).prop_map(|n| "i".repeat(n)),
                1 => (65_530_usize..65_545).prop_map(|n| "ä".repeat(n / 2)),
                1 => Just("\x1b[70A".to_owned()),
                1 => Just("\x1b[H".to_owned()),
                1 => Just("\x1b]0;".to_owned()),
            ], 0..20),
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let text = pieces.concat();
        let cut = cut_at(&text, &cuts);
        let pieces: Vec<_> = pieces.iter().map(String::as_str).collect();
        let whole = lines(&[&text]);
        prop_assert!(lines(&cut) == whole && lines(&pieces) == whole);
    }

    /// Proves OUT-1: many concurrent progress bars.
    #[test]
    fn overwritten_line_is_equal_byte_by_byte(
        text in r"(\r[a-c_ ]{0,6}|\r[a-c_ ]{0,6}|[a-c_ ]{1,4}|\r\r|\n|\r\n|\t|ä|漢|\x08|\x1b\[0?K|\r\x1b\[2?K|\r\x1b\[3m|\x1b\[2K|\x1b\[3[12]m|\x1b\[m|\x1b\[2A|\x1b\[B|\x1b\[3C|\x1b\[1K){0,60}",
        long in 0_usize..20,
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..3),
    ) {
        // Some lines are too long to be edited, or as wide as a screen.
        let text = match long {
            0 => text.replace('c', &"i".repeat(400)),
            1..5 => text.replace('c', &"i".repeat(38)),
            _ => text,
        };
        let characters: Vec<&str> = text.split_inclusive(|_| true).collect();
        let expect = told(&characters);
        prop_assert_eq!(told(&[&text]), expect.clone());
        prop_assert_eq!(told(&cut_at(&text, &cuts)), expect);
    }

    /// Proves OUT-1.
    #[test]
    fn clean_text_is_unchanged(text in "([\\x00-\u{ff}]|\x1b\\[[0-9;?]{0,3}[A-Za-z]|\n|\r){0,60}") {
        let clean = sanitize_output(&text).into_owned();
        let controls = clean.chars().filter(|c| c.is_control() && !matches!(c, '\n' | '\t'));
        prop_assert_eq!(controls.count(), 0);
        prop_assert_eq!(sanitize_output(&clean), clean.as_str());
        let numbers: Vec<u64> = lines(&[&text]).iter().map(|(number, _)| *number).collect();
        prop_assert!(numbers.is_sorted());
        prop_assert!(numbers.last().is_none_or(|last| *last <= text.matches('\n').count() as u64 + 1));
    }

    /// Proves OUT-1.
    #[test]
    fn plain_text_loses_only_blank_lines(text in "([ -~\t\u{a0}-\u{fff}漢🙂]{0,9}\n?){0,200}") {
        let mut blank = false;
        let mut expect: Vec<&str> = text.split_inclusive('\n').collect();
        expect.retain(|line| !(std::mem::replace(&mut blank, line.trim().is_empty()) && blank));
        let expect = expect.concat();
        let clean = sanitize_output(&text);
        // A last line that has only blanks may be removed with its run of blank lines.
        prop_assert!(clean == expect || expect.strip_suffix('\n') == Some(&*clean), "{:?} {:?}", clean, expect);
        prop_assert!(!drops(&text));
    }
}
