//! Inline Markdown: emphasis, code, links.
//!
//! [`InlineStream`] shows words as they arrive. A word is buffered only while a delimiter before it is open, such as
//! `**` or `[`, so that no displayed text has to change. An unclosed delimiter is literal at the end of the line, as
//! in CommonMark.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use crate::output::sanitize::clean;
use crate::terminal::style::{CYAN, DIM, RESET};

/// The most characters that wait for a closing delimiter.
const HELD_CHARS: usize = 400;

/// Characters that mean something.
const SPECIAL: [char; 11] = ['*', '_', '`', '~', '[', ']', '<', '>', '\\', '&', '!'];

/// Inline text of one line, in pieces.
#[derive(Debug, Clone, Default)]
pub(super) struct InlineStream {
    held: String,
    chars: usize,
}

impl InlineStream {
    /// Adds one character, and shows complete text.
    pub(super) fn push(&mut self, c: char, out: &mut String) {
        self.held.push(c);
        self.chars += 1;
        if self.chars >= HELD_CHARS || (is_break(c) && is_closed(&self.held)) {
            self.finish(out);
        }
    }

    /// The line ends: shows the rest.
    pub(super) fn finish(&mut self, out: &mut String) {
        render(&self.held, "", out);
        self.held.clear();
        self.chars = 0;
    }
}

/// Whether a word may end with `c`: at white space, and after each character in scripts without white space.
pub(super) fn is_break(c: char) -> bool {
    c.is_whitespace() || c >= '\u{2e80}'
}

/// Whether every delimiter in `text` that can open something is closed.
fn is_closed(text: &str) -> bool {
    let chars: Vec<char> = text.chars().collect();
    let mut open: Vec<(char, usize)> = Vec::new();
    let mut brackets = 0_usize;
    let mut at = 0;
    while let Some(&c) = chars.get(at) {
        let length = chars[at..].iter().take_while(|other| **other == c).count();
        let before = at.checked_sub(1).and_then(|at| chars.get(at)).copied();
        match c {
            '\\' => {
                at += 2;
                continue;
            }
            '`' => match closing_ticks(&chars, at + length, length) {
                Some(end) => {
                    at = end;
                    continue;
                }
                None => return false,
            },
            '*' | '_' | '~' => {
                delimiter(
                    c,
                    length,
                    before,
                    chars.get(at + length).copied(),
                    &mut open,
                );
                at += length;
                continue;
            }
            '[' => brackets += 1,
            ']' if brackets > 0 => {
                brackets -= 1;
                if chars.get(at + 1) == Some(&'(') {
                    match chars[at..].iter().position(|c| *c == ')') {
                        Some(end) => {
                            at += end + 1;
                            continue;
                        }
                        None => return false,
                    }
                }
            }
            _ => {}
        }
        at += 1;
    }
    open.is_empty() && brackets == 0
}

/// The end of the code span with the content at `from` and a fence of `length` ticks.
fn closing_ticks(chars: &[char], from: usize, length: usize) -> Option<usize> {
    let mut at = from;
    while at < chars.len() {
        let run = chars[at..].iter().take_while(|c| **c == '`').count();
        if run == length {
            return Some(at + run);
        }
        at += run.max(1);
    }
    None
}

/// Opens or closes emphasis with a run of `length` delimiters between two characters.
fn delimiter(
    c: char,
    length: usize,
    before: Option<char>,
    after: Option<char>,
    open: &mut Vec<(char, usize)>,
) {
    let solid = |c: Option<char>| c.is_some_and(|c| !c.is_whitespace());
    let word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    let can_open = solid(after) && !(c == '_' && word(before));
    let can_close = solid(before) && !(c == '_' && word(after));
    let mut left = length;
    while can_close
        && left > 0
        && let Some(at) = open.iter().rposition(|(kind, _)| *kind == c)
    {
        // An unclosed delimiter inside the span was literal.
        open.truncate(at + 1);
        let taken = left.min(open[at].1);
        left -= taken;
        open[at].1 -= taken;
        if open[at].1 == 0 {
            open.truncate(at);
        }
    }
    if left > 0 && can_open {
        open.push((c, left));
    }
}

/// Renders a piece of a line, in `base`.
pub(super) fn render(text: &str, base: &str, out: &mut String) {
    let body = text.trim_end_matches([' ', '\t']);
    let lead = body.len() - body.trim_start_matches([' ', '\t']).len();
    out.push_str(&body[..lead]);
    let words = &body[lead..];
    if !words.contains(SPECIAL) {
        paint(base, words, out);
    } else {
        // After a word, the text cannot start a block: `- ` is a dash, `1. ` is a number.
        let parsed = format!("x {words}");
        let mut first = true;
        let mut writer = Inline::new(base);
        for event in Parser::new_ext(&parsed, Options::ENABLE_STRIKETHROUGH) {
            match event {
                Event::Text(text) if first => {
                    first = false;
                    writer.text(text.strip_prefix("x ").unwrap_or(&text), out);
                }
                event => writer.event(event, out),
            }
        }
    }
    out.push_str(&text[body.len()..]);
}

fn paint(paint: &str, text: &str, out: &mut String) {
    if text.is_empty() {
        return;
    }
    if paint.is_empty() {
        out.push_str(text);
    } else {
        out.push_str(paint);
        out.push_str(text);
        out.push_str(RESET);
    }
}

/// Writes inline events.
pub(super) struct Inline {
    base: String,
    strong: usize,
    emphasis: usize,
    strike: usize,
    /// The address of the link, and the part of its text that has been written.
    link: Option<(String, String)>,
}

impl Inline {
    /// A writer with the paint `base`.
    pub(super) fn new(base: &str) -> Self {
        Self {
            base: base.to_owned(),
            strong: 0,
            emphasis: 0,
            strike: 0,
            link: None,
        }
    }

    /// Writes one event; events of blocks are skipped.
    pub(super) fn event(&mut self, event: Event<'_>, out: &mut String) {
        match event {
            Event::Start(tag) => match tag {
                Tag::Strong => self.strong += 1,
                Tag::Emphasis => self.emphasis += 1,
                Tag::Strikethrough => self.strike += 1,
                Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                    self.link = Some((dest_url.into_string(), String::new()));
                }
                _ => {}
            },
            Event::End(tag) => match tag {
                TagEnd::Strong => self.strong = self.strong.saturating_sub(1),
                TagEnd::Emphasis => self.emphasis = self.emphasis.saturating_sub(1),
                TagEnd::Strikethrough => self.strike = self.strike.saturating_sub(1),
                TagEnd::Link | TagEnd::Image => {
                    if let Some((url, text)) = self.link.take()
                        && url != text
                        && url.strip_prefix("mailto:") != Some(text.as_str())
                    {
                        paint(DIM, &one_line(&format!(" ({url})")), out);
                    }
                }
                _ => {}
            },
            Event::Text(text) | Event::InlineHtml(text) | Event::Html(text) => {
                self.text(&text, out);
            }
            Event::Code(code) => {
                self.note(&code);
                paint(CYAN, &one_line(&code), out);
            }
            Event::SoftBreak | Event::HardBreak => out.push(' '),
            _ => {}
        }
    }

    /// Writes text. Entities may encode control characters, which are removed after parsing.
    fn text(&mut self, text: &str, out: &mut String) {
        self.note(text);
        let mut style = self.base.clone();
        for (on, code) in [
            (self.strong, "\x1b[1m"),
            (self.emphasis, "\x1b[3m"),
            (self.strike, "\x1b[9m"),
            (usize::from(self.link.is_some()), "\x1b[4m"),
        ] {
            if on > 0 {
                style.push_str(code);
            }
        }
        paint(&style, &one_line(text), out);
    }

    fn note(&mut self, text: &str) {
        if let Some((_, shown)) = &mut self.link {
            shown.push_str(text);
        }
    }
}

fn one_line(text: &str) -> String {
    clean(text).replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_delimiters_hold_a_text_back() {
        let check = |text, expect| assert_eq!(is_closed(text), expect, "{text:?}");
        check("plain words ", true);
        check("**bold ", false);
        check("**bold** ", true);
        check("**bold *it*** ", true);
        check("***both*** ", true);
        check("2 * 3 ", true);
        check("snake_case_name ", true);
        check("_em ", false);
        check("_em_ ", true);
        check("`code ", false);
        check("`` a ` b `` ", true);
        check("`*` ", true);
        check("[text ", false);
        check("[text](http:// ", false);
        check("[text](http://x) ", true);
        check("[x] ", true);
        check("a] ", true);
        check("\\*a ", true);
        check("~~gone~~ ", true);
        check("**a _b** ", true);
    }

    #[test]
    fn inline_text_is_styled() {
        let check = |text, expect: &str| {
            let mut out = String::new();
            render(text, "", &mut out);
            assert_eq!(out, expect, "{text:?}");
        };
        check("plain ", "plain ");
        check("**b** ", "\x1b[1mb\x1b[0m ");
        check("*i*", "\x1b[3mi\x1b[0m");
        check("`c\u{a0}d`", "\x1b[36mc\u{a0}d\x1b[0m");
        check("~~s~~", "\x1b[9ms\x1b[0m");
        check("- * # 1. ", "- * # 1. ");
        check("a & b < c", "a & b < c");
        check("Vec<String>", "Vec<String>");
        check("<br>", "<br>");
        check("\\*x\\*", "*x*");
        check("&lt;&#27;[31m", "<[31m");
        check("[t](http://u)", "\x1b[4mt\x1b[0m\x1b[2m (http://u)\x1b[0m");
        check("<http://u>", "\x1b[4mhttp://u\x1b[0m");
        check("**open", "**open");
        check("  two", "  two");
    }
}
