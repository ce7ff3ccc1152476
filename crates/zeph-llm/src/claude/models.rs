//! Windows and output limits of known models. The configuration always wins.

/// The defaults for a model that is not in the table: tokens of the window, tokens of a response. Any model of the
/// API allows these.
const DEFAULT: (usize, u32) = (200_000, 8_192);

/// Prefix of the model's name, tokens in its window, and the default maximum of tokens of a response. The longest
/// matching prefix wins.
const MODELS: &[(&str, (usize, u32))] = &[
    ("claude-2", (100_000, 4_096)),
    ("claude-2.1", (200_000, 4_096)),
    ("claude-instant", (100_000, 4_096)),
    ("claude-3-haiku", (200_000, 4_096)),
    ("claude-3-sonnet", (200_000, 4_096)),
    ("claude-3-opus", (200_000, 4_096)),
    ("claude-3-5", (200_000, 8_192)),
    ("claude-3-7", (200_000, 32_000)),
    ("claude-opus-4", (200_000, 32_000)),
    ("claude-sonnet-4", (200_000, 32_000)),
    ("claude-haiku-4", (200_000, 32_000)),
];

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
    let model = model.rsplit('/').next().unwrap_or(model);
    REASONING
        .iter()
        .filter(|(prefix, _)| model.starts_with(prefix))
        .max_by_key(|(prefix, _)| prefix.len())
        .map_or(Some(Reasoning::Budget), |(_, reasoning)| *reasoning)
}

fn of(model: &str) -> (usize, u32) {
    let model = model.rsplit('/').next().unwrap_or(model);
    MODELS
        .iter()
        .filter(|(prefix, _)| model.starts_with(prefix))
        .max_by_key(|(prefix, _)| prefix.len())
        .map_or(DEFAULT, |(_, limits)| *limits)
}

/// The window of `model`, in tokens. A vendor before a slash (`anthropic/claude-…`) is skipped.
#[must_use]
pub fn context_window(model: &str) -> usize {
    of(model).0
}

/// The maximum number of tokens of a response of `model`. The API requires a limit in every request.
#[must_use]
pub fn max_output_tokens(model: &str) -> u32 {
    of(model).1
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves LLM-12.
    #[test]
    fn models_reason_in_the_form_they_know() {
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

    #[test]
    fn the_longest_prefix_wins() {
        for (model, expect) in [
            ("claude-2.1", (200_000, 4_096)),
            ("claude-3-5-haiku-latest", (200_000, 8_192)),
            ("anthropic/claude-sonnet-4-5", (200_000, 32_000)),
            ("claude-new", DEFAULT),
            ("", DEFAULT),
        ] {
            assert_eq!(
                (context_window(model), max_output_tokens(model)),
                expect,
                "{model}"
            );
        }
    }
}
