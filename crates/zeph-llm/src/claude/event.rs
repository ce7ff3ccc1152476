//! The events of a response, with tolerant parsing: fields may be missing, and unknown events and blocks are skipped,
//! as the API requires of its clients.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::history::{REDACTED, SIGNED};
use crate::error::LlmErrorKind;
use crate::http_provider::error_mapping::{ErrorBody, Failure, Target, from_answer};
use crate::http_provider::response_builder::ResponseBuilder;
use crate::provider::{StopReason, StreamSink};
use crate::usage::Usage;

/// The data of one event.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Event {
    MessageStart {
        message: Start,
    },
    ContentBlockStart {
        #[serde(default)]
        index: u64,
        content_block: Block,
    },
    ContentBlockDelta {
        #[serde(default)]
        index: u64,
        delta: Delta,
    },
    ContentBlockStop {
        #[serde(default)]
        index: u64,
    },
    MessageDelta {
        delta: End,
        #[serde(default, deserialize_with = "crate::http_provider::lenient::optional")]
        usage: Option<WireUsage>,
    },
    MessageStop,
    Error {
        error: Value,
    },
    /// `ping`, and unknown events.
    #[serde(other)]
    Other,
}

#[derive(Debug, Deserialize)]
pub(super) struct Start {
    #[serde(default, deserialize_with = "crate::http_provider::lenient::optional")]
    usage: Option<WireUsage>,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Block {
    Text {
        #[serde(default)]
        text: String,
    },
    Thinking {
        #[serde(default)]
        thinking: String,
        #[serde(default)]
        signature: Option<String>,
    },
    RedactedThinking {
        #[serde(default)]
        data: String,
    },
    ToolUse {
        #[serde(default)]
        id: String,
        #[serde(default)]
        name: String,
        /// Empty in a stream, in which deltas have the content; some servers omit it.
        #[serde(default)]
        input: Value,
    },
    #[serde(other)]
    Other,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type")]
pub(super) enum Delta {
    #[serde(rename = "text_delta")]
    Text {
        #[serde(default)]
        text: String,
    },
    #[serde(rename = "input_json_delta")]
    InputJson {
        #[serde(default)]
        partial_json: String,
    },
    #[serde(rename = "thinking_delta")]
    Thinking {
        #[serde(default)]
        thinking: String,
    },
    #[serde(rename = "signature_delta")]
    Signature {
        #[serde(default)]
        signature: String,
    },
    #[serde(other)]
    Other,
}

#[derive(Debug, Deserialize)]
pub(super) struct End {
    #[serde(default)]
    stop_reason: Option<String>,
}

/// A complete response.
#[derive(Debug, Deserialize)]
pub(super) struct Document {
    content: Vec<Block>,
    #[serde(default)]
    stop_reason: Option<String>,
    #[serde(default, deserialize_with = "crate::http_provider::lenient::optional")]
    usage: Option<WireUsage>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct WireUsage {
    #[serde(
        default,
        deserialize_with = "crate::http_provider::lenient::token_count"
    )]
    input_tokens: Option<u64>,
    #[serde(
        default,
        deserialize_with = "crate::http_provider::lenient::token_count"
    )]
    cache_creation_input_tokens: Option<u64>,
    #[serde(
        default,
        deserialize_with = "crate::http_provider::lenient::token_count"
    )]
    cache_read_input_tokens: Option<u64>,
    #[serde(
        default,
        deserialize_with = "crate::http_provider::lenient::token_count"
    )]
    output_tokens: Option<u64>,
}

impl WireUsage {
    /// Adds the counts, which are totals; counts that an event omits stay unchanged. `input_tokens` of the API
    /// exclude tokens that are read from or written to the cache, ours include them.
    fn add_to(&self, usage: &mut Usage) {
        let cached = self.cache_read_input_tokens;
        let written = self.cache_creation_input_tokens;
        if let Some(input) = self.input_tokens {
            usage.input_tokens = input
                .saturating_add(cached.unwrap_or(0))
                .saturating_add(written.unwrap_or(0));
        }
        if let Some(cached) = cached {
            usage.cached_tokens = cached;
        }
        if let Some(written) = written {
            usage.cache_write_tokens = written;
        }
        if let Some(output) = self.output_tokens {
            usage.output_tokens = output;
        }
    }
}

/// The state between two events: the kind of each open block, by its index.
#[derive(Debug, Default)]
pub(crate) struct Blocks(BTreeMap<u64, Open>);

#[derive(Debug)]
enum Open {
    Text,
    Thinking {
        /// The signature, which may arrive in pieces.
        signature: String,
    },
    Call {
        number: usize,
        /// The input at the start of the block, used if no delta follows.
        input: Value,
        streamed: bool,
    },
    /// A block that is whole already, or of a kind that is not known.
    Skipped,
}

impl Blocks {
    /// Reads an event, and emits its new content to the sink.
    ///
    /// # Errors
    /// The class of an error event; `Protocol` for a piece of a block that never began.
    pub(super) fn add(
        &mut self,
        event: Event,
        answer: &mut ResponseBuilder,
        target: Target<'_>,
        sink: StreamSink<'_>,
    ) -> Result<(), Failure> {
        match event {
            Event::MessageStart { message } => {
                if let Some(usage) = message.usage {
                    usage.add_to(answer.usage_mut());
                }
            }
            Event::ContentBlockStart {
                index,
                content_block,
            } => self.begin(index, content_block, answer, sink),
            Event::ContentBlockDelta { index, delta } => {
                return self.delta(index, delta, answer, target, sink);
            }
            Event::ContentBlockStop { index } => self.end(index, answer, sink),
            Event::MessageDelta { delta, usage } => {
                if let Some(usage) = usage {
                    usage.add_to(answer.usage_mut());
                }
                if let Some(reason) = delta.stop_reason {
                    self.end_all(answer, sink);
                    answer.mark_complete(stop(&reason));
                }
            }
            Event::MessageStop => {
                self.end_all(answer, sink);
                if !answer.is_complete() {
                    answer.mark_complete(StopReason::EndTurn);
                }
                answer.mark_done();
            }
            Event::Error { error } => {
                return Err(from_answer(None, &ErrorBody::from_value(&error), target));
            }
            Event::Other => {}
        }
        Ok(())
    }

    fn begin(
        &mut self,
        index: u64,
        block: Block,
        answer: &mut ResponseBuilder,
        sink: StreamSink<'_>,
    ) {
        // A server may omit the end of the previous block.
        self.end(index, answer, sink);
        let open = match block {
            Block::Text { text } => {
                answer.begin_text();
                answer.add_text(text, sink);
                Open::Text
            }
            Block::Thinking {
                thinking,
                signature,
            } => {
                answer.begin_reasoning();
                answer.add_reasoning(thinking, sink);
                Open::Thinking {
                    signature: signature.unwrap_or_default(),
                }
            }
            Block::RedactedThinking { data } => {
                answer.begin_reasoning();
                answer.seal_reasoning(format!("{REDACTED}{data}"));
                Open::Skipped
            }
            Block::ToolUse { id, name, input } => Open::Call {
                number: answer.begin_call(id, name, sink),
                input,
                streamed: false,
            },
            Block::Other => Open::Skipped,
        };
        self.0.insert(index, open);
    }

    fn delta(
        &mut self,
        index: u64,
        delta: Delta,
        answer: &mut ResponseBuilder,
        target: Target<'_>,
        sink: StreamSink<'_>,
    ) -> Result<(), Failure> {
        match (delta, self.0.get_mut(&index)) {
            (Delta::Text { text }, Some(Open::Text)) => answer.add_text(text, sink),
            (Delta::Thinking { thinking }, Some(Open::Thinking { .. })) => {
                answer.add_reasoning(thinking, sink);
            }
            (Delta::Signature { signature: more }, Some(Open::Thinking { signature })) => {
                signature.push_str(&more);
            }
            (
                Delta::InputJson { partial_json },
                Some(Open::Call {
                    number, streamed, ..
                }),
            ) => {
                *streamed |= !partial_json.is_empty();
                answer.add_arguments(*number, partial_json, sink);
            }
            (Delta::Other, _) | (_, Some(Open::Skipped)) => {}
            (delta, _) => {
                return Err(Failure::new(
                    LlmErrorKind::Protocol,
                    format!(
                        "{} sent a part of block {index} that does not match the start of the \
                         block: {delta:?}",
                        target.url
                    ),
                ));
            }
        }
        Ok(())
    }

    fn end(&mut self, index: u64, answer: &mut ResponseBuilder, sink: StreamSink<'_>) {
        match self.0.remove(&index) {
            Some(Open::Thinking { signature }) if !signature.is_empty() => {
                answer.seal_reasoning(format!("{SIGNED}{signature}"));
            }
            Some(Open::Call {
                number,
                input: Value::Object(input),
                streamed: false,
            }) if !input.is_empty() => {
                answer.add_arguments(number, Value::Object(input).to_string(), sink);
            }
            _ => {}
        }
    }

    fn end_all(&mut self, answer: &mut ResponseBuilder, sink: StreamSink<'_>) {
        let open: Vec<u64> = self.0.keys().copied().collect();
        for index in open {
            self.end(index, answer, sink);
        }
    }
}

impl Document {
    /// Reads the complete response.
    pub(super) fn read(self, answer: &mut ResponseBuilder, sink: StreamSink<'_>) {
        let mut blocks = Blocks::default();
        for (index, block) in (0..).zip(self.content) {
            blocks.begin(index, block, answer, sink);
            blocks.end(index, answer, sink);
        }
        if let Some(usage) = self.usage {
            usage.add_to(answer.usage_mut());
        }
        let stop = self
            .stop_reason
            .as_deref()
            .map_or(StopReason::EndTurn, stop);
        answer.mark_complete(stop);
    }
}

/// The meaning of a `stop_reason`. `pause_turn` asks for the request to be sent again. It occurs only with tools of
/// the server, and those are never in a request.
fn stop(reason: &str) -> StopReason {
    match reason {
        "max_tokens" | "model_context_window_exceeded" => StopReason::MaxTokens,
        "refusal" => StopReason::Refusal,
        "tool_use" => StopReason::ToolUse,
        _ => StopReason::EndTurn,
    }
}
