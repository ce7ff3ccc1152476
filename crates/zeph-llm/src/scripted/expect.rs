//! Expectations of a scenario's step about its request.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Deserializer, Error, SeqAccess, Visitor};

use super::template;
use crate::message::{Message, MessagePart, Role};
use crate::provider::ChatRequest;
use crate::tool::ToolChoice;

/// How many characters of a text a failed expectation shows.
const SHOWN_CHARS: usize = 300;

/// Expectations; absent ones are not checked. Each text may be one string or an array of strings that must all match.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Expect {
    /// In the text of the user's last message that has any.
    pub last_user_contains: Texts,
    /// In the results of the last message that has any: each text in at least one of them.
    pub tool_result_contains: Texts,
    /// In none of those results.
    pub tool_result_excludes: Texts,
    /// In the system prompt.
    pub system_contains: Texts,
    /// Tools that the request has.
    pub tools_include: Texts,
    /// Tools that the request does not have.
    pub tools_exclude: Texts,
    /// How many messages the request has.
    pub messages: Option<usize>,
    /// How many images they hold.
    pub images: Option<usize>,
    /// `auto` or `none`.
    pub tool_choice: Option<ExpectedChoice>,
}

/// The names of tool choices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ExpectedChoice {
    /// The model decides.
    Auto,
    /// No tool may be called.
    None,
}

/// One text or several.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Texts(pub Vec<String>);

impl<'de> Deserialize<'de> for Texts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneOrMany;
        impl<'de> Visitor<'de> for OneOrMany {
            type Value = Texts;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or an array of strings")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Texts, E> {
                Ok(Texts(vec![text.to_owned()]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Texts, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(seq)).map(Texts)
            }
        }
        deserializer.deserialize_any(OneOrMany)
    }
}

impl Expect {
    /// All texts that may hold variables.
    pub(super) fn texts(&self) -> impl Iterator<Item = &str> {
        [
            &self.last_user_contains,
            &self.tool_result_contains,
            &self.tool_result_excludes,
            &self.system_contains,
        ]
        .into_iter()
        .flat_map(|texts| texts.0.iter().map(String::as_str))
    }

    /// Checks a request; the error has the expected and the actual value.
    pub(super) fn check(
        &self,
        request: &ChatRequest<'_>,
        vars: &BTreeMap<String, String>,
    ) -> Result<(), String> {
        let user = request
            .messages
            .iter()
            .rev()
            .filter(|message| message.role == Role::User)
            .map(Message::text)
            .find(|text| !text.is_empty())
            .unwrap_or_default();
        let results = request
            .messages
            .iter()
            .rev()
            .map(tool_results)
            .find(|results| !results.is_empty())
            .unwrap_or_default();
        contains(
            "last_user_contains",
            &self.last_user_contains,
            &[&user],
            vars,
        )?;
        contains(
            "tool_result_contains",
            &self.tool_result_contains,
            &results,
            vars,
        )?;
        contains(
            "system_contains",
            &self.system_contains,
            &[request.system],
            vars,
        )?;
        for text in &self.tool_result_excludes.0 {
            let text = template::fill(text, vars)?;
            if let Some(result) = results.iter().find(|result| result.contains(&text)) {
                let got = shorten(result);
                return Err(format!("`tool_result_excludes`: {text:?} is in {got}"));
            }
        }
        let offered: Vec<&str> = request
            .tools
            .iter()
            .map(|tool| tool.name.as_str())
            .collect();
        for name in &self.tools_include.0 {
            if !offered.contains(&name.as_str()) {
                return Err(format!(
                    "`tools_include`: expected {name:?}, got {offered:?}"
                ));
            }
        }
        for name in &self.tools_exclude.0 {
            if offered.contains(&name.as_str()) {
                return Err(format!("`tools_exclude`: {name:?} is available"));
            }
        }
        if let Some(expected) = self.messages
            && expected != request.messages.len()
        {
            let got = request.messages.len();
            return Err(format!("`messages`: expected {expected}, got {got}"));
        }
        let parts = request.messages.iter().flat_map(|message| &message.parts);
        let images = parts
            .filter(|part| matches!(part, MessagePart::Image { .. }))
            .count();
        if let Some(expected) = self.images
            && expected != images
        {
            return Err(format!("`images`: expected {expected}, got {images}"));
        }
        let choice = match request.tool_choice {
            ToolChoice::Auto => ExpectedChoice::Auto,
            ToolChoice::None => ExpectedChoice::None,
        };
        match self.tool_choice {
            Some(expected) if expected != choice => Err(format!(
                "`tool_choice`: expected {expected:?}, got {choice:?}"
            )),
            _ => Ok(()),
        }
    }
}

/// The contents of a message's tool results.
pub(super) fn tool_results(message: &Message) -> Vec<&str> {
    let results = message.parts.iter().filter_map(|part| match part {
        MessagePart::ToolResult { content, .. } => Some(content.as_str()),
        _ => None,
    });
    results.collect()
}

fn contains(
    key: &str,
    expected: &Texts,
    got: &[&str],
    vars: &BTreeMap<String, String>,
) -> Result<(), String> {
    for text in &expected.0 {
        let text = template::fill(text, vars)?;
        if !got.iter().any(|got| got.contains(&text)) {
            let got = if got.is_empty() {
                "nothing of the kind".to_owned()
            } else {
                shorten(&got.join("\n"))
            };
            return Err(format!("`{key}`: expected {text:?}, got {got}"));
        }
    }
    Ok(())
}

/// The beginning of a text, quoted.
pub(super) fn shorten(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{:?} and {} more bytes", &text[..end], text.len() - end),
        None => format!("{text:?}"),
    }
}
