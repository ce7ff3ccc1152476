//! Redaction of known values in a text that arrives in pieces, such as a model's response.

use std::sync::Arc;

use crate::SecurityPatterns;

/// A redactor of known values in a stream. It applies no patterns, so the model's own text is unchanged.
#[derive(Debug)]
pub struct KnownStream {
    secrets: Arc<SecurityPatterns>,
    /// The end of the text so far, if a value may begin with it.
    held: String,
}

impl KnownStream {
    /// Returns a stream that replaces the known values of `secrets`.
    #[must_use]
    pub fn new(secrets: Arc<SecurityPatterns>) -> Self {
        Self {
            secrets,
            held: String::new(),
        }
    }

    /// Takes the next piece, and returns the text that is ready.
    #[must_use]
    pub fn push(&mut self, text: &str) -> String {
        let mut text = std::mem::take(&mut self.held) + text;
        let held = self.secrets.known.load().begun(&text);
        // `begun` counts bytes. A value in an encoded form can begin inside of a character.
        let at = (0..=text.len() - held)
            .rev()
            .find(|at| text.is_char_boundary(*at));
        self.held = text.split_off(at.unwrap_or_default());
        self.secrets.redact_known(&text).into_owned()
    }

    /// Returns the rest of the text at the end of the stream.
    #[must_use]
    pub fn finish(&mut self) -> String {
        let rest = std::mem::take(&mut self.held);
        self.secrets.redact_known(&rest).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{KnownSecrets, SecurityConfig};

    /// A value that is added during a stream is redacted from then on.
    #[test]
    fn added_value_is_redacted() {
        let secrets = Arc::new(SecurityPatterns::default());
        let mut stream = KnownStream::new(Arc::clone(&secrets));
        let token = "refreshed-0123456789abcdef";
        assert_eq!(stream.push(&format!("{token} ")), format!("{token} "));
        secrets.add(&[token.to_owned()]);
        let shown = stream.push(&format!("{token} ")) + &stream.finish();
        assert_eq!(shown, "[redacted:known_secret] ");
        assert!(!secrets.redact(&format!("x={token}")).text.contains(token));
    }

    const KEY: &str = "sk-known-0123456789abcdef";

    fn stream() -> KnownStream {
        let known = KnownSecrets {
            keys: vec![KEY.to_owned()],
            likely: Vec::new(),
        };
        KnownStream::new(Arc::new(
            SecurityPatterns::new(&SecurityConfig::default(), &known).0,
        ))
    }

    #[test]
    fn text_without_a_value_prefix_is_not_buffered() {
        let mut stream = stream();
        assert_eq!(stream.push("the answer."), "the answer.");
        assert_eq!(stream.push("it is"), "it i");
        assert_eq!(stream.push(" so"), "s so");
        assert_eq!(stream.finish(), "");
    }

    proptest! {
        /// Proves OUT-21: a known value is replaced however the stream is cut into pieces.
        #[test]
        fn value_in_pieces_is_replaced(cuts in prop::collection::vec(0usize..60, 0..6), lead in "[a-zäs-]{0,12}") {
            let text = format!("{lead}{KEY} and {KEY}é");
            let mut cuts: Vec<usize> = cuts.into_iter().filter(|at| text.is_char_boundary(*at)).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let mut stream = stream();
            let mut out = String::new();
            for pair in cuts.windows(2) {
                out.push_str(&stream.push(text.get(pair[0]..pair[1]).unwrap_or_default()));
            }
            out.push_str(&stream.finish());
            prop_assert_eq!(out, text.replace(KEY, "[redacted:known_secret]"));
        }
    }
}
