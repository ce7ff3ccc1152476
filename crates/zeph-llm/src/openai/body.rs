//! The body of a request, and what is kept of it for the next one.
//!
//! Chat Completions has no memory: every request holds the whole history. Writing it as JSON would
//! make each request dearer than the one before, so the body of the last request is kept and
//! continued, as long as the caller says that its history only grows
//! ([`ChatRequest::history`]).

use bytes::buf::BufMut as _;
use bytes::{Bytes, BytesMut};
use serde::Serialize;

use super::failure::Failure;
use super::history::{GoOn, Messages, System};
use super::wire::{Head, Tail, WireSettings, check_roles};
use crate::error::LlmErrorKind;
use crate::provider::{ChatRequest, HistoryId};

/// The last body that was built.
#[derive(Debug, Default)]
pub(super) struct BodyCache(Option<Kept>);

#[derive(Debug)]
struct Kept {
    history: HistoryId,
    /// The bytes before the messages; what follows is good only while these stay the same.
    head: usize,
    /// How many messages stand in the first `end` bytes of the body.
    messages: usize,
    end: usize,
    /// Whether an element of the array stands there.
    begun: bool,
    body: Bytes,
}

impl BodyCache {
    /// Builds the body of a request. `shown` is the part of an answer that a broken stream had
    /// already delivered: it is appended with the instruction to go on.
    ///
    /// # Errors
    /// `BadRequest` for a part in a message whose role cannot have it.
    pub(super) fn build(
        &mut self,
        settings: WireSettings<'_>,
        request: ChatRequest<'_>,
        shown: Option<&str>,
    ) -> Result<Bytes, Failure> {
        let mut array = Array::begin(settings, request)?;
        let head = array.bytes.len();
        let fits = |kept: &Kept| {
            Some(kept.history) == request.history
                && kept.body.get(..kept.head) == Some(&array.bytes[..])
                && kept.messages <= request.messages.len()
        };
        // A request beside the conversation leaves what is kept of it alone.
        if request.history.is_some()
            && let Some(kept) = self.0.take().filter(fits)
        {
            array = Array::go_on(kept, settings.images);
        }
        // The last message may be replaced by the next request, so what is kept ends before it.
        let settled = request.messages.len().saturating_sub(1).max(array.messages);
        array.append(request, settled)?;
        let (end, begun) = (array.bytes.len(), array.begun);
        array.append(request, request.messages.len())?;
        if let Some(shown) = shown {
            array.elements(&GoOn(shown))?;
        }
        let body = array.close(&Tail {
            has_tools: !request.tools.is_empty(),
            tool_choice: request.tool_choice,
            response_schema: request.response_schema,
            json_object: request.json_object && settings.openai,
        })?;
        if let Some(history) = request.history {
            self.0 = Some(Kept {
                history,
                head,
                messages: settled,
                end,
                begun,
                body: body.clone(),
            });
        }
        Ok(body)
    }
}

/// A body whose array of messages is being written.
struct Array {
    bytes: BytesMut,
    /// How many messages are written.
    messages: usize,
    /// Whether the array has an element.
    begun: bool,
    /// Whether images are sent.
    images: bool,
}

impl Array {
    /// Everything before the messages, the system prompt included.
    fn begin(settings: WireSettings<'_>, request: ChatRequest<'_>) -> Result<Self, Failure> {
        let mut array = Self {
            bytes: BytesMut::new(),
            messages: 0,
            begun: false,
            images: settings.images,
        };
        write(
            &mut array.bytes,
            &Head {
                settings: WireSettings {
                    max_output_tokens: match (settings.max_output_tokens, request.max_output_tokens)
                    {
                        (Some(most), Some(asked)) => Some(most.min(asked)),
                        (most, asked) => most.or(asked),
                    },
                    ..settings
                },
                cache_key: request.cache_key,
                tools: request.tools,
            },
        )?;
        array.bytes.truncate(array.bytes.len() - 1);
        array.bytes.put_slice(b",\"messages\":");
        array.elements(&System(request.system))?;
        Ok(array)
    }

    fn go_on(kept: Kept, images: bool) -> Self {
        // Nobody holds the body any more when its answer has been read; otherwise it is copied.
        let mut bytes = kept
            .body
            .try_into_mut()
            .unwrap_or_else(|shared| BytesMut::from(&shared[..kept.end]));
        bytes.truncate(kept.end);
        Self {
            bytes,
            messages: kept.messages,
            begun: kept.begun,
            images,
        }
    }

    /// Writes the messages that are not there yet, up to `until`.
    fn append(&mut self, request: ChatRequest<'_>, until: usize) -> Result<(), Failure> {
        let new = request.messages.get(self.messages..until).unwrap_or(&[]);
        check_roles(self.messages, new)?;
        self.messages += new.len();
        let images = self.images;
        self.elements(&Messages {
            messages: new,
            images,
        })
    }

    /// Appends the elements of a JSON array to this one.
    fn elements(&mut self, elements: &impl Serialize) -> Result<(), Failure> {
        let at = self.bytes.len();
        write(&mut self.bytes, elements)?;
        if self.bytes.len() - at == 2 {
            self.bytes.truncate(at);
            return Ok(());
        }
        if self.begun {
            self.bytes[at] = b',';
        }
        self.begun = true;
        self.bytes.truncate(self.bytes.len() - 1);
        Ok(())
    }

    fn close(mut self, tail: &Tail<'_>) -> Result<Bytes, Failure> {
        self.bytes.put_slice(if self.begun { b"]" } else { b"[]" });
        let at = self.bytes.len();
        write(&mut self.bytes, tail)?;
        if self.bytes.len() - at == 2 {
            self.bytes.truncate(at);
            self.bytes.put_slice(b"}");
        } else {
            self.bytes[at] = b',';
        }
        Ok(self.bytes.freeze())
    }
}

fn write(bytes: &mut BytesMut, value: &impl Serialize) -> Result<(), Failure> {
    serde_json::to_writer(bytes.writer(), value).map_err(|error| {
        Failure::new(
            LlmErrorKind::BadRequest,
            format!("the request cannot be written as JSON: {error}"),
        )
    })
}
