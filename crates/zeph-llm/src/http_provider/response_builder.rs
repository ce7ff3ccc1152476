//! Assembly of a response from its pieces.
//!
//! One [`ResponseBuilder`] serves all attempts of a request: when a stream breaks off, the displayed text may stay,
//! while calls and reasoning are discarded. Calls come only from a complete stream.

use std::hash::{BuildHasher, Hasher, RandomState};

use serde_json::Value;

use super::error_mapping::Failure;
use super::excerpt::excerpt;
use super::lenient::without_lone_surrogates;
use crate::error::LlmErrorKind;
use crate::message::MessagePart;
use crate::provider::{ChatResponse, StopReason, StreamEvent, StreamSink};
use crate::tool::ToolUseRequest;
use crate::usage::Usage;

/// The most bytes of text, reasoning and arguments of one response. The longest that models produce
/// (128,000 tokens) take about 600 KB.
const MAX_ANSWER_BYTES: usize = 4 << 20;
/// The maximum number of parts of one response.
const MAX_PARTS: usize = 1024;

/// The received parts of a response.
#[derive(Debug, Default)]
pub(crate) struct ResponseBuilder {
    parts: Vec<PartialResponse>,
    calls: Vec<DraftCall>,
    stop: Option<StopReason>,
    /// Nothing of interest follows.
    done: bool,
    /// The text of a broken attempt is continued: the next text belongs to it.
    continued: bool,
    usage: Usage,
    /// Bytes of text, reasoning and arguments.
    bytes: usize,
}

#[derive(Debug)]
enum PartialResponse {
    Text(String),
    Reasoning {
        text: String,
        signature: Option<String>,
    },
    /// The number of a call.
    Call(usize),
}

/// A call with incomplete arguments.
#[derive(Debug, Default)]
pub(crate) struct DraftCall {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) arguments: String,
    pub(crate) extra_content: Option<Value>,
}

impl ResponseBuilder {
    /// The text so far, over all attempts.
    pub(crate) fn text(&self) -> String {
        self.texts().collect()
    }

    /// The amount of data so far: bytes of text, reasoning and arguments, and calls.
    pub(crate) fn received(&self) -> usize {
        self.bytes + self.calls.len()
    }

    fn texts(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            PartialResponse::Text(text) => Some(text.as_str()),
            _ => None,
        })
    }

    /// Prepares for the next attempt.
    pub(crate) fn restart(&mut self, keep_text: bool) {
        let text = if keep_text {
            self.text()
        } else {
            String::new()
        };
        *self = Self::default();
        if !text.is_empty() {
            self.bytes = text.len();
            self.parts.push(PartialResponse::Text(text));
            self.continued = true;
        }
    }

    /// Whether the server marked the end of the response; a connection that breaks after that loses nothing.
    pub(crate) fn is_complete(&self) -> bool {
        self.stop.is_some()
    }

    /// Whether nothing of interest follows.
    pub(crate) fn is_done(&self) -> bool {
        self.done
    }

    /// Whether there is neither text nor reasoning nor a call.
    pub(crate) fn is_empty(&self) -> bool {
        self.received() == 0
    }

    /// Notes that nothing of interest follows.
    pub(crate) fn mark_done(&mut self) {
        self.done = true;
    }

    /// Records the end of the response and its reason.
    pub(crate) fn mark_complete(&mut self, stop: StopReason) {
        self.stop = Some(stop);
    }

    /// The tokens so far.
    pub(crate) fn usage_mut(&mut self) -> &mut Usage {
        &mut self.usage
    }

    /// Begins a separate text: later text does not extend the previous one.
    pub(crate) fn begin_text(&mut self) {
        let blank =
            matches!(self.parts.last(), Some(PartialResponse::Text(text)) if text.is_empty());
        if !std::mem::take(&mut self.continued) && !blank {
            self.parts.push(PartialResponse::Text(String::new()));
        }
    }

    /// More of the newest text.
    pub(crate) fn add_text(&mut self, delta: String, sink: StreamSink<'_>) {
        if delta.is_empty() {
            return;
        }
        self.bytes += delta.len();
        let newest = self.parts.iter_mut().rev().find_map(|part| match part {
            PartialResponse::Text(text) => Some(text),
            _ => None,
        });
        match newest {
            Some(text) => text.push_str(&delta),
            None => self.parts.push(PartialResponse::Text(delta.clone())),
        }
        sink(StreamEvent::TextDelta(delta));
    }

    /// Begins a separate piece of reasoning.
    pub(crate) fn begin_reasoning(&mut self) {
        self.parts.push(PartialResponse::Reasoning {
            text: String::new(),
            signature: None,
        });
    }

    fn newest_reasoning(&mut self) -> Option<(&mut String, &mut Option<String>)> {
        self.parts.iter_mut().rev().find_map(|part| match part {
            PartialResponse::Reasoning { text, signature } => Some((text, signature)),
            _ => None,
        })
    }

    /// More of the newest reasoning.
    pub(crate) fn add_reasoning(&mut self, delta: String, sink: StreamSink<'_>) {
        if delta.is_empty() {
            return;
        }
        self.bytes += delta.len();
        if self.newest_reasoning().is_none() {
            self.begin_reasoning();
        }
        if let Some((text, _)) = self.newest_reasoning() {
            text.push_str(&delta);
        }
        sink(StreamEvent::ReasoningDelta(delta));
    }

    /// Sets the signature or the encrypted content of the newest reasoning, which makes it valid for sending back.
    pub(crate) fn seal_reasoning(&mut self, seal: String) {
        self.bytes += seal.len();
        if let Some((_, signature)) = self.newest_reasoning() {
            *signature = Some(seal);
        }
    }

    /// Begins a call and returns its number. A name that is not known yet may be empty.
    pub(crate) fn begin_call(&mut self, id: String, name: String, sink: StreamSink<'_>) -> usize {
        let number = self.calls.len();
        self.parts.push(PartialResponse::Call(number));
        self.calls.push(DraftCall {
            id,
            ..DraftCall::default()
        });
        self.name_call(number, name, sink);
        number
    }

    /// Sets the name of a call, if it arrives later than the call. The first name counts.
    pub(crate) fn name_call(&mut self, number: usize, name: String, sink: StreamSink<'_>) {
        if let Some(call) = self.calls.get_mut(number)
            && call.name.is_empty()
            && !name.is_empty()
        {
            call.name.clone_from(&name);
            sink(StreamEvent::ToolUseStarted { name });
        }
    }

    /// More of a call's arguments.
    pub(crate) fn add_arguments(&mut self, number: usize, delta: String, sink: StreamSink<'_>) {
        let is_newest = number + 1 == self.calls.len();
        let Some(call) = self.calls.get_mut(number).filter(|_| !delta.is_empty()) else {
            return;
        };
        self.bytes += delta.len();
        call.arguments.push_str(&delta);
        // Only the call that began last is "the current one" for who watches.
        if is_newest {
            sink(StreamEvent::ToolInputDelta(delta));
        }
    }

    /// Sets the content that the server attached to a call.
    pub(crate) fn attach(&mut self, number: usize, content: Value) {
        if let Some(call) = self.calls.get_mut(number) {
            self.bytes += content.to_string().len();
            call.extra_content = Some(content);
        }
    }

    /// The calls so far, by number.
    pub(crate) fn calls(&self) -> &[DraftCall] {
        &self.calls
    }

    /// A call by its number.
    pub(crate) fn call_mut(&mut self, number: usize) -> Option<&mut DraftCall> {
        self.calls.get_mut(number)
    }

    /// Refuses a response that exceeds the limits.
    ///
    /// # Errors
    /// `Protocol` above 4 MiB or 1024 parts.
    pub(crate) fn check_size(&self) -> Result<(), Failure> {
        if self.bytes > MAX_ANSWER_BYTES || self.parts.len() > MAX_PARTS {
            return Err(Failure::new(
                LlmErrorKind::Protocol,
                format!("the response has more than {MAX_ANSWER_BYTES} bytes or {MAX_PARTS} parts"),
            ));
        }
        Ok(())
    }

    /// The response, if it is complete. `id_taken` returns whether the history already has a call of that id.
    ///
    /// # Errors
    /// `StreamCut` if the stream ended before the response did; `Protocol` for a call without a name.
    pub(crate) fn finish(
        self,
        id_taken: impl Fn(&str) -> bool,
        sink: StreamSink<'_>,
    ) -> Result<ChatResponse, Failure> {
        let Some(stop) = self.stop else {
            return Err(Failure::new(
                LlmErrorKind::StreamCut,
                "the stream ended before the response was complete",
            ));
        };
        let was_cut = matches!(stop, StopReason::MaxTokens | StopReason::Refusal);
        let stop = match stop {
            StopReason::EndTurn if !self.calls.is_empty() => StopReason::ToolUse,
            StopReason::ToolUse if self.calls.is_empty() => StopReason::EndTurn,
            stop => stop,
        };
        let mut calls = self.calls;
        let mut parts = Vec::new();
        let mut ids: Vec<String> = Vec::new();
        for draft in self.parts {
            let number = match draft {
                PartialResponse::Text(text) => {
                    if !text.is_empty() {
                        parts.push(MessagePart::Text { text });
                    }
                    continue;
                }
                PartialResponse::Reasoning { text, signature } => {
                    if !text.is_empty() || signature.is_some() {
                        parts.push(MessagePart::Reasoning { text, signature });
                    }
                    continue;
                }
                PartialResponse::Call(number) => number,
            };
            let call = calls
                .get_mut(number)
                .map(std::mem::take)
                .unwrap_or_default();
            let input = arguments(&call.arguments);
            // A limit cuts at any position: arguments that are not an object are then incomplete.
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
                    "the server sent a call without the name of a tool",
                ));
            }
            let free = |id: &str| !id.is_empty() && !id_taken(id) && !ids.iter().any(|i| i == id);
            let mut id = call.id;
            while !free(&id) {
                id = new_id("call_");
            }
            ids.push(id.clone());
            parts.push(MessagePart::ToolUse(ToolUseRequest {
                id,
                name: call.name,
                input,
                extra_content: call.extra_content,
            }));
        }
        Ok(ChatResponse::from_parts(parts, stop, self.usage))
    }
}

/// The arguments for the caller: an empty text is `{}`; an object that was encoded twice is unpacked; invalid JSON
/// stays as text.
pub(crate) fn arguments(raw: &str) -> Value {
    if raw.trim().is_empty() {
        return Value::Object(serde_json::Map::new());
    }
    match serde_json::from_str(&without_lone_surrogates(raw)) {
        Ok(Value::Null) => Value::Object(serde_json::Map::new()),
        Ok(Value::String(inner)) => match serde_json::from_str(&inner) {
            Ok(object @ Value::Object(_)) => object,
            _ => Value::String(raw.to_owned()),
        },
        Ok(value) => value,
        Err(_) => Value::String(raw.to_owned()),
    }
}

/// An id for a call without one.
pub(crate) fn new_id(prefix: &str) -> String {
    format!(
        "{prefix}{:016x}",
        RandomState::new().build_hasher().finish()
    )
}
