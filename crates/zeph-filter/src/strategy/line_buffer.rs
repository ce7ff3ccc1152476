//! Lines that are held back, behind one another in one text: their memory is used again.

use crate::line::Line;

/// Lines in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct HeldLines {
    text: String,
    /// Number and end of each.
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

    /// Bytes of all of them.
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
