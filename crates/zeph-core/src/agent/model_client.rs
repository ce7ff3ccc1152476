//! The client of the model: the provider, the tools that requests offer, and the required form of responses.

use std::sync::Arc;

use serde_json::Value;
use tokio_util::sync::CancellationToken;
use zeph_llm::{
    ChatRequest, ChatResponse, LlmError, LlmProvider, StreamEvent, ToolChoice, ToolDefinition,
};
use zeph_tools::ToolRegistry;
use zeph_tools::gate::dependencies::Dependencies;

use super::response_relay::ResponseRelay;
use super::session::Session;
use super::tool_selection::ToolSelection;
use crate::channel::Channel;
use crate::spending::{AuxiliaryUsage, Spending};

/// The minimum size of a conversation before the server is asked for the window of the model. Shorter ones fit the
/// windows of usual models.
const MIN_LEARNING_TOKENS: usize = 4096;

/// Sends the conversation of a session to a model.
pub(super) struct ModelClient {
    pub(super) provider: Arc<dyn LlmProvider>,
    pub(super) selection: ToolSelection,
    /// The tools that the next request offers.
    pub(super) tools: Vec<ToolDefinition>,
    /// JSON Schema of the response.
    pub(super) response_schema: Option<Value>,
    /// Whether the model streamed reasoning in this session.
    pub(super) reasons: bool,
    /// Costs of requests outside of the conversation.
    pub(super) side_usage: Arc<AuxiliaryUsage>,
}

/// A response that did not arrive completely.
pub(super) struct PartialResponse {
    /// The text that was shown.
    pub(super) shown: String,
    /// The error; `None` if the turn was cancelled.
    pub(super) error: Option<LlmError>,
}

impl ModelClient {
    /// The window of the model. Before the conversation can exceed the default window, the server is asked for it.
    pub(super) async fn window(&self, tokens: usize, cancel: &CancellationToken) -> usize {
        if tokens >= MIN_LEARNING_TOKENS {
            tokio::select! {
                biased;
                () = cancel.cancelled() => {}
                () = self.provider.learn_window() => {}
            }
        }
        self.provider.context_window()
    }

    /// Selects the tools for a turn that begins with the prompt `query`. Returns a warning for the user.
    pub(super) async fn begin_turn(
        &mut self,
        query: &str,
        registry: &ToolRegistry,
        cancel: &CancellationToken,
    ) -> Option<String> {
        let turn = self
            .selection
            .begin_turn(query, registry, self.provider.as_ref());
        tokio::select! {
            biased;
            warning = turn => warning,
            // The next request is not sent either.
            () = cancel.cancelled() => None,
        }
    }

    /// Selects the tools that the next request offers. Returns a warning for the user.
    pub(super) async fn offer_tools(
        &mut self,
        session: &Session,
        registry: &ToolRegistry,
        dependencies: Option<&Dependencies>,
    ) -> Option<String> {
        let selected = self.selection.definitions(
            &session.store,
            &session.history,
            registry,
            self.provider.as_ref(),
            dependencies,
        );
        let (tools, warning) = selected.await;
        self.tools = tools;
        warning
    }

    /// Sends the conversation. The response streams to `channel`.
    ///
    /// # Errors
    /// [`PartialResponse`] after an error or a cancellation.
    pub(super) async fn send(
        &mut self,
        session: &Session,
        tool_choice: ToolChoice,
        channel: &dyn Channel,
        cancel: &CancellationToken,
    ) -> Result<ChatResponse, PartialResponse> {
        let request = ChatRequest {
            system: session.system.text(),
            messages: session.history.messages(),
            tools: &self.tools,
            tool_choice,
            cache_key: Some(session.id()),
            response_schema: self.response_schema.as_ref(),
            json_object: false,
            max_output_tokens: None,
        };
        let mut relay = ResponseRelay::new(channel, session.history.secrets());
        let mut sink = |event: StreamEvent| relay.push(event);
        let response = tokio::select! {
            biased;
            () = cancel.cancelled() => None,
            response = self.provider.chat_stream(request, &mut sink) => Some(response),
        };
        self.reasons |= relay.has_reasoning();
        let shown = relay.finish();
        match response {
            Some(Ok(response)) => Ok(response),
            Some(Err(error)) => Err(PartialResponse {
                shown,
                error: Some(error),
            }),
            None => Err(PartialResponse { shown, error: None }),
        }
    }

    /// The costs of a response with this usage, and of requests outside of the conversation before it.
    pub(super) fn spending(&self, usage: zeph_llm::Usage) -> Spending {
        let mut spent = self.side_usage.take();
        spent.add(self.provider.as_ref(), usage);
        spent
    }
}
