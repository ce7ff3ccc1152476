//! The trust level of the origin of a call.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::def::{Annotations, Risk};

/// Says which calls need no question: `Untrusted` none but safe reads, `Provisional` reads,
/// `Trusted` as the rules say. The order is that of trust.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Default,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum TrustLevel {
    /// Nothing but safe reads goes without a question.
    Untrusted,
    /// Reads go without a question.
    Provisional,
    /// The rules decide.
    #[default]
    Trusted,
}

impl TrustLevel {
    /// Returns the name in audit entries.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Untrusted => "untrusted",
            Self::Provisional => "provisional",
            Self::Trusted => "trusted",
        }
    }

    /// Whether the trust level allows a call of a tool of this nature without confirmation.
    #[must_use]
    pub fn allows(self, nature: &Annotations) -> bool {
        match self {
            Self::Trusted => true,
            Self::Provisional => nature.read_only,
            Self::Untrusted => nature.read_only && nature.risk == Risk::Safe && !nature.open_world,
        }
    }
}
