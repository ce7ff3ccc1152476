//! Conversion of a response's body to the pieces of a response. No I/O: the caller pushes bytes.

use std::borrow::Cow;

use super::error_mapping::{ErrorBody, Failure, Target, from_answer};
use super::excerpt::{excerpt, page_excerpt};
use super::lenient::without_lone_surrogates;
use super::ndjson::LineDecoder;
use super::response_builder::ResponseBuilder;
use super::wire::{Framing, Wire};
use crate::error::LlmErrorKind;
use crate::provider::StreamSink;
use crate::sse::{SseDecoder, SseError};

/// The most bytes of one event.
const MAX_EVENT_BYTES: usize = 8 << 20;
/// The most bytes of a response that is not a stream. Parsing takes several times as much memory.
const MAX_JSON_BYTES: usize = 8 << 20;
/// The number of bytes at the start of a body that are stored for error messages.
const HEAD_BYTES: usize = 1024;

/// Reads one response.
#[derive(Debug)]
pub(crate) struct AnswerReader<'a, W: Wire> {
    format: Format,
    head: Vec<u8>,
    events: usize,
    pieces: Pieces<'a, W>,
}

/// The destination of the pieces of a response.
#[derive(Debug)]
struct Pieces<'a, W: Wire> {
    reading: W::StreamState,
    answer: &'a mut ResponseBuilder,
    target: Target<'a>,
}

impl<W: Wire> Pieces<'_, W> {
    fn take(&mut self, data: &str, sink: StreamSink<'_>) -> Result<(), Failure> {
        if self.answer.is_done() || data.is_empty() {
            return Ok(());
        }
        let data = without_lone_surrogates(data);
        W::piece(&mut self.reading, &data, self.answer, self.target, sink)?;
        self.answer.check_size()
    }
}

/// The format of the body. Its first byte decides, regardless of the `Content-Type`: a JSON document
/// begins with a bracket or brace, and an event never does.
#[derive(Debug)]
enum Format {
    /// Only blank bytes so far.
    Unknown(Vec<u8>),
    Events(SseDecoder),
    Lines(LineDecoder),
    Json(Vec<u8>),
}

impl From<SseError> for Failure {
    fn from(error: SseError) -> Self {
        Self::new(LlmErrorKind::Protocol, error.to_string())
    }
}

impl<'a, W: Wire> AnswerReader<'a, W> {
    pub(crate) fn new(answer: &'a mut ResponseBuilder, target: Target<'a>) -> Self {
        Self {
            format: Format::Unknown(Vec::new()),
            head: Vec::new(),
            events: 0,
            pieces: Pieces {
                reading: W::StreamState::default(),
                answer,
                target,
            },
        }
    }

    /// Reads the next bytes.
    ///
    /// # Errors
    /// `Protocol` for an invalid response, or the class of an error object in the stream.
    pub(crate) fn push(&mut self, bytes: &[u8], sink: StreamSink<'_>) -> Result<(), Failure> {
        let room = HEAD_BYTES.saturating_sub(self.head.len());
        let behind_head = bytes.len().saturating_sub(room);
        self.head.extend_from_slice(&bytes[..bytes.len().min(room)]);
        let mut bytes = Cow::Borrowed(bytes);
        if let Format::Unknown(blank) = &mut self.format {
            blank.extend_from_slice(&bytes);
            let is_blank =
                |byte: &u8| byte.is_ascii_whitespace() || [0xEF, 0xBB, 0xBF].contains(byte);
            let format = match blank.iter().find(|byte| !is_blank(byte)) {
                None if blank.len() < HEAD_BYTES => return Ok(()),
                _ if W::FRAMING == Framing::Lines => {
                    Format::Lines(LineDecoder::new(MAX_EVENT_BYTES))
                }
                Some(b'{' | b'[') => Format::Json(Vec::new()),
                _ => Format::Events(SseDecoder::new(MAX_EVENT_BYTES)),
            };
            // The buffered bytes belong to it: a byte order mark may arrive in two pieces.
            bytes = Cow::Owned(std::mem::take(blank));
            self.format = format;
        }
        let bytes = bytes.as_ref();
        let Self { pieces, events, .. } = self;
        match &mut self.format {
            Format::Unknown(_) => Ok(()),
            Format::Events(decoder) => {
                // The head alone decides, regardless of the number of bytes after it.
                let (head, rest) = bytes.split_at(bytes.len() - behind_head);
                for part in [head, rest] {
                    decoder.push(part, |event| {
                        *events += 1;
                        pieces.take(event.data, sink)
                    })?;
                    let is_whole = self.head.len() == HEAD_BYTES;
                    if *events == 0 && is_whole && !could_be_events(&self.head) {
                        return Err(no_answer(&self.head, pieces.target));
                    }
                }
                Ok(())
            }
            Format::Lines(decoder) => decoder.push(bytes, |line| {
                *events += 1;
                pieces.take(line, sink)
            }),
            Format::Json(body) => {
                if body.len() + bytes.len() > MAX_JSON_BYTES {
                    return Err(Failure::new(
                        LlmErrorKind::Protocol,
                        format!("the response is longer than {MAX_JSON_BYTES} bytes"),
                    ));
                }
                body.extend_from_slice(bytes);
                Ok(())
            }
        }
    }

    /// Whether nothing of interest follows.
    pub(crate) fn is_done(&self) -> bool {
        self.pieces.answer.is_done()
    }

    /// Whether the response is complete although the connection broke.
    pub(crate) fn is_complete(&self) -> bool {
        self.pieces.answer.is_complete()
    }

    /// Ends the body.
    ///
    /// # Errors
    /// `StreamCut` if it ended before the response; `Protocol` if it was not a response.
    pub(crate) fn end(self, sink: StreamSink<'_>) -> Result<(), Failure> {
        let Self {
            format,
            head,
            events,
            mut pieces,
        } = self;
        let target = pieces.target;
        let unfinished = match format {
            Format::Unknown(_) => None,
            Format::Json(body) => {
                let body = body.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&body);
                let body = body.trim_ascii();
                if is_cut_off(body) {
                    return Err(cut_off(target));
                }
                let text = String::from_utf8_lossy(body);
                let body = without_lone_surrogates(&text);
                return match W::document(body.as_bytes(), pieces.answer, target, sink)? {
                    Some(()) => pieces.answer.check_size(),
                    None => Err(no_answer(&head, target)),
                };
            }
            Format::Events(decoder) => {
                let rest = decoder.finish();
                if events == 0 && rest.is_none() && !could_be_events(&head) {
                    return Err(no_answer(&head, target));
                }
                rest
            }
            Format::Lines(decoder) => {
                let rest = decoder.finish();
                let is_json = |line: &String| line.starts_with('{');
                if events == 0 && rest.as_ref().is_some_and(|line| !is_json(line)) {
                    return Err(no_answer(&head, target));
                }
                rest
            }
        };
        // The line break after the last piece may be missing; a whole piece parses.
        if let Some(rest) = unfinished.filter(|rest| is_whole(rest)) {
            pieces.take(&rest, sink)?;
        }
        if pieces.answer.is_complete() {
            return Ok(());
        }
        Err(cut_off(target))
    }
}

fn cut_off(target: Target<'_>) -> Failure {
    Failure::new(
        LlmErrorKind::StreamCut,
        format!(
            "the stream of {} ended before the response was complete",
            target.url
        ),
    )
}

/// Whether a JSON document ended too early.
fn is_cut_off(body: &[u8]) -> bool {
    serde_json::from_slice::<serde::de::IgnoredAny>(body).is_err_and(|error| error.is_eof())
}

fn is_whole(data: &str) -> bool {
    data == "[DONE]" || serde_json::from_str::<serde::de::IgnoredAny>(data).is_ok()
}

/// Whether a body without a single event may still be the beginning of a stream.
fn could_be_events(head: &[u8]) -> bool {
    let head = head.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(head);
    let head = head.trim_ascii_start();
    [&b"data"[..], b"event", b"id", b"retry", b":"]
        .iter()
        .any(|name| name.starts_with(&head[..head.len().min(name.len())]))
}

/// The failure for a piece that does not belong to a response.
pub(crate) fn no_piece(error: &serde_json::Error, data: &str, target: Target<'_>) -> Failure {
    Failure::new(
        LlmErrorKind::Protocol,
        format!(
            "{} sent an event that is not part of a response ({error}): {}",
            target.url,
            excerpt(data)
        ),
    )
}

/// The failure for a body that is neither a stream nor a response.
fn no_answer(head: &[u8], target: Target<'_>) -> Failure {
    let text = String::from_utf8_lossy(head);
    if let Ok(value) = serde_json::from_slice::<serde_json::Value>(head)
        && value.get("error").is_some_and(|error| !error.is_null())
    {
        return from_answer(None, &ErrorBody::from_value(&value), target);
    }
    Failure::new(
        LlmErrorKind::Protocol,
        format!(
            "{} did not respond with {}: {} Check `base_url`.",
            target.url,
            target.api,
            page_excerpt(&text)
        ),
    )
}
