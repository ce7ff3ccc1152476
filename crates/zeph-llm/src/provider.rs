//! The port to a language model.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::LlmError;
use crate::message::{Message, MessagePart, Role};
use crate::tool::{ToolChoice, ToolDefinition, ToolUseRequest};
use crate::usage::{Prices, Usage};

/// The content of one request. It borrows: the history is never copied for sending.
#[derive(Debug, Clone, Copy)]
pub struct ChatRequest<'a> {
    /// The system prompt.
    pub system: &'a str,
    /// The conversation so far.
    pub messages: &'a [Message],
    /// The tools offered, in a stable order.
    pub tools: &'a [ToolDefinition],
    /// Whether they may be called.
    pub tool_choice: ToolChoice,
    /// Names the conversation to the provider's prompt cache.
    pub cache_key: Option<&'a str>,
    /// The JSON Schema of the response's text.
    pub response_schema: Option<&'a Value>,
    /// Whether the response has to be one JSON object and nothing else, such as the arguments of a call. The text of
    /// the request has to ask for it too: not every server supports the option.
    pub json_object: bool,
    /// The maximum number of tokens of the response, if less than the provider allows.
    pub max_output_tokens: Option<u32>,
}

impl<'a> ChatRequest<'a> {
    /// A request outside of a conversation: without tools, without a cache key, for a response of free text.
    #[must_use]
    pub fn alone(system: &'a str, messages: &'a [Message]) -> Self {
        Self {
            system,
            messages,
            tools: &[],
            tool_choice: ToolChoice::None,
            cache_key: None,
            response_schema: None,
            json_object: false,
            max_output_tokens: None,
        }
    }
}

/// The reason why the model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The model finished.
    EndTurn,
    /// It wants calls to be run.
    ToolUse,
    /// The output limit cut it off.
    MaxTokens,
    /// The provider's content filter stopped it.
    Refusal,
}

/// A complete response.
#[derive(Debug, Clone, PartialEq)]
pub enum ChatResponse {
    /// Text alone: the turn ends.
    Text {
        /// The message's parts (text and reasoning), in order.
        parts: Vec<MessagePart>,
        /// Why it stopped.
        stop: StopReason,
        /// Tokens.
        usage: Usage,
    },
    /// At least one call, perhaps with text before it.
    ToolUse {
        /// The message's parts in order, the calls among them.
        parts: Vec<MessagePart>,
        /// Tokens.
        usage: Usage,
    },
}

impl ChatResponse {
    /// Builds the matching variant: `ToolUse` if there is a call among the parts.
    #[must_use]
    pub fn from_parts(parts: Vec<MessagePart>, stop: StopReason, usage: Usage) -> Self {
        if parts
            .iter()
            .any(|part| matches!(part, MessagePart::ToolUse(_)))
        {
            Self::ToolUse { parts, usage }
        } else {
            Self::Text { parts, stop, usage }
        }
    }

    /// The tokens of the request.
    #[must_use]
    pub fn usage(&self) -> Usage {
        match self {
            Self::Text { usage, .. } | Self::ToolUse { usage, .. } => *usage,
        }
    }

    /// The message to append to the history.
    #[must_use]
    pub fn into_message(self) -> Message {
        let (Self::Text { parts, .. } | Self::ToolUse { parts, .. }) = self;
        Message {
            role: Role::Assistant,
            parts,
        }
    }

    /// The calls of the response, in order; empty for text.
    pub fn tool_uses(&self) -> impl Iterator<Item = &ToolUseRequest> {
        let (Self::Text { parts, .. } | Self::ToolUse { parts, .. }) = self;
        parts.iter().filter_map(|part| match part {
            MessagePart::ToolUse(request) => Some(request),
            _ => None,
        })
    }
}

/// An event during a response.
#[derive(Debug, Clone, PartialEq)]
pub enum StreamEvent {
    /// More text of the response.
    TextDelta(String),
    /// More reasoning.
    ReasoningDelta(String),
    /// A call began; its arguments follow.
    ToolUseStarted {
        /// The tool's name.
        name: String,
    },
    /// More of the current call's arguments, as raw JSON text.
    ToolInputDelta(String),
    /// A message for the user, such as a continued stream.
    Notice(String),
    /// The request failed, and is sent again after a wait.
    Retry(Retry),
}

/// The next attempt of a request that failed. Its text is a message for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retry {
    /// The number of the attempt, from 2.
    pub attempt: u32,
    /// The wait before it.
    pub wait: Duration,
    /// The error, and the action of the next attempt.
    pub reason: String,
}

impl fmt::Display for Retry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (attempt, wait) = (self.attempt, self.wait.as_secs_f64());
        write!(f, "{} (attempt {attempt} in {wait:.1} s)", self.reason)
    }
}

/// A receiver of the events of a stream, in order, on the task that awaits the response.
pub type StreamSink<'a> = &'a mut (dyn FnMut(StreamEvent) + Send);

/// A model that a server lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerModel {
    /// Its name, as sent in requests.
    pub name: String,
    /// The window in tokens, if the server reports it.
    pub context_window: Option<usize>,
}

/// An embedding model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmbeddingModel {
    /// Its name for display.
    pub name: String,
    /// Identifies the model and its server: only embeddings of equal keys can be compared.
    pub key: String,
    /// Its prices; `None` if they are not known.
    pub prices: Option<Prices>,
}

/// Embeddings of texts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Embeddings {
    /// One for each text, in their order, all of one length; every number is finite.
    pub vectors: Vec<Vec<f32>>,
    /// Tokens, as counted by the provider.
    pub usage: Usage,
}

/// A language model.
///
/// Dropping the future cancels a request: an implementation has no task that outlives it.
#[async_trait]
pub trait LlmProvider: Send + Sync + std::fmt::Debug {
    /// The provider's name in the configuration.
    fn name(&self) -> &str;

    /// The model's name as sent.
    fn model(&self) -> &str;

    /// Whether the provider calls tools natively.
    fn supports_tool_use(&self) -> bool {
        true
    }

    /// Whether the provider takes images. Otherwise a text replaces each image of the history.
    fn supports_images(&self) -> bool {
        false
    }

    /// The maximum number of tokens of a request and its response. A server may report it, see
    /// [`LlmProvider::learn_window`].
    fn context_window(&self) -> usize;

    /// Asks the server once for the window of the model, if it is not known. Without a response in time, the window
    /// does not change.
    async fn learn_window(&self) {}

    /// The prices of its tokens; `None` if they are not known.
    fn prices(&self) -> Option<Prices> {
        None
    }

    /// Sends a request and streams the response.
    ///
    /// # Errors
    /// [`LlmError`] with its class. A stream that breaks off never returns a call: it is an error, or was sent again
    /// because no text had been shown.
    async fn chat_stream(
        &self,
        request: ChatRequest<'_>,
        sink: StreamSink<'_>,
    ) -> Result<ChatResponse, LlmError>;

    /// Sends a request without tools and waits for the complete text.
    ///
    /// # Errors
    /// As [`LlmProvider::chat_stream`].
    async fn chat(&self, system: &str, messages: &[Message]) -> Result<String, LlmError> {
        let request = ChatRequest::alone(system, messages);
        let response = self.chat_stream(request, &mut |_| ()).await?;
        Ok(response.into_message().text())
    }

    /// Sends a request with tools and waits for the complete response.
    ///
    /// # Errors
    /// As [`LlmProvider::chat_stream`].
    async fn chat_with_tools(&self, request: ChatRequest<'_>) -> Result<ChatResponse, LlmError> {
        self.chat_stream(request, &mut |_| ()).await
    }

    /// Asks the server for its models, without retries. Empty for a provider without a server.
    ///
    /// # Errors
    /// As [`LlmProvider::chat_stream`].
    async fn models(&self) -> Result<Vec<ServerModel>, LlmError> {
        Ok(Vec::new())
    }

    /// The model of [`LlmProvider::embed`]; `None` if the provider has no embeddings.
    fn embedding_model(&self) -> Option<&EmbeddingModel> {
        None
    }

    /// Embeds texts: one embedding for each, in their order, all of one length. `None` if the provider has no
    /// embeddings.
    ///
    /// # Errors
    /// As [`LlmProvider::chat_stream`].
    async fn embed(&self, _texts: &[&str]) -> Result<Option<Embeddings>, LlmError> {
        Ok(None)
    }
}
