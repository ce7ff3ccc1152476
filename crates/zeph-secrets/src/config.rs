//! Configuration of secrets in output: `[tools.filters.security]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The handling of secrets in the output of tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SecurityConfig {
    /// Whether the values of secrets are replaced by `[redacted:KIND]`; otherwise there is only a warning. The audit trail and logs never contain them.
    pub redact: bool,
    /// Patterns in addition to the built-in ones.
    pub extra_patterns: Vec<ExtraPattern>,
}

impl Default for SecurityConfig {
    fn default() -> Self {
        Self {
            redact: true,
            extra_patterns: Vec::new(),
        }
    }
}

/// A pattern of secrets (`[[tools.filters.security.extra_patterns]]`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExtraPattern {
    /// The name shown instead of a value: letters, digits, `_` and `-`.
    pub name: String,
    /// A regular expression of at most 512 characters that is found within a line; its first group is the value, without one all of it is.
    pub pattern: String,
}
