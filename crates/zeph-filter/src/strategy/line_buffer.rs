//! A buffer of lines in one text, which reuses its memory.

use crate::line::Line;

/// Buffered lines in their order.
#[derive(Debug, Default)]
pub(super) struct HeldLines {
    text: String,
    /// Number and end of each line.
    lines: Vec<(u64, usize)>,
}

impl HeldLines {
    pub(super) fn push(&mut self, line: Line<'_>) {
        self.text.push_str(line.text);
        self.lines.push((line.number, self.text.len()));
    }

    pub(super) fn len(&self) -> usize {
        self.lines.len()
    }

    /// Bytes of all lines.
    pub(super) fn bytes(&self) -> usize {
        self.text.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Line<'_>> {
        let mut start = 0;
        self.lines.iter().map(move |(number, end)| {
            let text = &self.text[start..*end];
            start = *end;
            Line {
                number: *number,
                text,
            }
        })
    }

    pub(super) fn clear(&mut self) {
        self.text.clear();
        self.lines.clear();
    }
}
