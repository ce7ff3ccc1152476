//! The lines of a response, with tolerant parsing: fields may be missing or null.

use serde::Deserialize;
use serde_json::Value;

use super::history::THINKING;
use crate::error::LlmErrorKind;
use crate::http_provider::error_mapping::{ErrorBody, Failure, Target, from_answer};
use crate::http_provider::excerpt::excerpt;
use crate::http_provider::response_builder::ResponseBuilder;
use crate::provider::{StopReason, StreamSink};

/// One line.
#[derive(Debug, Deserialize)]
pub(super) struct Line {
    #[serde(default)]
    message: Option<WireMessage>,
    #[serde(default)]
    done: Option<bool>,
    #[serde(default)]
    done_reason: Option<String>,
    #[serde(
        default,
        deserialize_with = "crate::http_provider::lenient::token_count"
    )]
    prompt_eval_count: Option<u64>,
    #[serde(
        default,
        deserialize_with = "crate::http_provider::lenient::token_count"
    )]
    eval_count: Option<u64>,
    #[serde(default)]
    error: Value,
}

#[derive(Debug, Deserialize)]
struct WireMessage {
    #[serde(default)]
    content: Option<String>,
    #[serde(default)]
    thinking: Option<String>,
    #[serde(default)]
    tool_calls: Option<Vec<Call>>,
}

/// A call. The type, which is always `function`, and the id may be missing.
#[derive(Debug, Deserialize)]
struct Call {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    function: Option<Function>,
}

#[derive(Debug, Deserialize)]
struct Function {
    #[serde(default)]
    name: Option<String>,
    /// Some models' templates call them `parameters`.
    #[serde(default, alias = "parameters")]
    arguments: Value,
}

/// The state between two lines.
#[derive(Debug, Default)]
pub(crate) struct Thread {
    /// The newest piece was thinking.
    thinking: bool,
}

impl Thread {
    /// Reads a line. `data` is its text for an error message.
    ///
    /// # Errors
    /// The class of the error in the line; `Protocol` for a line without content.
    pub(super) fn add(
        &mut self,
        line: Line,
        data: &str,
        answer: &mut ResponseBuilder,
        target: Target<'_>,
        sink: StreamSink<'_>,
    ) -> Result<(), Failure> {
        if !line.error.is_null() {
            let error = ErrorBody::from_value(&line.error);
            return Err(from_answer(None, &error, target));
        }
        if line.message.is_none() && line.done.is_none() {
            return Err(Failure::new(
                LlmErrorKind::Protocol,
                format!(
                    "{} unexpected line in response: {}",
                    target.url,
                    excerpt(data)
                ),
            ));
        }
        if let Some(message) = line.message {
            self.message(message, answer, sink);
        }
        let usage = answer.usage_mut();
        usage.input_tokens = line.prompt_eval_count.unwrap_or(usage.input_tokens);
        usage.output_tokens = line.eval_count.unwrap_or(usage.output_tokens);
        if line.done == Some(true) {
            answer.mark_complete(match line.done_reason.as_deref() {
                Some("length") => StopReason::MaxTokens,
                _ => StopReason::EndTurn,
            });
            answer.mark_done();
        }
        Ok(())
    }

    fn message(
        &mut self,
        message: WireMessage,
        answer: &mut ResponseBuilder,
        sink: StreamSink<'_>,
    ) {
        if let Some(thinking) = message.thinking.filter(|text| !text.is_empty()) {
            if !std::mem::replace(&mut self.thinking, true) {
                answer.begin_reasoning();
                answer.seal_reasoning(THINKING.to_owned());
            }
            answer.add_reasoning(thinking, sink);
        }
        if let Some(content) = message.content.filter(|text| !text.is_empty()) {
            self.thinking = false;
            answer.add_text(content, sink);
        }
        for call in message.tool_calls.unwrap_or_default() {
            self.thinking = false;
            let (name, arguments) = match call.function {
                Some(function) => (function.name.unwrap_or_default(), function.arguments),
                None => (String::new(), Value::Null),
            };
            let number = answer.begin_call(call.id.unwrap_or_default(), name, sink);
            let arguments = match arguments {
                Value::Null => String::new(),
                Value::String(text) => text,
                other => other.to_string(),
            };
            answer.add_arguments(number, arguments, sink);
        }
    }
}
