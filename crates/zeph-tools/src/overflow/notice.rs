//! The line at the end of a text that reports omitted parts.

use super::reference::OverflowRef;
use super::spill::Spilled;

/// The omitted part of a text, with the complete text.
#[derive(Debug, Clone, PartialEq)]
pub struct TruncationNotice {
    /// The description of the omitted part: `313 of 340 lines omitted`.
    pub omitted: String,
    /// The most relevant lines of the complete text: first and last.
    pub lines: (u64, u64),
    /// The complete text.
    pub spilled: Spilled,
    /// The byte offset of the line.
    place: usize,
}

impl TruncationNotice {
    /// Appends to `text` the line that reports the omitted part.
    #[must_use]
    pub fn new(text: &mut String, omitted: String, lines: (u64, u64), spilled: Spilled) -> Self {
        if !text.is_empty() {
            text.push('\n');
        }
        let start = text.len();
        text.push_str(&notice(&omitted, lines, None));
        Self {
            omitted,
            lines,
            spilled,
            place: start,
        }
    }

    /// Inserts the reference into the line, at its original place, or before text that was added after it.
    pub fn stored(&self, text: &mut String, reference: OverflowRef) {
        let mut omitted = self.omitted.clone();
        if self.spilled.bytes() < self.spilled.total_bytes() {
            omitted.push_str(&format!(
                "; the first {} of {} bytes are stored",
                self.spilled.bytes(),
                self.spilled.total_bytes()
            ));
        }
        self.replace(text, &notice(&omitted, self.lines, Some(reference)));
    }

    /// Changes the line to report that the rest is lost.
    pub fn lost(&self, text: &mut String) {
        let omitted = &self.omitted;
        self.replace(
            text,
            &format!("[{omitted}; they could not be stored and are lost]"),
        );
    }

    fn replace(&self, text: &mut String, line: &str) {
        let unchanged = notice(&self.omitted, self.lines, None);
        // If the text was changed meanwhile, the line is at another place.
        let place = Some(self.place)
            .filter(|start| {
                text.get(*start..)
                    .is_some_and(|rest| rest.starts_with(&unchanged))
            })
            .or_else(|| text.rfind(&unchanged));
        if let Some(start) = place {
            text.replace_range(start..start + unchanged.len(), line);
        } else {
            text.push('\n');
            text.push_str(line);
        }
    }
}

/// Returns the line: the omitted part, and the call that reads it.
#[must_use]
pub fn notice(omitted: &str, lines: (u64, u64), reference: Option<OverflowRef>) -> String {
    match reference {
        Some(id) => format!(
            "[{omitted}; read_overflow id={id} lines={}-{}]",
            lines.0, lines.1
        ),
        None => format!("[{omitted}]"),
    }
}
