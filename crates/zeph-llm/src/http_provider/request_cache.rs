//! The body of a request, and what is kept of it for the next one.
//!
//! The APIs have no memory: every request holds the whole history. Writing it as JSON would make
//! each request dearer than the one before, so the body of the last request is kept and continued,
//! as long as the caller says that its history only grows ([`ChatRequest::history`]).

use bytes::buf::BufMut as _;
use bytes::{Bytes, BytesMut};
use serde::Serialize;

use super::error_mapping::Failure;
use super::wire::Wire;
use crate::error::LlmErrorKind;
use crate::message::{Message, MessagePart, Role};
use crate::provider::{ChatRequest, HistoryId};

/// The last body that was built.
#[derive(Debug, Default)]
pub(crate) struct BodyCache(Option<Kept>);

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
    pub(crate) fn build<W: Wire>(
        &mut self,
        wire: &W,
        request: ChatRequest<'_>,
        shown: Option<&str>,
    ) -> Result<Bytes, Failure> {
        let mut array = Array::begin(wire, request)?;
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
            array = Array::go_on(kept);
        }
        let settled = wire.settled(request.messages).max(array.messages);
        array.append(wire, request, settled)?;
        let (end, begun) = (array.bytes.len(), array.begun);
        array.append(wire, request, request.messages.len())?;
        if let Some(shown) = shown {
            array.elements(&wire.go_on(shown))?;
        }
        let body = array.close(&wire.tail(&request))?;
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
}

impl Array {
    /// Everything before the messages.
    fn begin<W: Wire>(wire: &W, request: ChatRequest<'_>) -> Result<Self, Failure> {
        let mut array = Self {
            bytes: BytesMut::new(),
            messages: 0,
            begun: false,
        };
        write(&mut array.bytes, &wire.head(&request))?;
        array.bytes.truncate(array.bytes.len() - 1);
        array.bytes.put_slice(b",\"");
        array.bytes.put_slice(W::MESSAGES.as_bytes());
        array.bytes.put_slice(b"\":");
        array.elements(&wire.opening(&request))?;
        Ok(array)
    }

    fn go_on(kept: Kept) -> Self {
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
        }
    }

    /// Writes the messages that are not there yet, up to `until`.
    fn append<W: Wire>(
        &mut self,
        wire: &W,
        request: ChatRequest<'_>,
        until: usize,
    ) -> Result<(), Failure> {
        let from = self.messages;
        check_roles(from, request.messages.get(from..until).unwrap_or(&[]))?;
        self.messages = until;
        self.elements(&wire.elements(request.messages, from, until))
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

    fn close(mut self, tail: &impl Serialize) -> Result<Bytes, Failure> {
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

/// Refuses a part in a message whose role cannot have it; `first` is the number of the first one.
fn check_roles(first: usize, messages: &[Message]) -> Result<(), Failure> {
    for (at, message) in (first..).zip(messages) {
        for part in &message.parts {
            let misplaced = match (message.role, part) {
                (Role::Assistant, MessagePart::ToolResult { .. }) => "a tool result",
                (Role::Assistant, MessagePart::Image { .. }) => "an image",
                (Role::User, MessagePart::ToolUse(_)) => "a call",
                _ => continue,
            };
            let role = message.role.as_str();
            return Err(Failure::new(
                LlmErrorKind::BadRequest,
                format!("message {at} has the role {role} but holds {misplaced}"),
            ));
        }
    }
    Ok(())
}
