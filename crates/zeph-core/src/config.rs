//! Configuration of the agent: `[agent]` and `[agent.compaction]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use zeph_llm::Usd;
use zeph_tools::schema_filter::ToolFilterConfig;

/// The limits of a turn (`[agent]`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AgentConfig {
    /// Rounds of tool calls after which the user is asked whether the turn continues. If it is set, also the maximum of a turn in which no user can answer.
    #[schemars(range(min = 1))]
    pub max_tool_iterations: usize,
    /// Maximum rounds of a turn in which no user can answer, unless `max_tool_iterations` is set.
    #[schemars(range(min = 1))]
    pub max_iterations_per_turn: usize,
    /// Maximum calls of one response; further ones are refused.
    #[schemars(range(min = 1))]
    pub max_calls_per_iteration: usize,
    /// Maximum read-only calls that run concurrently.
    #[schemars(range(min = 1))]
    pub max_parallel_calls: usize,
    /// Tokens that the conversation may take; empty means the model's window. Without compaction the turn stops at 80 %.
    #[schemars(range(min = 1))]
    pub context_budget_tokens: Option<usize>,
    /// Maximum cost of a session in US dollars; empty means no limit. With a limit, models without known prices are not used.
    pub max_cost_usd: Option<Usd>,
    /// Maximum tokens of a session, input and output; empty means no limit.
    #[schemars(range(min = 1))]
    pub max_tokens_per_session: Option<u64>,
    /// The maximum number of hints for the model after wrong arguments in a turn; 0 means none.
    pub max_reflections: usize,
    /// Whether calls are checked for invented arguments: paths that do not exist and were not mentioned, hosts and ids that appear only in the call. Findings are shown and noted in the audit trail; nothing is refused.
    pub hallucination_detection: bool,
    /// Whether calls are checked in this way if the model reasons before it responds.
    pub reasoning_model_detection: bool,
    /// The provider that summarizes older messages; empty means the provider of the conversation.
    pub compress_provider: String,
    /// Compaction of long conversations.
    pub compaction: CompactionConfig,
    /// Which tools the model is offered.
    pub tool_filter: ToolFilterConfig,
}

/// Compaction of long conversations (`[agent.compaction]`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CompactionConfig {
    /// Whether long conversations are compacted automatically and by the tool `compress_context`. `/compact` works at any time.
    pub enabled: bool,
    /// The part of the budget from which on older messages are summarized. Old tool results are evicted first, from 80 % on, if that suffices.
    #[schemars(range(min = 0.1, max = 1.0))]
    pub threshold: f64,
    /// The number of last messages that are not summarized; fewer if they are long.
    #[schemars(range(min = 1))]
    pub keep_recent: usize,
}

impl CompactionConfig {
    /// Returns the number of tokens from which older messages are summarized.
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
            max_iterations_per_turn: 100,
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
