//! Levels of confidence in filtered output.

use serde::{Deserialize, Serialize};

/// The confidence of a rule in its result. The worst of several levels applies.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum FilterConfidence {
    /// The structure was understood, and only noise was omitted.
    #[default]
    Full,
    /// The output was truncated by size, or facts were restored.
    Partial,
    /// The output was not understood, and no line was omitted on purpose.
    Fallback,
}

impl FilterConfidence {
    /// The name in JSON and tables.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Partial => "partial",
            Self::Fallback => "fallback",
        }
    }

    /// Returns the lower of the two.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        self.max(other)
    }
}
