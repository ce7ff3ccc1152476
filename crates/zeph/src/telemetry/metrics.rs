//! Metrics, derived from ended spans, with the names of the OpenTelemetry conventions for generative AI.

use std::time::Duration;

use opentelemetry::metrics::{Counter, Histogram, Meter};
use opentelemetry::{Context, KeyValue, Value};
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{Span, SpanData, SpanProcessor};

use super::attributes::plain;

/// The bounds of durations in seconds, as the conventions recommend.
const SECONDS: [f64; 14] = [
    0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92,
];
/// The number of bounds of token counts, the powers of four, as the conventions recommend.
const TOKEN_BOUNDS: i32 = 14;

const OPERATION: &str = "gen_ai.operation.name";
const ERROR: &str = "error.type";

/// Records the metrics of each span that ends.
#[derive(Debug)]
pub(super) struct Metrics {
    tokens: Histogram<u64>,
    requests: Histogram<f64>,
    turns: Histogram<f64>,
    tools: Histogram<f64>,
    errors: Counter<u64>,
}

impl Metrics {
    pub(super) fn new(meter: &Meter) -> Self {
        let seconds = |name: &'static str, description: &'static str| {
            meter
                .f64_histogram(name)
                .with_unit("s")
                .with_description(description)
                .with_boundaries(SECONDS.to_vec())
                .build()
        };
        Self {
            tokens: meter
                .u64_histogram("gen_ai.client.token.usage")
                .with_unit("{token}")
                .with_description("Number of input and output tokens used.")
                .with_boundaries((0..TOKEN_BOUNDS).map(|power| 4_f64.powi(power)).collect())
                .build(),
            requests: seconds(
                "gen_ai.client.operation.duration",
                "Duration of requests to providers.",
            ),
            turns: seconds("gen_ai.invoke_agent.duration", "Duration of turns."),
            tools: seconds(
                "gen_ai.execute_tool.duration",
                "Duration of calls of tools, without waits for the user.",
            ),
            errors: meter
                .u64_counter("zeph.errors")
                .with_unit("{error}")
                .with_description("Failed turns, requests and calls by category.")
                .build(),
        }
    }

    fn record(&self, span: &SpanData) {
        let find = |name: &str| {
            let mut attributes = span.attributes.iter();
            attributes.find(|attribute| attribute.key.as_str() == name)
        };
        let Some(operation) = find(OPERATION) else {
            return;
        };
        let chosen = |names: &[&'static str]| {
            let found = names.iter().filter_map(|name| {
                let value = find(name)?.value.as_str();
                Some(KeyValue::new(*name, plain(&value)))
            });
            found.collect::<Vec<_>>()
        };
        let took = span.end_time.duration_since(span.start_time);
        let took = took.unwrap_or_default().as_secs_f64();
        let waited = match find("zeph.call.waited").map(|attribute| &attribute.value) {
            Some(Value::F64(waited)) => *waited,
            _ => 0.0,
        };
        match &*operation.value.as_str() {
            "invoke_agent" => {
                let attributes = chosen(&[OPERATION, "gen_ai.agent.name", ERROR]);
                self.turns.record(took, &attributes);
            }
            "execute_tool" => {
                let attributes = chosen(&[OPERATION, "gen_ai.tool.name", ERROR]);
                self.tools.record((took - waited).max(0.0), &attributes);
            }
            _ => {
                let about = [OPERATION, "gen_ai.provider.name", "gen_ai.request.model"];
                let mut attributes = chosen(&about);
                for (kind, name) in [
                    ("input", "gen_ai.usage.input_tokens"),
                    ("output", "gen_ai.usage.output_tokens"),
                ] {
                    let Some(Value::I64(count)) = find(name).map(|attribute| &attribute.value)
                    else {
                        continue;
                    };
                    attributes.push(KeyValue::new("gen_ai.token.type", kind));
                    self.tokens
                        .record(u64::try_from(*count).unwrap_or_default(), &attributes);
                    attributes.pop();
                }
                attributes.extend(chosen(&[ERROR]));
                self.requests.record(took, &attributes);
            }
        }
        if find(ERROR).is_some() {
            self.errors.add(1, &chosen(&[OPERATION, ERROR]));
        }
    }
}

impl SpanProcessor for Metrics {
    fn on_start(&self, _: &mut Span, _: &Context) {}

    fn on_end(&self, span: SpanData) {
        self.record(&span);
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }
}
