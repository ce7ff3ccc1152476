//! Collection of a text of any length from pieces, in bounded memory.

use std::collections::VecDeque;

use super::config::OverflowConfig;
use super::spill::SpillBuffer;
use super::truncate::{self, Size, TruncatedText, half};

/// A collector of text pieces. A text up to the threshold is stored unchanged. A longer text keeps its start and
/// its end, and all of it is spilled.
#[derive(Debug)]
pub struct OutputCollector {
    threshold: usize,
    most_bytes: u64,
    has_low_memory: bool,
    /// The start of the text: the first characters, up to the threshold.
    first: String,
    chars: usize,
    rest: Option<Box<Rest>>,
}

/// The other parts of a text that is too long.
#[derive(Debug)]
struct Rest {
    /// The last bytes: enough for the characters of the tail, of any byte length.
    last: VecDeque<u8>,
    size: Size,
    spill: SpillBuffer,
}

/// A complete text.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct CollectedText {
    /// The text, or the start and the end of a long text with a line between them.
    pub text: String,
    /// The parts of a text that was too long.
    pub shortened: Option<TruncatedText>,
}

impl OutputCollector {
    /// Creates an empty collector.
    #[must_use]
    pub fn new(config: &OverflowConfig) -> Self {
        Self {
            threshold: config.threshold,
            most_bytes: config.byte_limit(),
            has_low_memory: false,
            first: String::new(),
            chars: 0,
            rest: None,
        }
    }

    /// Limits the memory for spilled text, for a collector that is one of many.
    #[must_use]
    pub fn with_low_memory(self) -> Self {
        Self {
            has_low_memory: true,
            ..self
        }
    }

    /// Appends text.
    pub fn push(&mut self, text: &str) {
        // One character more than the tail, to detect whether the tail begins a line.
        let last_bytes = 4 * (half(self.threshold) + 1);
        if let Some(rest) = &mut self.rest {
            rest.push(text, last_bytes);
            return;
        }
        self.chars += text.chars().count();
        if self.chars <= self.threshold {
            self.first.push_str(text);
            return;
        }
        let spill = SpillBuffer::new(self.most_bytes);
        let mut rest = Rest {
            last: VecDeque::new(),
            size: Size::default(),
            spill: if self.has_low_memory {
                spill.with_low_memory()
            } else {
                spill
            },
        };
        rest.push(&self.first, last_bytes);
        rest.push(text, last_bytes);
        // The start is taken from here, so it must be long enough.
        if self.first.len() < last_bytes {
            let more = text.floor_char_boundary(last_bytes - self.first.len());
            self.first.push_str(&text[..more]);
        }
        self.rest = Some(Box::new(rest));
    }

    /// Returns the text.
    #[must_use]
    pub fn finish(self) -> CollectedText {
        let Some(rest) = self.rest else {
            return CollectedText {
                text: self.first,
                shortened: None,
            };
        };
        let Rest { last, size, spill } = *rest;
        let last = Vec::from(last);
        // The buffer may begin inside a character.
        let start = last.iter().position(|byte| (*byte as i8) >= -0x40);
        let last = String::from_utf8_lossy(&last[start.unwrap_or(last.len())..]);
        let half = half(self.threshold);
        let (text, shortened) = truncate::cut(&self.first, &last, size, half, spill.finish());
        CollectedText {
            text,
            shortened: Some(shortened),
        }
    }
}

impl Rest {
    fn push(&mut self, text: &str, last_bytes: usize) {
        self.size.bytes += text.len() as u64;
        self.size.line_breaks += truncate::line_breaks(text);
        self.spill.push(text);
        let bytes = text.as_bytes();
        let keep = &bytes[bytes.len().saturating_sub(last_bytes)..];
        let surplus = (self.last.len() + keep.len()).saturating_sub(last_bytes);
        self.last.drain(..surplus.min(self.last.len()));
        self.last.extend(keep);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::super::spill::tests::whole;
    use super::*;

    fn take(pieces: &[&str], threshold: usize) -> CollectedText {
        let mut text = OutputCollector::new(&OverflowConfig {
            threshold,
            ..OverflowConfig::default()
        });
        for piece in pieces {
            text.push(piece);
        }
        text.finish()
    }

    /// Proves OUT-30.
    #[test]
    fn omission_line_names_the_missing_lines() {
        let check = |pieces: &[&str], expect: &str| assert_eq!(take(pieces, 16).text, expect);
        check(&[], "");
        check(&["1234567\n", "abcdefg\n"], "1234567\nabcdefg\n");
        check(&["ääääääää", "€€€€€€€€"], "ääääääää€€€€€€€€");
        check(
            &["1\n2\n3\n4\n5\n6\n7\n8\n9\n"],
            "1\n2\n[… lines 3-7 (5 lines, 10 bytes) left out …]\n8\n9\n",
        );
        check(
            &[&"x".repeat(20)],
            "xxxx\n[… 12 bytes of line 1 left out …]\nxxxx",
        );
        check(
            &["ab\n", &"ä".repeat(20), "\nyz\n"],
            "ab\n[… line 2 (41 bytes) left out …]\nyz\n",
        );
        check(
            &["ab\n", &"ä".repeat(20), "\nvwxyz"],
            "ab\n[… lines 2-3 (2 lines, 42 bytes) left out …]\nwxyz",
        );
    }

    /// Proves OUT-30.
    #[test]
    fn tiny_threshold_leaves_only_the_note() {
        for threshold in 1..4 {
            let text = take(&["ab\ncd\n", "ef\n"], threshold).text;
            assert_eq!(text, "[… lines 1-3 (3 lines, 9 bytes) left out …]\n");
        }
    }

    /// Proves SH-4.
    #[test]
    fn memory_is_bounded_for_any_output() {
        let mut text = OutputCollector::new(&OverflowConfig {
            threshold: 1000,
            max_overflow_bytes: 100_000,
            ..OverflowConfig::default()
        });
        for _ in 0..10_000 {
            text.push("0123456789012345678901234567890123456789");
        }
        let rest = text.rest.as_ref().unwrap();
        assert!(text.first.capacity() < 10_000 && rest.last.capacity() < 10_000);
        let shortened = text.finish().shortened.unwrap();
        assert_eq!(shortened.spilled.bytes(), 100_000);
        assert_eq!(shortened.spilled.total_bytes(), 400_000);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

        /// Proves OUT-30, SH-4.
        #[test]
        fn head_and_tail_are_taken_from_the_text(
            pieces in proptest::collection::vec("[a-cä€𝄞\n]{0,12}", 0..20),
            threshold in 1_usize..80,
        ) {
            let all = pieces.concat();
            let pieces: Vec<_> = pieces.iter().map(String::as_str).collect();
            let taken = take(&pieces, threshold);
            prop_assert_eq!(&taken.text, &take(&[&all], threshold).text);
            let Some(shortened) = taken.shortened else {
                prop_assert!(all.chars().count() <= threshold);
                prop_assert_eq!(taken.text, all);
                return Ok(());
            };
            prop_assert!(all.chars().count() > threshold);
            prop_assert_eq!(whole(&shortened.spilled), all.clone());
            let head = &taken.text[..shortened.note.start];
            let tail = &taken.text[shortened.note.end + 1..];
            prop_assert!(tail.chars().count() <= threshold / 2 && all.ends_with(tail));
            let omitted = shortened.omitted;
            let bytes = usize::try_from(omitted.bytes).unwrap();
            // A line break is added to a start that ends inside a line.
            let end = all.len() - tail.len() - bytes;
            prop_assert!(head == &all[..end] || head.strip_suffix('\n') == Some(&all[..end]));
            prop_assert!(all[..end].chars().count() <= threshold / 2);
            let missing = &all[end..all.len() - tail.len()];
            let before = all[..end].matches('\n').count() as u64;
            let within = missing.matches('\n').count() as u64;
            prop_assert_eq!(omitted.line_breaks, within);
            prop_assert_eq!(omitted.first_line, before + 1);
            let last = before + missing.lines().count() as u64;
            prop_assert_eq!(omitted.last_line, last, "{:?}", missing);
            // Lines stay whole if that costs less than half of the visible characters.
            if let Some(line) = all[..end].rfind('\n') {
                prop_assert!(line + 1 == end || line + 1 < end / 2);
            }
        }

        /// Proves OUT-30, OUT-34: the shortened text is never longer than the threshold.
        #[test]
        fn shortened_text_is_within_the_threshold(
            line in "[a-cä€]{0,40}\n",
            count in 1_usize..400,
            threshold in 1000_usize..3000,
        ) {
            let all = line.repeat(count);
            let mut taken = take(&[&all], threshold);
            if let Some(shortened) = taken.shortened {
                // The longest possible note has this length.
                shortened.note(&mut taken.text, &"n".repeat(350));
            }
            prop_assert!(taken.text.chars().count() <= threshold);
            prop_assert!(taken.text.len() <= all.len());
        }
    }
}
