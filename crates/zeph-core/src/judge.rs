//! A language model as the judge of calls: the port of the adversarial gate.

use std::sync::Arc;

use async_trait::async_trait;
use zeph_llm::{ChatRequest, ChatResponse, LlmProvider, Message, StopReason};
use zeph_tools::gate::llm_judge::{JudgeError, PolicyJudge, Question};

use crate::spending::AuxiliaryUsage;

/// Tokens of a verdict. It is one word, but a model that reasons first needs more.
const MAX_TOKENS: u32 = 2048;

/// A judge of calls that asks the model of a provider. It gets no tools and no part of the conversation.
#[derive(Debug)]
pub struct ModelJudge {
    provider: Arc<dyn LlmProvider>,
    usage: Arc<AuxiliaryUsage>,
}

impl ModelJudge {
    /// A judge that uses the model of `provider`. Its tokens are added to `usage`.
    #[must_use]
    pub fn new(provider: Arc<dyn LlmProvider>, usage: Arc<AuxiliaryUsage>) -> Self {
        Self { provider, usage }
    }
}

#[async_trait]
impl PolicyJudge for ModelJudge {
    fn name(&self) -> String {
        format!("{}, {}", self.provider.name(), self.provider.model())
    }

    async fn judge(&self, question: &Question) -> Result<String, JudgeError> {
        let messages = [Message::user(question.call.as_str())];
        let request = ChatRequest {
            max_output_tokens: Some(MAX_TOKENS),
            ..ChatRequest::alone(&question.system, &messages)
        };
        let answer = self.provider.chat_stream(request, &mut |_| ()).await;
        let answer = answer.map_err(|error| JudgeError::Failed(error.to_string()))?;
        self.usage.add(self.provider.as_ref(), answer.usage());
        let fault = match &answer {
            ChatResponse::Text {
                stop: StopReason::EndTurn,
                ..
            } => None,
            ChatResponse::Text {
                stop: StopReason::MaxTokens,
                ..
            } => Some("its response was cut off"),
            ChatResponse::Text { .. } => Some("it refused to respond"),
            ChatResponse::ToolUse { .. } => Some("it responded with a tool call"),
        };
        match fault {
            None => Ok(answer.into_message().text()),
            Some(fault) => Err(JudgeError::NoAnswer(fault.to_owned())),
        }
    }
}
