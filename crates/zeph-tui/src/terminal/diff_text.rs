//! A diff of `/diff` on the terminal: safe text, with colours.

use super::style::{BOLD, CYAN, GREEN, RED, Style};
use crate::sanitize::clean;

/// The lines of a diff for the terminal, with a line break at the end.
pub(super) fn painted(diff: &str, style: Style) -> String {
    let diff = clean(diff);
    let mut in_hunk = false;
    let mut text = String::new();
    for line in diff.lines() {
        if !line.starts_with(['+', '-', ' ', '@', '\\']) {
            in_hunk = false;
        }
        in_hunk |= line.starts_with("@@");
        let paint = match line.chars().next() {
            Some('@') => CYAN,
            // In a hunk, a line that looks like the name of a file is a changed line.
            Some('+') if in_hunk => GREEN,
            Some('-') if in_hunk => RED,
            Some(' ' | '\\' | '…') => "",
            _ => BOLD,
        };
        text.push_str(&style.paint(paint, line));
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves CLI-8: `/diff` is coloured, and its text is safe.
    #[test]
    fn diff_is_coloured() {
        let style = Style {
            terminal: true,
            colour: true,
            animate: false,
        };
        let diff =
            "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\x1b[2J\n+++new\n same\n";
        assert_eq!(
            painted(diff, style),
            "\x1b[1mdiff --git a/x b/x\x1b[0m\n\x1b[1m--- a/x\x1b[0m\n\x1b[1m+++ b/x\x1b[0m\n\
             \x1b[36m@@ -1 +1 @@\x1b[0m\n\x1b[31m-old\x1b[0m\n\x1b[32m+++new\x1b[0m\n same\n"
        );
        assert_eq!(painted("+x\n", Style::default()), "+x\n");
    }
}
