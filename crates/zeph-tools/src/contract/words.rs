//! Words of a text that the user typed, such as the arguments of a command.

/// The replacement of `#`, which would begin a comment. The character is not assigned.
const HASH: &str = "\u{10fffe}";

/// Splits a text into words; `None` if a quote is not closed. Quotes group words as in a shell, and `#` is an ordinary
/// character.
#[must_use]
pub fn split_words(text: &str) -> Option<Vec<String>> {
    let words = shlex::split(&text.replace('#', HASH))?;
    Some(words.iter().map(|word| word.replace(HASH, "#")).collect())
}
