//! How well an output was understood.

use serde::{Deserialize, Serialize};

/// How well a rule understood an output. The worst of several counts.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum FilterConfidence {
    /// The structure was understood; what is left out is noise.
    #[default]
    Full,
    /// Something was cut by size, or had to be put back.
    Partial,
    /// It was not understood; nothing was left out on purpose.
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

    /// The worse of the two.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        self.max(other)
    }
}
