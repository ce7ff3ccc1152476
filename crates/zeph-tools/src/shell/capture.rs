//! Captured output of a command: the head and the tail, in bounded memory.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;

use memchr::memchr_iter;

use crate::event::OutputStream;
use crate::overflow::truncate::{whole_lines_at_end, whole_lines_at_start};
use crate::overflow::{CollectedText, OutputCollector, OverflowConfig};
use crate::secrets::{Kinds, SecurityPatterns, StreamRedactor};

pub use super::decode::Decoder;

/// The maximum number of bytes that are stored of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes from its start.
    pub head: usize,
    /// Bytes from its end.
    pub tail: usize,
}

/// The minimum number of bytes that are stored of a stream, for head and tail each.
const MIN_EDGE_BYTES: usize = 24 * 1024;

/// The head and the tail of a text of any length. It holds at most `head + 2 * tail` bytes and one piece.
#[derive(Debug)]
pub struct HeadTailBuffer {
    limits: Limits,
    head: String,
    /// Whether the head is full, so that all following text goes to the tail.
    head_full: bool,
    tail: VecDeque<u8>,
    bytes: u64,
    newlines: u64,
}

/// A text that may be truncated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// The text. If it is truncated, a line reports the size of the omitted part.
    pub text: String,
    /// The number of omitted bytes.
    pub omitted_bytes: u64,
    /// The number of omitted line breaks.
    pub omitted_lines: u64,
}

impl HeadTailBuffer {
    /// Returns an empty buffer.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            head: String::new(),
            head_full: false,
            tail: VecDeque::new(),
            bytes: 0,
            newlines: 0,
        }
    }

    /// Appends text.
    pub fn push(&mut self, mut text: &str) {
        self.bytes += text.len() as u64;
        self.newlines += count_newlines(text.as_bytes());
        if !self.head_full {
            let room = self.limits.head - self.head.len();
            if text.len() <= room {
                self.head.push_str(text);
                return;
            }
            let cut = text.floor_char_boundary(room);
            self.head.push_str(&text[..cut]);
            self.head_full = true;
            text = &text[cut..];
        }
        let bytes = text.as_bytes();
        let keep = &bytes[bytes.len().saturating_sub(self.limits.tail)..];
        let surplus = (self.tail.len() + keep.len()).saturating_sub(self.limits.tail);
        self.tail.drain(..surplus.min(self.tail.len()));
        self.tail.extend(keep);
    }

    /// Returns the stored text.
    #[must_use]
    pub fn finish(self) -> Kept {
        let tail = Vec::from(self.tail);
        let contiguous = (self.head.len() + tail.len()) as u64 == self.bytes;
        // The tail may start inside a character.
        let start = tail.iter().position(|byte| (*byte as i8) >= -0x40);
        let tail = String::from_utf8_lossy(&tail[start.unwrap_or(tail.len())..]);
        if contiguous {
            return Kept {
                text: self.head + &tail,
                omitted_bytes: 0,
                omitted_lines: 0,
            };
        }
        let head = whole_lines_at_start(&self.head);
        let tail = whole_lines_at_end(&tail);
        let omitted_bytes = self.bytes - (head.len() + tail.len()) as u64;
        let omitted_lines =
            self.newlines - count_newlines(head.as_bytes()) - count_newlines(tail.as_bytes());
        let break_line = if head.is_empty() || head.ends_with('\n') {
            ""
        } else {
            "\n"
        };
        Kept {
            text: format!(
                "{head}{break_line}[… {omitted_lines} lines ({omitted_bytes} bytes) left out …]\n{tail}"
            ),
            omitted_bytes,
            omitted_lines,
        }
    }
}

fn count_newlines(bytes: &[u8]) -> u64 {
    memchr_iter(b'\n', bytes).count() as u64
}

/// The output of one command without secret values. For the model, it stores both streams in order of arrival, and
/// spills them if they are too long. In addition, it stores the head and the tail of each stream.
#[derive(Debug)]
pub struct Capture {
    decoders: [Decoder; 2],
    redactors: [StreamRedactor; 2],
    merged: OutputCollector,
    streams: [HeadTailBuffer; 2],
}

/// The captured output of a command.
#[derive(Debug, Clone, PartialEq)]
pub struct Captured {
    /// Both streams in order of arrival.
    pub merged: CollectedText,
    /// Standard output.
    pub stdout: Kept,
    /// Standard error.
    pub stderr: Kept,
    /// The kinds of secrets that were found.
    pub secrets: Kinds,
}

impl Captured {
    /// Whether a text is truncated.
    #[must_use]
    pub fn truncated(&self) -> bool {
        let streams = [&self.stdout, &self.stderr];
        self.merged.shortened.is_some() || streams.iter().any(|kept| kept.omitted_bytes > 0)
    }
}

impl Capture {
    /// Returns an empty capture. A stream of one-byte characters is stored whole if it has at most as many characters
    /// as the threshold.
    #[must_use]
    pub fn new(config: &OverflowConfig, secrets: &Arc<SecurityPatterns>) -> Self {
        let half = config.threshold.div_ceil(2).max(MIN_EDGE_BYTES);
        let limits = Limits {
            head: half,
            tail: half,
        };
        Self {
            decoders: Default::default(),
            redactors: [(); 2].map(|()| StreamRedactor::new(Arc::clone(secrets))),
            merged: OutputCollector::new(config),
            streams: [HeadTailBuffer::new(limits), HeadTailBuffer::new(limits)],
        }
    }

    /// Reduces the memory for output that is too long, for use in one of many jobs.
    #[must_use]
    pub fn with_low_memory(self) -> Self {
        Self {
            merged: self.merged.with_low_memory(),
            ..self
        }
    }

    /// Takes bytes of a stream, and returns the text that is ready. A possible start of a secret is returned with the
    /// text that follows it.
    pub fn push<'b>(&mut self, stream: OutputStream, bytes: &'b [u8]) -> Cow<'b, str> {
        let redactor = &mut self.redactors[index(stream)];
        let piece = match self.decoders[index(stream)].decode(bytes) {
            Cow::Borrowed(text) => redactor.push(text),
            Cow::Owned(text) => Cow::Owned(redactor.push(&text).into_owned()),
        };
        self.merged.push(&piece);
        self.streams[index(stream)].push(&piece);
        piece
    }

    fn keep(&mut self, stream: OutputStream, text: &str) {
        self.merged.push(text);
        self.streams[index(stream)].push(text);
    }

    /// Ends both streams, so that a character that has begun is incomplete. Returns the text that was held back.
    pub fn end(&mut self) -> [(OutputStream, String); 2] {
        [OutputStream::Stdout, OutputStream::Stderr].map(|stream| {
            let redactor = &mut self.redactors[index(stream)];
            let mut rest = redactor
                .push(self.decoders[index(stream)].finish())
                .into_owned();
            rest.push_str(&redactor.finish());
            self.keep(stream, &rest);
            (stream, rest)
        })
    }

    /// Returns the secrets that were found since the last call.
    fn take_secrets(&mut self) -> Kinds {
        let mut kinds = Kinds::default();
        for redactor in &mut self.redactors {
            kinds.extend(redactor.take_kinds());
        }
        kinds
    }

    /// Returns the output so far. `next` continues at the same offset, even inside a character.
    pub fn hand_over(mut self, next: &mut Self) -> Captured {
        let secrets = self.take_secrets();
        std::mem::swap(&mut self.decoders, &mut next.decoders);
        std::mem::swap(&mut self.redactors, &mut next.redactors);
        let captured = self.finish();
        Captured {
            secrets,
            ..captured
        }
    }

    /// Returns the captured output.
    #[must_use]
    pub fn finish(mut self) -> Captured {
        self.end();
        let secrets = self.take_secrets();
        let [stdout, stderr] = self.streams;
        Captured {
            secrets,
            merged: self.merged.finish(),
            stdout: stdout.finish(),
            stderr: stderr.finish(),
        }
    }
}

fn index(stream: OutputStream) -> usize {
    match stream {
        OutputStream::Stdout => 0,
        OutputStream::Stderr => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::overflow::spill::tests::whole;
    use proptest::prelude::*;

    fn keep(pieces: &[&str], head: usize, tail: usize) -> Kept {
        let mut text = HeadTailBuffer::new(Limits { head, tail });
        for piece in pieces {
            text.push(piece);
        }
        text.finish()
    }

    /// Proves SH-4.
    #[test]
    fn middle_is_omitted_at_line_breaks() {
        let check = |pieces: &[&str], expect: &str| assert_eq!(keep(pieces, 8, 8).text, expect);
        check(&[], "");
        check(&["a\n", "b\n"], "a\nb\n");
        check(&["1234567\n", "abcdefg\n"], "1234567\nabcdefg\n");
        check(
            &["1\n2\n3\n4\n5\n6\n7\n8\n9\n"],
            "1\n2\n3\n4\n[… 2 lines (4 bytes) left out …]\n7\n8\n9\n",
        );
        check(
            &[&"x".repeat(20)],
            "xxxxxxxx\n[… 0 lines (4 bytes) left out …]\nxxxxxxxx",
        );
        check(
            &["aaaaaaä", &"b".repeat(9), "ää"],
            "aaaaaaä\n[… 0 lines (5 bytes) left out …]\nbbbbää",
        );
    }

    /// Proves SH-4.
    #[test]
    fn memory_is_bounded_for_any_output() {
        let limits = Limits { head: 10, tail: 10 };
        let mut text = HeadTailBuffer::new(limits);
        for _ in 0..10_000 {
            text.push("0123456789012345678901234567890123456789");
        }
        assert!(text.head.capacity() <= 64 && text.tail.capacity() <= 64);
        assert_eq!(text.finish().omitted_bytes, 400_000 - 20);
    }

    /// The reference for a capture: everything in memory.
    #[derive(Default)]
    struct Model {
        decoders: [Decoder; 2],
        merged: String,
        streams: [String; 2],
    }

    impl Model {
        fn push(&mut self, stream: OutputStream, bytes: &[u8]) {
            let text = self.decoders[index(stream)].decode(bytes);
            self.merged.push_str(&text);
            self.streams[index(stream)].push_str(&text);
        }

        fn finish(&mut self) {
            for stream in [OutputStream::Stdout, OutputStream::Stderr] {
                let rest = self.decoders[index(stream)].finish();
                self.merged.push_str(rest);
                self.streams[index(stream)].push_str(rest);
            }
        }
    }

    proptest! {
        /// Proves SH-4.
        #[test]
        fn both_streams_are_in_order_of_arrival(
            pieces in proptest::collection::vec(
                (any::<bool>(), proptest::collection::vec(
                    // No byte that may begin a secret: the capture would hold it back.
                    prop_oneof![128_u8..=255, Just(b'z'), Just(0), Just(b'\n'), Just(0xC3), Just(0xA4)], 0..40)),
                0..40),
            threshold in 1_usize..400,
        ) {
            let mut model = Model::default();
            let mut capture = Capture::new(&OverflowConfig {
                threshold,
                ..OverflowConfig::default()
            }, &Arc::default());
            for (to_stderr, bytes) in &pieces {
                let stream = if *to_stderr { OutputStream::Stderr } else { OutputStream::Stdout };
                model.push(stream, bytes);
                let _ = capture.push(stream, bytes);
            }
            model.finish();
            let captured = capture.finish();
            let long = model.merged.chars().count() > threshold;
            prop_assert_eq!(captured.truncated(), long);
            prop_assert_eq!(captured.merged.shortened.is_some(), long);
            let merged = match &captured.merged.shortened {
                Some(shortened) => whole(&shortened.spilled),
                None => captured.merged.text,
            };
            prop_assert_eq!(merged, model.merged);
            prop_assert_eq!([captured.stdout.text, captured.stderr.text], model.streams);
        }

        /// Proves SH-4.
        #[test]
        fn head_and_tail_are_taken_from_the_text(
            pieces in proptest::collection::vec("[a-cä€\n]{0,12}", 0..20),
            head in 0usize..40, tail in 0usize..40,
        ) {
            let whole = pieces.concat();
            let pieces: Vec<_> = pieces.iter().map(String::as_str).collect();
            let kept = keep(&pieces, head, tail);
            prop_assert_eq!(&kept, &keep(&[&whole], head, tail));
            if kept.omitted_bytes == 0 {
                prop_assert_eq!(kept.text, whole);
            } else {
                prop_assert!(whole.len() > head.saturating_sub(3) + tail.saturating_sub(3));
                let mark = kept.text.find("[… ").unwrap();
                let (first, rest) = kept.text.split_at(mark);
                let last = &rest[rest.find("…]\n").unwrap() + "…]\n".len()..];
                prop_assert!(last.len() <= tail && whole.ends_with(last));
                let first = if whole.starts_with(first) && first.len() as u64 + kept.omitted_bytes
                    + last.len() as u64 == whole.len() as u64 { first } else { first.trim_end_matches('\n') };
                prop_assert!(first.len() <= head && whole.starts_with(first));
                let omitted = &whole[first.len()..whole.len() - last.len()];
                prop_assert_eq!(kept.omitted_bytes, omitted.len() as u64);
                prop_assert_eq!(kept.omitted_lines, omitted.matches('\n').count() as u64);
            }
        }
    }
}
