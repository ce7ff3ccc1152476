//! The rendered rows of a block, which follow its changes. The work for a piece of text that arrives is bounded: only
//! the open end of the text is rendered again.

use super::rows::Rows;
use crate::view::Block;
use crate::view::render::{Detail, MarkdownStream, block_lines};

/// The rows of a block.
#[derive(Debug, Default)]
pub(super) struct Rendered {
    width: u16,
    /// The state of the block that is rendered; `None` at first.
    version: Option<Version>,
    rows: Rows,
    /// The text that grows.
    growing: Option<Growing>,
}

/// A value that differs after each change of a block.
type Version = [usize; 4];

/// Text whose first part is rendered for good.
#[derive(Debug, Default)]
struct Growing {
    markdown: MarkdownStream,
    /// The bytes of the text that `markdown` has got.
    read: usize,
    /// The rows that do not change.
    stable: usize,
}

impl Rendered {
    /// The current rows of the block.
    pub(super) fn rows(
        &mut self,
        block: &Block,
        is_growing: bool,
        width: u16,
        detail: Detail,
    ) -> &Rows {
        let version = Some(version(block, is_growing));
        if self.width == width && self.version == version {
            return &self.rows;
        }
        if self.width != width {
            self.growing = None;
        }
        (self.width, self.version) = (width, version);
        let width = usize::from(width);
        match block {
            Block::Text(text) if is_growing || self.growing.is_some() => {
                self.grow(text, is_growing, width);
            }
            _ => {
                self.rows = Rows::default();
                self.rows.extend(block_lines(block, width, detail), width);
            }
        }
        &self.rows
    }

    /// The rows of a block that does not exist.
    pub(super) fn none(&mut self) -> &Rows {
        *self = Self::default();
        &self.rows
    }

    /// Renders what has changed of a text. If it `is_growing`, its end remains open.
    fn grow(&mut self, text: &str, is_growing: bool, width: usize) {
        let growing = self.growing.get_or_insert_default();
        growing
            .markdown
            .push(text.get(growing.read..).unwrap_or_default());
        growing.read = text.len();
        self.rows.truncate(growing.stable);
        self.rows.extend(growing.markdown.take_stable(width), width);
        growing.stable = self.rows.len();
        if is_growing {
            self.rows.extend(growing.markdown.open(width), width);
        } else {
            self.rows.extend(growing.markdown.finish(width), width);
            self.growing = None;
        }
    }
}

fn version(block: &Block, is_growing: bool) -> Version {
    match block {
        Block::Prompt(text) | Block::Text(text) | Block::Reasoning(text) => {
            [text.len(), usize::from(is_growing), 0, 0]
        }
        Block::Message(_, text) | Block::Reply(text) => [text.len(), 0, 0, 0],
        Block::Call(call) => {
            let last = call.output.last(1).next().map_or(0, str::len);
            let total = usize::try_from(call.output.total()).unwrap_or(usize::MAX);
            let is_done = usize::from(call.result.is_some());
            [total, last, is_done, usize::from(call.had_terminal)]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(rows: &Rows) -> Vec<String> {
        rows.texts().map(str::to_owned).collect()
    }

    /// Proves CLI-5: text that grows, in any pieces, has the rows of the complete text at its end, also if the width
    /// changes meanwhile.
    #[test]
    fn text_that_grew_has_the_rows_of_the_complete_text() {
        let source = "# Title\n\nsome *words* and **more\nwords** that wrap\n\n- one\n- two\n\n\
                      ```rust\nfn main() {}\n```\n\n|a|b|\n|-|-|\n|1|2|\n\nthe end";
        let complete = |width| {
            let mut rows = Rows::default();
            let block = Block::Text(source.to_owned());
            rows.extend(block_lines(&block, width, Detail::Excerpt), width);
            texts(&rows)
        };
        for size in [1, 3, 7, source.len()] {
            let mut rendered = Rendered::default();
            let mut text = String::new();
            for (at, c) in source.chars().enumerate() {
                text.push(c);
                if at % size == 0 {
                    let width = if at < 30 { 20 } else { 24 };
                    rendered.rows(&Block::Text(text.clone()), true, width, Detail::Excerpt);
                }
            }
            let block = Block::Text(text);
            let rows = rendered.rows(&block, false, 24, Detail::Excerpt);
            assert_eq!(texts(rows), complete(24), "pieces of {size}");
            assert!(rendered.growing.is_none());
            let rows = rendered.rows(&block, false, 30, Detail::Excerpt);
            assert_eq!(texts(rows), complete(30));
        }
    }

    #[test]
    fn open_text_is_shown_as_it_arrives() {
        let mut rendered = Rendered::default();
        let mut shown = |text: &str| {
            let block = Block::Text(text.to_owned());
            texts(rendered.rows(&block, true, 30, Detail::Excerpt))
        };
        assert_eq!(shown("one **tw"), ["one tw"]);
        assert_eq!(shown("one **two**\n\nth"), ["one two", "", "th"]);
        assert_eq!(shown("one **two**\n\nthree"), ["one two", "", "three"]);
    }
}
