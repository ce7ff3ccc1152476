//! The result of the filter pipeline, and its length limit.

use super::confidence::FilterConfidence;
use super::notice::OmissionStats;

/// The filtered output of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilteredOutput {
    /// The text, without the notice; no line break at its end.
    pub text: String,
    /// The rule that was used.
    pub rule: Option<String>,
    /// How well the rule understood the output; without a rule, whether the output was cut.
    pub confidence: FilterConfidence,
    /// The omitted lines.
    pub left_out: Option<OmissionStats>,
    /// Whether later output overwrote visible text, such as the states of a progress bar.
    pub overwritten: bool,
    /// Lines of the sanitized output, and of the text.
    pub lines: (u64, u64),
    /// Bytes of the decoded output, and of the text.
    pub bytes: (u64, u64),
    /// Bytes of the output before it was decoded; the limit of the text.
    pub max_bytes: u64,
}

impl FilteredOutput {
    /// Makes the text with its notice no longer than the output.
    pub(super) fn shorten(&mut self) {
        let notice = self.left_out.as_ref();
        let notice = notice.map_or(0, |left_out| left_out.notice().len() as u64 + 1);
        let room = self.max_bytes.saturating_sub(notice);
        self.text = no_longer_than(std::mem::take(&mut self.text), room);
        // Of an output that is hardly longer than its notice, the text is worth more than the limit.
        let is_long = room > self.max_bytes / 2;
        if self.left_out.is_some() && is_long {
            // With a small threshold, notes on long lines may take more room than they save.
            let room = usize::try_from(room).unwrap_or(usize::MAX);
            self.text.truncate(self.text.floor_char_boundary(room));
        }
        self.bytes.1 = self.text.len() as u64;
    }

    /// Whether the raw output contains text that the result omits, so that it has to be stored.
    #[must_use]
    pub fn lost_text(&self) -> bool {
        self.left_out.is_some() || self.overwritten
    }
}

/// Shortens a text of more than `max_bytes` bytes: first its marks of invalid bytes (3 bytes each), then its
/// gaps.
///
/// A cursor movement can produce a gap of many spaces.
pub fn no_longer_than(text: String, max_bytes: u64) -> String {
    let is_long = |text: &str| text.len() as u64 > max_bytes;
    if !is_long(&text) {
        return text;
    }
    let text = text.replace(char::REPLACEMENT_CHARACTER, "?");
    if !is_long(&text) {
        return text;
    }
    let mut short = String::with_capacity(text.len());
    for c in text.chars() {
        if c != ' ' || !short.ends_with(' ') {
            short.push(c);
        }
    }
    short
}
