//! The items of a response.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// The prefix of an unchanged reasoning item.
pub(super) const ITEM: &str = "openai-item:";

/// One item. Fields may be missing; items of other kinds are skipped.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Item {
    Message {
        #[serde(default)]
        content: Vec<Content>,
    },
    FunctionCall {
        #[serde(default)]
        call_id: String,
        #[serde(default)]
        name: String,
        #[serde(default)]
        arguments: Value,
    },
    Reasoning {
        #[serde(default)]
        encrypted_content: Option<String>,
        #[serde(default)]
        content: Option<Vec<Content>>,
        #[serde(default)]
        summary: Option<Vec<Content>>,
    },
    #[serde(other)]
    Other,
}

/// A piece of an item's content.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Content {
    #[serde(alias = "text", alias = "summary_text", alias = "reasoning_text")]
    OutputText {
        #[serde(default)]
        text: String,
    },
    Refusal {
        #[serde(default)]
        refusal: String,
    },
    #[serde(other)]
    Other,
}

impl Item {
    /// Reads an item; an item of an unknown kind is skipped.
    pub(super) fn of(raw: &RawValue) -> Self {
        serde_json::from_str(raw.get()).unwrap_or(Self::Other)
    }

    /// The unchanged reasoning item to send back, if it has content that the model can read.
    pub(super) fn seal(&self, raw: &RawValue) -> Option<String> {
        let Self::Reasoning {
            encrypted_content,
            content,
            ..
        } = self
        else {
            return None;
        };
        let is_sealed = encrypted_content
            .as_ref()
            .is_some_and(|text| !text.is_empty());
        let has_text = content.as_ref().is_some_and(|content| !content.is_empty());
        (is_sealed || has_text).then(|| format!("{ITEM}{}", raw.get()))
    }
}

/// The arguments of a call as JSON text, from any form.
pub(super) fn arguments(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
