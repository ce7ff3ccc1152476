//! Configuration of what is read of output: `[tools.filters]`.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::secrets::SecurityConfig;

/// What the model reads of output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FiltersConfig {
    /// Whether rules leave out what is noise; escapes and progress bars go in any case.
    pub enabled: bool,
    /// The file with rules of your own; without it `filters.toml` beside the user's configuration, if it is there.
    pub filters_path: Option<PathBuf>,
    /// Secrets in output.
    pub security: SecurityConfig,
}

impl Default for FiltersConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            filters_path: None,
            security: SecurityConfig::default(),
        }
    }
}
