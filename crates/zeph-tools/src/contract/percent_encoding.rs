//! Percent-encoding of URLs (RFC 3986).

/// Decodes each `%XX`. All other text is unchanged. The result may not be UTF-8.
#[must_use]
pub fn percent_decoded(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let decoded = match tail {
            [high, low, after @ ..] if *first == b'%' => {
                hex_byte(*high, *low).map(|byte| (byte, after))
            }
            _ => None,
        };
        let (byte, after) = decoded.unwrap_or((*first, tail));
        bytes.push(byte);
        rest = after;
    }
    bytes
}

/// The byte of two hexadecimal digits.
fn hex_byte(high: u8, low: u8) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    u8::try_from(digit(high)? * 16 + digit(low)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_two_hex_digits_are_decoded() {
        let check = |text: &str, expect: &str| {
            assert_eq!(percent_decoded(text), expect.as_bytes(), "{text}");
        };
        check("", "");
        check("/a%20b%2eRS%2F%C3%a9", "/a b.RS/é");
        check("%2525", "%25");
        for unchanged in ["%", "%2", "%+f", "%-1", "% 1", "%g0", "%é", "é%"] {
            check(unchanged, unchanged);
        }
        assert_eq!(percent_decoded("%ff"), [0xff]);
    }
}
