//! Overrides of rules in the configuration: `[tools.filters.rules]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Changes of the rules that a key of `[tools.filters.rules]` names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RuleOverride {
    /// Whether the rules are used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Failing tests that are shown with their output.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100_000))]
    pub max_failures: Option<usize>,
    /// Frames of a stack trace that are shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100_000))]
    pub truncate_stack_trace: Option<usize>,
    /// Lines of a diff that are shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100_000))]
    pub max_diff_lines: Option<usize>,
    /// Commits of a long log that are listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100_000))]
    pub max_commits: Option<usize>,
}
