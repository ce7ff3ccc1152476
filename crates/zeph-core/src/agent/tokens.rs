//! Estimates how many tokens a conversation takes, corrected by what the provider counted.

use zeph_llm::{Message, MessagePart, Usage};

/// Bytes per token before anything was counted. English prose has about 4.5, code 3.5; the lower
/// figure overestimates rather than overruns.
const BYTES_PER_TOKEN: f64 = 3.6;
/// What a message's frame costs on the wire.
const TOKENS_PER_MESSAGE: usize = 4;
/// What an image is taken for.
const IMAGE_TOKENS: usize = 1500;

/// A running estimate of a conversation's size.
#[derive(Debug, Clone)]
pub struct TokenEstimate {
    /// The estimate by bytes, uncorrected.
    raw: usize,
    /// What the provider counted over what was estimated.
    correction: f64,
}

impl TokenEstimate {
    /// The estimate of a conversation that so far has only a fixed part (system prompt, tools)
    /// of so many bytes.
    #[must_use]
    pub fn new(fixed_bytes: usize) -> Self {
        Self {
            raw: tokens(fixed_bytes),
            correction: 1.0,
        }
    }

    /// Begins again with a fixed part of so many bytes; what was learned of the provider's counting stays.
    pub fn restart(&mut self, fixed_bytes: usize) {
        self.raw = tokens(fixed_bytes);
    }

    /// Adds a message.
    pub fn add(&mut self, message: &Message) {
        self.raw += message_tokens(message);
    }

    /// Corrects the estimate by what the provider counted for a request that held all that was
    /// added so far. The factor stays within [0.25, 4], so that one odd figure does no harm.
    pub fn correct(&mut self, usage: Usage) {
        if usage.input_tokens > 0 && self.raw > 0 {
            #[allow(clippy::cast_precision_loss)]
            let factor = usage.input_tokens as f64 / self.raw as f64;
            self.correction = factor.clamp(0.25, 4.0);
        }
    }

    /// Tokens of the whole conversation.
    #[must_use]
    pub fn total(&self) -> usize {
        self.corrected(self.raw)
    }

    /// What the provider would count for an uncorrected estimate, such as that of [`message_tokens`].
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

/// The estimate of one message by its bytes, uncorrected.
#[must_use]
pub fn message_tokens(message: &Message) -> usize {
    message.parts.iter().map(part_tokens).sum::<usize>() + TOKENS_PER_MESSAGE
}

fn part_tokens(part: &MessagePart) -> usize {
    match part {
        MessagePart::Text { text } | MessagePart::Reasoning { text, .. } => tokens(text.len()),
        MessagePart::ToolResult { content, .. } => tokens(content.len()) + TOKENS_PER_MESSAGE,
        MessagePart::ToolUse(request) => {
            tokens(request.name.len() + json_len(&request.input)) + TOKENS_PER_MESSAGE
        }
        MessagePart::Image { .. } => IMAGE_TOKENS,
    }
}

/// The length of a value as JSON, without building the text.
fn json_len(value: &serde_json::Value) -> usize {
    use serde_json::Value;
    match value {
        Value::String(text) => text.len() + 2,
        Value::Array(items) => items.iter().map(json_len).sum::<usize>() + items.len() + 2,
        Value::Object(object) => {
            object
                .iter()
                .map(|(name, value)| name.len() + json_len(value) + 4)
                .sum::<usize>()
                + 2
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => 5,
    }
}

/// The estimate of a text of so many bytes, uncorrected.
pub(super) fn tokens(bytes: usize) -> usize {
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss
    )]
    let tokens = (bytes as f64 / BYTES_PER_TOKEN).ceil() as usize;
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves AGT-4 for images: their bytes are not what they cost.
    #[test]
    fn an_image_counts_as_an_image() {
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

    /// Proves AGT-4.
    #[test]
    fn the_providers_count_corrects_the_estimate() {
        let mut estimate = TokenEstimate::new(3600);
        estimate.add(&Message::user("x".repeat(3600)));
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
        estimate.correct(usage(u64::MAX));
        assert_eq!(estimate.total(), before * 4);
    }
}
