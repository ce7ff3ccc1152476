//! The parts of a document that are rendered separately: blocks at the top level, and items of lists there.

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag};

/// The extensions of Markdown that are understood.
pub(super) const EXTENSIONS: Options = Options::ENABLE_TABLES
    .union(Options::ENABLE_STRIKETHROUGH)
    .union(Options::ENABLE_TASKLISTS);

/// A part of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unit {
    /// The kind of the block.
    pub(crate) kind: UnitKind,
    /// The start of its first line, in bytes. The unit ends at the start of the next one.
    pub(crate) start: usize,
}

/// The kind of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnitKind {
    /// A paragraph.
    Paragraph,
    /// A heading.
    Heading,
    /// A table.
    Table,
    /// A block of code with a fence.
    Fence,
    /// An item of a list.
    Item {
        /// The lists before this one in the same text.
        list: usize,
        /// The number of the item; `None` without numbers.
        number: Option<u64>,
    },
    /// Link definitions.
    Definitions,
    /// Any other block.
    Other,
}

/// The units of a text.
pub(crate) fn units(source: &str) -> Vec<Unit> {
    let mut units: Vec<Unit> = Vec::new();
    let mut depth = 0_usize;
    let mut lists = 0;
    let mut number = None;
    for (event, range) in Parser::new_ext(source, EXTENSIONS).into_offset_iter() {
        let kind = match &event {
            Event::Start(Tag::List(first)) if depth == 0 => {
                lists += 1;
                number = *first;
                None
            }
            Event::Start(Tag::Item) if depth == 1 => {
                let kind = UnitKind::Item {
                    list: lists - 1,
                    number,
                };
                number = number.and_then(|number| number.checked_add(1));
                Some(kind)
            }
            Event::Start(tag) if depth == 0 => Some(match tag {
                Tag::Paragraph => UnitKind::Paragraph,
                Tag::Heading { .. } => UnitKind::Heading,
                Tag::Table(_) => UnitKind::Table,
                Tag::CodeBlock(CodeBlockKind::Fenced(_)) => UnitKind::Fence,
                _ => UnitKind::Other,
            }),
            Event::Rule if depth == 0 => Some(UnitKind::Other),
            _ => None,
        };
        if let Some(kind) = kind {
            let start = line_start(source, range.start);
            // Link definitions have no events.
            if units.is_empty() && !is_blank(&source[..start]) {
                units.push(Unit {
                    kind: UnitKind::Definitions,
                    start: 0,
                });
            }
            units.push(Unit { kind, start });
        }
        match event {
            Event::Start(_) => depth += 1,
            Event::End(_) => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    if units.is_empty() && !is_blank(source) {
        units.push(Unit {
            kind: UnitKind::Definitions,
            start: 0,
        });
    }
    units
}

/// Whether a text has only spaces, tabs and line breaks. Other white space is text in Markdown.
pub(crate) fn is_blank(text: &str) -> bool {
    text.trim_matches([' ', '\t', '\n']).is_empty()
}

/// The start of the line that contains the byte `at`.
pub(crate) fn line_start(source: &str, at: usize) -> usize {
    source[..at].rfind('\n').map_or(0, |end| end + 1)
}

/// Whether the line before the one that starts at `start` is empty, apart from the marks of quotes.
pub(crate) fn is_blank_before(source: &str, start: usize) -> bool {
    let Some(before) = source[..start].strip_suffix('\n') else {
        return false;
    };
    let line = &before[line_start(before, before.len())..];
    line.trim_matches([' ', '\t', '>']).is_empty()
}

/// Whether there is an empty line between two units; `is_blank` if the source has one.
pub(crate) fn has_gap(before: UnitKind, after: UnitKind, is_blank: bool) -> bool {
    let is_apart = |kind| matches!(kind, UnitKind::Table | UnitKind::Fence);
    is_blank || is_apart(before) || is_apart(after) || after == UnitKind::Heading
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_top_level_blocks_and_items() {
        let text = "# a\nb\n\n 1. c\n\n    d\n 2. e\n\n- f\n  - g\n- h\n\n```rust\ni\n```\n> j\n\n---\n|k|\n|-|\n|l|\n";
        let shown: Vec<_> = units(text)
            .into_iter()
            .map(|unit| {
                (
                    unit.kind,
                    text[unit.start..].lines().next().unwrap_or_default(),
                )
            })
            .collect();
        let item = |list, number| UnitKind::Item { list, number };
        let expect = [
            (UnitKind::Heading, "# a"),
            (UnitKind::Paragraph, "b"),
            (item(0, Some(1)), " 1. c"),
            (item(0, Some(2)), " 2. e"),
            (item(1, None), "- f"),
            (item(1, None), "- h"),
            (UnitKind::Fence, "```rust"),
            (UnitKind::Other, "> j"),
            (UnitKind::Other, "---"),
            (UnitKind::Table, "|k|"),
        ];
        assert_eq!(shown, expect);
    }

    #[test]
    fn definitions_of_links_are_a_unit() {
        let kinds = |text| {
            units(text)
                .into_iter()
                .map(|unit| unit.kind)
                .collect::<Vec<_>>()
        };
        assert_eq!(kinds("[a]: http://b\n"), [UnitKind::Definitions]);
        assert_eq!(
            kinds("[a]: http://b\n\nc"),
            [UnitKind::Definitions, UnitKind::Paragraph]
        );
        assert_eq!(kinds("\n \n"), []);
    }

    #[test]
    fn empty_line_before_a_block_is_found() {
        let check = |text: &str, expect| {
            let start = line_start(text, text.len());
            assert_eq!(is_blank_before(text, start), expect, "{text:?}");
        };
        check("a\n\nb", true);
        check("a\n > \n> b", true);
        check("a\nb", false);
        check("b", false);
    }
}
