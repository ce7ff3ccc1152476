//! A block of code with a fence that is shown line by line.

use ratatui_core::text::Line;

use super::highlight::CodeLines;

/// An open block.
#[derive(Debug, Clone)]
pub(super) struct Fence {
    mark: char,
    /// The number of marks.
    length: usize,
    /// The spaces before the marks, which are removed from each line.
    indent: usize,
    code: CodeLines,
}

impl Fence {
    /// Opens a block with its first line, which has a fence.
    pub(super) fn open(line: &str) -> Self {
        let body = line.trim_start_matches(' ');
        let mark = body.chars().next().unwrap_or('`');
        let info = body.trim_start_matches(mark);
        Self {
            mark,
            length: body.len() - info.len(),
            indent: line.len() - body.len(),
            code: CodeLines::new(info),
        }
    }

    /// Whether the line ends the block.
    pub(super) fn is_end(&self, line: &str) -> bool {
        let body = line.trim_start_matches(' ');
        let rest = body.trim_start_matches(self.mark);
        line.len() - body.len() < 4
            && body.len() - rest.len() >= self.length
            && rest.trim_matches([' ', '\t']).is_empty()
    }

    /// Whether the line may become the end of the block.
    pub(super) fn may_be_end(&self, line: &str) -> bool {
        line.trim_start_matches(' ')
            .trim_start_matches(self.mark)
            .is_empty()
    }

    /// A line of the code.
    pub(super) fn push(&mut self, line: &str) -> Line<'static> {
        let spaces = line.len() - line.trim_start_matches(' ').len();
        self.code.push(&line[spaces.min(self.indent)..])
    }
}
