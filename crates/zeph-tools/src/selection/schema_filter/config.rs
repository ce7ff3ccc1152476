//! Configuration of the schema filter.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Configuration: `[agent.tool_filter]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ToolFilterConfig {
    /// Whether the model is offered only tools that are near to the request.
    pub enabled: bool,
    /// How many of the nearest tools are offered, plus those that always are.
    pub top_k: usize,
    /// A tool whose description has fewer words is always offered: they say too little to compare.
    pub min_description_words: usize,
    /// Tools that are always offered.
    pub always_on: Vec<String>,
}

impl Default for ToolFilterConfig {
    fn default() -> Self {
        Self {
            enabled: false,
            top_k: 10,
            min_description_words: 3,
            always_on: ["memory_search", "memory_save", "load_skill", "scheduler"]
                .map(str::to_owned)
                .to_vec(),
        }
    }
}
