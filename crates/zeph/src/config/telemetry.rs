//! `[telemetry]`: the collector of traces and metrics.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::env::Environment;

/// The variables whose values are headers, `name=value,…`.
const HEADERS: [&str; 3] = [
    "OTEL_EXPORTER_OTLP_HEADERS",
    "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
    "OTEL_EXPORTER_OTLP_METRICS_HEADERS",
];

/// `[telemetry]`: the export of traces and metrics by OpenTelemetry (OTLP over HTTP). It needs a binary with the cargo feature `otel`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct TelemetryConfig {
    /// The address of the collector, as in `http://127.0.0.1:4318`. If it is empty, `OTEL_EXPORTER_OTLP_ENDPOINT` decides; without both, nothing is exported.
    pub(crate) endpoint: String,
    /// Headers of every request to it. `${NAME}` in a value is a variable of your own environment.
    pub(crate) headers: BTreeMap<String, String>,
    /// Whether the text of prompts, responses, arguments and results is exported too, without the values of secrets.
    pub(crate) content: bool,
}

impl TelemetryConfig {
    /// The values of headers, here and in the environment, that are likely secrets.
    pub(crate) fn likely_secrets(&self, env: &Environment) -> Vec<String> {
        let own = self.headers.values().cloned();
        let standard = HEADERS.iter().filter_map(|name| env.var(name)?.to_str());
        let standard = standard.flat_map(|list| list.split(','));
        let standard = standard.filter_map(|header| Some(header.split_once('=')?.1.to_owned()));
        let words = own.chain(standard).filter_map(|value| {
            let value = value.replace("%20", " ");
            Some(value.split_whitespace().last()?.to_owned())
        });
        words.filter(|word| !word.contains("${")).collect()
    }
}

/// The reason why an address cannot be used; `None` if it can.
pub(crate) fn fault_of_endpoint(endpoint: &str) -> Option<String> {
    let rest = ["http://", "https://"]
        .iter()
        .find_map(|scheme| endpoint.strip_prefix(scheme));
    match rest {
        Some(rest) if !rest.trim_start_matches('/').is_empty() && is_plain(rest) => None,
        _ => Some(
            "the address of a collector begins with http:// or https://, as in http://127.0.0.1:4318"
                .to_owned(),
        ),
    }
}

fn is_plain(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves OPS-5: values of headers are secrets.
    #[test]
    fn values_of_headers_are_likely_secrets() {
        let config: TelemetryConfig =
            toml::from_str("headers = { A = 'Basic one', B = '${TWO}' }").unwrap();
        let vars = [(
            "OTEL_EXPORTER_OTLP_HEADERS",
            "x=three,authorization=Bearer%20four",
        )];
        let secrets = config.likely_secrets(&Environment::of("/", &vars));
        assert_eq!(secrets, ["one", "three", "four"]);
    }
}
