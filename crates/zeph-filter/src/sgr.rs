//! SGR sequences, which set colours (ECMA-48, 8.3.117).

/// The maximum length of a recognized sequence in bytes.
const MAX_SEQUENCE_BYTES: usize = 32;

/// The length of the SGR sequence at the start of `bytes`, if it contains only digits and `;`.
pub(crate) fn colour(bytes: &[u8]) -> Option<usize> {
    // Most sequences are short.
    if let Some([0x1b, b'[', a, b, c]) = bytes.first_chunk() {
        if *a == b'm' {
            return Some(3);
        }
        if a.is_ascii_digit() && *b == b'm' {
            return Some(4);
        }
        if a.is_ascii_digit() && b.is_ascii_digit() && *c == b'm' {
            return Some(5);
        }
    }
    let [0x1b, b'[', body @ ..] = bytes else {
        return None;
    };
    let end = |byte: &u8| !matches!(byte, b'0'..=b'9' | b';');
    let length = body.iter().take(MAX_SEQUENCE_BYTES).position(end)?;
    (body[length] == b'm').then_some(length + 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_told_from_other_sequences() {
        let check = |text: &str, expect| assert_eq!(colour(text.as_bytes()), expect, "{text:?}");
        check("\x1b[m", Some(3));
        check("\x1b[1m", Some(4));
        check("\x1b[1mx", Some(4));
        check("\x1b[31mx", Some(5));
        check("\x1b[;mx", Some(4));
        check("\x1b[38;5;245mx", Some(11));
        check("\x1b[2K", None);
        check("\x1b[:m", None);
        check("\x1b[1:m", None);
        check("\x1b[31", None);
        check("\x1b]m", None);
        check(&format!("\x1b[{}m", "1".repeat(40)), None);
    }
}
