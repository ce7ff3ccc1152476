//! The format of scenario files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use regex::Regex;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::expect::Expect;
use super::template;
use crate::error::LlmErrorKind;
use crate::provider::StopReason;
use crate::usage::Usage;

/// A scenario: the responses to requests. Unknown keys are refused with their line.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// The purpose of the scenario, for readers of the file.
    #[serde(default)]
    pub description: String,
    /// Values for `{{name}}` in texts, inputs, ids and expectations.
    #[serde(default)]
    pub vars: BTreeMap<String, String>,
    /// Whether the "model" takes images.
    #[serde(default)]
    pub images: bool,
    /// The responses, one per request, in order.
    pub steps: Vec<Step>,
}

/// One response, and the expectations about the request.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// The expectations about the request.
    #[serde(default)]
    pub expect: Expect,
    /// Names and regular expressions. Each is searched in the request's last message (the tool results there,
    /// otherwise its text). Its first group becomes the variable of that name, for this step's response and all later
    /// steps.
    #[serde(default)]
    pub capture: BTreeMap<String, Pattern>,
    /// The text of the response.
    #[serde(default)]
    pub text: String,
    /// In how many pieces the text is streamed.
    #[serde(default = "one_chunk")]
    pub chunks: usize,
    /// Reasoning before the text.
    #[serde(default)]
    pub reasoning: String,
    /// The calls of the response.
    #[serde(default)]
    pub calls: Vec<Call>,
    /// The token usage of the response.
    #[serde(default)]
    pub usage: StepUsage,
    /// Why the model stopped; by default `tool_use` with calls and `end_turn` without.
    #[serde(default)]
    pub stop: Option<StopReason>,
    /// A fault instead of the response. With `stream_cut` the text is still shown, and the first call begins, before
    /// the stream breaks off.
    #[serde(default)]
    pub fault: Option<Fault>,
    /// Milliseconds before the response.
    #[serde(default)]
    pub delay_ms: u64,
    /// Milliseconds between two pieces of the text.
    #[serde(default)]
    pub chunk_delay_ms: u64,
    /// How many requests get this step.
    #[serde(default = "one_time")]
    pub repeat: u32,
}

fn one_chunk() -> usize {
    1
}

fn one_time() -> u32 {
    1
}

/// A call in a response.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// The tool's name.
    pub tool: String,
    /// The arguments; a string represents arguments that were not JSON.
    #[serde(default = "no_input")]
    pub input: Value,
    /// The call's id; generated if absent.
    #[serde(default)]
    pub id: Option<String>,
}

fn no_input() -> Value {
    Value::Object(serde_json::Map::new())
}

/// Tokens that a step reports.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StepUsage {
    /// Tokens read, cached ones included.
    pub input: u64,
    /// Tokens written.
    pub output: u64,
    /// The cached part of `input`.
    pub cached: u64,
}

impl From<StepUsage> for Usage {
    fn from(usage: StepUsage) -> Self {
        Self {
            input_tokens: usage.input,
            output_tokens: usage.output,
            cached_tokens: usage.cached,
            cache_write_tokens: 0,
        }
    }
}

/// A failure that a step simulates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// No connection.
    Network,
    /// No data arrived in time.
    Timeout,
    /// 429.
    RateLimited,
    /// 5xx.
    Server,
    /// The key was refused.
    Auth,
    /// The request is longer than the window.
    ContextOverflow,
    /// The stream broke off.
    StreamCut,
    /// The response is not valid.
    Garbage,
}

impl Fault {
    /// The class of the fault's error.
    #[must_use]
    pub fn kind(self) -> LlmErrorKind {
        match self {
            Self::Network => LlmErrorKind::Network,
            Self::Timeout => LlmErrorKind::Timeout,
            Self::RateLimited => LlmErrorKind::RateLimited,
            Self::Server => LlmErrorKind::Server,
            Self::Auth => LlmErrorKind::Auth,
            Self::ContextOverflow => LlmErrorKind::ContextOverflow,
            Self::StreamCut => LlmErrorKind::StreamCut,
            Self::Garbage => LlmErrorKind::Protocol,
        }
    }

    /// The name in scenario files.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Network => "network",
            Self::Timeout => "timeout",
            Self::RateLimited => "rate_limited",
            Self::Server => "server",
            Self::Auth => "auth",
            Self::ContextOverflow => "context_overflow",
            Self::StreamCut => "stream_cut",
            Self::Garbage => "garbage",
        }
    }
}

/// A regular expression, checked when the file is read.
#[derive(Debug, Clone)]
pub struct Pattern(Regex);

impl<'de> Deserialize<'de> for Pattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let regex = Regex::new(&text).map_err(serde::de::Error::custom)?;
        if regex.captures_len() != 2 {
            return Err(serde::de::Error::custom(
                "a capture needs exactly one group in parentheses",
            ));
        }
        Ok(Self(regex))
    }
}

impl Scenario {
    /// Reads a file: JSON if its name ends in `.json`, TOML otherwise. `vars` are added to the file's own and
    /// override them.
    ///
    /// # Errors
    /// A message with the file, and for its content the line and the error.
    pub fn load(path: &Path, vars: BTreeMap<String, String>) -> Result<Self, String> {
        let shown = path.display();
        let source = std::fs::read_to_string(path)
            .map_err(|error| format!("the scenario {shown} cannot be read: {error}"))?;
        let parse = match path.extension() {
            Some(extension) if extension.eq_ignore_ascii_case("json") => Self::from_json,
            _ => Self::from_toml,
        };
        parse(&source, vars).map_err(|message| format!("the scenario {shown}: {message}"))
    }

    /// Reads a scenario as TOML.
    ///
    /// # Errors
    /// As [`Scenario::load`].
    pub fn from_toml(source: &str, vars: BTreeMap<String, String>) -> Result<Self, String> {
        let scenario: Self = toml::from_str(source).map_err(|error| error.to_string())?;
        scenario.prepare(vars)
    }

    /// Reads a scenario as JSON.
    ///
    /// # Errors
    /// As [`Scenario::load`].
    pub fn from_json(source: &str, vars: BTreeMap<String, String>) -> Result<Self, String> {
        let scenario: Self = serde_json::from_str(source).map_err(|error| error.to_string())?;
        scenario.prepare(vars)
    }

    fn prepare(mut self, vars: BTreeMap<String, String>) -> Result<Self, String> {
        self.vars.extend(vars);
        let mut known: BTreeSet<&str> = self.vars.keys().map(String::as_str).collect();
        if self.steps.is_empty() {
            return Err("there are no `steps`".to_owned());
        }
        for (at, step) in self.steps.iter().enumerate() {
            // Expectations are checked before this step's values are captured.
            let found = step
                .expect
                .texts()
                .try_for_each(|text| template::check(text, &known));
            known.extend(step.capture.keys().map(String::as_str));
            found
                .and_then(|()| step.check(&known))
                .map_err(|message| format!("step {}: {message}", at + 1))?;
        }
        Ok(self)
    }
}

impl Step {
    /// Whether the text is one JSON object, or one in a fence: the response to a request for an object only.
    pub(super) fn is_object(&self, vars: &BTreeMap<String, String>) -> bool {
        let text = template::fill(&self.text, vars).unwrap_or_default();
        let text = text.trim().trim_start_matches("```json").trim_matches('`');
        self.calls.is_empty() && serde_json::from_str::<serde_json::Map<_, Value>>(text).is_ok()
    }

    fn check(&self, known: &BTreeSet<&str>) -> Result<(), String> {
        let answers = !self.text.is_empty() || !self.reasoning.is_empty() || !self.calls.is_empty();
        match self.fault {
            None if !answers => {
                return Err("one of `text`, `reasoning`, `calls` or `fault` is needed".to_owned());
            }
            Some(fault) if answers && fault != Fault::StreamCut => {
                return Err(format!(
                    "a step with `fault = \"{}\"` has no response: remove `text`, `reasoning` and \
                     `calls`",
                    fault.as_str()
                ));
            }
            _ => {}
        }
        if self.chunks == 0 || self.repeat == 0 {
            return Err("`chunks` and `repeat` must be at least 1".to_owned());
        }
        match self.stop {
            Some(StopReason::ToolUse) if self.calls.is_empty() => {
                return Err("`stop = \"tool_use\"` needs `calls`".to_owned());
            }
            Some(stop) if stop != StopReason::ToolUse && !self.calls.is_empty() => {
                return Err(
                    "a response with `calls` always stops for `tool_use`: remove \
                    `stop`"
                        .to_owned(),
                );
            }
            _ => {}
        }
        let ids = self.calls.iter().filter_map(|call| call.id.as_deref());
        let mut texts = [self.text.as_str(), &self.reasoning].into_iter().chain(ids);
        texts.try_for_each(|text| template::check(text, known))?;
        self.calls
            .iter()
            .try_for_each(|call| template::check_value(&call.input, known))
    }

    pub(super) fn capture_into(
        &self,
        vars: &mut BTreeMap<String, String>,
        said: &str,
    ) -> Result<(), String> {
        for (name, Pattern(regex)) in &self.capture {
            let group = regex.captures(said).and_then(|found| found.get(1));
            let Some(group) = group else {
                return Err(format!(
                    "`capture.{name}`: expected a match of {:?}, got {}",
                    regex.as_str(),
                    super::expect::shorten(said)
                ));
            };
            vars.insert(name.clone(), group.as_str().to_owned());
        }
        Ok(())
    }
}
