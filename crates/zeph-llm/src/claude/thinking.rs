//! Thinking of Anthropic's models: the form of an effort for each model.

use serde::Serialize;

use super::models::longest_prefix;
use crate::effort::Effort;

/// The minimum number of tokens of thinking that the API accepts.
const MIN_THINKING_TOKENS: u32 = 1_024;

/// How a model is asked to reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reasoning {
    /// With a number of tokens (`thinking.budget_tokens`).
    Budget,
    /// With an effort (`output_config.effort`); the model decides about the tokens.
    Effort,
}

/// Prefixes of the names of older models, and how they are asked to reason. The longest matching prefix wins.
const REASONING: &[(&str, Option<Reasoning>)] = &[
    ("claude-2", None),
    ("claude-instant", None),
    ("claude-3", None),
    ("claude-3-7", Some(Reasoning::Budget)),
    ("claude-opus-4-2", Some(Reasoning::Budget)),
    ("claude-opus-4-0", Some(Reasoning::Budget)),
    ("claude-opus-4-1", Some(Reasoning::Budget)),
    ("claude-opus-4-5", Some(Reasoning::Budget)),
    ("claude-sonnet-4-2", Some(Reasoning::Budget)),
    ("claude-sonnet-4-0", Some(Reasoning::Budget)),
    ("claude-sonnet-4-5", Some(Reasoning::Budget)),
    ("claude-haiku-4-5", Some(Reasoning::Budget)),
    ("claude-", Some(Reasoning::Effort)),
];

/// How `model` is asked to reason; `None` if it does not reason. Compatible servers with models of other names know
/// the older form.
pub(super) fn reasoning(model: &str) -> Option<Reasoning> {
    longest_prefix(REASONING, model).unwrap_or(Some(Reasoning::Budget))
}

/// How the model thinks.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Thinking {
    Disabled,
    Enabled { budget_tokens: u32 },
    Adaptive,
}

impl Thinking {
    /// The form of `effort` for a model with this `reasoning`. `max_tokens` limits the response.
    pub(super) fn new(
        effort: Effort,
        reasoning: Option<Reasoning>,
        max_tokens: u32,
    ) -> Option<Self> {
        match effort {
            Effort::None => Some(Self::Disabled),
            _ if reasoning == Some(Reasoning::Effort) => Some(Self::Adaptive),
            effort => Self::with_budget(effort, max_tokens),
        }
    }

    /// The form for a model that gets a number of tokens: at most three quarters of the response. `None` if the
    /// response is too short for thinking.
    fn with_budget(effort: Effort, max_tokens: u32) -> Option<Self> {
        let budget = match effort {
            Effort::None | Effort::Minimal => return Some(Self::Disabled),
            Effort::Low => 2_048,
            Effort::Medium => 8_192,
            Effort::High => 16_384,
            Effort::Xhigh => 24_576,
            Effort::Max => u32::MAX,
        };
        let budget_tokens = budget.min(max_tokens / 4 * 3);
        (budget_tokens >= MIN_THINKING_TOKENS).then_some(Self::Enabled { budget_tokens })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves LLM-12.
    #[test]
    fn reasoning_form_follows_the_model() {
        for (model, expect) in [
            ("claude-3-5-haiku-latest", None),
            ("claude-3-7-sonnet-latest", Some(Reasoning::Budget)),
            ("claude-sonnet-4-20250514", Some(Reasoning::Budget)),
            ("anthropic/claude-sonnet-4-5", Some(Reasoning::Budget)),
            ("claude-opus-4-6", Some(Reasoning::Effort)),
            ("claude-sonnet-5", Some(Reasoning::Effort)),
            ("glm-4.6", Some(Reasoning::Budget)),
        ] {
            assert_eq!(reasoning(model), expect, "{model}");
        }
    }
}
