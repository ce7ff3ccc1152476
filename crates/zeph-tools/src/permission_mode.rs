//! How freely the agent acts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The mode of a session. What a gate denies stays denied in every mode.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Read-only tools alone.
    Plan,
    /// Whatever changes something is asked about.
    #[default]
    Ask,
    /// Changes of files inside the sandbox need no question.
    AutoEdit,
    /// Nothing is asked about.
    Full,
}

impl Mode {
    /// The name in the configuration.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::Ask => "ask",
            Self::AutoEdit => "auto-edit",
            Self::Full => "full",
        }
    }
}
