//! Texts from servers in messages.

/// The maximum number of characters of a text from a server in a message.
const MAX_SHOWN_CHARS: usize = 120;

/// Returns the start of a text of a server, without control characters, for a message.
#[must_use]
pub fn printable_start(text: &str) -> String {
    let printable = text.chars().filter(|c| !c.is_control());
    printable.take(MAX_SHOWN_CHARS).collect()
}
