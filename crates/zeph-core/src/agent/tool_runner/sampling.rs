//! Responses of the session's model for MCP servers.

use std::fmt::Write as _;
use std::sync::Arc;

use zeph_llm::{ChatRequest, ChatResponse, LlmProvider, Message, StopReason};
use zeph_tools::question::{QuestionRequest, SamplingRequest, SamplingResponse, ServerQuestion};

use crate::spending::AuxiliaryUsage;

/// The most tokens of a response.
const MAX_TOKENS: u32 = 8192;
/// The system prompt if the server sends none.
const SYSTEM: &str = "You respond to a request of a program. You have no tools.";

/// Requests responses of the session's model. A request has no tools and no part of the conversation.
#[derive(Clone)]
pub(in crate::agent) struct Sampler {
    pub(in crate::agent) provider: Arc<dyn LlmProvider>,
    /// The costs count to the turn.
    pub(in crate::agent) usage: Arc<AuxiliaryUsage>,
}

impl Sampler {
    /// Sends a request that the user approved.
    ///
    /// # Errors
    /// The failure of the model, without keys.
    pub(super) async fn sample(
        &self,
        request: &SamplingRequest,
    ) -> Result<SamplingResponse, String> {
        let messages: Vec<Message> = request
            .messages
            .iter()
            .map(|message| match message.is_user {
                true => Message::user(message.text.as_str()),
                false => Message::assistant(message.text.as_str()),
            })
            .collect();
        let system = request.system.as_deref().unwrap_or(SYSTEM);
        let sent = ChatRequest {
            max_output_tokens: Some(request.max_tokens.clamp(1, MAX_TOKENS)),
            ..ChatRequest::alone(system, &messages)
        };
        let response = self.provider.chat_stream(sent, &mut |_| ()).await;
        let response = response.map_err(|error| error.to_string())?;
        self.usage.add(self.provider.as_ref(), response.usage());
        let stop = match &response {
            ChatResponse::Text { stop, .. } => *stop,
            ChatResponse::ToolUse { .. } => {
                return Err("the model responded with a call".to_owned());
            }
        };
        if stop == StopReason::Refusal {
            return Err("the model refused".to_owned());
        }
        Ok(SamplingResponse {
            model: self.provider.model().to_owned(),
            text: response.into_message().text(),
            is_cut: stop == StopReason::MaxTokens,
        })
    }
}

/// The question whether a server gets a response of the model. It shows the complete request.
pub(super) fn consent(request: &SamplingRequest, model: &str) -> ServerQuestion {
    let mut details = String::new();
    if let Some(system) = &request.system {
        let _ = writeln!(details, "system: {system}");
    }
    for message in &request.messages {
        let role = if message.is_user { "user" } else { "model" };
        let _ = writeln!(details, "{role}: {}", message.text);
    }
    ServerQuestion {
        server: request.server.clone(),
        message: format!("a response of {model}, and reads the text of it"),
        request: QuestionRequest::Decision { details },
    }
}
