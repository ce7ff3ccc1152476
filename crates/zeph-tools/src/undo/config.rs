//! Configuration of undo: `[tools.undo]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What can be undone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct UndoConfig {
    /// The most bytes of old contents that are kept of a session; the oldest changes are dropped beyond it, and a larger one cannot be undone. 0 keeps none.
    pub max_bytes: u64,
}

impl Default for UndoConfig {
    fn default() -> Self {
        Self {
            max_bytes: 64 << 20,
        }
    }
}
