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

/// The value in the row with the longest prefix of `model`. A vendor before a slash (`anthropic/claude-…`) is skipped.
pub(super) fn longest_prefix<T: Copy>(rows: &[(&str, T)], model: &str) -> Option<T> {
    let model = model.rsplit('/').next().unwrap_or(model);
    let fitting = rows.iter().filter(|(prefix, _)| model.starts_with(prefix));
    let longest = fitting.max_by_key(|(prefix, _)| prefix.len());
    longest.map(|(_, value)| *value)
}

fn of(model: &str) -> (usize, u32) {
    longest_prefix(MODELS, model).unwrap_or(DEFAULT)
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

    #[test]
    fn longest_prefix_wins() {
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
