//! The text of a line that grows at its end and may become too long.

use std::fmt::Write as _;

/// Bytes of the longest line that stays whole.
const MAX_LINE: usize = 64 * 1024;
/// Bytes that are left of each end of a longer one.
const HALF: usize = 24 * 1024;

/// The text of a line: all of it, or head and tail.
#[derive(Debug, Default)]
pub(super) struct Text {
    text: String,
    cut: Option<Cut>,
}

#[derive(Debug, Clone, Copy)]
struct Cut {
    /// Bytes of the head, which is complete.
    head: usize,
    /// Bytes taken out behind it.
    omitted: u64,
}

impl Text {
    pub(super) fn clear(&mut self) {
        self.text.clear();
        self.cut = None;
    }

    pub(super) fn push(&mut self, text: &str) {
        self.text.push_str(text);
        // A line that was cut grows for a while before it is cut again: linear time.
        let most = MAX_LINE + self.cut.map_or(0, |_| HALF);
        if self.text.len() > most {
            let cut = self.next_cut();
            self.text.drain(cut.head..self.tail(cut.head));
            self.cut = Some(cut);
        }
    }

    fn next_cut(&self) -> Cut {
        let (head, omitted) = match self.cut {
            Some(cut) => (cut.head, cut.omitted),
            None => (self.text.floor_char_boundary(HALF), 0),
        };
        Cut {
            head,
            omitted: omitted + (self.tail(head) - head) as u64,
        }
    }

    /// Where the tail begins.
    fn tail(&self, head: usize) -> usize {
        let start = self.text.len().saturating_sub(HALF).max(head);
        self.text.ceil_char_boundary(start)
    }

    /// Writes over what stands at byte `at`, which is ASCII as `text` is; adds what goes beyond.
    pub(super) fn write(&mut self, at: usize, text: &str) {
        let length = self.text.len();
        if at + text.len() >= length {
            self.text.truncate(at);
            self.push(text);
        } else {
            self.text.replace_range(at..at + text.len(), text);
        }
    }

    /// Leaves the first bytes of a text that is ASCII.
    pub(super) fn truncate(&mut self, bytes: usize) {
        self.text.truncate(bytes);
    }

    /// The text, or what is left of it.
    pub(super) fn kept(&self) -> &str {
        &self.text
    }

    /// Whether something was taken out.
    pub(super) fn is_cut(&self) -> bool {
        self.cut.is_some()
    }

    /// Adds the text to `out`, with a word on what it lacks.
    pub(super) fn render(&self, out: &mut String) {
        if self.cut.is_none() {
            out.push_str(&self.text);
            return;
        }
        let Cut { head, omitted } = self.next_cut();
        out.push_str(&self.text[..head]);
        let _ = write!(out, "[… {omitted} bytes of this line left out …]");
        out.push_str(&self.text[self.tail(head)..]);
    }
}

/// Whether a line of so many bytes is cut.
pub(super) fn is_too_long(bytes: usize) -> bool {
    bytes > MAX_LINE
}
