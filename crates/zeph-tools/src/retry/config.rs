//! Configuration of retries: `[tools.retry]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Retries of failed tool calls (`[tools.retry]`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ToolRetryConfig {
    /// The maximum number of retries of a failed call; 0 means none.
    pub max_attempts: u32,
    /// The maximum of the first wait in milliseconds; the maximum doubles with each further wait.
    pub base_ms: u64,
    /// The maximum of any wait in milliseconds, unless a server requests a longer one.
    pub max_ms: u64,
    /// Seconds after which no retry of a call begins, and the time limit of a request for correct arguments.
    pub budget_secs: u64,
    /// The provider that corrects invalid arguments of a call, once; empty means the provider of the call.
    pub parameter_reformat_provider: String,
}

impl Default for ToolRetryConfig {
    fn default() -> Self {
        Self {
            max_attempts: 2,
            base_ms: 500,
            max_ms: 5000,
            budget_secs: 30,
            parameter_reformat_provider: String::new(),
        }
    }
}
