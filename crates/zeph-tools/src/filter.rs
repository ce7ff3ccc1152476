//! The output filter (crate `zeph-filter`) and its configuration: `[tools.filters]`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
pub use zeph_filter::*;

use crate::secrets::SecurityConfig;

/// Filters of command output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FiltersConfig {
    /// Whether rules remove noise; escapes and overwritten text are always removed.
    pub enabled: bool,
    /// The file with your own rules; by default `filters.toml` next to the user's configuration, if it exists.
    pub filters_path: Option<PathBuf>,
    /// Changes of rules, by the name of a rule (`cargo-test`), a glob of names (`git-*`), or the type of a strategy that a rule uses (`test_summary`): `enabled`, `max_failures`, `truncate_stack_trace`, `max_diff_lines`, `max_commits`.
    pub rules: BTreeMap<String, RuleOverride>,
    /// Secrets in output.
    pub security: SecurityConfig,
}

impl Default for FiltersConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            filters_path: None,
            rules: BTreeMap::new(),
            security: SecurityConfig::default(),
        }
    }
}
