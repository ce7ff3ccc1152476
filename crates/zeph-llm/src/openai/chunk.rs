//! JSON of a response, as a chunk of a stream or complete, with tolerant parsing: compatible servers omit fields,
//! send `null`, or send another shape.

use std::fmt;

use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use crate::usage::Usage;

/// One event's data.
#[derive(Debug, Deserialize)]
pub(super) struct Chunk {
    #[serde(default)]
    pub(super) choices: Option<Vec<Choice>>,
    #[serde(default, deserialize_with = "crate::http_provider::lenient::optional")]
    pub(super) usage: Option<WireUsage>,
    #[serde(default)]
    pub(super) error: Option<Value>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Choice {
    #[serde(default)]
    pub(super) index: Option<u64>,
    /// The name is `message` in a response without a stream.
    #[serde(default, alias = "message")]
    pub(super) delta: Option<Delta>,
    #[serde(default)]
    pub(super) finish_reason: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Delta {
    #[serde(default)]
    pub(super) content: Text,
    #[serde(default)]
    pub(super) refusal: Text,
    /// DeepSeek, Kimi, llama.cpp. The first two require it back with calls.
    #[serde(default)]
    pub(super) reasoning_content: Text,
    /// vLLM, Ollama, OpenRouter.
    #[serde(default)]
    pub(super) reasoning: Text,
    #[serde(default)]
    pub(super) tool_calls: Option<Vec<CallDelta>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct CallDelta {
    #[serde(default)]
    pub(super) index: Option<u64>,
    #[serde(default)]
    pub(super) id: Option<String>,
    #[serde(default)]
    pub(super) function: Option<FunctionDelta>,
    /// Gemini, which requires it back with the call.
    #[serde(default)]
    pub(super) extra_content: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct FunctionDelta {
    #[serde(default)]
    pub(super) name: Option<String>,
    /// A piece of JSON text; some servers send the object itself.
    #[serde(default)]
    pub(super) arguments: Text,
}

#[derive(Debug, Deserialize)]
pub(super) struct WireUsage {
    #[serde(
        default,
        deserialize_with = "crate::http_provider::lenient::token_count"
    )]
    prompt_tokens: Option<u64>,
    #[serde(
        default,
        deserialize_with = "crate::http_provider::lenient::token_count"
    )]
    completion_tokens: Option<u64>,
    #[serde(default, deserialize_with = "crate::http_provider::lenient::optional")]
    prompt_tokens_details: Option<PromptDetails>,
    /// DeepSeek's field for cached tokens.
    #[serde(
        default,
        deserialize_with = "crate::http_provider::lenient::token_count"
    )]
    prompt_cache_hit_tokens: Option<u64>,
}

#[derive(Debug, Deserialize)]
struct PromptDetails {
    #[serde(
        default,
        deserialize_with = "crate::http_provider::lenient::token_count"
    )]
    cached_tokens: Option<u64>,
    #[serde(
        default,
        deserialize_with = "crate::http_provider::lenient::token_count"
    )]
    cache_write_tokens: Option<u64>,
}

impl From<WireUsage> for Usage {
    fn from(wire: WireUsage) -> Self {
        let details = wire.prompt_tokens_details.as_ref();
        Self {
            input_tokens: wire.prompt_tokens.unwrap_or(0),
            output_tokens: wire.completion_tokens.unwrap_or(0),
            cached_tokens: details
                .and_then(|details| details.cached_tokens)
                .or(wire.prompt_cache_hit_tokens)
                .unwrap_or(0),
            cache_write_tokens: details
                .and_then(|details| details.cache_write_tokens)
                .unwrap_or(0),
        }
    }
}

/// A text. Other forms are accepted: `null` (empty), an array of `{text}` parts (joined; parts without text are
/// skipped), a number or a boolean, or, for arguments, a JSON object (its text).
#[derive(Debug, Default)]
pub(super) struct Text(pub(super) String);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AnyText;
        impl<'de> Visitor<'de> for AnyText {
            type Value = Text;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text, null, a scalar, an object, or an array of parts")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Text, E> {
                Ok(Text(text.to_owned()))
            }

            fn visit_string<E: Error>(self, text: String) -> Result<Text, E> {
                Ok(Text(text))
            }

            fn visit_unit<E: Error>(self) -> Result<Text, E> {
                Ok(Text::default())
            }

            fn visit_bool<E: Error>(self, value: bool) -> Result<Text, E> {
                Ok(Text(value.to_string()))
            }

            fn visit_u64<E: Error>(self, value: u64) -> Result<Text, E> {
                Ok(Text(value.to_string()))
            }

            fn visit_i64<E: Error>(self, value: i64) -> Result<Text, E> {
                Ok(Text(value.to_string()))
            }

            fn visit_f64<E: Error>(self, value: f64) -> Result<Text, E> {
                Ok(Text(value.to_string()))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Text, A::Error> {
                let value = Value::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Text(value.to_string()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Text, A::Error> {
                let parts = Vec::<Value>::deserialize(SeqAccessDeserializer::new(seq))?;
                let texts = parts.iter().filter_map(|part| part.get("text")?.as_str());
                Ok(Text(texts.collect()))
            }
        }
        deserializer.deserialize_any(AnyText)
    }
}
