//! Markdown as styled lines.
//!
//! - [`units`]: the parts of a document that are rendered separately.
//! - [`writer`]: the lines of a part; [`inline`]: emphasis, code and links; [`table`]: tables.
//!
//! A part is rendered the same, whether the document is complete or still grows: see [`super::MarkdownStream`].

mod inline;
mod table;
pub(super) mod units;
pub(super) mod writer;

use ratatui_core::text::Line;

use super::stream::MarkdownStream;
pub(super) use table::Layout;

/// The character before text that continues a paragraph, so that the text does not begin another block. It is white
/// space to Markdown, but not an indent.
pub(super) const CONTINUATION: char = '\u{a0}';

/// The part of a unit that was already shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum Head {
    /// Nothing.
    #[default]
    Nothing,
    /// The beginning of a paragraph.
    Paragraph,
    /// The items before the item with this number.
    Item(u64),
    /// The header and some rows of a table.
    Table(Layout),
}

/// The lines of a document of at most `width` columns, apart from code, which is not wrapped.
pub(crate) fn render(source: &str, width: usize) -> Vec<Line<'static>> {
    let mut stream = MarkdownStream::default();
    stream.push(source);
    stream.finish(width)
}

#[cfg(test)]
mod tests;
