//! The clipboard of the terminal, by OSC 52. It works over SSH, because the terminal itself sets the clipboard.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The sequence that sets the clipboard to `text`.
///
/// tmux forwards it inside of its passthrough sequence (`allow-passthrough on`), or sets the clipboard itself
/// (`set-clipboard on`). Therefore, both forms are sent to it.
pub(crate) fn sequence(text: &str, is_in_tmux: bool) -> String {
    let set = format!("\x1b]52;c;{}\x07", STANDARD.encode(text));
    match is_in_tmux {
        true => format!("{set}\x1bPtmux;\x1b{set}\x1b\\"),
        false => set,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves CLI-8.
    #[test]
    fn sequence_has_the_text_in_base64() {
        assert_eq!(sequence("# Hé", false), "\x1b]52;c;IyBIw6k=\x07");
        assert_eq!(
            sequence("a", true),
            "\x1b]52;c;YQ==\x07\x1bPtmux;\x1b\x1b]52;c;YQ==\x07\x1b\\"
        );
    }
}
