//! Telemetry: traces and metrics for a collector of OpenTelemetry, made of the spans of Zeph.
//!
//! `collector` chooses the collector. With the cargo feature `otel`, `export` sends the data in the background: `attributes` decides what
//! leaves the process, `metrics` derives metrics from ended spans, and `client` sends requests.

mod collector;

#[cfg(feature = "otel")]
mod attributes;
#[cfg(feature = "otel")]
mod client;
#[cfg(feature = "otel")]
mod export;
#[cfg(feature = "otel")]
mod metrics;

use std::sync::Once;

use zeph_llm::traced::SpanContent;

use crate::config::{Environment, Loaded};
use crate::output::stderr_line;

pub(crate) use collector::Collector;
#[cfg(feature = "otel")]
pub(crate) use export::{finish, layer};

/// The fields of spans with text of users, models, tools and files. They are exported if the user wants content, and are never in
/// the log file.
pub(crate) const CONTENT_FIELDS: [&str; 5] = [
    "gen_ai.input.messages",
    "gen_ai.output.messages",
    "gen_ai.system_instructions",
    "gen_ai.tool.call.arguments",
    "gen_ai.tool.call.result",
];

/// The reason why a binary without the cargo feature exports nothing.
pub(crate) const NOT_BUILT_IN: &str = "this binary was built without telemetry; build it with \
     `cargo install --path . --features otel`, or remove the endpoint ([telemetry] endpoint, OTEL_EXPORTER_OTLP_ENDPOINT)";

/// Starts the export, once per process, if a collector is set. A problem costs one warning.
pub(crate) fn start(loaded: &Loaded, env: &Environment) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let started = match Collector::choose(&loaded.config.telemetry, env) {
            Ok(None) => Ok(()),
            Ok(Some(collector)) => start_export(&collector),
            Err(error) => Err(error),
        };
        if let Err(error) = started {
            stderr_line(&format!("warning: no telemetry is exported: {error}"));
        }
    });
}

/// Whether spans hold content: only for a collector that gets it.
pub(crate) fn span_content(loaded: &Loaded, env: &Environment) -> SpanContent {
    match Collector::choose(&loaded.config.telemetry, env) {
        Ok(Some(collector)) if collector.content && cfg!(feature = "otel") => SpanContent::Recorded,
        _ => SpanContent::Omitted,
    }
}

#[cfg(feature = "otel")]
fn start_export(collector: &Collector) -> Result<(), String> {
    export::start(collector)
}

#[cfg(not(feature = "otel"))]
fn start_export(_: &Collector) -> Result<(), String> {
    Err(NOT_BUILT_IN.to_owned())
}

/// Nothing was exported.
#[cfg(not(feature = "otel"))]
pub(crate) fn finish() {}
