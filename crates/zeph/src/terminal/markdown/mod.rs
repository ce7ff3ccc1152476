//! Markdown rendering of a stream.
//!
//! Displayed text never changes. The first word of a line identifies its block. The words of paragraphs and list
//! items are shown as they arrive ([`inline`]); headings, quotations and lines of code when their line is complete;
//! tables when they end. Every step takes one character, so the size of the input pieces does not matter.

mod inline;
mod table;

use super::style::{BOLD, CYAN, DIM, RESET};
use crate::output::sanitize::Sanitizer;
use inline::{InlineStream, is_break};

/// The most lines that wait for a table's end.
const TABLE_LINES: usize = 500;

/// Renders one message after the other for a coloured terminal.
#[derive(Debug, Default)]
pub(crate) struct Markdown {
    sanitizer: Sanitizer,
    line: Line,
    /// The start of a line, until its block is known.
    held: String,
    inline: InlineStream,
    fence: Option<Fence>,
    table: Vec<String>,
    /// Whether anything of the message has been shown.
    begun: bool,
    /// An empty line is due before the next text.
    gap: bool,
}

/// How the current line is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Line {
    /// Not clear yet.
    #[default]
    Head,
    /// As a whole, when it is complete.
    Whole,
    /// Word by word.
    Words,
}

/// An open block of code.
#[derive(Debug, Clone, Copy)]
struct Fence {
    mark: char,
    length: usize,
    indent: usize,
}

impl Markdown {
    /// Adds a piece of the message, and appends the complete parts to `out`.
    pub(crate) fn push(&mut self, text: &str, out: &mut String) {
        let mut shown = String::with_capacity(text.len());
        self.sanitizer.push(text, &mut shown);
        for c in shown.chars() {
            self.step(c, out);
        }
    }

    /// The message is complete: shows the rest and ends its last line.
    pub(crate) fn finish(&mut self, out: &mut String) {
        if self.line == Line::Words || !self.held.is_empty() {
            self.end_line(out);
        }
        self.end_table(out);
        *self = Self::default();
    }

    fn step(&mut self, c: char, out: &mut String) {
        if c == '\n' {
            self.end_line(out);
            return;
        }
        match self.line {
            Line::Words => self.inline.push(c, out),
            Line::Whole => self.held.push(c),
            Line::Head => {
                self.held.push(c);
                if self.fence.is_some() {
                    self.line = Line::Whole;
                } else if is_break(c) && !self.held.trim().is_empty() {
                    self.begin_line(out);
                }
            }
        }
    }

    /// Decides from the first word of a line how the line is shown.
    fn begin_line(&mut self, out: &mut String) {
        let word = self.held.trim();
        let heading = word.chars().all(|c| c == '#') && word.len() <= 6;
        if heading || word.starts_with(['|', '>']) || fence(&self.held).is_some() {
            self.line = Line::Whole;
            return;
        }
        self.line = Line::Words;
        self.begin_block(out);
        let held = std::mem::take(&mut self.held);
        let body = held.trim_start();
        out.push_str(&held[..held.len() - body.len()]);
        match body.trim_end() {
            "-" | "*" | "+" => out.push_str("• "),
            word if is_number(word) => out.push_str(body),
            _ => {
                for c in body.chars() {
                    self.inline.push(c, out);
                }
            }
        }
    }

    fn end_line(&mut self, out: &mut String) {
        let line = std::mem::take(&mut self.held);
        if std::mem::take(&mut self.line) == Line::Words {
            self.inline.finish(out);
            out.push('\n');
        } else if let Some(open) = self.fence {
            self.end_code_line(open, &line, out);
        } else {
            self.end_whole_line(&line, out);
        }
    }

    fn end_code_line(&mut self, open: Fence, line: &str, out: &mut String) {
        let closes = fence(line).is_some_and(|(close, info)| {
            close.mark == open.mark && close.length >= open.length && info.is_empty()
        });
        if closes {
            self.fence = None;
            return;
        }
        let indent = line.len() - line.trim_start_matches(' ').len();
        let code = &line[indent.min(open.indent)..];
        if code.is_empty() {
            out.push('\n');
        } else {
            out.push_str(&format!("  {CYAN}{code}{RESET}\n"));
        }
    }

    fn end_whole_line(&mut self, line: &str, out: &mut String) {
        let body = line.trim();
        if body.is_empty() {
            self.end_table(out);
            self.gap = self.begun;
            return;
        }
        if body.starts_with('|') {
            self.table.push(line.to_owned());
            if self.table.len() >= TABLE_LINES {
                self.end_table(out);
            }
            return;
        }
        self.begin_block(out);
        if let Some((open, info)) = fence(line) {
            self.fence = Some(open);
            if !info.is_empty() {
                out.push_str(&format!("  {DIM}{info}{RESET}\n"));
            }
            return;
        }
        let hashes = body.len() - body.trim_start_matches('#').len();
        if (1..=6).contains(&hashes) && matches!(body[hashes..].chars().next(), None | Some(' ')) {
            let title = body[hashes..].trim().trim_end_matches('#').trim_end();
            inline::render(title, BOLD, out);
        } else if let Some(quoted) = body.strip_prefix('>') {
            out.push_str(&format!("{DIM}│{RESET} "));
            inline::render(quoted.trim_start(), DIM, out);
        } else if is_rule(body) {
            out.push_str(&format!("{DIM}{}{RESET}", "─".repeat(40)));
        } else {
            inline::render(line, "", out);
        }
        out.push('\n');
    }

    /// Writes buffered text, then a pending empty line.
    fn begin_block(&mut self, out: &mut String) {
        self.end_table(out);
        if std::mem::take(&mut self.gap) {
            out.push('\n');
        }
        self.begun = true;
    }

    fn end_table(&mut self, out: &mut String) {
        if self.table.is_empty() {
            return;
        }
        let lines = std::mem::take(&mut self.table);
        if std::mem::take(&mut self.gap) {
            out.push('\n');
        }
        self.begun = true;
        table::render(&lines, out);
    }
}

/// The fence at the start of a line, and the text after it.
fn fence(line: &str) -> Option<(Fence, &str)> {
    let body = line.trim_start_matches(' ');
    let mark = body.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let length = body.len() - body.trim_start_matches(mark).len();
    let info = body[length..].trim();
    let fence = Fence {
        mark,
        length,
        indent: line.len() - body.len(),
    };
    (length >= 3 && !(mark == '`' && info.contains('`'))).then_some((fence, info))
}

/// `1.` or `1)`: the mark of an ordered list.
fn is_number(word: &str) -> bool {
    word.strip_suffix(['.', ')']).is_some_and(|digits| {
        (1..=9).contains(&digits.len()) && digits.chars().all(|c| c.is_ascii_digit())
    })
}

fn is_rule(body: &str) -> bool {
    body.len() >= 3
        && ['-', '*', '_']
            .iter()
            .any(|mark| body.chars().all(|c| c == *mark))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::output::sanitize::clean;

    fn render<'a>(pieces: impl IntoIterator<Item = &'a str>) -> String {
        let mut markdown = Markdown::default();
        let mut out = String::new();
        for piece in pieces {
            markdown.push(piece, &mut out);
        }
        markdown.finish(&mut out);
        out
    }

    /// Proves CLI-4 for rendered Markdown: the text of each construct without its paint.
    #[test]
    fn constructs_are_rendered() {
        let check = |text, expect: &str| assert_eq!(clean(&render([text])), expect, "{text:?}");
        check("", "");
        check("one", "one\n");
        check("one two\nthree", "one two\nthree\n");
        check("a b\n\n\n\nc d\n\n", "a b\n\nc d\n");
        check("\n\nfirst line", "first line\n");
        check("# Title here\ntext", "Title here\ntext\n");
        check("### Title ###", "Title\n");
        check("#hashtag is text", "#hashtag is text\n");
        check("####### seven marks", "####### seven marks\n");
        check(
            "- one\n* two\n  + deep item",
            "• one\n• two\n  • deep item\n",
        );
        check("1. one\n12) two", "1. one\n12) two\n");
        check("1.5 is a number", "1.5 is a number\n");
        check("> said **he**", "│ said he\n");
        check("---", "────────────────────────────────────────\n");
        check("a **bold word** b", "a bold word b\n");
        check(
            "```rust\nfn main() {\n    **x**\n}\n```\nafter that",
            "  rust\n  fn main() {\n      **x**\n  }\nafter that\n",
        );
        check("```\nnever closed", "  never closed\n");
        check("````\n```\n````", "  ```\n");
        check("  ```\n  a\n    b\n  ```", "  a\n    b\n");
        check("```inline``` code span", "inline code span\n");
        check(
            "| a | b |\n|---|---|\n| 1 | 22 |\nafter it",
            "a │ b\n──┼───\n1 │ 22\nafter it\n",
        );
        check("text\n\n| a |\n|---|\n| 1 |", "text\n\na\n─\n1\n");
        check("日本語の**文**です", "日本語の文です\n");
        check("cr\r\nlf", "cr\nlf\n");
    }

    /// Proves CLI-4 for streaming: a paragraph is shown word by word.
    #[test]
    fn words_are_shown_as_they_come() {
        let mut markdown = Markdown::default();
        let mut out = String::new();
        let mut check = |piece: &str, shown: &str| {
            out.clear();
            markdown.push(piece, &mut out);
            assert_eq!(clean(&out), shown, "after {piece:?}");
        };
        check("Hel", "");
        check("lo wor", "Hello ");
        check("ld and **bo", "world and ");
        check("ld** ", "bold ");
        check("`co", "");
        check("de` then ", "code then ");
        check("- ", "- ");
        check("\n- it", "\n• ");
        check("em one", "item ");
        check("\n```\ncode li", "one\n");
        check("ne\n", "  code line\n");
    }

    #[test]
    fn nothing_of_the_model_steers_the_terminal() {
        let hostile = "a \x1b[2Jb \x1b]0;t\x07c `\x1b[31m` &#27;[1m [x](http://\x1b[0m) \u{9b}1m";
        let out = render([hostile]);
        for piece in out.split('\x1b').skip(1) {
            let known = ["[0m", "[1m", "[2m", "[3m", "[4m", "[36m"];
            assert!(
                known.iter().any(|known| piece.starts_with(known)),
                "{piece:?}"
            );
        }
        assert!(!out.contains(['\u{9b}', '\x07']));
    }

    /// Pieces of Markdown that meet in every order.
    fn soup() -> impl Strategy<Value = String> {
        let atom = prop_oneof![
            Just("**"),
            Just("*"),
            Just("_"),
            Just("`"),
            Just("```"),
            Just("\n"),
            Just("\n\n"),
            Just(" "),
            Just("- "),
            Just("1. "),
            Just("# "),
            Just("| "),
            Just("|---|"),
            Just("> "),
            Just("["),
            Just("](u)"),
            Just("~~"),
            Just("\\"),
            Just("&#27;"),
            Just("<"),
            Just(">"),
            Just("\x1b[31m"),
            Just("\x1b]0;"),
            Just("\x07"),
            Just("\u{9b}"),
            Just("\r"),
            Just("word"),
            Just("é"),
            Just("漢"),
            Just("\t"),
            Just("!["),
        ];
        proptest::collection::vec(atom, 0..60).prop_map(|atoms| atoms.concat())
    }

    proptest! {
        #[test]
        fn pieces_make_no_difference(text in soup(), cuts in proptest::collection::vec(0_usize..200, 0..20)) {
            let mut cuts: Vec<usize> =
                cuts.into_iter().filter(|cut| text.is_char_boundary(*cut)).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&str> = cuts.windows(2).map(|pair| &text[pair[0]..pair[1]]).collect();
            prop_assert_eq!(render(pieces), render([text.as_str()]));
        }

        #[test]
        fn only_paint_reaches_the_terminal(text in soup()) {
            let out = render([text.as_str()]);
            let unpainted = unpaint(&out);
            prop_assert!(
                !unpainted.chars().any(|c| c.is_control() && c != '\n' && c != '\t'),
                "{:?}", out
            );
            prop_assert!(out.is_empty() || out.ends_with('\n'));
        }
    }

    /// Removes `ESC [ digits m` and nothing else.
    fn unpaint(text: &str) -> String {
        let mut out = String::new();
        let mut rest = text;
        while let Some(at) = rest.find("\x1b[") {
            let (before, sequence) = rest.split_at(at);
            out.push_str(before);
            let body = sequence[2..].trim_start_matches(|c: char| c.is_ascii_digit());
            match body.strip_prefix('m') {
                Some(after) => rest = after,
                None => return format!("{out}\x1b"),
            }
        }
        out.push_str(rest);
        out
    }
}
