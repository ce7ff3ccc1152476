//! An incremental decoder of server-sent events.
//!
//! Format: the event stream of the WHATWG HTML standard, section 9.2.6. The input is bytes from the network in chunks
//! of any size; the output is complete events. Work is linear in the bytes, and memory is bounded by a cap for one
//! event. The fields `id` and `retry` serve reconnection, which no provider supports, and are skipped.

use memchr::memchr2;

/// The byte order mark that a stream may begin with.
const BOM: [u8; 3] = [0xEF, 0xBB, 0xBF];

/// A server-sent event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct SseEvent<'a> {
    /// The `event` field; empty if it is missing (the standard's "message").
    pub event: &'a str,
    /// The `data` lines, joined with line feeds. Invalid UTF-8 is replaced by U+FFFD.
    pub data: &'a str,
}

/// The reason why a stream cannot be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SseError {
    /// One event, or one line, is longer than the cap.
    #[error("an event of the stream is longer than {limit} bytes")]
    TooLarge {
        /// The cap in bytes.
        limit: usize,
    },
}

/// A decoder of one stream of server-sent events.
#[derive(Debug)]
pub struct SseDecoder {
    /// The start of an incomplete line.
    line: Vec<u8>,
    /// The data lines of the current event, each followed by a line feed.
    data: Vec<u8>,
    /// The current event's name.
    event: String,
    /// The last line ended with a carriage return: a line feed that follows belongs to it.
    after_cr: bool,
    /// The number of bytes of the BOM that were read; `None` after the start of the stream.
    bom: Option<usize>,
    limit: usize,
}

impl SseDecoder {
    /// A decoder that refuses events longer than `limit` bytes.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            line: Vec::new(),
            data: Vec::new(),
            event: String::new(),
            after_cr: false,
            bom: Some(0),
            limit,
        }
    }

    /// Decodes the next bytes, and passes every complete event to `on_event`, in order.
    ///
    /// # Errors
    /// [`SseError::TooLarge`] for an event above the cap, or the error of `on_event`. After an error the decoder must
    /// not be used again.
    pub fn push<E: From<SseError>>(
        &mut self,
        bytes: &[u8],
        mut on_event: impl FnMut(SseEvent<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut rest = self.skip_bom(bytes);
        while let Some(first) = rest.first() {
            if std::mem::take(&mut self.after_cr) && *first == b'\n' {
                rest = &rest[1..];
                continue;
            }
            let Some(at) = memchr2(b'\n', b'\r', rest) else {
                self.check(rest.len())?;
                self.line.extend_from_slice(rest);
                break;
            };
            self.check(at)?;
            self.after_cr = rest[at] == b'\r';
            if self.line.is_empty() {
                self.end_of_line(&rest[..at], &mut on_event)?;
            } else {
                let mut line = std::mem::take(&mut self.line);
                line.extend_from_slice(&rest[..at]);
                self.end_of_line(&line, &mut on_event)?;
                line.clear();
                self.line = line;
            }
            rest = &rest[at + 1..];
        }
        Ok(())
    }

    /// The data of an event without its closing blank line; its last line may be incomplete. The standard discards
    /// it; a caller may check whether it is complete.
    #[must_use]
    pub fn finish(mut self) -> Option<String> {
        if !self.line.is_empty() {
            let line = std::mem::take(&mut self.line);
            self.field(&line);
        }
        (!self.data.is_empty()).then(|| {
            self.data.pop();
            String::from_utf8_lossy(&self.data).into_owned()
        })
    }

    /// Removes a BOM at the start, also one that arrives in pieces.
    fn skip_bom<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let Some(mut seen) = self.bom else {
            return bytes;
        };
        for (at, byte) in bytes.iter().enumerate() {
            if seen == BOM.len() {
                self.bom = None;
                return &bytes[at..];
            }
            if *byte != BOM[seen] {
                self.line.extend_from_slice(&BOM[..seen]);
                self.bom = None;
                return &bytes[at..];
            }
            seen += 1;
        }
        self.bom = Some(seen);
        &[]
    }

    fn check(&self, more: usize) -> Result<(), SseError> {
        if self.line.len() + self.data.len() + more > self.limit {
            return Err(SseError::TooLarge { limit: self.limit });
        }
        Ok(())
    }

    fn end_of_line<E>(
        &mut self,
        line: &[u8],
        on_event: &mut impl FnMut(SseEvent<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        if !line.is_empty() {
            self.field(line);
            return Ok(());
        }
        let outcome = if self.data.is_empty() {
            Ok(())
        } else {
            let data = String::from_utf8_lossy(&self.data[..self.data.len() - 1]);
            on_event(SseEvent {
                event: &self.event,
                data: &data,
            })
        };
        self.data.clear();
        self.event.clear();
        outcome
    }

    /// Reads `name: value`. A line that begins with a colon (a comment) has an empty name.
    fn field(&mut self, line: &[u8]) {
        let (name, value) = match memchr::memchr(b':', line) {
            Some(at) => (&line[..at], &line[at + 1..]),
            None => (line, &[][..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"data" => {
                self.data.extend_from_slice(value);
                self.data.push(b'\n');
            }
            b"event" => {
                self.event.clear();
                self.event.push_str(&String::from_utf8_lossy(value));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use proptest::prelude::*;

    use super::*;

    type Events = Vec<(String, String)>;

    fn decode<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> (Events, Option<String>) {
        let mut decoder = SseDecoder::new(1 << 20);
        let mut events = Vec::new();
        for chunk in chunks {
            decoder
                .push(chunk, |event| {
                    events.push((event.event.to_owned(), event.data.to_owned()));
                    Ok::<(), SseError>(())
                })
                .unwrap();
        }
        (events, decoder.finish())
    }

    fn check(input: &str, expect: &[(&str, &str)]) {
        let expect: Events = expect
            .iter()
            .map(|(event, data)| ((*event).to_owned(), (*data).to_owned()))
            .collect();
        assert_eq!(decode([input.as_bytes()]).0, expect, "whole: {input:?}");
        let bytes: Vec<&[u8]> = input.as_bytes().chunks(1).collect();
        assert_eq!(decode(bytes).0, expect, "byte by byte: {input:?}");
    }

    /// The standard's rules, each once.
    #[test]
    fn follows_the_standard() {
        check("data: a\n\n", &[("", "a")]);
        check(
            "data:a\r\n\r\ndata: b\r\rdata:  c\n\n",
            &[("", "a"), ("", "b"), ("", " c")],
        );
        check("data: a\ndata: b\n\n", &[("", "a\nb")]);
        check("data: a\r\ndata\r\ndata:\r\n\r\n", &[("", "a\n\n")]);
        check(": comment\n\n:\n\n", &[]);
        check("event: x\n\ndata: a\n\n", &[("", "a")]);
        check("event: x\ndata: a\n\ndata: b\n\n", &[("x", "a"), ("", "b")]);
        check(
            "id: 1\nretry: 5\nDATA: no\ndata : no\ndata: yes\n\n",
            &[("", "yes")],
        );
        check("\u{feff}data: a\n\n", &[("", "a")]);
        check("\u{feff}\u{feff}data: no\n\ndata: a\n\n", &[("", "a")]);
        check("data: \u{feff}ä€😀\n\n", &[("", "\u{feff}ä€😀")]);
        check("data\n\n", &[("", "")]);
        check("\n\n\n", &[]);
        check("data: never closed\n", &[]);
    }

    #[test]
    fn finish_returns_the_unterminated_event() {
        assert_eq!(
            decode([&b"data: a\n\ndata: b\n"[..]]).1.as_deref(),
            Some("b")
        );
        assert_eq!(
            decode([&b"data: a\n\ndata: {\"x"[..]]).1.as_deref(),
            Some("{\"x")
        );
        assert_eq!(decode([&b"data: a\n\n: x"[..]]).1, None);
    }

    #[test]
    fn oversized_event_is_an_error_in_every_shape() {
        let long = vec![b'x'; 300];
        let one_line = [b"data: ", &long[..], b"\n\n"].concat();
        let comment = [b":", &long[..]].concat();
        let many_lines = b"data: xxxxxxxx\n".repeat(30);
        for input in [one_line, comment, many_lines] {
            for size in [1, 7, 1000] {
                let mut decoder = SseDecoder::new(100);
                let outcome = input
                    .chunks(size)
                    .try_for_each(|chunk| decoder.push(chunk, |_| Ok::<(), SseError>(())));
                assert_eq!(outcome, Err(SseError::TooLarge { limit: 100 }));
            }
        }
        let mut decoder = SseDecoder::new(100);
        let mut seen = 0;
        for _ in 0..1000 {
            decoder
                .push(b"data: within\n\n", |_| {
                    seen += 1;
                    Ok::<(), SseError>(())
                })
                .unwrap();
        }
        assert_eq!(seen, 1000, "the cap is for one event, not for the stream");
    }

    /// The standard, written once more in the plainest way.
    fn reference(bytes: &[u8]) -> Events {
        let text = String::from_utf8_lossy(bytes);
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let mut lines: Vec<&str> = text.split('\n').collect();
        lines.pop();
        let (mut events, mut data, mut name) = (Events::new(), Vec::new(), String::new());
        for line in lines {
            if line.is_empty() {
                if !data.is_empty() {
                    events.push((std::mem::take(&mut name), data.join("\n")));
                }
                name.clear();
                data.clear();
                continue;
            }
            let (field, value) = line.split_once(':').unwrap_or((line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match field {
                "data" => data.push(value.to_owned()),
                "event" => value.clone_into(&mut name),
                _ => {}
            }
        }
        events
    }

    fn stream_like() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            Just(b"data: ".to_vec()),
            Just(b"data".to_vec()),
            Just(b"event: e".to_vec()),
            Just(b":".to_vec()),
            Just(b"\n".to_vec()),
            Just(b"\r".to_vec()),
            Just(b"\r\n".to_vec()),
            Just(b"\n\n".to_vec()),
            Just(BOM.to_vec()),
            Just("ä€😀".as_bytes().to_vec()),
            proptest::collection::vec(any::<u8>(), 0..4),
        ];
        proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        /// Any chunking has the events of the complete input, and those are the standard's.
        #[test]
        fn chunking_has_no_effect(bytes in stream_like(), cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..12)) {
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            cuts.sort_unstable();
            let mut chunks = Vec::new();
            let mut from = 0;
            for cut in cuts {
                chunks.push(&bytes[from..cut]);
                from = cut;
            }
            chunks.push(&bytes[from..]);
            let whole = decode([&bytes[..]]);
            prop_assert_eq!(&decode(chunks), &whole);
            prop_assert_eq!(whole.0, reference(&bytes));
        }
    }
}
