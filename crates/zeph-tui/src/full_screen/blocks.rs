//! The visible part of the conversation: the position of the top row, the expanded blocks, and the rendered lines.
//!
//! Only visible blocks are rendered, and each of them once for each width. So a long conversation stays fast, and a changed
//! width keeps the top block.

use std::collections::{BTreeMap, BTreeSet};

use ratatui::text::Line;

use super::rendered::Rendered;
use super::rows::Rows;
use crate::view::render::Detail;
use crate::view::{Block, Transcript};

/// A position: a block, and a row of it. The blank rows after a block belong to it.
type Place = (usize, usize);

/// A visible row.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Row {
    /// The index of the block.
    pub(super) block: usize,
    /// The content.
    pub(super) line: Line<'static>,
}

/// The view of the blocks.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    /// The first visible row; `None` shows the end and follows it.
    top: Option<Place>,
    width: u16,
    height: u16,
    /// The rendered blocks: folded ones, and expanded ones.
    cache: [BTreeMap<usize, Rendered>; 2],
    /// Whether blocks are expanded by default.
    is_full: bool,
    /// The blocks that differ from the default.
    toggled: BTreeSet<usize>,
    selected: Option<usize>,
}

impl Blocks {
    /// The visible rows of an area of this size.
    pub(super) fn visible(&mut self, all: &Transcript, width: u16, height: u16) -> Vec<Row> {
        (self.width, self.height) = (width, height);
        let (mut block, mut skipped) = self.top(all);
        let mut rows = Vec::with_capacity(usize::from(height));
        while rows.len() < usize::from(height) && block < all.blocks().len() {
            let room = usize::from(height) - rows.len();
            let gap = gap_after(all, block);
            let content = self.lines(all, block);
            let lines = (skipped..content.len() + gap).take(room).map(|at| Row {
                block,
                line: content.line(at).unwrap_or_default(),
            });
            rows.extend(lines);
            (block, skipped) = (block + 1, 0);
        }
        rows
    }

    /// Moves by rows; a negative number moves to older rows.
    pub(super) fn scroll(&mut self, all: &Transcript, rows: isize) {
        let (mut block, mut row) = self.top(all);
        let mut left = rows.unsigned_abs();
        if rows < 0 {
            while left > row && block > 0 {
                left -= row;
                block -= 1;
                row = self.rows(all, block);
            }
            row = row.saturating_sub(left);
        } else {
            while block < all.blocks().len() {
                let more = self.rows(all, block) - row;
                if left < more {
                    row += left;
                    break;
                }
                left -= more;
                (block, row) = (block + 1, 0);
            }
        }
        self.go_to(all, (block, row));
    }

    /// Moves by pages, with one common row.
    pub(super) fn scroll_pages(&mut self, all: &Transcript, pages: isize) {
        let page = isize::try_from(self.height.saturating_sub(1).max(1)).unwrap_or(1);
        self.scroll(all, pages * page);
    }

    /// Shows the first row.
    pub(super) fn show_start(&mut self, all: &Transcript) {
        self.go_to(all, (0, 0));
    }

    /// Shows the end, and follows it.
    pub(super) fn show_end(&mut self) {
        self.top = None;
    }

    /// Whether newer rows are below the visible ones.
    pub(super) fn is_scrolled(&self) -> bool {
        self.top.is_some()
    }

    /// Shows a row of a block near the top.
    pub(super) fn show(&mut self, all: &Transcript, place: Place) {
        self.go_to(all, place);
        if self.top == Some(place) {
            self.scroll(all, -isize::try_from(self.height / 3).unwrap_or(0));
        }
    }

    /// The selected block.
    pub(super) fn selected(&self) -> Option<usize> {
        self.selected
    }

    /// Selects no block.
    pub(super) fn deselect(&mut self) {
        self.selected = None;
    }

    /// Selects the next expandable block in a direction, or the last one at first. Returns whether there is one.
    pub(super) fn select(&mut self, all: &Transcript, is_forward: bool) -> bool {
        let end = all.blocks().len();
        let is_candidate = |at: &usize| all.blocks().get(*at).is_some_and(is_expandable);
        let found = match (self.selected, is_forward) {
            (Some(at), true) => (at + 1..end).find(is_candidate),
            (Some(at), false) => (0..at.min(end)).rev().find(is_candidate),
            (None, _) => (0..end).rev().find(is_candidate),
        };
        if let Some(at) = found {
            self.selected = Some(at);
            self.reveal(all, at);
        }
        found.or(self.selected).is_some()
    }

    /// Expands or folds a block.
    pub(super) fn toggle(&mut self, all: &Transcript, block: usize) {
        if all.blocks().get(block).is_some_and(is_expandable) && !self.toggled.remove(&block) {
            self.toggled.insert(block);
        }
    }

    /// Expands a block.
    pub(super) fn expand(&mut self, block: usize) {
        if self.is_full {
            self.toggled.remove(&block);
        } else {
            self.toggled.insert(block);
        }
    }

    /// Expands or folds all blocks.
    pub(super) fn toggle_all(&mut self) {
        self.is_full = !self.is_full;
        self.toggled.clear();
    }

    /// Forgets everything about the blocks, because the conversation is another one.
    pub(super) fn reset(&mut self) {
        *self = Self {
            is_full: self.is_full,
            ..Self::default()
        };
    }

    /// The complete rows of a block in the current width, for the search.
    pub(super) fn full_rows(&mut self, all: &Transcript, block: usize) -> &Rows {
        self.rendered(all, block, Detail::Full)
    }

    fn lines(&mut self, all: &Transcript, block: usize) -> &Rows {
        let detail = match self.is_full != self.toggled.contains(&block) {
            true => Detail::Full,
            false => Detail::Excerpt,
        };
        self.rendered(all, block, detail)
    }

    fn rendered(&mut self, all: &Transcript, at: usize, detail: Detail) -> &Rows {
        let (width, block) = (self.width, all.blocks().get(at));
        let is_full = detail == Detail::Full && block.is_some_and(is_expandable);
        let rendered = self.cache[usize::from(is_full)].entry(at).or_default();
        match block {
            Some(block) => rendered.rows(block, all.is_growing(at), width, detail),
            None => rendered.none(),
        }
    }

    /// The rows of a block, with the blank ones after it.
    fn rows(&mut self, all: &Transcript, block: usize) -> usize {
        self.lines(all, block).len() + gap_after(all, block)
    }

    fn top(&mut self, all: &Transcript) -> Place {
        let end = self.end(all);
        match self.top {
            Some((block, row)) => {
                let last = self.rows(all, block).saturating_sub(1);
                end.min((block, row.min(last)))
            }
            None => end,
        }
    }

    /// The top if the last row is visible.
    fn end(&mut self, all: &Transcript) -> Place {
        let mut left = usize::from(self.height);
        for block in (0..all.blocks().len()).rev() {
            let rows = self.rows(all, block);
            if rows >= left {
                return (block, rows - left);
            }
            left -= rows;
        }
        (0, 0)
    }

    fn go_to(&mut self, all: &Transcript, place: Place) {
        self.top = (place < self.end(all)).then_some(place);
    }

    /// Scrolls until the first row of a block is visible.
    fn reveal(&mut self, all: &Transcript, block: usize) {
        let (first, row) = self.top(all);
        if (block, 0) < (first, row) {
            return self.go_to(all, (block, 0));
        }
        let before: usize = (first..block).map(|at| self.rows(all, at)).sum();
        if before.saturating_sub(row) >= usize::from(self.height) {
            self.show(all, (block, 0));
        }
    }
}

/// Whether a block has an excerpt.
fn is_expandable(block: &Block) -> bool {
    matches!(block, Block::Call(_) | Block::Reasoning(_))
}

/// Blank rows after a block. Calls in sequence are one group.
fn gap_after(all: &Transcript, block: usize) -> usize {
    let kind = |at: usize| all.blocks().get(at).map(std::mem::discriminant);
    match (kind(block), kind(block + 1)) {
        (_, None) => 0,
        (one, other) if one == other => 0,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use std::time::Instant;
    use zeph_core::LoopbackEvent;

    use super::*;
    use crate::view::Severity;

    fn replies(count: usize) -> Transcript {
        let mut all = Transcript::default();
        for at in 0..count {
            all.push(Block::Reply(format!("row {at}")));
        }
        all
    }

    fn shown(blocks: &mut Blocks, all: &Transcript, height: u16) -> Vec<String> {
        let rows = blocks.visible(all, 40, height);
        rows.iter().map(|row| row.line.to_string()).collect()
    }

    #[test]
    fn view_follows_the_end_until_the_user_scrolls() {
        let (mut all, mut blocks) = (replies(10), Blocks::default());
        assert_eq!(shown(&mut blocks, &all, 3), ["row 7", "row 8", "row 9"]);
        blocks.scroll(&all, -2);
        assert!(blocks.is_scrolled());
        all.push(Block::Reply("row 10".to_owned()));
        assert_eq!(shown(&mut blocks, &all, 3), ["row 5", "row 6", "row 7"]);
        blocks.scroll(&all, 3);
        assert!(!blocks.is_scrolled());
        all.push(Block::Reply("row 11".to_owned()));
        assert_eq!(shown(&mut blocks, &all, 3), ["row 9", "row 10", "row 11"]);
    }

    #[test]
    fn scrolling_stops_at_both_ends() {
        let (all, mut blocks) = (replies(5), Blocks::default());
        shown(&mut blocks, &all, 2);
        blocks.scroll(&all, -100);
        assert_eq!(shown(&mut blocks, &all, 2), ["row 0", "row 1"]);
        blocks.scroll_pages(&all, 2);
        assert_eq!(shown(&mut blocks, &all, 2), ["row 2", "row 3"]);
        blocks.scroll(&all, 100);
        assert_eq!(shown(&mut blocks, &all, 2), ["row 3", "row 4"]);
        blocks.show_start(&all);
        assert_eq!(shown(&mut blocks, &all, 2), ["row 0", "row 1"]);
        blocks.show_end();
        assert_eq!(shown(&mut blocks, &all, 9).len(), 5);
    }

    #[test]
    fn groups_are_separated_by_one_blank_row() {
        let mut all = replies(1);
        all.push(Block::Message(Severity::Notice, "note".to_owned()));
        let mut blocks = Blocks::default();
        assert_eq!(shown(&mut blocks, &all, 9), ["row 0", "", "note"]);
        assert_eq!(shown(&mut blocks, &all, 2), ["", "note"]);
    }

    #[test]
    fn no_size_is_too_small() {
        let (all, mut blocks) = (replies(3), Blocks::default());
        for (width, height) in [(0, 0), (1, 1), (0, 5), (5, 0)] {
            let rows = blocks.visible(&all, width, height);
            assert!(rows.len() <= usize::from(height));
            blocks.scroll(&all, -1);
            blocks.scroll_pages(&all, 1);
            blocks.show(&all, (1, 0));
        }
    }

    #[test]
    fn only_calls_and_reasoning_are_selected_and_expanded() {
        let mut all = replies(2);
        all.push(Block::Reasoning("first\nsecond\nthird".to_owned()));
        all.push(Block::Reply("last".to_owned()));
        let mut blocks = Blocks::default();
        let folded = shown(&mut blocks, &all, 20).len();
        assert!(blocks.select(&all, false));
        assert_eq!(blocks.selected(), Some(2));
        assert!(blocks.select(&all, true), "the selection stays");
        assert_eq!(blocks.selected(), Some(2));
        blocks.toggle(&all, 0);
        assert_eq!(shown(&mut blocks, &all, 20).len(), folded);
        blocks.toggle(&all, 2);
        assert!(shown(&mut blocks, &all, 20).len() > folded);
        blocks.toggle(&all, 2);
        blocks.toggle_all();
        assert!(shown(&mut blocks, &all, 20).len() > folded);
    }

    #[test]
    fn output_of_a_running_call_is_rendered_again() {
        let mut all = Transcript::default();
        let now = Instant::now();
        let started = LoopbackEvent::ToolStarted {
            id: "1".to_owned(),
            tool: "bash".to_owned(),
            params: json!({ "command": "make" }),
        };
        all.apply(started, now);
        let mut blocks = Blocks::default();
        let before = shown(&mut blocks, &all, 20);
        let output = LoopbackEvent::ToolOutput {
            id: "1".to_owned(),
            stream: zeph_tools::OutputStream::Stdout,
            text: "built".to_owned(),
            skipped_lines: 0,
        };
        all.apply(output, now);
        let after = shown(&mut blocks, &all, 20);
        assert_ne!(before, after);
        assert!(after.iter().any(|line| line.contains("built")), "{after:?}");
    }

    /// Proves CLI-5: a frame of a long conversation renders only the visible blocks.
    #[test]
    fn long_conversation_renders_visible_blocks_only() {
        let (all, mut blocks) = (replies(10_000), Blocks::default());
        shown(&mut blocks, &all, 50);
        let rendered = blocks.cache[0].len();
        assert!(rendered <= 51, "{rendered}");
    }
}
