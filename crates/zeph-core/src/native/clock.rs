//! `get_current_time`.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use zeph_tools::def::CachePolicy;
use zeph_tools::{Annotations, CallContext, Tool, ToolCall, ToolDef, ToolError, ToolOutput};

/// No parameters.
#[derive(Debug, Deserialize, JsonSchema)]
struct Params {}

/// The tool `get_current_time`, which returns the time of this machine.
pub struct GetCurrentTime {
    def: ToolDef,
}

impl Default for GetCurrentTime {
    fn default() -> Self {
        Self {
            def: ToolDef::new::<Params>(
                "get_current_time",
                "Date and time; never guess them.",
                Annotations {
                    idempotent: false,
                    ..Annotations::READ
                },
            )
            .with_cache(CachePolicy::LEAVES_FILES),
        }
    }
}

#[async_trait]
impl Tool for GetCurrentTime {
    fn definition(&self) -> &ToolDef {
        &self.def
    }

    async fn run(&self, _call: &ToolCall, _cx: &CallContext) -> Result<ToolOutput, ToolError> {
        let now = jiff::Zoned::now();
        Ok(ToolOutput::text(
            now.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(),
        ))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn current_time_is_iso_8601_with_offset() {
        let call = ToolCall::new("c", "get_current_time", serde_json::json!({}), "s");
        let output = GetCurrentTime::default()
            .run(&call, &CallContext::headless())
            .await
            .unwrap();
        let text = output.summary;
        let parsed = jiff::fmt::temporal::DateTimeParser::new()
            .parse_timestamp(&text)
            .unwrap();
        let age = jiff::Timestamp::now().as_second() - parsed.as_second();
        assert!((0..5).contains(&age), "{text}");
        assert_eq!(text.len(), "2026-01-01T00:00:00+00:00".len(), "{text}");
    }
}
