//! The text of a terminal line, which is cut in the middle if it becomes too long.

use std::fmt::Write as _;

/// The maximum size of a complete line in bytes.
const MAX_LINE: usize = 64 * 1024;
/// Bytes that are retained at each end of a longer line.
const HALF: usize = 24 * 1024;

/// The text of a line: complete, or head and tail.
#[derive(Debug, Default)]
pub(super) struct Text {
    text: String,
    cut: Option<Cut>,
}

#[derive(Debug, Clone, Copy)]
struct Cut {
    /// The size of the head in bytes.
    head: usize,
    /// Bytes omitted after the head.
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

    /// Returns the offset of the tail.
    fn tail(&self, head: usize) -> usize {
        let start = self.text.len().saturating_sub(HALF).max(head);
        self.text.ceil_char_boundary(start)
    }

    /// Overwrites the text from byte `at`, and appends the rest of `text`. Both texts are ASCII.
    pub(super) fn write(&mut self, at: usize, text: &str) {
        let length = self.text.len();
        if at + text.len() >= length {
            self.text.truncate(at);
            self.push(text);
        } else {
            self.text.replace_range(at..at + text.len(), text);
        }
    }

    /// Truncates ASCII text to its first `bytes`.
    pub(super) fn truncate(&mut self, bytes: usize) {
        self.text.truncate(bytes);
    }

    /// Returns the text without the omitted bytes.
    pub(super) fn kept(&self) -> &str {
        &self.text
    }

    /// Returns true if bytes are omitted.
    pub(super) fn is_cut(&self) -> bool {
        self.cut.is_some()
    }

    /// Appends the text to `out`, with a note instead of omitted bytes.
    pub(super) fn render(&self, out: &mut String) {
        if self.cut.is_none() {
            out.push_str(&self.text);
            return;
        }
        let Cut { head, omitted } = self.next_cut();
        out.push_str(&self.text[..head]);
        let _ = write!(out, "[… {omitted} bytes of this line omitted …]");
        out.push_str(&self.text[self.tail(head)..]);
    }
}

/// Returns true if a line of `bytes` bytes is cut.
pub(super) fn is_too_long(bytes: usize) -> bool {
    bytes > MAX_LINE
}
