//! Configuration of undo: `[tools.undo]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The undo journal for changes by file tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct UndoConfig {
    /// The maximum bytes of old contents that are stored for a session. Above it, the oldest changes are dropped, and a
    /// larger change cannot be undone. 0 stores none.
    pub max_bytes: u64,
}

impl Default for UndoConfig {
    fn default() -> Self {
        Self {
            max_bytes: 64 << 20,
        }
    }
}
