//! Characters that a reader cannot see, or that change the order in which others are shown.
//!
//! This is the one table of such characters: questions, the transcript, texts of MCP servers and the
//! question for the judge use it. The classes come from the Unicode Character Database.

use std::fmt::Write as _;

use icu_properties::CodePointSetData;
use icu_properties::props::{
    BidiControl, DefaultIgnorableCodePoint, EmojiComponent, EmojiModifier, ExtendedPictographic,
    GraphemeExtend, WhiteSpace,
};

/// The zero-width joiner.
const JOINER: char = '\u{200d}';
/// The zero-width non-joiner.
const NON_JOINER: char = '\u{200c}';
/// The selectors of text and emoji presentation.
const PRESENTATION: [char; 2] = ['\u{fe0e}', '\u{fe0f}'];
/// The enclosing keycap, which follows a selector.
const KEYCAP: char = '\u{20e3}';

/// Whether a character is a control character (C0, C1, DEL) other than a line break or a tab.
#[must_use]
pub fn is_control(c: char) -> bool {
    c.is_control() && c != '\n' && c != '\t'
}

/// Whether a character changes the order of others, or ends a line where a terminal does not: the
/// bidirectional controls, and the separators of lines and paragraphs.
#[must_use]
pub fn is_reordering(c: char) -> bool {
    CodePointSetData::new::<BidiControl>().contains(c) || matches!(c, '\u{2028}' | '\u{2029}')
}

/// Whether a character is invisible or changes the order of others: zero-width characters,
/// bidirectional controls, fillers, variation selectors, tags, annotations, separators of lines.
#[must_use]
pub fn is_hidden(c: char) -> bool {
    // Every one of them is beyond Latin-1, apart from the soft hyphen.
    c == '\u{ad}'
        || (c > '\u{ff}' && (is_default_ignorable(c) || is_reordering(c) || is_annotation(c)))
}

/// Whether a character is displayed as a space or not at all, but is neither a space nor a line break: [`is_hidden`],
/// and other kinds of spaces.
#[must_use]
pub fn is_blank(c: char) -> bool {
    // The ideographic space is two columns wide, and is seen.
    let space = |c| CodePointSetData::new::<WhiteSpace>().contains(c) && c != '\u{3000}';
    is_hidden(c) || c == '\u{2800}' || (c > '\u{7f}' && space(c))
}

fn is_default_ignorable(c: char) -> bool {
    CodePointSetData::new::<DefaultIgnorableCodePoint>().contains(c)
}

/// Interlinear annotations, which terminals do not show.
fn is_annotation(c: char) -> bool {
    matches!(c, '\u{fff9}'..='\u{fffb}')
}

/// Returns the text with control characters, invisible characters and unusual spaces as escapes such as `\u{1b}`. Line
/// breaks and tabs remain.
#[must_use]
pub fn revealed(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_control(c) || is_blank(c) {
            let _ = write!(out, "{}", c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    out
}

/// Returns JSON text of the same value, in which these characters are escapes. They occur only in strings, where an
/// escape is equivalent.
#[must_use]
pub fn revealed_json(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        if !is_control(c) && !is_hidden(c) {
            out.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            let _ = write!(out, "\\u{unit:04x}");
        }
    }
    out
}

/// Makes text safe to display. Reordering characters and tags become escapes. Other invisible characters are removed,
/// unless they form an emoji or join letters of a script that needs them. The text may arrive in pieces.
#[derive(Debug, Clone, Copy, Default)]
pub struct Reader {
    last: Option<char>,
    /// A joiner or a selector that waits for the character after it.
    waiting: Option<char>,
}

impl Reader {
    /// Adds the part of `c` that is shown to `out`. Control characters are skipped.
    pub fn push(&mut self, c: char, out: &mut String) {
        if let Some(waiting) = self.waiting.take()
            && self.joins(waiting, c)
        {
            out.push(waiting);
        }
        if !is_hidden(c) {
            self.last = Some(c);
            out.push(c);
        } else if c == JOINER || c == NON_JOINER {
            self.waiting = Some(c);
        } else if PRESENTATION.contains(&c) {
            if self.last.is_some_and(takes_presentation) {
                out.push(c);
            }
        } else if is_reordering(c) || is_tag(c) {
            let _ = write!(out, "{}", c.escape_unicode());
            self.last = None;
        }
    }

    /// Whether `joiner` has a meaning between the last character and `next`.
    fn joins(&self, joiner: char, next: char) -> bool {
        let Some(last) = self.last else { return false };
        let emoji = |c| CodePointSetData::new::<ExtendedPictographic>().contains(c);
        let mark = |c| CodePointSetData::new::<GraphemeExtend>().contains(c);
        let letter = |c: char| !c.is_ascii() && (c.is_alphabetic() || mark(c));
        let after = emoji(last) || CodePointSetData::new::<EmojiModifier>().contains(last);
        (joiner == JOINER && after && emoji(next)) || (letter(last) && letter(next))
    }
}

/// Whether a selector of presentation may follow.
fn takes_presentation(c: char) -> bool {
    CodePointSetData::new::<ExtendedPictographic>().contains(c)
        || CodePointSetData::new::<EmojiComponent>().contains(c)
        || c == KEYCAP
}

fn is_tag(c: char) -> bool {
    matches!(c, '\u{e0000}'..='\u{e0fff}')
}

/// Returns the complete text as [`Reader`] shows it.
#[must_use]
pub fn readable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut reader = Reader::default();
    for c in text.chars() {
        reader.push(c, &mut out);
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The characters that no reader may miss, in ranges.
    const HIDDEN: &[(u32, u32)] = &[
        (0xad, 0xad),
        (0x34f, 0x34f),
        (0x61c, 0x61c),
        (0x115f, 0x1160),
        (0x17b4, 0x17b5),
        (0x180b, 0x180f),
        (0x200b, 0x200f),
        (0x2028, 0x202e),
        (0x2060, 0x206f),
        (0x3164, 0x3164),
        (0xfe00, 0xfe0f),
        (0xfeff, 0xfeff),
        (0xffa0, 0xffa0),
        (0xfff9, 0xfffb),
        (0x1bca0, 0x1bca3),
        (0x1d173, 0x1d17a),
        (0xe0000, 0xe0fff),
    ];

    fn all(ranges: &[(u32, u32)]) -> impl Iterator<Item = char> {
        let each = |(first, last): &(u32, u32)| *first..=*last;
        ranges.iter().flat_map(each).filter_map(char::from_u32)
    }

    /// Proves PERM-7, MCP-1a: every invisible or reordering character is in the table, and no letter is.
    #[test]
    fn hidden_table_has_every_hidden_character_and_no_letter() {
        for c in all(HIDDEN) {
            assert!(is_hidden(c) && is_blank(c), "{c:?}");
            assert!(!revealed(&format!("a{c}b")).contains(c), "{c:?}");
        }
        for c in "aZ0~ äßé漢字한ا\u{301}\u{3000}🙂👍\u{fffd}\n\t".chars() {
            assert!(!is_hidden(c) && !is_blank(c) && !is_control(c), "{c:?}");
        }
        for c in [
            '\u{a0}', '\u{1680}', '\u{2000}', '\u{200a}', '\u{202f}', '\u{205f}', '\u{2800}',
        ] {
            assert!(!is_hidden(c) && is_blank(c), "{c:?}");
        }
    }

    #[test]
    fn revealed_text_escapes_hidden_characters() {
        let check = |text, expect: &str| assert_eq!(revealed(text), expect);
        check("rm -rf x\t\n", "rm -rf x\t\n");
        check("a\x1b[8mb\r", "a\\u{1b}[8mb\\u{d}");
        check("a\u{202e}b\u{200b}", "a\\u{202e}b\\u{200b}");
        check("❤\u{fe0f}", "❤\\u{fe0f}");
        check("👩\u{200d}💻", "👩\\u{200d}💻");
        check("a\u{a0}b\u{9b}c", "a\\u{a0}b\\u{9b}c");
        check("äöü 漢字 🙂", "äöü 漢字 🙂");
    }

    /// Proves CLI-3: JSON on a terminal steers nothing, and keeps its value.
    #[test]
    fn json_is_escaped_and_stays_the_same() {
        let check = |text, expect: &str| assert_eq!(revealed_json(text), expect);
        check("{\"a\": \"b\"}\n", "{\"a\": \"b\"}\n");
        check("\"\u{9b}31m\u{7f}\"", "\"\\u009b31m\\u007f\"");
        check("\"\u{202e}\u{e0041}\"", "\"\\u202e\\udb40\\udc41\"");
    }

    /// Proves CLI-4: emoji and joined letters stay readable; what steers is visible; the rest is gone.
    #[test]
    fn transcript_stays_readable() {
        let same = |text: &str| assert_eq!(readable(text), text, "{text:?}");
        same("plain äöü 漢字 🙂\n\t");
        same("❤\u{fe0f} ☺\u{fe0e} 1\u{fe0f}\u{20e3}");
        same("👩\u{200d}💻 👨\u{200d}👩\u{200d}👧 👍🏽 👩🏽\u{200d}🚀 🏳\u{fe0f}\u{200d}🌈");
        same("می\u{200c}خواهم क्\u{200d}ष");
        let check = |text, expect: &str| assert_eq!(readable(text), expect, "{text:?}");
        check(
            "a\u{202e}b\u{2066}c\u{2069}",
            "a\\u{202e}b\\u{2066}c\\u{2069}",
        );
        check("a\u{200e}b\u{61c}c", "a\\u{200e}b\\u{61c}c");
        check("a\u{2028}b", "a\\u{2028}b");
        check("a\u{e0041}b", "a\\u{e0041}b");
        check("a\u{200b}b\u{feff}c\u{ad}d\u{2060}e\u{3164}f", "abcdef");
        check("a\u{fe0f}b\u{200d}c\u{200d}", "abc");
        check("\u{200d}💻", "💻");
    }

    proptest! {
        #[test]
        fn nothing_hidden_survives(text in "[a-c\\u{80}-\\u{ff}\\u{600}-\\u{6ff}\\u{1100}-\\u{11ff}\\u{2000}-\\u{206f}\\u{fe00}-\\u{ffff}\\u{e0000}-\\u{e00ff}🙂👍]{0,40}") {
            prop_assert!(!revealed(&text).chars().any(|c| is_control(c) || is_blank(c)));
            let read = readable(&text);
            let kept = |c: char| c == JOINER || c == NON_JOINER || PRESENTATION.contains(&c);
            prop_assert!(!read.chars().any(|c| is_hidden(c) && !kept(c)), "{read:?}");
            prop_assert!(!read.chars().any(is_reordering), "{read:?}");
        }
    }
}
