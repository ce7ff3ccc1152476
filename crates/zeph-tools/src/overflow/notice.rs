//! A text of which something was left out, and the line at its end that says so.

use super::reference::OverflowRef;
use super::spill::Spilled;

/// What was left out of a text, and where all of it is.
#[derive(Debug, Clone, PartialEq)]
pub struct TruncationNotice {
    /// What was left out, in words: `313 of 340 lines omitted`.
    pub omitted: String,
    /// The lines of the whole text that say most of it: first and last.
    pub lines: (u64, u64),
    /// The whole text.
    pub spilled: Spilled,
    /// Where the line begins.
    place: usize,
}

impl TruncationNotice {
    /// Adds to `text` the line that says what was left out of it.
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

    /// Puts the reference into the line, which is where it was in the text, or before what was
    /// added behind it.
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

    /// Says in the line that the rest is gone.
    pub fn lost(&self, text: &mut String) {
        let omitted = &self.omitted;
        self.replace(
            text,
            &format!("[{omitted}; they could not be stored and are lost]"),
        );
    }

    fn replace(&self, text: &mut String, line: &str) {
        let unchanged = notice(&self.omitted, self.lines, None);
        // Where the text was changed on the way, the line is somewhere else.
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

/// The line: what was left out, and how it is read.
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
