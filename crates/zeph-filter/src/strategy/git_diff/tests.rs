//! Diffs, small and large.

use super::*;
use crate::strategy::testing::collected;

fn told(max_lines: usize, text: &str) -> (String, FilterConfidence) {
    collected(
        make,
        &format!("max_diff_lines = {max_lines}"),
        text,
        Some(0),
    )
}

fn header(name: &str) -> String {
    format!("diff --git a/{name} b/{name}\nindex 1..2 100644\n--- a/{name}\n+++ b/{name}\n")
}

/// A file with one hunk that replaces `lines` lines and has three context lines on each side.
fn patch(name: &str, lines: usize) -> String {
    let mut text = header(name);
    let total = lines + 6;
    text += &format!("@@ -1,{total} +1,{total} @@ fn {name}\n");
    (1..=3).for_each(|number| text += &format!(" before {number}\n"));
    (0..lines).for_each(|number| text += &format!("-old {name} {number}\n"));
    (0..lines).for_each(|number| text += &format!("+new {name} {number}\n"));
    (1..=3).for_each(|number| text += &format!(" after {number}\n"));
    text
}

/// Proves OUT-7c: small diffs stay as they are.
#[test]
fn up_to_400_lines_stay() {
    let text = patch("Cargo.lock", 194);
    assert_eq!(text.lines().count(), 399);
    assert_eq!(told(50, &text), (text, FilterConfidence::Fallback));
}

/// Proves OUT-4, OUT-7d.
#[test]
fn lock_files_are_reduced_before_other_files() {
    let text = format!(
        "{}{}{}",
        patch("Cargo.lock", 300),
        patch("a.rs", 2),
        patch("b.rs", 300)
    );
    let (shown, confidence) = told(30, &text);
    assert_eq!(confidence, FilterConfidence::Full);
    let lock = format!("{}[+300 -300]\n", header("Cargo.lock"));
    assert!(shown.starts_with(&lock), "{shown}");
    let a = "@@ -1,8 +1,8 @@ fn a.rs\n-old a.rs 0\n-old a.rs 1\n+new a.rs 0\n+new a.rs 1\n";
    assert!(shown.contains(a), "{shown}");
    assert!(
        shown.contains("-old b.rs 11\n[… -288]\n+new b.rs 0\n"),
        "{shown}"
    );
    assert!(shown.ends_with("+new b.rs 11\n[… +288]\n"), "{shown}");
    let hunk_lines = shown.lines().filter(|line| {
        line.starts_with(['-', '+', ' ', '@'])
            && !line.starts_with("---")
            && !line.starts_with("+++")
    });
    assert_eq!(hunk_lines.count(), 30);
}

#[test]
fn context_is_retained_within_the_budget() {
    let text = format!("{}{}", patch("a.rs", 20), patch("yarn.lock", 200));
    let (shown, _) = told(45, &text);
    assert!(shown.contains("@@\n".trim_end()), "{shown}");
    assert!(shown.contains(" before 3\n-old a.rs 0\n"), "{shown}");
    assert!(shown.contains("+new a.rs 19\n after 1\n"), "{shown}");
    assert!(!shown.contains(" before 1\n"), "{shown}");
}

#[test]
fn single_lock_file_is_shown() {
    let (shown, _) = told(10, &patch("Cargo.lock", 300));
    assert!(shown.contains("-old Cargo.lock 0\n"), "{shown}");
}

/// Proves OUT-7: the result fits into the output limit, and contains the name of each file.
#[test]
fn names_of_very_many_files_are_retained() {
    for (files, lines) in [(60, 40), (250, 40), (1500, 3)] {
        let names: Vec<String> = (0..files)
            .map(|file| format!("src/part{}/f{file}.rs", file % 20))
            .collect();
        let text: String = names.iter().map(|name| patch(name, lines)).collect();
        let (shown, _) = told(500, &text);
        assert!(shown.len() < 45_000, "{} of {files}", shown.len());
        for name in &names {
            let file = name.rsplit('/').next().unwrap();
            assert!(shown.contains(file), "{name}");
        }
    }
}

#[test]
fn text_without_a_diff_is_unchanged() {
    let text = "a line\n".repeat(900);
    assert_eq!(told(10, &text), (text, FilterConfidence::Fallback));
}

#[test]
fn many_hunks_are_counted() {
    let mut text = header("a.rs");
    for hunk in 0..300 {
        text += &format!("@@ -{hunk},1 +{hunk},1 @@\n-a\n+b\n");
    }
    let (shown, _) = told(20, &text);
    assert!(
        shown.contains("[… 280 more hunks [… +280 -280]]"),
        "{shown}"
    );
}

#[test]
fn memory_is_bounded() {
    let mut text = String::new();
    for file in 0..30 {
        text += &patch(&format!("f{file}.rs"), 8000);
    }
    let (shown, confidence) = told(500, &text);
    assert_eq!(confidence, FilterConfidence::Full);
    for file in 0..30 {
        assert!(shown.contains(&header(&format!("f{file}.rs"))));
        assert!(shown.contains(&format!("-old f{file}.rs 0\n")), "{file}");
    }
    assert!(shown.lines().count() < 30 * 8 + 600);
}

/// Proves OUT-11: time is linear in the number of files, and the stored headers of a file are bounded.
#[test]
fn very_many_files_take_linear_time() {
    let text: String = (0..40_000)
        .map(|file| patch(&format!("src/part{}/f{file}.rs", file % 20), 1))
        .collect();
    let (shown, confidence) = told(500, &text);
    assert_eq!(confidence, FilterConfidence::Full);
    assert!(shown.starts_with("src/part0/ (2000): "), "{shown}");
    assert!(shown.len() < 45_000, "{}", shown.len());
    let text = format!(
        "{}{}",
        header("a.rs"),
        "index 1..2 100644\n".repeat(400_000)
    );
    let (shown, _) = told(500, &text);
    assert!(shown.starts_with("diff --git a/a.rs b/a.rs\n"));
    assert!(shown.len() < 45_000, "{}", shown.len());
}

fn any_diff() -> impl proptest::strategy::Strategy<Value = String> {
    use proptest::prelude::*;
    let file = ("[a-d]{1,2}(\\.rs|\\.lock|\\.min\\.js)", 0_usize..150)
        .prop_map(|(name, lines)| patch(&name, lines));
    let noise = "(\\+|-| |@@|diff --git)?[ -~äß]{0,9}\n".prop_map(|noise| noise);
    proptest::collection::vec(prop_oneof![4 => file, 1 => noise], 0..12)
        .prop_map(|parts| parts.concat())
}

proptest::proptest! {
    /// Proves OUT-7: for any diff, each file name is retained, and no line is invented.
    #[test]
    fn files_stay(text in any_diff(), max_lines in 1_usize..40) {
        let (shown, _) = told(max_lines, &text);
        for line in text.lines().filter(|line| line.starts_with("diff --git a/")) {
            proptest::prop_assert!(shown.lines().any(|shown| shown == line), "{line}");
        }
        let lines: std::collections::HashSet<&str> = text.lines().collect();
        for line in shown.lines() {
            proptest::prop_assert!(line.starts_with('[') || lines.contains(line), "{line}");
        }
    }
}
