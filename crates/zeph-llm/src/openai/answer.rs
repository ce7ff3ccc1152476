//! Puts the deltas of an answer together.
//!
//! One [`Answer`] lives through all attempts of a request: when a stream breaks off, the text
//! that was shown may stay, while calls are thrown away. Calls come only from a stream that was
//! complete.

use std::hash::{BuildHasher, Hasher, RandomState};

use serde_json::Value;

use super::chunk::{CallDelta, Chunk, Delta};
use super::failure::{ErrorBody, Failure, Target, excerpt, from_answer};
use crate::error::LlmErrorKind;
use crate::message::MessagePart;
use crate::provider::{ChatResponse, StopReason, StreamEvent, StreamSink, Usage};
use crate::tool::ToolUseRequest;

/// The most bytes of text and arguments that one answer may have.
const MAX_ANSWER_BYTES: usize = 64 << 20;
/// The most calls that one answer may have.
const MAX_CALLS: usize = 1024;

/// What arrived so far.
#[derive(Debug, Default)]
pub(super) struct Answer {
    text: String,
    reasoning: String,
    calls: Vec<PartialCall>,
    finish_reason: Option<String>,
    refused: bool,
    /// `[DONE]` came.
    done: bool,
    usage: Usage,
    /// Bytes of text, reasoning and arguments.
    bytes: usize,
}

#[derive(Debug, Default)]
struct PartialCall {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
    /// How many deltas it had.
    deltas: usize,
}

impl Answer {
    /// The text so far, over all attempts.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Prepares for the next attempt.
    pub(super) fn restart(&mut self, keep_text: bool) {
        let text = std::mem::take(&mut self.text);
        *self = Self::default();
        if keep_text {
            self.bytes = text.len();
            self.text = text;
        }
    }

    /// Whether the server said that the answer is at its end; nothing is lost if the connection
    /// breaks now.
    pub(super) fn is_complete(&self) -> bool {
        self.finish_reason.is_some() || (self.done && self.calls.is_empty() && !self.is_empty())
    }

    /// Whether `[DONE]` came.
    pub(super) fn is_done(&self) -> bool {
        self.done
    }

    pub(super) fn mark_done(&mut self) {
        self.done = true;
    }

    /// Ends an answer that came whole, as one JSON document.
    pub(super) fn mark_whole(&mut self) {
        self.finish_reason.get_or_insert_with(|| "stop".to_owned());
    }

    fn is_empty(&self) -> bool {
        self.text.is_empty() && self.reasoning.is_empty()
    }

    /// Takes a chunk and tells the sink what is new in it.
    pub(super) fn add(
        &mut self,
        chunk: Chunk,
        target: Target<'_>,
        sink: StreamSink<'_>,
    ) -> Result<(), Failure> {
        if let Some(error) = chunk.error.filter(|error| !error.is_null()) {
            return Err(from_answer(None, &ErrorBody::from_value(&error), target));
        }
        if let Some(usage) = chunk.usage {
            self.usage = usage.into();
        }
        for choice in chunk.choices.unwrap_or_default() {
            if choice.index.unwrap_or(0) != 0 {
                continue;
            }
            if let Some(delta) = choice.delta {
                self.add_delta(delta, sink)?;
            }
            if let Some(reason) = choice.finish_reason.filter(|reason| !reason.is_empty()) {
                self.finish_reason = Some(reason);
            }
        }
        Ok(())
    }

    fn add_delta(&mut self, delta: Delta, sink: StreamSink<'_>) -> Result<(), Failure> {
        for reasoning in [delta.reasoning_content.0, delta.reasoning.0] {
            if !reasoning.is_empty() {
                self.bytes += reasoning.len();
                self.reasoning.push_str(&reasoning);
                sink(StreamEvent::ReasoningDelta(reasoning));
                // A server that sends both fields sends the same in both.
                break;
            }
        }
        self.refused |= !delta.refusal.0.is_empty();
        for text in [delta.content.0, delta.refusal.0] {
            if !text.is_empty() {
                self.bytes += text.len();
                self.text.push_str(&text);
                sink(StreamEvent::TextDelta(text));
            }
        }
        for call in delta.tool_calls.unwrap_or_default() {
            self.add_call(call, sink);
        }
        if self.bytes > MAX_ANSWER_BYTES || self.calls.len() > MAX_CALLS {
            return Err(Failure::new(
                LlmErrorKind::Protocol,
                format!("the answer has more than {MAX_ANSWER_BYTES} bytes or {MAX_CALLS} calls"),
            ));
        }
        Ok(())
    }

    fn add_call(&mut self, delta: CallDelta, sink: StreamSink<'_>) {
        let id = delta.id.unwrap_or_default();
        let function = delta.function.unwrap_or_default();
        let name = function.name.unwrap_or_default();
        let at = self.call_of(delta.index, &id, &name).unwrap_or_else(|| {
            self.calls.push(PartialCall {
                index: delta.index,
                ..PartialCall::default()
            });
            self.calls.len() - 1
        });
        let newest = at + 1 == self.calls.len();
        let call = &mut self.calls[at];
        call.deltas += 1;
        if call.id.is_empty() {
            call.id = id;
        }
        if call.name.is_empty() && !name.is_empty() {
            call.name.clone_from(&name);
            sink(StreamEvent::ToolUseStarted { name });
        }
        if !function.arguments.0.is_empty() {
            self.bytes += function.arguments.0.len();
            call.arguments.push_str(&function.arguments.0);
            // Only the call that began last is "the current one" for who watches.
            if newest {
                sink(StreamEvent::ToolInputDelta(function.arguments.0));
            }
        }
    }

    /// The call that a delta belongs to; `None` begins a new one.
    ///
    /// By the standard the index decides. Servers that leave it out, or send 0 for all, are told
    /// apart by a name that comes with a new id, and by a name after a call that came whole. A
    /// new id alone means nothing: some servers make one up for every delta.
    fn call_of(&self, index: Option<u64>, id: &str, name: &str) -> Option<usize> {
        let at = match index {
            Some(_) => self.calls.iter().rposition(|call| call.index == index)?,
            None => (!id.is_empty())
                .then(|| self.calls.iter().rposition(|call| call.id == id))
                .flatten()
                .or_else(|| self.calls.len().checked_sub(1))?,
        };
        let call = &self.calls[at];
        if name.is_empty() || call.name.is_empty() || (!id.is_empty() && call.id == id) {
            return Some(at);
        }
        let new_id = !id.is_empty() && !call.id.is_empty();
        let came_whole = || {
            call.deltas == 1 && !call.arguments.is_empty() && arguments(&call.arguments).is_object()
        };
        let begins = index.is_none() || new_id || call.name != name || came_whole();
        (!begins).then_some(at)
    }

    /// The answer, if it was complete. `id_taken` tells whether the history has a call of that
    /// id already.
    ///
    /// # Errors
    /// `StreamCut` when the stream ended before the answer did; `Protocol` for a call without a
    /// name.
    pub(super) fn finish(
        self,
        id_taken: impl Fn(&str) -> bool,
        sink: StreamSink<'_>,
    ) -> Result<ChatResponse, Failure> {
        if !self.is_complete() {
            return Err(Failure::new(
                LlmErrorKind::StreamCut,
                "the stream ended before the answer did",
            ));
        }
        let stop = match self.finish_reason.as_deref() {
            Some("length" | "max_tokens") => StopReason::MaxTokens,
            Some("content_filter") => StopReason::Refusal,
            Some("error") => {
                return Err(Failure::new(
                    LlmErrorKind::Server,
                    "the server ended the answer with an error",
                ));
            }
            _ if self.refused => StopReason::Refusal,
            _ if !self.calls.is_empty() => StopReason::ToolUse,
            _ => StopReason::EndTurn,
        };
        let was_cut = matches!(stop, StopReason::MaxTokens | StopReason::Refusal);
        let mut parts = Vec::new();
        if !self.reasoning.is_empty() {
            parts.push(MessagePart::Reasoning {
                text: self.reasoning,
                signature: None,
            });
        }
        if !self.text.is_empty() {
            parts.push(MessagePart::Text { text: self.text });
        }
        let mut ids: Vec<String> = Vec::new();
        for call in self.calls {
            let input = arguments(&call.arguments);
            // A limit cuts anywhere: what is no object then was not said to its end.
            if was_cut && (call.arguments.trim().is_empty() || !input.is_object()) {
                sink(StreamEvent::Notice(format!(
                    "the output limit or a filter cut off a call of `{}`; it is dropped",
                    excerpt(&call.name)
                )));
                continue;
            }
            if call.name.is_empty() {
                return Err(Failure::new(
                    LlmErrorKind::Protocol,
                    "the server sent a call without a tool's name",
                ));
            }
            let free = |id: &str| !id.is_empty() && !id_taken(id) && !ids.iter().any(|i| i == id);
            let mut id = call.id;
            while !free(&id) {
                id = new_id();
            }
            ids.push(id.clone());
            parts.push(MessagePart::ToolUse(ToolUseRequest {
                id,
                name: call.name,
                input,
            }));
        }
        Ok(ChatResponse::from_parts(parts, stop, self.usage))
    }
}

/// The arguments as the caller sees them: nothing is `{}`; an object that was encoded twice is
/// unpacked; what is no JSON stays as text.
fn arguments(raw: &str) -> Value {
    if raw.trim().is_empty() {
        return Value::Object(serde_json::Map::new());
    }
    match serde_json::from_str(raw) {
        Ok(Value::Null) => Value::Object(serde_json::Map::new()),
        Ok(Value::String(inner)) => match serde_json::from_str(&inner) {
            Ok(object @ Value::Object(_)) => object,
            _ => Value::String(raw.to_owned()),
        },
        Ok(value) => value,
        Err(_) => Value::String(raw.to_owned()),
    }
}

/// An id for a call that came without one.
fn new_id() -> String {
    format!("call_{:016x}", RandomState::new().build_hasher().finish())
}
