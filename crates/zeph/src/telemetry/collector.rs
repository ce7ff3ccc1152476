//! The choice of the collector. Pure.

use std::collections::BTreeMap;

use zeph_mcp::expanded;

use crate::config::{Environment, TelemetryConfig, fault_of_endpoint};

/// The standard variables that Zeph reads. The library reads more, for example of batches and resources.
const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const DISABLED: &str = "OTEL_SDK_DISABLED";
const CONTENT: &str = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT";

/// A collector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Collector {
    /// Its address, without a final `/`.
    pub(crate) endpoint: String,
    /// The headers of every request, in addition to those of the environment.
    #[cfg_attr(not(feature = "otel"), allow(dead_code))]
    pub(crate) headers: BTreeMap<String, String>,
    /// Whether content is exported.
    pub(crate) content: bool,
}

impl Collector {
    /// The collector that configuration and environment choose; `None` if nothing is exported.
    ///
    /// # Errors
    /// The address is not one of HTTP, or a variable in a header is not set.
    pub(crate) fn choose(
        telemetry: &TelemetryConfig,
        env: &Environment,
    ) -> Result<Option<Self>, String> {
        let var = |name: &str| env.var(name).and_then(|value| value.to_str());
        let (endpoint, source) = match telemetry.endpoint.as_str() {
            "" => (var(ENDPOINT).unwrap_or_default(), ENDPOINT),
            endpoint => (endpoint, "`[telemetry] endpoint`"),
        };
        let is_disabled = var(DISABLED).is_some_and(|value| value.eq_ignore_ascii_case("true"));
        if endpoint.is_empty() || is_disabled {
            return Ok(None);
        }
        if let Some(fault) = fault_of_endpoint(endpoint) {
            return Err(format!("{source}: {fault}"));
        }
        let mut headers = BTreeMap::new();
        for (name, value) in &telemetry.headers {
            let variable = |name: &str| var(name).map(str::to_owned);
            let value = expanded(value, &variable)
                .map_err(|error| format!("the header {name} of `[telemetry]`: {error}"))?;
            headers.insert(name.clone(), value);
        }
        let asked = var(CONTENT).unwrap_or_default().to_lowercase();
        let is_asked = ["true", "span_only", "span_and_event"].contains(&asked.as_str());
        Ok(Some(Self {
            endpoint: endpoint.trim_end_matches('/').to_owned(),
            headers,
            content: telemetry.content || is_asked,
        }))
    }

    /// The address without user and password, for messages.
    pub(crate) fn shown(&self) -> String {
        let (scheme, rest) = self.endpoint.split_once("://").unwrap_or_default();
        let authority = rest.split('/').next().unwrap_or_default();
        let host = authority.rsplit('@').next().unwrap_or_default();
        format!("{scheme}://{host}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(toml: &str, vars: &[(&str, &str)]) -> Result<Option<Collector>, String> {
        let config: TelemetryConfig = toml::from_str(toml).unwrap();
        Collector::choose(&config, &Environment::of("/", vars))
    }

    /// Proves OPS-5: nothing is exported unless an address is set.
    #[test]
    fn collector_is_chosen_by_the_configuration_before_the_environment() {
        let endpoint = |toml: &str, vars: &[(&str, &str)]| {
            let collector = chosen(toml, vars).unwrap()?;
            assert!(!collector.content);
            Some(collector.endpoint)
        };
        let own = "endpoint = 'http://a:1/'";
        assert_eq!(endpoint("", &[]), None);
        assert_eq!(
            endpoint(own, &[(ENDPOINT, "http://b:2")]).unwrap(),
            "http://a:1"
        );
        assert_eq!(
            endpoint("", &[(ENDPOINT, "http://b:2")]).unwrap(),
            "http://b:2"
        );
        assert_eq!(endpoint(own, &[(DISABLED, "true")]), None);
    }

    #[test]
    fn content_is_a_choice_of_the_user() {
        let content = |toml: &str, value: &str| {
            let toml = format!("endpoint = 'http://a'\n{toml}");
            chosen(&toml, &[(CONTENT, value)]).unwrap().unwrap().content
        };
        assert!(!content("", ""));
        assert!(!content("", "no_content"));
        assert!(content("", "true"));
        assert!(content("", "SPAN_ONLY"));
        assert!(content("content = true", ""));
    }

    #[test]
    fn fault_names_its_source() {
        for bad in ["localhost:4318", "ftp://a", "http://", "http://a b"] {
            let error = chosen("", &[(ENDPOINT, bad)]).unwrap_err();
            assert!(error.starts_with(ENDPOINT), "{error}");
        }
        let error = chosen("endpoint = 'http://a'\nheaders = { A = '${GONE}' }", &[]).unwrap_err();
        assert!(error.contains("GONE"), "{error}");
    }

    #[test]
    fn shown_address_has_no_password() {
        let collector = chosen("endpoint = 'https://user:pass@host:4318/x'", &[]);
        assert_eq!(collector.unwrap().unwrap().shown(), "https://host:4318");
    }
}
