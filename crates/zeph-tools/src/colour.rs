//! Sequences that set colours: SGR, as ECMA-48 has them (8.3.117).

/// Bytes of a sequence that are looked at.
const LONGEST: usize = 32;

/// The length of the sequence with which `bytes` begin, if it sets colours and nothing but digits and `;` stands in it.
pub(crate) fn colour(bytes: &[u8]) -> Option<usize> {
    let [0x1b, b'[', body @ ..] = bytes else {
        return None;
    };
    let digit = |byte: u8| byte.is_ascii_digit();
    match *body {
        // Most of them are short.
        [b'm', ..] => Some(3),
        [a, b'm', ..] if digit(a) => Some(4),
        [a, b, b'm', ..] if digit(a) && digit(b) => Some(5),
        _ => {
            let end = |byte: &u8| !matches!(byte, b'0'..=b'9' | b';');
            let length = body.iter().take(LONGEST).position(end)?;
            (body[length] == b'm').then_some(length + 3)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_told_from_other_sequences() {
        let check = |text: &str, expect| assert_eq!(colour(text.as_bytes()), expect, "{text:?}");
        check("\x1b[m", Some(3));
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
