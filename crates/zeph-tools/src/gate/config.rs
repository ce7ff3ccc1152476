//! Configuration of the gates that limit calls: `[tools.anomaly]`, `[tools.utility]`, `[tools.dependencies]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Tools that are never skipped, regardless of the configuration: their results are instructions.
const ALWAYS_EXEMPT: [&str; 2] = ["invoke_skill", "load_skill"];

/// Detection of tools that fail too often (`[tools.anomaly]`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AnomalyConfig {
    /// Whether the failures of each tool are counted.
    pub enabled: bool,
    /// The number of last calls of a tool that are counted. With fewer calls, nothing is reported.
    #[schemars(range(min = 1, max = 10_000))]
    pub window_size: usize,
    /// The fraction of failed calls for a report: more than 0, at most 1.
    #[schemars(range(min = 0, max = 1))]
    pub failure_threshold: f64,
    /// Whether a tool that fails so often is blocked until `/tools unblock NAME`; otherwise only reported.
    pub auto_block: bool,
}

impl Default for AnomalyConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            window_size: 20,
            failure_threshold: 0.7,
            auto_block: true,
        }
    }
}

/// Read-only calls with a low utility are skipped (`[tools.utility]`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct UtilityConfig {
    /// Whether the model's read-only calls are scored, and skipped below the threshold. Calls that change something are never skipped.
    pub enabled: bool,
    /// The minimum score of a call that runs. Scores are between -1 (already known) and 1.
    #[schemars(range(min = -1, max = 1))]
    pub threshold: f64,
    /// Tools that are never skipped; `invoke_skill` and `load_skill` never are.
    pub exempt_tools: Vec<String>,
}

impl Default for UtilityConfig {
    fn default() -> Self {
        Self {
            enabled: false,
            threshold: 0.0,
            exempt_tools: ALWAYS_EXEMPT.map(str::to_owned).to_vec(),
        }
    }
}

impl UtilityConfig {
    /// Whether calls of `tool` are never skipped.
    #[must_use]
    pub(super) fn is_exempt(&self, tool: &str) -> bool {
        ALWAYS_EXEMPT.contains(&tool) || self.exempt_tools.iter().any(|exempt| exempt == tool)
    }
}
