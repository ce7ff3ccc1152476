//! Configuration of what is read of output: `[tools.filters]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::secrets::SecurityConfig;

/// What the model reads of output.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FiltersConfig {
    /// Secrets in output.
    pub security: SecurityConfig,
}
