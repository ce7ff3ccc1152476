//! The permission mode of a session.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The mode of a session. A denied call stays denied in every mode.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Read-only tools alone.
    Plan,
    /// A question is asked before any change.
    #[default]
    Ask,
    /// Changes of files inside the sandbox need no question.
    AutoEdit,
    /// Nothing is asked about.
    Full,
}

impl Mode {
    /// Returns the name in the configuration.
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
