//! The layer of `tracing` that writes records to the log file.

use std::fmt::Debug;
use std::sync::Once;

use jiff::Timestamp;
use serde_json::Value;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record as Values};
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::LookupSpan;

use super::file::LogFile;
use super::record::{Fields, Record, SpanData};
use super::{Console, TELEMETRY_FIELDS, format, notice};
use crate::config::{FlagOverrides, LogFormat};
use crate::output::redact;
use crate::telemetry::CONTENT_FIELDS;

/// The field with the text of a record.
const MESSAGE: &str = "message";

/// Writes records to the log file.
#[derive(Debug)]
pub(super) struct LogLayer {
    file: LogFile,
    console: Console,
    /// The command line, which can set the format of the first records.
    flags: FlagOverrides,
    told: Once,
}

impl LogLayer {
    pub(super) fn new(file: LogFile, console: Console, flags: FlagOverrides) -> Self {
        Self {
            file,
            console,
            flags,
            told: Once::new(),
        }
    }
}

/// The fields of an open span.
struct SpanFields(Fields);

impl<S> Layer<S> for LogLayer
where
    S: Subscriber + for<'span> LookupSpan<'span>,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, cx: Context<'_, S>) {
        let mut fields = Collector::default();
        attributes.record(&mut fields);
        if let Some(span) = cx.span(id) {
            span.extensions_mut().insert(SpanFields(fields.0));
        }
    }

    fn on_record(&self, id: &Id, values: &Values<'_>, cx: Context<'_, S>) {
        let mut fields = Collector::default();
        values.record(&mut fields);
        if let Some(span) = cx.span(id)
            && let Some(known) = span.extensions_mut().get_mut::<SpanFields>()
        {
            known.0.extend(fields.0);
        }
    }

    fn on_event(&self, event: &Event<'_>, cx: Context<'_, S>) {
        let mut fields = Collector::default();
        event.record(&mut fields);
        let mut fields = fields.0;
        let message = match fields.shift_remove(MESSAGE) {
            Some(Value::String(text)) => text,
            _ => String::new(),
        };
        let spans = cx.event_scope(event).into_iter().flat_map(|scope| {
            scope.from_root().map(|span| SpanData {
                name: span.name(),
                fields: match span.extensions().get::<SpanFields>() {
                    Some(fields) => fields.0.clone(),
                    None => Fields::new(),
                },
            })
        });
        let metadata = event.metadata();
        let record = Record {
            time: Timestamp::now().to_string(),
            level: metadata.level().as_str(),
            pid: std::process::id(),
            target: metadata.target().to_owned(),
            message,
            fields,
            spans: spans.collect(),
        };
        let is_json = format(&self.flags) == LogFormat::Json;
        let line = record.line(is_json, &redact::secrets());
        if let Err(error) = self.file.append(line.as_bytes())
            && self.console == Console::Messages
        {
            self.told.call_once(|| notice(&error));
        }
    }
}

/// Collects fields, except those for telemetry: its own ones, and the content of messages and calls.
#[derive(Default)]
struct Collector(Fields);

impl Collector {
    fn add(&mut self, field: &Field, value: impl FnOnce() -> Value) {
        let name = field.name();
        if !name.starts_with(TELEMETRY_FIELDS) && !CONTENT_FIELDS.contains(&name) {
            self.0.insert(name.to_owned(), value());
        }
    }
}

impl Visit for Collector {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.add(field, || format!("{value:?}").into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, || value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, || value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, || value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, || value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.add(field, || value.into());
    }
}
