//! The filter feedback layer: detects rules that remove too much, by the model's next calls.
//!
//! It does not filter. The shell executor filters output as it arrives, without storing it.

use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use serde_json::Value;

use super::{Next, ToolLayer};
use crate::call::ToolCall;
use crate::context::{CallContext, Origin};
use crate::error::ToolError;
use crate::feedback::ToolResult;
use crate::filter::FilterPipeline;
use crate::overflow::{Overflow, OverflowRef};
use crate::read_overflow::READ_OVERFLOW;
use crate::shell::bash::BASH;

/// The layer that reports the calls of the model to the filters.
pub struct FilterLayer {
    filters: Arc<FilterPipeline>,
}

impl FilterLayer {
    /// Creates a layer that reports the actions of the model to `filters`.
    #[must_use]
    pub fn new(filters: Arc<FilterPipeline>) -> Self {
        Self { filters }
    }
}

fn text<'c>(call: &'c ToolCall, parameter: &str) -> Option<&'c str> {
    call.params.get(parameter).and_then(Value::as_str)
}

#[async_trait]
impl ToolLayer for FilterLayer {
    fn name(&self) -> &'static str {
        "filter"
    }

    fn is_gate(&self) -> bool {
        false
    }

    async fn handle(&self, call: &ToolCall, cx: &CallContext, next: Next<'_>) -> ToolResult {
        let of_model = cx.origin == Origin::Model;
        let command = (call.tool == BASH).then(|| text(call, "command")).flatten();
        match (command, text(call, "id")) {
            (Some(command), _) if of_model => {
                self.filters.on_command_start(command, Instant::now())
            }
            (None, Some(id)) if call.tool == READ_OVERFLOW => {
                if let Ok(reference) = id.parse::<OverflowRef>() {
                    self.filters.on_recall(&reference.to_string());
                }
            }
            _ => self.filters.on_other_action(),
        }
        let result = next.run(call, cx).await;
        let output = match &result {
            Ok(output) => Some(output),
            Err(error) => ToolError::output(error),
        };
        if let (Some(command), Some(output), true) = (command, output, of_model)
            && let Some(stats) = &output.filter
        {
            let reference = match &output.overflow {
                Some(Overflow::Stored(reference)) => Some(reference.to_string()),
                _ => None,
            };
            let now = Instant::now();
            self.filters
                .shortened(command, &stats.rule, reference.as_deref(), now);
        }
        result
    }

    fn requires_confirmation(&self, _call: &ToolCall) -> bool {
        false
    }
}
