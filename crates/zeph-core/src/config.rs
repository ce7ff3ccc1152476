//! Configuration of the loop: `[agent]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use zeph_llm::Usd;
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
    /// What a session may cost in US dollars; empty means anything. Once it cost as much no more is asked, and a model whose price is not known is not asked at all.
    pub max_cost_usd: Option<Usd>,
    /// How many tokens a session may take, read and written; empty means any number.
    #[schemars(range(min = 1))]
    pub max_tokens_per_session: Option<u64>,
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
            max_cost_usd: None,
            max_tokens_per_session: None,
            tool_filter: ToolFilterConfig::default(),
        }
    }
}
