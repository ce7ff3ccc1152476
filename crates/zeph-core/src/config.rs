//! Configuration of the loop: `[agent]`, and of what makes room in it: `[agent.compaction]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use zeph_llm::Usd;
use zeph_tools::schema_filter::ToolFilterConfig;

/// The limits of a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
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
    /// Tokens that the conversation may take; empty means the model's window. Without compaction the turn stops at 80 %.
    #[schemars(range(min = 1))]
    pub context_budget_tokens: Option<usize>,
    /// What a session may cost in US dollars; empty means anything. Once it cost as much no more is asked, and a model whose price is not known is not asked at all.
    pub max_cost_usd: Option<Usd>,
    /// How many tokens a session may take, read and written; empty means any number.
    #[schemars(range(min = 1))]
    pub max_tokens_per_session: Option<u64>,
    /// How often in a turn the model is asked to reconsider, after calls whose arguments were wrong; 0 means never.
    pub max_reflections: usize,
    /// Whether calls are looked at for what may be made up: paths that do not exist and were not mentioned, hosts and ids that stand in the call alone. It is told and noted in the audit trail; nothing is refused.
    pub hallucination_detection: bool,
    /// The same for models that reason before they answer.
    pub reasoning_model_detection: bool,
    /// The provider that sums up older messages; empty means the one that is asked.
    pub compress_provider: String,
    /// How a long conversation makes room.
    pub compaction: CompactionConfig,
    /// Which tools the model is offered.
    pub tool_filter: ToolFilterConfig,
}

/// How a long conversation makes room (`[agent.compaction]`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CompactionConfig {
    /// Whether a long conversation makes room by itself, and the model may ask for it (`compress_context`). `/compact` does so at any time.
    pub enabled: bool,
    /// The part of the budget from which on older messages are summed up. Old results of tools make room before, from 80 % on, where that is enough.
    #[schemars(range(min = 0.1, max = 1.0))]
    pub threshold: f64,
    /// How many of the last messages are not summed up; fewer where they are long.
    #[schemars(range(min = 1))]
    pub keep_recent: usize,
}

impl CompactionConfig {
    /// The tokens from which on older messages are summed up.
    #[must_use]
    pub fn tokens(&self, budget: usize) -> usize {
        #[allow(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss
        )]
        let tokens = (budget as f64 * self.threshold) as usize;
        tokens
    }
}

impl Default for CompactionConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            threshold: 0.9,
            keep_recent: 10,
        }
    }
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
            max_reflections: 2,
            hallucination_detection: false,
            reasoning_model_detection: false,
            compress_provider: String::new(),
            compaction: CompactionConfig::default(),
            tool_filter: ToolFilterConfig::default(),
        }
    }
}
