//! Configuration of the tool `diagnostics`: `[tools.diagnostics]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The tool `diagnostics` (`[tools.diagnostics]`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DiagnosticsConfig {
    /// Diagnostics that one call returns, unless the call has its own `max_diagnostics`.
    #[schemars(range(min = 1, max = 100_000))]
    pub max_diagnostics: usize,
}

impl Default for DiagnosticsConfig {
    fn default() -> Self {
        Self {
            max_diagnostics: 50,
        }
    }
}
