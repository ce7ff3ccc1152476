//! The part of a program's output that remains on the screen.
//!
//! A full-screen program draws on the alternate screen of the terminal (xterm control sequences, private modes 47, 1047 and
//! 1049). This text is gone after the program ends, so it is not recorded.

/// The maximum number of bytes of a control sequence that is inspected.
const MAX_SEQUENCE_BYTES: usize = 32;
/// The text in place of the alternate screen.
const OMITTED: &[u8] = b"[the screen of a full-screen program is not recorded]\n";

/// Removes the text of the alternate screen from output that arrives in pieces.
#[derive(Debug, Default)]
pub(super) struct AlternateScreen {
    is_active: bool,
    /// The start of a control sequence that is not complete.
    sequence: Vec<u8>,
    has_sequences: bool,
}

impl AlternateScreen {
    /// Whether the alternate screen is shown.
    pub(super) fn is_active(&self) -> bool {
        self.is_active
    }

    /// Whether the output had control sequences, which may have changed the state of the terminal.
    pub(super) fn has_sequences(&self) -> bool {
        self.has_sequences
    }

    /// Returns the part of `bytes` that is not on the alternate screen.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes.len());
        for byte in bytes {
            if *byte == 0x1b {
                self.flush(&mut out);
                self.has_sequences = true;
            } else if self.sequence.is_empty() {
                if !self.is_active {
                    out.push(*byte);
                }
                continue;
            }
            self.sequence.push(*byte);
            let is_complete = match self.sequence.as_slice() {
                [_] | [_, b'['] => false,
                [_, b'[', .., last] => (0x40..=0x7e).contains(last),
                _ => true,
            };
            if is_complete {
                self.switch(&mut out);
            }
            if is_complete || self.sequence.len() >= MAX_SEQUENCE_BYTES {
                self.flush(&mut out);
            }
        }
        out
    }

    /// Applies the complete sequence if it shows or leaves the alternate screen.
    fn switch(&mut self, out: &mut Vec<u8>) {
        let (Some(body), Some(last)) =
            (self.sequence.strip_prefix(b"\x1b[?"), self.sequence.last())
        else {
            return;
        };
        let modes = body.split_last().map_or(&body[..0], |(_, modes)| modes);
        let is_switch = modes
            .split(|byte| *byte == b';')
            .any(|mode| matches!(mode, b"47" | b"1047" | b"1049"));
        match last {
            b'h' if is_switch && !self.is_active => {
                self.flush(out);
                out.extend_from_slice(OMITTED);
                self.is_active = true;
            }
            b'l' if is_switch => {
                self.sequence.clear();
                self.is_active = false;
            }
            _ => {}
        }
    }

    fn flush(&mut self, out: &mut Vec<u8>) {
        if !self.is_active {
            out.extend_from_slice(&self.sequence);
        }
        self.sequence.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves D-42: the conversation gets the text that remains on the screen.
    #[test]
    fn alternate_screen_is_not_recorded() {
        let check = |text: &str, expect: &str| {
            // In one piece, and byte by byte.
            for size in [text.len().max(1), 1] {
                let mut screen = AlternateScreen::default();
                let mut out = Vec::new();
                for piece in text.as_bytes().chunks(size) {
                    out.extend(screen.push(piece));
                }
                assert_eq!(String::from_utf8(out).unwrap(), expect, "{text:?}");
            }
        };
        let omitted = std::str::from_utf8(OMITTED).unwrap();
        check("plain\r\n", "plain\r\n");
        check("\x1b[31mred\x1b[0m", "\x1b[31mred\x1b[0m");
        check(
            "a\n\x1b[?1049hdrawn\x1b[2J\x1b[?1049lb\n",
            &format!("a\n\x1b[?1049h{omitted}b\n"),
        );
        check("\x1b[?1;47hx\x1b[?47ly", &format!("\x1b[?1;47h{omitted}y"));
        check("\x1b[?1049hnever left", &format!("\x1b[?1049h{omitted}"));
        check("\x1b(Bx\x1b]0;t\x07y", "\x1b(Bx\x1b]0;t\x07y");
    }
}
