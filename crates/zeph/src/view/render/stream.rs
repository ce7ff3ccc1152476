//! Markdown that arrives in pieces.

use ratatui_core::text::Line;

use super::markdown;

/// A Markdown document that grows. Stable lines never change; the open rest may.
#[derive(Debug, Default)]
pub(crate) struct MarkdownStream {
    open: String,
}

impl MarkdownStream {
    /// Adds a piece of the document.
    pub(crate) fn push(&mut self, text: &str) {
        self.open.push_str(text);
    }

    /// The lines that no further text can change, each once.
    pub(crate) fn take_stable(&mut self, width: usize) -> Vec<Line<'static>> {
        let Some(end) = self.open.rfind('\n') else {
            return Vec::new();
        };
        let rest = self.open.split_off(end + 1);
        let stable = std::mem::replace(&mut self.open, rest);
        markdown::render(&stable, width)
    }

    /// The rest of the document as it looks now.
    pub(crate) fn open(&self, width: usize) -> Vec<Line<'static>> {
        match self.open.is_empty() {
            true => Vec::new(),
            false => markdown::render(&self.open, width),
        }
    }

    /// Ends the document: the lines that were not stable.
    pub(crate) fn finish(&mut self, width: usize) -> Vec<Line<'static>> {
        let lines = self.open(width);
        self.open.clear();
        lines
    }
}
