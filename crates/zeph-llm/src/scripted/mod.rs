//! A provider that replays a scenario, for the offline demo and for end-to-end tests.
//!
//! It asks no model and never pretends to be one: [`LlmProvider::model`] is `scripted`. Every request uses the next
//! step of the [`Scenario`]: its expectations are checked against the request, then its response or fault is
//! returned. A step with failed expectations is not used up. There are no retries: a fault represents the failure
//! after all retries. A new process begins at the first step, so a test of a resumed session gives each process a
//! separate scenario.
//!
//! [`Scenario`] describes the format, and `docs/scripted-provider.md` has examples.

mod expect;
mod scenario;
mod template;

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;

pub use expect::Expect;
pub use scenario::{Call, Fault, Scenario, Step, StepUsage};

use crate::config::ProviderConfig;
use crate::error::{LlmError, LlmErrorKind};
use crate::message::{Message, MessagePart};
use crate::openai::DEFAULT_CONTEXT_WINDOW;
use crate::provider::{
    ChatRequest, ChatResponse, LlmProvider, StopReason, StreamEvent, StreamSink,
};
use crate::tool::ToolUseRequest;
use crate::usage::Prices;
use crate::usage::Usage;

/// A provider that replays a [`Scenario`].
#[derive(Debug)]
pub struct ScriptedProvider {
    name: String,
    scenario: Scenario,
    context_window: usize,
    tool_use: bool,
    prices: Option<Prices>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// The step that the next request gets.
    step: usize,
    /// The number of its uses so far.
    given: u32,
    /// Made-up ids so far.
    ids: usize,
    vars: BTreeMap<String, String>,
}

/// A step's response with expanded templates.
struct Answer {
    reasoning: String,
    text: Vec<String>,
    calls: Vec<ToolUseRequest>,
    stop: StopReason,
    usage: Usage,
    fault: Option<Fault>,
    delay: Duration,
    chunk_delay: Duration,
}

impl ScriptedProvider {
    /// Creates a provider that starts at the first step of `scenario`.
    #[must_use]
    pub fn new(name: impl Into<String>, scenario: Scenario) -> Self {
        let state = State {
            step: 0,
            given: 0,
            ids: 0,
            vars: scenario.vars.clone(),
        };
        Self {
            name: name.into(),
            scenario,
            context_window: DEFAULT_CONTEXT_WINDOW,
            tool_use: true,
            prices: Some(Prices::default()),
            state: Mutex::new(state),
        }
    }

    /// Sets the context window, by default 128,000 tokens.
    #[must_use]
    pub fn with_context_window(mut self, tokens: usize) -> Self {
        self.context_window = tokens;
        self
    }

    /// Turns off native tool calls.
    #[must_use]
    pub fn without_tool_use(mut self) -> Self {
        self.tool_use = false;
        self
    }

    /// A provider for a checked configuration.
    ///
    /// # Errors
    /// `Config` for a configuration that [`ProviderConfig::validate`] refuses; `Scenario` for a file that cannot be
    /// read or is invalid.
    pub fn from_config(config: &ProviderConfig) -> Result<Self, LlmError> {
        config.validate()?;
        let path = config.scenario.as_deref().unwrap_or("".as_ref());
        let scenario = Scenario::load(path, BTreeMap::new())
            .map_err(|message| LlmError::new(LlmErrorKind::Scenario, &config.name, message))?;
        let calls = |step: &Step| !step.calls.is_empty();
        if let Some(at) = scenario
            .steps
            .iter()
            .position(calls)
            .filter(|_| !config.uses_tools())
        {
            let message = format!(
                "step {} has `calls`, which a provider with `tool_use = false` does not support: \
                 write them as blocks in its `text`",
                at + 1
            );
            return Err(LlmError::new(LlmErrorKind::Scenario, &config.name, message));
        }
        let window = config.context_window.unwrap_or(DEFAULT_CONTEXT_WINDOW);
        let provider = Self {
            prices: config.known_prices(),
            ..Self::new(&config.name, scenario).with_context_window(window)
        };
        Ok(match config.uses_tools() {
            true => provider,
            false => provider.without_tool_use(),
        })
    }

    /// Checks the request against the next step, advances, and expands the step's response.
    fn next(&self, request: ChatRequest<'_>) -> Result<Answer, LlmError> {
        let fail = |message| LlmError::new(LlmErrorKind::Scenario, &self.name, message);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let total = self.scenario.steps.len();
        let Some(step) = self.scenario.steps.get(state.step) else {
            return Err(fail(format!(
                "the scenario has no step left: all {total} steps were used before this request \
                 ({} messages, the last: {})",
                request.messages.len(),
                expect::shorten(&last_said(request.messages)),
            )));
        };
        let at = state.step + 1;
        let in_step = |message: String| fail(format!("step {at} of {total}: {message}"));
        let mut vars = state.vars.clone();
        if request.json_object && !step.is_object(&vars) {
            return Err(in_step(
                "the request requires a JSON object, and the text of this step is not \
                 one"
                .to_owned(),
            ));
        }
        step.expect.check(&request, &vars).map_err(in_step)?;
        step.capture_into(&mut vars, &last_said(request.messages))
            .map_err(in_step)?;
        let text = template::fill(&step.text, &vars).map_err(in_step)?;
        let mut calls = Vec::new();
        for call in &step.calls {
            let id = match &call.id {
                Some(id) => template::fill(id, &vars).map_err(in_step)?,
                None => free_id(&mut state.ids, request.messages),
            };
            let input = template::fill_value(&call.input, &vars).map_err(in_step)?;
            calls.push(ToolUseRequest::new(id, call.tool.clone(), input));
        }
        let answer = Answer {
            reasoning: template::fill(&step.reasoning, &vars).map_err(in_step)?,
            text: split(&text, step.chunks),
            stop: step.stop.unwrap_or(if calls.is_empty() {
                StopReason::EndTurn
            } else {
                StopReason::ToolUse
            }),
            calls,
            usage: step.usage.into(),
            fault: step.fault,
            delay: Duration::from_millis(step.delay_ms),
            chunk_delay: Duration::from_millis(step.chunk_delay_ms),
        };
        state.vars = vars;
        state.given += 1;
        if state.given >= step.repeat {
            state.step += 1;
            state.given = 0;
        }
        Ok(answer)
    }

    fn fault(&self, fault: Fault) -> LlmError {
        LlmError::new(
            fault.kind(),
            &self.name,
            format!("the scenario injects the fault `{}` here", fault.as_str()),
        )
    }
}

/// The source of captured values: the results in the last message, otherwise its text.
fn last_said(messages: &[Message]) -> String {
    let Some(last) = messages.last() else {
        return String::new();
    };
    let results = expect::tool_results(last);
    if results.is_empty() {
        last.text()
    } else {
        results.join("\n")
    }
}

/// The next id of the form `call_N` that the history does not have.
fn free_id(made: &mut usize, messages: &[Message]) -> String {
    loop {
        *made += 1;
        let id = format!("call_{made}");
        let mut calls = messages.iter().flat_map(Message::tool_uses);
        if !calls.any(|call| call.id == id) {
            return id;
        }
    }
}

/// Splits a text into at most `pieces` parts of about the same length in characters.
fn split(text: &str, pieces: usize) -> Vec<String> {
    let total = text.chars().count();
    let size = total.div_ceil(pieces.max(1)).max(1);
    let chars: Vec<char> = text.chars().collect();
    chars
        .chunks(size)
        .map(|piece| piece.iter().collect())
        .collect()
}

#[async_trait]
impl LlmProvider for ScriptedProvider {
    fn name(&self) -> &str {
        &self.name
    }

    fn model(&self) -> &str {
        "scripted"
    }

    fn supports_tool_use(&self) -> bool {
        self.tool_use
    }

    fn supports_images(&self) -> bool {
        self.scenario.images
    }

    fn context_window(&self) -> usize {
        self.context_window
    }

    fn prices(&self) -> Option<Prices> {
        self.prices
    }

    async fn chat_stream(
        &self,
        request: ChatRequest<'_>,
        sink: StreamSink<'_>,
    ) -> Result<ChatResponse, LlmError> {
        let answer = self.next(request)?;
        if !answer.delay.is_zero() {
            tokio::time::sleep(answer.delay).await;
        }
        if let Some(fault) = answer.fault.filter(|fault| *fault != Fault::StreamCut) {
            return Err(self.fault(fault));
        }
        let mut parts = Vec::new();
        if !answer.reasoning.is_empty() {
            sink(StreamEvent::ReasoningDelta(answer.reasoning.clone()));
            parts.push(MessagePart::Reasoning {
                text: answer.reasoning,
                signature: None,
            });
        }
        for (at, piece) in answer.text.iter().enumerate() {
            if at > 0 && !answer.chunk_delay.is_zero() {
                tokio::time::sleep(answer.chunk_delay).await;
            }
            sink(StreamEvent::TextDelta(piece.clone()));
        }
        if !answer.text.is_empty() {
            parts.push(MessagePart::Text {
                text: answer.text.concat(),
            });
        }
        for call in answer.calls {
            sink(StreamEvent::ToolUseStarted {
                name: call.name.clone(),
            });
            if answer.fault.is_some() {
                break;
            }
            let text = match &call.input {
                Value::String(raw) => raw.clone(),
                input => input.to_string(),
            };
            sink(StreamEvent::ToolInputDelta(text));
            parts.push(MessagePart::ToolUse(call));
        }
        if let Some(fault) = answer.fault {
            return Err(self.fault(fault));
        }
        Ok(ChatResponse::from_parts(parts, answer.stop, answer.usage))
    }
}
