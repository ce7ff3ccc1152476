//! Configuration of the loop: `[agent]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use zeph_tools::schema_filter::ToolFilterConfig;

/// The limits of a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AgentConfig {
    /// How often the model may ask for calls in one turn.
    #[schemars(range(min = 1))]
    pub max_tool_iterations: usize,
    /// How many calls of one answer run; the rest is refused.
    #[schemars(range(min = 1))]
    pub max_calls_per_iteration: usize,
    /// How many read-only calls of one answer run at the same time.
    #[schemars(range(min = 1))]
    pub max_parallel_calls: usize,
    /// Tokens that the conversation may take; empty means the model's window. The turn stops at 80 %.
    #[schemars(range(min = 1))]
    pub context_budget_tokens: Option<usize>,
    /// Which tools the model is offered.
    pub tool_filter: ToolFilterConfig,
}

impl Default for AgentConfig {
    fn default() -> Self {
        Self {
            max_tool_iterations: 10,
            max_calls_per_iteration: 15,
            max_parallel_calls: 8,
            context_budget_tokens: None,
            tool_filter: ToolFilterConfig::default(),
        }
    }
}
