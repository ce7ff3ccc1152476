//! Assignment of the deltas of a chunk to their calls and texts.

use serde_json::json;

use super::chunk::{CallDelta, Chunk, Delta};
use crate::error::LlmErrorKind;
use crate::http_provider::error_mapping::{ErrorBody, Failure, Target, from_answer};
use crate::http_provider::response_builder::{ResponseBuilder, arguments};
use crate::message::CHAT_REASONING;
use crate::provider::{StopReason, StreamSink};

/// The state between two chunks.
#[derive(Debug, Default)]
pub(crate) struct Deltas {
    /// By the number of the call.
    calls: Vec<Seen>,
    refused: bool,
    /// Whether the reasoning has its seal.
    is_sealed: bool,
}

#[derive(Debug)]
struct Seen {
    index: Option<u64>,
    /// The number of its deltas.
    deltas: usize,
}

impl Deltas {
    /// Reads a chunk, and emits its new content to the sink.
    ///
    /// # Errors
    /// The class of an error object in the stream.
    pub(super) fn add(
        &mut self,
        chunk: Chunk,
        answer: &mut ResponseBuilder,
        target: Target<'_>,
        sink: StreamSink<'_>,
    ) -> Result<(), Failure> {
        if let Some(error) = chunk.error.filter(|error| !error.is_null()) {
            return Err(from_answer(None, &ErrorBody::from_value(&error), target));
        }
        if let Some(usage) = chunk.usage {
            *answer.usage_mut() = usage.into();
        }
        for choice in chunk.choices.unwrap_or_default() {
            if choice.index.unwrap_or(0) != 0 {
                continue;
            }
            if let Some(delta) = choice.delta {
                self.add_delta(delta, answer, target, sink);
            }
            if let Some(reason) = choice.finish_reason.filter(|reason| !reason.is_empty()) {
                answer.mark_complete(self.stop(&reason)?);
            }
        }
        Ok(())
    }

    /// The meaning of a `finish_reason`.
    fn stop(&self, reason: &str) -> Result<StopReason, Failure> {
        Ok(match reason {
            "length" | "max_tokens" => StopReason::MaxTokens,
            "content_filter" => StopReason::Refusal,
            "error" => {
                return Err(Failure::new(
                    LlmErrorKind::Server,
                    "the server ended the response with an error",
                ));
            }
            _ if self.refused => StopReason::Refusal,
            _ => StopReason::EndTurn,
        })
    }

    /// The end of a response without a `finish_reason`.
    pub(super) fn end(&self, answer: &mut ResponseBuilder) {
        if !answer.is_complete() {
            answer.mark_complete(if self.refused {
                StopReason::Refusal
            } else {
                StopReason::EndTurn
            });
        }
    }

    fn add_delta(
        &mut self,
        delta: Delta,
        answer: &mut ResponseBuilder,
        target: Target<'_>,
        sink: StreamSink<'_>,
    ) {
        // A server that sends both fields sends the same in both.
        if delta.reasoning_content.0.is_empty() {
            answer.add_reasoning(delta.reasoning.0, sink);
        } else {
            answer.add_reasoning(delta.reasoning_content.0, sink);
            if !std::mem::replace(&mut self.is_sealed, true) {
                let host = target.host().unwrap_or_default();
                answer.seal_reasoning(format!("{CHAT_REASONING}{host}"));
            }
        }
        self.refused |= !delta.refusal.0.is_empty();
        answer.add_text(delta.content.0, sink);
        answer.add_text(delta.refusal.0, sink);
        for call in delta.tool_calls.unwrap_or_default() {
            self.add_call(call, answer, target, sink);
        }
    }

    fn add_call(
        &mut self,
        delta: CallDelta,
        answer: &mut ResponseBuilder,
        target: Target<'_>,
        sink: StreamSink<'_>,
    ) {
        let id = delta.id.unwrap_or_default();
        let function = delta.function.unwrap_or_default();
        let name = function.name.unwrap_or_default();
        let at = match self.call_of(answer, delta.index, &id, &name) {
            Some(at) => {
                if let Some(call) = answer.call_mut(at)
                    && call.id.is_empty()
                {
                    call.id = id;
                }
                answer.name_call(at, name, sink);
                at
            }
            None => {
                self.calls.push(Seen {
                    index: delta.index,
                    deltas: 0,
                });
                answer.begin_call(id, name, sink)
            }
        };
        if let Some(seen) = self.calls.get_mut(at) {
            seen.deltas += 1;
        }
        if let Some(content) = delta.extra_content {
            let host = target.host().unwrap_or_default();
            answer.attach(at, json!({ host: content }));
        }
        answer.add_arguments(at, function.arguments.0, sink);
    }

    /// The call that a delta belongs to; `None` begins a new one.
    ///
    /// By the standard, the index decides. Some servers omit it or always send 0. Then a name with a new id begins a
    /// call, and so does a name after a complete call. A new id alone means nothing: some servers generate one for
    /// every delta.
    fn call_of(
        &self,
        answer: &ResponseBuilder,
        index: Option<u64>,
        id: &str,
        name: &str,
    ) -> Option<usize> {
        let calls = answer.calls();
        let at = match index {
            Some(_) => self.calls.iter().rposition(|seen| seen.index == index)?,
            None => (!id.is_empty())
                .then(|| calls.iter().rposition(|call| call.id == id))
                .flatten()
                .or_else(|| calls.len().checked_sub(1))?,
        };
        let call = calls.get(at)?;
        if name.is_empty() || call.name.is_empty() || (!id.is_empty() && call.id == id) {
            return Some(at);
        }
        let new_id = !id.is_empty() && !call.id.is_empty();
        let came_whole = || {
            self.calls.get(at).is_some_and(|seen| seen.deltas == 1)
                && !call.arguments.is_empty()
                && arguments(&call.arguments).is_object()
        };
        let begins = index.is_none() || new_id || call.name != name || came_whole();
        (!begins).then_some(at)
    }
}
