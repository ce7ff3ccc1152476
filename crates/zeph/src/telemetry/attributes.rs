//! The attributes that leave the process. Only names in a table are exported, and all texts without secrets.

use std::future::Future;
use std::time::Duration;

use opentelemetry::{Array, KeyValue, StringValue, Value};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanExporter, SpanLinks};

use super::CONTENT_FIELDS;
use crate::output::redact;

/// The maximum length of a text that is not content.
const MAX_TEXT: usize = 256;
/// The attributes that are always exported. They hold no text of the user, of models, or of files.
const EXPORTED: [&str; 17] = [
    "error.type",
    "gen_ai.agent.name",
    "gen_ai.conversation.id",
    "gen_ai.operation.name",
    "gen_ai.provider.name",
    "gen_ai.request.model",
    FINISH_REASONS,
    "gen_ai.tool.call.id",
    "gen_ai.tool.name",
    "gen_ai.tool.type",
    "gen_ai.usage.cache_creation.input_tokens",
    "gen_ai.usage.cache_read.input_tokens",
    "gen_ai.usage.input_tokens",
    "gen_ai.usage.output_tokens",
    "process.exit.code",
    "zeph.call.waited",
    "zeph.layer",
];
/// The one attribute that is a list.
const FINISH_REASONS: &str = "gen_ai.response.finish_reasons";

/// Exports spans with the attributes of the table only.
#[derive(Debug)]
pub(super) struct Limited<E> {
    pub(super) inner: E,
    pub(super) content: bool,
}

impl<E: SpanExporter> SpanExporter for Limited<E> {
    fn export(&self, mut batch: Vec<SpanData>) -> impl Future<Output = OTelSdkResult> + Send {
        for span in &mut batch {
            limit(span, self.content);
        }
        self.inner.export(batch)
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.inner.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.inner.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.inner.set_resource(resource);
    }
}

/// Removes secrets, and everything outside of the table.
fn limit(span: &mut SpanData, content: bool) {
    span.name = plain(&span.name).into();
    span.events = SpanEvents::default();
    span.links = SpanLinks::default();
    span.attributes.retain(|attribute| {
        let name = attribute.key.as_str();
        EXPORTED.contains(&name) || (content && CONTENT_FIELDS.contains(&name))
    });
    for KeyValue { key, value, .. } in &mut span.attributes {
        let Value::String(text) = value else { continue };
        let name = key.as_str();
        *value = if name == FINISH_REASONS {
            let reason = StringValue::from(plain(text.as_str()));
            Value::Array(Array::String(vec![reason]))
        } else if CONTENT_FIELDS.contains(&name) {
            without_secrets(text.as_str()).into()
        } else {
            plain(text.as_str()).into()
        };
    }
}

/// A short text without secrets.
pub(super) fn plain(text: &str) -> String {
    let text = redact::redacted(text);
    text[..text.floor_char_boundary(MAX_TEXT)].to_owned()
}

/// Content without secrets. In JSON, the texts are searched, because characters of a secret can be escaped.
fn without_secrets(text: &str) -> String {
    match serde_json::from_str::<serde_json::Value>(text) {
        Ok(mut value) if !value.is_string() => {
            redact::secrets().redact_json(&mut value);
            value.to_string()
        }
        _ => redact::redacted(text).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use opentelemetry::InstrumentationScope;
    use opentelemetry::trace::{SpanContext, SpanId, SpanKind, Status};

    use super::*;

    fn span(attributes: Vec<KeyValue>) -> SpanData {
        SpanData {
            span_context: SpanContext::empty_context(),
            parent_span_id: SpanId::INVALID,
            parent_span_is_remote: false,
            span_kind: SpanKind::Internal,
            name: "call".into(),
            start_time: SystemTime::UNIX_EPOCH,
            end_time: SystemTime::UNIX_EPOCH,
            attributes,
            dropped_attributes_count: 0,
            events: SpanEvents::default(),
            links: SpanLinks::default(),
            status: Status::Unset,
            instrumentation_scope: InstrumentationScope::default(),
        }
    }

    /// Proves OPS-5: an attribute that is not in the table is not exported.
    #[test]
    fn only_known_attributes_are_exported() {
        let names = |content: bool| {
            let mut span = span(vec![
                KeyValue::new("gen_ai.tool.name", "bash"),
                KeyValue::new("gen_ai.tool.call.arguments", "{}"),
                KeyValue::new("path", "/etc/passwd"),
            ]);
            limit(&mut span, content);
            let names = span.attributes.iter().map(|one| one.key.to_string());
            names.collect::<Vec<_>>()
        };
        assert_eq!(names(false), ["gen_ai.tool.name"]);
        assert_eq!(
            names(true),
            ["gen_ai.tool.name", "gen_ai.tool.call.arguments"]
        );
    }

    #[test]
    fn long_text_is_cut_and_a_reason_is_a_list() {
        let mut span = span(vec![
            KeyValue::new("gen_ai.tool.call.id", "é".repeat(500)),
            KeyValue::new(FINISH_REASONS, "stop"),
        ]);
        limit(&mut span, false);
        assert_eq!(span.attributes[0].value.as_str().len(), MAX_TEXT);
        assert_eq!(span.attributes[1].value.to_string(), "[\"stop\"]");
    }
}
