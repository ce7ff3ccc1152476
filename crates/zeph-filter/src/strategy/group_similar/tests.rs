//! Tests of `template`.

use super::*;
use crate::strategy::testing::collected;

fn grouped(table: &str, text: &str) -> (String, FilterConfidence) {
    collected(make, table, text, Some(0))
}

/// Proves OUT-7d.
#[test]
fn equal_shapes_are_counted_at_any_position() {
    let mut text = "started\n".to_owned();
    for number in 0..40 {
        text += &format!("fetched {number} rows\nstored {number} rows in {number}ms\n");
    }
    text += "WARN disk is full\nERROR lost /a/b: 3\n    at main (a.js:1:2)\ndone\n";
    assert_eq!(
        grouped("min_lines = 9", &text),
        (
            "started\nfetched 0 rows\nstored 0 rows in 0ms [×40 like each of these 2 lines]\nfetched 39 rows\nstored 39 rows in 39ms\nWARN disk is full\nERROR lost /a/b: 3\n    at main (a.js:1:2)\ndone\n".to_owned(),
            FilterConfidence::Full
        )
    );
    assert_eq!(
        grouped("min_lines = 99", &text),
        (text, FilterConfidence::Fallback)
    );
}

/// Proves OUT-11: where more stays than is ever read, lines are not grouped, however many are alike.
#[test]
fn long_remainder_is_not_grouped() {
    // A word of each third line is another one in each.
    let name = |number: usize| -> String {
        let letters = (0..8).map(|place| b'a' + (number >> (3 * place) & 7) as u8);
        letters.map(char::from).collect()
    };
    let text = |count: usize| -> String {
        let lines = (0..count).map(|number| {
            format!(
                "stored row {number}\nread row {number}\nuser {} came\n",
                name(number)
            )
        });
        lines.collect()
    };
    let few = text(1000);
    let (shown, confidence) = grouped("min_lines = 9", &few);
    assert_eq!(confidence, FilterConfidence::Full);
    assert_eq!(shown.lines().count(), 1000 + 4);
    let many = text(20_000);
    let (shown, confidence) = grouped("min_lines = 9", &many);
    assert_eq!(confidence, FilterConfidence::Fallback);
    assert_eq!(shown, "");
}

/// Proves OUT-11: grouping also ends if the error that a plain line follows exceeds the limit.
#[test]
fn too_many_distinct_errors_are_not_grouped() {
    let error = |number: usize| {
        let letters = (0..6).map(|place| b'a' + (number >> (3 * place) & 7) as u8);
        let name: String = letters.map(char::from).collect();
        format!("tick {number}\nerror: no `{name}` in {}\n", "x".repeat(200))
    };
    let text: String = (0..5000).map(error).collect();
    let (shown, confidence) = grouped("min_lines = 9", &text);
    assert_eq!(confidence, FilterConfidence::Fallback);
    assert_eq!(shown, "");
}

/// Proves OUT-7d, OUT-11: lines that differ in long paths are grouped up to the end.
#[test]
fn all_lines_of_shape_are_grouped() {
    let line = |number: usize| format!("read /{} in 3ms\n", "ab".repeat(1 + number % 997));
    let text: String = (0..2000).map(line).collect();
    let (shown, confidence) = grouped("min_lines = 9", &text);
    assert_eq!(confidence, FilterConfidence::Full);
    assert_eq!(
        shown,
        format!("read /ab in 3ms [×2000 like this]\n{}", line(1999))
    );
}

/// Proves OUT-7d: equal units are counted, and distinct ones stay.
#[test]
fn units_are_counted() {
    let trace = "Error: no user\n    at find (a.js:1:2)\n    at run (b.js:3:4)\n";
    let other = "Error: no user\n    at find (a.js:1:9)\n    at run (b.js:3:4)\n";
    let text = format!(
        "{}{other}{}done\n",
        format!("{trace}\n").repeat(6),
        format!("{trace}\n").repeat(4)
    );
    let (shown, confidence) = grouped("min_lines = 9", &text);
    let head = trace.trim_end();
    assert_eq!(
        shown,
        format!("{head} [×10 like these 3 lines]\n\n{other}done\n")
    );
    assert_eq!(confidence, FilterConfidence::Full);
}

/// Proves OUT-7d: lines without letters and digits stay after the line that they follow.
#[test]
fn bare_lines_follow_their_line() {
    let text = format!(
        "title\n=====\n{}end\n---\n",
        "row 1 of it\n-----\n".repeat(20)
    );
    let (shown, _) = grouped("min_lines = 9", &text);
    assert_eq!(
        shown,
        "title\n=====\nrow 1 of it [×20 like this]\n-----\nend\n---\n"
    );
}

/// Proves OUT-4: short logs lose consecutive equal lines.
#[test]
fn equal_neighbours_of_short_groups_are_removed() {
    let text = "10:00:00 tick\n10:00:01 tick\n10:00:02 tock\n";
    let (shown, confidence) = grouped("dedup = true", text);
    assert_eq!(shown, "10:00:00 tick (×2)\n10:00:02 tock\n");
    assert_eq!(confidence, FilterConfidence::Full);
}

proptest::proptest! {
    /// Proves OUT-7a: no error line is lost.
    #[test]
    fn errors_stay(lines in proptest::collection::vec("error\\[E0[0-9]\\]: [a-c]|panicked at [a-c]|tick [0-9]|    at [a-c]|WARN [0-9]", 0..80)) {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let (result, _) = grouped("min_lines = 3", &text);
        for line in lines.iter().filter(|line| line.starts_with("error[")) {
            let is_there = result.lines().any(|shown| shown.starts_with(line.as_str()));
            proptest::prop_assert!(is_there, "{line}: {result}");
        }
    }
}
