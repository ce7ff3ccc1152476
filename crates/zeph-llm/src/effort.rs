//! How much a model reasons before it responds, and the values that each API accepts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::ProviderKind;

/// How much a model reasons.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Effort {
    /// Not at all.
    None,
    /// As little as possible.
    Minimal,
    /// A little.
    Low,
    /// A moderate amount.
    Medium,
    /// Much.
    High,
    /// More than `high`.
    Xhigh,
    /// As much as possible.
    Max,
}

impl Effort {
    /// All values.
    const ALL: [Self; 7] = [
        Self::None,
        Self::Minimal,
        Self::Low,
        Self::Medium,
        Self::High,
        Self::Xhigh,
        Self::Max,
    ];

    /// The name in the configuration and in requests.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Xhigh => "xhigh",
            Self::Max => "max",
        }
    }

    /// The values that an API accepts; empty for a provider without such a setting.
    #[must_use]
    pub fn allowed(kind: ProviderKind) -> &'static [Self] {
        const CLAUDE: [Effort; 6] = [
            Effort::None,
            Effort::Low,
            Effort::Medium,
            Effort::High,
            Effort::Xhigh,
            Effort::Max,
        ];
        const OLLAMA: [Effort; 4] = [Effort::None, Effort::Low, Effort::Medium, Effort::High];
        match kind {
            ProviderKind::Openai => &Self::ALL,
            ProviderKind::Claude => &CLAUDE,
            ProviderKind::Ollama => &OLLAMA,
            ProviderKind::Candle | ProviderKind::Scripted => &[],
        }
    }

    /// Parses a value for an API.
    ///
    /// # Errors
    /// A message that lists the accepted values.
    pub fn parse(text: &str, kind: ProviderKind) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|effort| effort.as_str() == text);
        match known.filter(|effort| Self::allowed(kind).contains(effort)) {
            Some(effort) => Ok(effort),
            None => Err(refusal(text, kind)),
        }
    }

    /// The reason why an API does not accept this value.
    pub(crate) fn fault(self, kind: ProviderKind) -> Option<String> {
        (!Self::allowed(kind).contains(&self)).then(|| refusal(self.as_str(), kind))
    }
}

fn refusal(text: &str, kind: ProviderKind) -> String {
    let allowed = Effort::allowed(kind);
    let wire = kind.as_str();
    if allowed.is_empty() {
        return format!("`effort` has no meaning for `type = \"{wire}\"`: remove it");
    }
    let names: Vec<&str> = allowed.iter().map(|effort| effort.as_str()).collect();
    format!(
        "`effort` = {text:?} is not possible for `type = \"{wire}\"`: use one of {}",
        names.join(", ")
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// Proves LLM-12.
    #[test]
    fn unknown_values_list_the_allowed_ones() {
        for (text, kind, expect) in [
            ("xhigh", ProviderKind::Openai, Ok(Effort::Xhigh)),
            ("none", ProviderKind::Claude, Ok(Effort::None)),
            (
                "minimal",
                ProviderKind::Claude,
                Err("use one of none, low, medium, high, xhigh, max"),
            ),
            (
                "max",
                ProviderKind::Ollama,
                Err("use one of none, low, medium, high"),
            ),
            (
                "hihg",
                ProviderKind::Openai,
                Err("\"hihg\" is not possible"),
            ),
            ("low", ProviderKind::Candle, Err("has no meaning")),
        ] {
            match (Effort::parse(text, kind), expect) {
                (Ok(found), Ok(expect)) => assert_eq!(found, expect),
                (Err(found), Err(expect)) => assert!(found.contains(expect), "{found}"),
                (found, _) => panic!("{text}: {found:?}"),
            }
        }
        for effort in Effort::ALL {
            assert_eq!(serde_json::to_value(effort).unwrap(), effort.as_str());
        }
    }
}
