//! Configuration of the schema filter.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Selection of the tools that the model receives (`[agent.tool_filter]`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ToolFilterConfig {
    /// Whether the model only receives the tools that are similar to the request.
    pub enabled: bool,
    /// The number of most similar tools that the model receives, in addition to `always_on`.
    pub top_k: usize,
    /// A tool with fewer words in its description is always available, because they are too few to compare.
    pub min_description_words: usize,
    /// Tools that are always available to the model.
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
