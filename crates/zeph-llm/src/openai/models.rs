//! Known models: their windows, and whether they can reason. A `context_window` in the
//! configuration always wins.

/// The context window of a model that is not in the table.
pub const DEFAULT_CONTEXT_WINDOW: usize = 128_000;

/// Prefix of the model's name, tokens in its window. The longest prefix that fits wins.
const WINDOWS: &[(&str, usize)] = &[
    ("gpt-3.5-turbo", 16_385),
    ("gpt-4", 8_192),
    ("gpt-4-32k", 32_768),
    ("gpt-4-turbo", 128_000),
    ("gpt-4o", 128_000),
    ("gpt-4.1", 1_047_576),
    ("gpt-4.5", 128_000),
    ("gpt-5", 400_000),
    ("o1", 200_000),
    ("o1-mini", 128_000),
    ("o1-preview", 128_000),
    ("o3", 200_000),
    ("o4-mini", 200_000),
];

/// Prefixes of OpenAI's models that do not reason.
const WITHOUT_REASONING: [&str; 4] = ["chatgpt-", "gpt-3.5", "gpt-4", "gpt-5-chat"];

/// Whether a model of OpenAI can reason. A fine-tuned model (`ft:gpt-4.1:…`) is like its base.
pub(crate) fn can_reason(model: &str) -> bool {
    let base = model.strip_prefix("ft:").unwrap_or(model);
    !WITHOUT_REASONING
        .iter()
        .any(|prefix| base.starts_with(prefix))
}

/// The window of `model`. A vendor before a slash (`openai/gpt-4o`) is skipped.
#[must_use]
pub fn context_window(model: &str) -> usize {
    let model = model.rsplit('/').next().unwrap_or(model);
    WINDOWS
        .iter()
        .filter(|(prefix, _)| model.starts_with(prefix))
        .max_by_key(|(prefix, _)| prefix.len())
        .map_or(DEFAULT_CONTEXT_WINDOW, |(_, window)| *window)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longest_prefix_wins() {
        for (model, expect) in [
            ("gpt-4", 8_192),
            ("gpt-4-0613", 8_192),
            ("gpt-4o-mini", 128_000),
            ("gpt-4.1-nano", 1_047_576),
            ("openai/gpt-5-mini", 400_000),
            ("o1-mini-2024", 128_000),
            ("qwen3:8b", DEFAULT_CONTEXT_WINDOW),
            ("", DEFAULT_CONTEXT_WINDOW),
        ] {
            assert_eq!(context_window(model), expect, "{model}");
        }
    }
}
