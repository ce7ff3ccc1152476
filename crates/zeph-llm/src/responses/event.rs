//! The events of a response, with tolerant parsing: fields may be missing, and unknown events and items are skipped.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::item::{Content, Item, arguments};
use crate::error::LlmErrorKind;
use crate::http_provider::error_mapping::{ErrorBody, Failure, Target, from_answer};
use crate::http_provider::response_builder::ResponseBuilder;
use crate::provider::{StopReason, StreamSink};
use crate::usage::Usage;

/// The data of one event: the fields of all kinds.
#[derive(Debug, Deserialize)]
pub(super) struct Event<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    #[serde(default)]
    output_index: Option<u64>,
    #[serde(default)]
    item_id: Option<String>,
    #[serde(default, borrow)]
    item: Option<&'a RawValue>,
    #[serde(default)]
    delta: Value,
    #[serde(default)]
    arguments: Value,
    #[serde(default)]
    summary_index: Option<u64>,
    #[serde(default, borrow)]
    response: Option<&'a RawValue>,
    /// The error of the event `error`; its fields are in this object or directly in the event.
    #[serde(default)]
    error: Value,
    #[serde(default)]
    code: Value,
    #[serde(default)]
    message: Value,
}

/// A response: at the end of a stream, or alone.
#[derive(Debug, Deserialize)]
pub(super) struct Response<'a> {
    #[serde(default)]
    status: Option<String>,
    #[serde(default, borrow)]
    output: Option<Vec<&'a RawValue>>,
    #[serde(default)]
    incomplete_details: Option<Incomplete>,
    #[serde(default)]
    error: Value,
    #[serde(default, deserialize_with = "crate::http_provider::lenient::optional")]
    usage: Option<WireUsage>,
}

#[derive(Debug, Deserialize)]
struct Incomplete {
    #[serde(default)]
    reason: Option<String>,
}

#[derive(Debug, Deserialize)]
struct WireUsage {
    #[serde(
        default,
        deserialize_with = "crate::http_provider::lenient::token_count"
    )]
    input_tokens: Option<u64>,
    #[serde(
        default,
        deserialize_with = "crate::http_provider::lenient::token_count"
    )]
    output_tokens: Option<u64>,
    #[serde(default, deserialize_with = "crate::http_provider::lenient::optional")]
    input_tokens_details: Option<Details>,
}

#[derive(Debug, Deserialize)]
struct Details {
    #[serde(
        default,
        deserialize_with = "crate::http_provider::lenient::token_count"
    )]
    cached_tokens: Option<u64>,
    #[serde(
        default,
        deserialize_with = "crate::http_provider::lenient::token_count"
    )]
    cache_write_tokens: Option<u64>,
}

impl From<&WireUsage> for Usage {
    fn from(usage: &WireUsage) -> Self {
        let details = usage.input_tokens_details.as_ref();
        Self {
            input_tokens: usage.input_tokens.unwrap_or(0),
            output_tokens: usage.output_tokens.unwrap_or(0),
            cached_tokens: details.and_then(|it| it.cached_tokens).unwrap_or(0),
            cache_write_tokens: details.and_then(|it| it.cache_write_tokens).unwrap_or(0),
        }
    }
}

impl Response<'_> {
    /// Whether this is a response, and not another object.
    pub(super) fn is_answer(&self) -> bool {
        self.output.is_some() || self.status.as_deref() == Some("failed")
    }
}

/// The state between two events: the items that began, in order.
#[derive(Debug, Default)]
pub(crate) struct Items {
    items: Vec<Open>,
    refused: bool,
}

#[derive(Debug)]
struct Open {
    index: Option<u64>,
    /// Its id; of a call also that of the call, which some servers use in its place.
    ids: Vec<String>,
    kind: Kind,
    /// Whether a part of its content arrived in pieces.
    streamed: bool,
    done: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Message,
    /// The number of the call.
    Call(usize),
    Reasoning,
    Other,
}

impl Items {
    /// Reads an event, and emits its new content to the sink.
    ///
    /// # Errors
    /// The class of an error event, or of a failed response; `Protocol` for arguments of a call that never began.
    pub(super) fn add(
        &mut self,
        event: &Event<'_>,
        answer: &mut ResponseBuilder,
        target: Target<'_>,
        sink: StreamSink<'_>,
    ) -> Result<(), Failure> {
        let delta = || event.delta.as_str().unwrap_or_default().to_owned();
        match &*event.r#type {
            "response.output_item.added" => {
                if let Some(raw) = event.item {
                    self.begin(event, raw, answer, sink);
                }
            }
            "response.output_item.done" => {
                if let Some(raw) = event.item {
                    self.finish(event, raw, answer, sink);
                }
            }
            "response.output_text.delta" => {
                self.touch(event, Kind::Message);
                answer.add_text(delta(), sink);
            }
            "response.refusal.delta" => {
                self.refused = true;
                self.touch(event, Kind::Message);
                answer.add_text(delta(), sink);
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.touch(event, Kind::Reasoning);
                answer.add_reasoning(delta(), sink);
            }
            "response.reasoning_summary_part.added" if event.summary_index > Some(0) => {
                self.touch(event, Kind::Reasoning);
                answer.add_reasoning("\n\n".to_owned(), sink);
            }
            "response.function_call_arguments.delta" => {
                let number = self.call(event, target)?;
                answer.add_arguments(number, delta(), sink);
            }
            "response.function_call_arguments.done" => {
                let number = self.call(event, target)?;
                complete_arguments(number, &event.arguments, answer, sink);
            }
            "response.completed" | "response.incomplete" | "response.failed" | "response.done" => {
                let response = event.response.map(|raw| serde_json::from_str(raw.get()));
                let Some(Ok(response)) = response else {
                    let message = format!("{} ended the response without a reason", target.url);
                    return Err(Failure::new(LlmErrorKind::Protocol, message));
                };
                self.end(&response, answer, target, sink)?;
                answer.mark_done();
            }
            "error" => {
                let error = match &event.error {
                    Value::Null => {
                        serde_json::json!({"code": event.code, "message": event.message})
                    }
                    error => error.clone(),
                };
                return Err(from_answer(None, &ErrorBody::from_value(&error), target));
            }
            _ => {}
        }
        Ok(())
    }

    /// Which item an event is about.
    fn at(&self, event: &Event<'_>, ids: &[String]) -> Option<usize> {
        let is = |found: &dyn Fn(&Open) -> bool| self.items.iter().rposition(found);
        if event.output_index.is_some() {
            return is(&|item| item.index == event.output_index);
        }
        if !ids.is_empty() {
            return is(&|item| item.ids.iter().any(|id| ids.contains(id)));
        }
        is(&|item| !item.done)
    }

    fn begin(
        &mut self,
        event: &Event<'_>,
        raw: &RawValue,
        answer: &mut ResponseBuilder,
        sink: StreamSink<'_>,
    ) -> usize {
        let kind = match Item::of(raw) {
            Item::Message { .. } => {
                answer.begin_text();
                Kind::Message
            }
            Item::FunctionCall { call_id, name, .. } => {
                Kind::Call(answer.begin_call(call_id, name, sink))
            }
            Item::Reasoning { .. } => {
                answer.begin_reasoning();
                Kind::Reasoning
            }
            Item::Other => Kind::Other,
        };
        self.items.push(Open {
            index: event.output_index,
            ids: ids_of(raw),
            kind,
            streamed: false,
            done: false,
        });
        self.items.len() - 1
    }

    /// Records that content of an item arrived in pieces. If the server sent no start of the item, this starts it.
    fn touch(&mut self, event: &Event<'_>, kind: Kind) {
        let ids = event.ids();
        match self.at(event, ids) {
            Some(at) => self.items[at].streamed = true,
            None => self.items.push(Open {
                index: event.output_index,
                ids: ids.to_owned(),
                kind,
                streamed: true,
                done: false,
            }),
        }
    }

    fn call(&self, event: &Event<'_>, target: Target<'_>) -> Result<usize, Failure> {
        let ids = event.ids();
        match self.at(event, ids).map(|at| self.items[at].kind) {
            Some(Kind::Call(number)) => Ok(number),
            _ => {
                let message = format!(
                    "{} sent arguments of a call that never began ({ids:?})",
                    target.url
                );
                Err(Failure::new(LlmErrorKind::Protocol, message))
            }
        }
    }

    /// Takes an item that is whole.
    fn finish(
        &mut self,
        event: &Event<'_>,
        raw: &RawValue,
        answer: &mut ResponseBuilder,
        sink: StreamSink<'_>,
    ) {
        let at = self
            .at(event, &ids_of(raw))
            .filter(|at| !self.items[*at].done);
        let at = at.unwrap_or_else(|| self.begin(event, raw, answer, sink));
        let Open {
            kind,
            streamed,
            done,
            ..
        } = &mut self.items[at];
        *done = true;
        let item = Item::of(raw);
        match (&item, *kind) {
            (Item::Message { content }, Kind::Message) if !*streamed => {
                for part in content {
                    match part {
                        Content::OutputText { text } => answer.add_text(text.clone(), sink),
                        Content::Refusal { refusal } => {
                            self.refused = true;
                            answer.add_text(refusal.clone(), sink);
                        }
                        Content::Other => {}
                    }
                }
            }
            (Item::FunctionCall { arguments, .. }, Kind::Call(number)) => {
                complete_arguments(number, arguments, answer, sink);
            }
            (
                Item::Reasoning {
                    content, summary, ..
                },
                Kind::Reasoning,
            ) => {
                let parts = [summary, content].into_iter().flatten().flatten();
                for part in parts.filter(|_| !*streamed) {
                    if let Content::OutputText { text } = part {
                        answer.add_reasoning(text.clone(), sink);
                    }
                }
                if let Some(seal) = item.seal(raw) {
                    answer.seal_reasoning(seal);
                }
            }
            _ => {}
        }
    }

    /// Reads the end of a response. Its copies of items are used only if the items did not arrive before.
    ///
    /// # Errors
    /// The class of the response's error.
    pub(super) fn end(
        &mut self,
        response: &Response<'_>,
        answer: &mut ResponseBuilder,
        target: Target<'_>,
        sink: StreamSink<'_>,
    ) -> Result<(), Failure> {
        let status = response.status.as_deref().unwrap_or("completed");
        if status == "failed" || !response.error.is_null() {
            let error = ErrorBody::from_value(&response.error);
            return Err(from_answer(None, &error, target));
        }
        let unsaid = response.output.iter().flatten();
        for raw in unsaid
            .filter(|_| self.items.is_empty())
            .copied()
            .collect::<Vec<_>>()
        {
            let mut alone = Self::default();
            alone.finish(&Event::alone(), raw, answer, sink);
            self.refused |= alone.refused;
        }
        if let Some(usage) = &response.usage {
            *answer.usage_mut() = usage.into();
        }
        let reason = response.incomplete_details.as_ref();
        let stop = match (status, reason.and_then(|it| it.reason.as_deref())) {
            ("incomplete", Some("content_filter")) => StopReason::Refusal,
            ("incomplete" | "cancelled", _) => StopReason::MaxTokens,
            _ if self.refused => StopReason::Refusal,
            _ => StopReason::EndTurn,
        };
        answer.mark_complete(stop);
        Ok(())
    }
}

impl Event<'_> {
    /// The id of the item that it is about, if it names one.
    fn ids(&self) -> &[String] {
        match &self.item_id {
            Some(id) if !id.is_empty() => std::slice::from_ref(id),
            _ => &[],
        }
    }

    /// An event without the position of its item.
    fn alone() -> Self {
        Self {
            r#type: Cow::Borrowed(""),
            output_index: None,
            item_id: None,
            item: None,
            delta: Value::Null,
            arguments: Value::Null,
            summary_index: None,
            response: None,
            error: Value::Null,
            code: Value::Null,
            message: Value::Null,
        }
    }
}

/// The complete arguments of a call that arrived without pieces.
fn complete_arguments(
    number: usize,
    whole: &Value,
    answer: &mut ResponseBuilder,
    sink: StreamSink<'_>,
) {
    if answer
        .call_mut(number)
        .is_some_and(|call| call.arguments.is_empty())
    {
        answer.add_arguments(number, arguments(whole), sink);
    }
}

fn ids_of(raw: &RawValue) -> Vec<String> {
    #[derive(Deserialize)]
    struct Ids {
        #[serde(default)]
        id: Option<String>,
        #[serde(default)]
        call_id: Option<String>,
    }
    let Ok(Ids { id, call_id }) = serde_json::from_str(raw.get()) else {
        return Vec::new();
    };
    let ids = [id, call_id].into_iter().flatten();
    ids.filter(|id| !id.is_empty()).collect()
}
