//! The reasoning of a model, folded into one line.

use crate::output::sanitize::clean;

/// The maximum number of characters of the displayed line.
const MAX_CHARS: usize = 60;

/// Reasoning that arrives in pieces.
#[derive(Debug, Default)]
pub(super) struct Reasoning {
    /// The beginning of the first line with text.
    first: String,
    /// Whether the first line has ended.
    has_first: bool,
    /// The number of lines with text.
    lines: usize,
    /// Whether the current line has text.
    in_line: bool,
}

impl Reasoning {
    /// Adds more reasoning.
    pub(super) fn push(&mut self, text: &str) {
        for c in text.chars() {
            if c == '\n' {
                self.has_first |= self.in_line;
                self.in_line = false;
                continue;
            }
            if !self.in_line && !c.is_whitespace() {
                self.in_line = true;
                self.lines += 1;
            }
            // One character more than is displayed shows that the line is longer.
            if self.in_line && !self.has_first && self.first.len() <= MAX_CHARS * 4 {
                self.first.push(c);
            }
        }
    }

    /// The label of the spinner while reasoning arrives.
    pub(super) fn label(&self) -> String {
        format!("thinking ({})", self.size())
    }

    /// Ends the reasoning: `thinking: The user wants … (12 lines)`. `None` without any text.
    pub(super) fn take(&mut self) -> Option<String> {
        let Self { first, lines, .. } = std::mem::take(self);
        let whole = clean(&first);
        let mut line: String = whole.trim().chars().take(MAX_CHARS).collect();
        if line.len() < whole.trim().len() || lines > 1 {
            line.push_str(" …");
        }
        let size = zeph_tools::plural::pluralize(lines, "line");
        (lines > 0).then(|| format!("thinking: {line} ({size})"))
    }

    fn size(&self) -> String {
        zeph_tools::plural::pluralize(self.lines, "line")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves LLM-12.
    #[test]
    fn reasoning_is_one_labelled_line() {
        let check = |pieces: &[&str], expect: Option<&str>| {
            let mut reasoning = Reasoning::default();
            for piece in pieces {
                reasoning.push(piece);
            }
            assert_eq!(reasoning.take().as_deref(), expect, "{pieces:?}");
            assert_eq!(reasoning.take(), None);
        };
        check(&[], None);
        check(&[" \n", "\n"], None);
        check(&["Hm", "."], Some("thinking: Hm. (1 line)"));
        check(
            &["\n  First I", " look.\n\nThen", " I act.\n"],
            Some("thinking: First I look. … (2 lines)"),
        );
        check(&["a\u{1b}[2Jb"], Some("thinking: ab (1 line)"));
        let long = format!("thinking: {} … (1 line)", "x".repeat(MAX_CHARS));
        check(&[&"x".repeat(5_000)], Some(&long));
    }
}
