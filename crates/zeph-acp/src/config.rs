//! The section `[acp]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Sessions of editors (`[acp]`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AcpConfig {
    /// The time limit of a command in a terminal of the editor, in seconds. A shorter limit of the command applies first.
    #[schemars(range(min = 1, max = 86_400))]
    pub terminal_timeout_secs: u64,
    /// The time in seconds after which an editor that reads nothing is treated as disconnected. Its sessions are stored.
    #[schemars(range(min = 1, max = 86_400))]
    pub unread_timeout_secs: u64,
}

impl Default for AcpConfig {
    fn default() -> Self {
        Self {
            terminal_timeout_secs: 120,
            unread_timeout_secs: 60,
        }
    }
}
