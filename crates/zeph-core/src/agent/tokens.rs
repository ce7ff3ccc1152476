//! Estimate of the tokens of a conversation, corrected by the provider's counts.

use zeph_llm::{Message, MessagePart, Usage};
use zeph_tools::ToolRegistry;

/// Bytes per token of the fixed part. Prose and tool definitions have 4.2; the lower figure overestimates.
const BYTES_PER_TOKEN: f64 = 3.6;
/// Tokens of the frame of a message.
const TOKENS_PER_MESSAGE: usize = 4;
/// Tokens of an image.
const IMAGE_TOKENS: usize = 1500;

/// The largest plausible ratio of a true count to the estimate.
const MAX_FACTOR: u64 = 64;
/// Tokens that a server may add invisibly, such as a system prompt of its own.
const MAX_HIDDEN: u64 = 50_000;
/// The largest plausible output of one response, including reasoning.
pub const MAX_OUTPUT_TOKENS: u64 = 2_000_000;

/// A running estimate of a conversation's size.
#[derive(Debug, Clone)]
pub struct TokenEstimate {
    /// The estimate by bytes, uncorrected.
    raw: usize,
    /// The ratio of the provider's count to the estimate.
    correction: f64,
    /// The last count of the provider, and the estimate of the same text.
    counted: Option<TokenCount>,
}

#[derive(Debug, Clone, Copy)]
struct TokenCount {
    tokens: usize,
    raw: usize,
}

impl TokenEstimate {
    /// The estimate of a conversation that has only a fixed part (system prompt, tools) of this size.
    #[must_use]
    pub fn new(fixed_bytes: usize) -> Self {
        Self {
            raw: tokens(fixed_bytes),
            correction: 1.0,
            counted: None,
        }
    }

    /// Starts again with a fixed part of this size, and keeps the correction.
    pub fn restart(&mut self, fixed_bytes: usize) {
        self.raw = tokens(fixed_bytes);
        self.counted = None;
    }

    /// Adds a message.
    pub fn add(&mut self, message: &Message) {
        self.raw += message_tokens(message);
    }

    /// Corrects the estimate by the provider's count of a request with all messages so far. The count replaces their
    /// estimate. Later messages are estimated with a correction within [0.25, 4], so that one wrong figure does
    /// little harm. A count below a quarter of the estimate is replaced by that quarter.
    ///
    /// An implausible count changes nothing, see [`TokenEstimate::plausible`].
    pub fn correct(&mut self, usage: Usage) {
        if usage.input_tokens > 0 && self.raw > 0 && self.can_be(usage.input_tokens) {
            #[allow(clippy::cast_precision_loss)]
            let factor = usage.input_tokens as f64 / self.raw as f64;
            self.correction = factor.clamp(0.25, 4.0);
            let tokens = usize::try_from(usage.input_tokens).unwrap_or(usize::MAX);
            self.counted = Some(TokenCount {
                tokens: tokens.max(self.raw / 4),
                raw: self.raw,
            });
        }
    }

    /// Returns the usage of a request without impossible figures.
    ///
    /// Input far above the estimate becomes the estimate, and output above [`MAX_OUTPUT_TOKENS`] becomes zero.
    /// Otherwise one wrong figure would use up the budget of the session.
    #[must_use]
    pub fn plausible(&self, usage: Usage) -> Usage {
        let mut usage = usage;
        if !self.can_be(usage.input_tokens) {
            usage.input_tokens = u64::try_from(self.total()).unwrap_or(u64::MAX);
        }
        usage.cached_tokens = usage.cached_tokens.min(usage.input_tokens);
        let uncached = usage.input_tokens - usage.cached_tokens;
        usage.cache_write_tokens = usage.cache_write_tokens.min(uncached);
        if usage.output_tokens > MAX_OUTPUT_TOKENS {
            usage.output_tokens = 0;
        }
        usage
    }

    /// Whether this count is plausible for the conversation.
    fn can_be(&self, tokens: u64) -> bool {
        let raw = u64::try_from(self.raw).unwrap_or(u64::MAX);
        tokens <= raw.saturating_mul(MAX_FACTOR).saturating_add(MAX_HIDDEN)
    }

    /// Tokens of the whole conversation.
    #[must_use]
    pub fn total(&self) -> usize {
        match self.counted {
            Some(counted) => {
                let more = self.raw.saturating_sub(counted.raw);
                counted.tokens.saturating_add(self.corrected(more))
            }
            None => self.corrected(self.raw),
        }
    }

    /// Corrects an uncorrected estimate, such as that of [`message_tokens`].
    #[must_use]
    pub fn corrected(&self, raw: usize) -> usize {
        #[allow(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss
        )]
        let corrected = (raw as f64 * self.correction).ceil() as usize;
        corrected
    }
}

/// The estimate of one message, uncorrected.
#[must_use]
pub fn message_tokens(message: &Message) -> usize {
    message.parts.iter().map(part_tokens).sum::<usize>() + TOKENS_PER_MESSAGE
}

fn part_tokens(part: &MessagePart) -> usize {
    match part {
        MessagePart::Text { text } | MessagePart::Reasoning { text, .. } => text_tokens(text),
        MessagePart::ToolResult { content, .. } => text_tokens(content) + TOKENS_PER_MESSAGE,
        MessagePart::ToolUse(request) => {
            text_tokens(&request.name) + json_tokens(&request.input) + TOKENS_PER_MESSAGE
        }
        MessagePart::Image { .. } => IMAGE_TOKENS,
    }
}

/// The estimate of a value as JSON, without building the text.
fn json_tokens(value: &serde_json::Value) -> usize {
    use serde_json::Value;
    match value {
        Value::String(text) => text_tokens(text) + 1,
        Value::Array(items) => items.iter().map(json_tokens).sum::<usize>() + 1,
        Value::Object(object) => {
            let fields = object.iter();
            fields
                .map(|(name, value)| text_tokens(name) + json_tokens(value) + 1)
                .sum::<usize>()
                + 1
        }
        Value::Number(number) => text_tokens(&number.to_string()),
        Value::Null | Value::Bool(_) => 1,
    }
}

/// The estimate of a text, uncorrected. It counts runs of letters, digits, spaces and signs, as byte pair tokenizers
/// split them, in one pass and without allocation.
///
/// The weights were fitted to OpenAI's `cl100k_base` over prose, code, data and output of commands, and tend to
/// overestimate. The test has samples with their real counts.
#[must_use]
pub fn text_tokens(text: &str) -> usize {
    let mut rest = text.as_bytes();
    let mut sum = 0;
    while let Some((length, cost)) = first_run(rest) {
        sum += cost;
        rest = rest.get(length..).unwrap_or_default();
    }
    sum.div_ceil(ONE)
}

/// A token, in units of cost.
const ONE: usize = 1000;
/// A word of up to [`SHORT_WORD`] letters.
const WORD: usize = 1050;
/// The maximum number of letters that cost one [`WORD`].
const SHORT_WORD: usize = 5;
/// Each additional letter.
const LETTER: usize = 220;
/// Three digits.
const DIGITS: usize = 1100;
/// Spaces. A single space costs nothing before a word, but not before a number.
const BLANKS: usize = 1100;
/// Spaces that can be one token.
const MAX_BLANKS: usize = 64;
/// A sign. It may belong to the next word; before a number it is a token.
const SIGN: usize = 650;
/// Each additional sign of a run that differs from the sign before it.
const OTHER_SIGN: usize = 270;
/// Each additional sign that equals the sign before it. A line of dashes has few tokens.
const SAME_SIGN: usize = 100;
/// Runs of letters and digits of this length or more are data: hashes, keys, base64.
const LONG: usize = 16;
/// A byte of data with letters of one case, such as hexadecimal digits.
const HEX: usize = 580;
/// A byte of data with letters of both cases.
const BASE64: usize = 720;

/// The length of the first run of a text in bytes, and its cost; `None` at the end.
fn first_run(text: &[u8]) -> Option<(usize, usize)> {
    let first = *text.first()?;
    let run = |fits: fn(&u8) -> bool| text.iter().take_while(|byte| fits(byte)).count();
    let before_digit = |length: usize| text.get(length).is_some_and(u8::is_ascii_digit);
    Some(match first {
        byte if byte.is_ascii_alphanumeric() => {
            let length = run(u8::is_ascii_alphanumeric);
            (length, of_letters_and_digits(text.get(..length)?))
        }
        byte if byte.is_ascii_whitespace() => match run(u8::is_ascii_whitespace) {
            1 if byte == b' ' => (1, if before_digit(1) { ONE } else { 0 }),
            length => (length, length.div_ceil(MAX_BLANKS) * BLANKS),
        },
        byte if byte.is_ascii() => {
            let sign = |byte: &u8| {
                byte.is_ascii() && !byte.is_ascii_alphanumeric() && !byte.is_ascii_whitespace()
            };
            let length = run(sign).max(1);
            let more = if before_digit(length) { ONE - SIGN } else { 0 };
            (length, of_signs(text.get(..length)?) + more)
        }
        // By the bytes of the character: Latin, Cyrillic and similar; Chinese, Japanese, Korean; others.
        0x80..=0xDF => (2, 420),
        0xE0..=0xEF => (3, 930),
        _ => (4, 2200),
    })
}

/// The cost of a run of signs.
fn of_signs(run: &[u8]) -> usize {
    let pairs = run.iter().zip(run.iter().skip(1));
    let more = pairs.map(|(before, sign)| match before == sign {
        true => SAME_SIGN,
        false => OTHER_SIGN,
    });
    SIGN + more.sum::<usize>()
}

/// The cost of a run of letters and digits.
fn of_letters_and_digits(run: &[u8]) -> usize {
    let has = |fits: fn(&u8) -> bool| run.iter().any(fits);
    if run.len() >= LONG && has(u8::is_ascii_digit) {
        let both = has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase);
        return run.len() * if both { BASE64 } else { HEX };
    }
    // `fooBar12` has the parts foo, Bar and 12.
    let pieces = run.chunk_by(|a, b| match (a.is_ascii_digit(), b.is_ascii_digit()) {
        (false, false) => !(a.is_ascii_lowercase() && b.is_ascii_uppercase()),
        (a, b) => a == b,
    });
    let cost = |piece: &[u8]| match piece.first().is_some_and(u8::is_ascii_digit) {
        true => piece.len().div_ceil(3) * DIGITS,
        false => WORD + piece.len().saturating_sub(SHORT_WORD) * LETTER,
    };
    pieces.map(cost).sum()
}

/// The estimate of a text of this length, uncorrected.
pub(super) fn tokens(bytes: usize) -> usize {
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss
    )]
    let tokens = (bytes as f64 / BYTES_PER_TOKEN).ceil() as usize;
    tokens
}

/// Bytes of all tool definitions in a request.
pub(super) fn definition_bytes(registry: &ToolRegistry) -> usize {
    registry
        .tools()
        .iter()
        .map(|def| def.id.len() + def.description.len() + def.parameters.to_string().len() + 70)
        .sum()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// Proves AGT-4 for images: their size in bytes does not matter.
    #[test]
    fn image_has_a_fixed_token_count() {
        let mut estimate = TokenEstimate::new(0);
        let image = MessagePart::Image {
            media_type: "image/png".to_owned(),
            data: "A".repeat(1 << 20),
        };
        estimate.add(&Message {
            role: zeph_llm::Role::User,
            parts: vec![image],
        });
        assert_eq!(estimate.total(), IMAGE_TOKENS + TOKENS_PER_MESSAGE);
    }

    /// Proves AGT-4, LLM-11 for text without a count: the estimate is near to the count of a real tokenizer, for each
    /// kind of text, and rarely below.
    #[test]
    fn estimates_are_near_to_real_counts() {
        #[derive(serde::Deserialize)]
        struct Sample {
            name: String,
            text: String,
            cl100k: u32,
            o200k: u32,
        }
        let samples: Vec<Sample> =
            serde_json::from_str(include_str!("tokens/samples.json")).unwrap();
        assert_eq!(samples.len(), 15);
        for Sample {
            name,
            text,
            cl100k,
            o200k,
        } in samples
        {
            let estimate = f64::from(u32::try_from(text_tokens(&text)).unwrap());
            let (old, new) = (estimate / f64::from(cl100k), estimate / f64::from(o200k));
            assert!(
                (0.85..1.35).contains(&old),
                "{name}: {old:.2} of cl100k_base"
            );
            assert!((0.85..1.7).contains(&new), "{name}: {new:.2} of o200k_base");
        }
    }

    /// Proves AGT-4, LLM-11: implausible figures of a server neither end the session nor count as spent.
    #[test]
    fn implausible_usage_is_replaced() {
        let mut estimate = TokenEstimate::new(3600);
        estimate.add(&Message::user("word ".repeat(950)));
        let total = estimate.total() as u64;
        let check = |input, cached, written, output, expect: [u64; 4]| {
            let found = estimate.plausible(Usage {
                input_tokens: input,
                cached_tokens: cached,
                cache_write_tokens: written,
                output_tokens: output,
            });
            let found = [
                found.input_tokens,
                found.cached_tokens,
                found.cache_write_tokens,
                found.output_tokens,
            ];
            assert_eq!(found, expect);
        };
        check(2000, 500, 100, 50, [2000, 500, 100, 50]);
        check(0, 0, 0, 0, [0, 0, 0, 0]);
        check(150_000, 0, 0, 128_000, [150_000, 0, 0, 128_000]);
        check(u64::MAX, 0, 0, 1, [total, 0, 0, 1]);
        check(u64::MAX, u64::MAX, u64::MAX, u64::MAX, [total, total, 0, 0]);
        check(2000, 9000, 9000, 5, [2000, 2000, 0, 5]);
    }

    #[test]
    fn odd_texts_have_an_estimate() {
        for (text, expect) in [
            ("", 0),
            (" ", 0),
            ("a", 2),
            ("\n\n  ", 2),
            ("1 2", 4),
            ("a.b1", 4),
            ("ü", 1),
            ("😀😀", 5),
            ("{}", 1),
            ("\u{0}\u{7f}", 1),
            ("internationalization", 5),
            ("a1b2c3d4e5f6a7b8", 10),
        ] {
            assert_eq!(text_tokens(text), expect, "{text:?}");
        }
        // The estimate of long text is neither zero nor extreme.
        for (text, range) in [
            (" ".repeat(64_000), 1000..2000),
            ("-".repeat(64_000), 1000..7000),
            ("x".repeat(64_000), 7000..15_000),
        ] {
            let tokens = text_tokens(&text);
            assert!(range.contains(&tokens), "{tokens}");
        }
    }

    /// Proves AGT-4.
    #[test]
    fn reported_usage_corrects_the_estimate() {
        let mut estimate = TokenEstimate::new(3600);
        estimate.add(&Message::user("word ".repeat(950)));
        let before = estimate.total();
        assert!((1990..2020).contains(&before), "{before}");
        let usage = |input_tokens| Usage {
            input_tokens,
            ..Usage::default()
        };
        estimate.correct(usage(before as u64 / 2));
        assert!((990..1010).contains(&estimate.total()));
        estimate.correct(usage(0));
        assert!(
            (990..1010).contains(&estimate.total()),
            "no count corrects nothing"
        );
        // The provider's count replaces any estimate; later text is estimated within bounds.
        estimate.correct(usage(50_000));
        assert_eq!(estimate.total(), 50_000);
        let more = Message::user("word ".repeat(100));
        estimate.add(&more);
        let total = 50_000 + 4 * message_tokens(&more);
        assert!(
            estimate.total().abs_diff(total) <= 4,
            "{}",
            estimate.total()
        );
        let before = estimate.total();
        for absurd in [u64::MAX, u64::MAX / 2, 100_000_000] {
            estimate.correct(usage(absurd));
            assert_eq!(estimate.total(), before, "{absurd}");
        }
        estimate.correct(usage(1));
        assert!(estimate.total() > 400, "{}", estimate.total());
        estimate.restart(3600);
        assert!(estimate.total() < 300, "{}", estimate.total());
    }
}
