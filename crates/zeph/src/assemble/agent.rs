//! The agent of an assembly: the one way in which every conversation is opened.

use std::sync::Arc;

use serde_json::Value;
use zeph_core::agent::history::HistoryError;
use zeph_core::{Agent, AgentBuilder, Channel, ModelSource};
use zeph_llm::LlmProvider;
use zeph_tools::{Mode, Phase};

use super::App;
use crate::telemetry;

/// Whose the calls of a conversation are.
#[derive(Debug, Clone, Default)]
pub(crate) struct ConversationCaller {
    /// The phase of the work.
    pub(crate) phase: Phase,
    /// The caller; `None` for the user at the command line.
    pub(crate) caller_id: Option<String>,
}

impl App {
    /// Sets the source of providers for commands and sub-agents that name a model: the chosen model of the session.
    pub(crate) fn use_models(&mut self, models: Arc<dyn ModelSource>) {
        self.commands = self.commands.clone().with_models(Arc::clone(&models));
        self.sub_agents = self.sub_agents.clone().with_models(models);
    }

    /// Opens the conversation of the existing session `session` with `provider` and the user of `channel`. The answer
    /// has to follow `schema`.
    ///
    /// # Errors
    /// [`HistoryError`] if the conversation cannot be read back.
    pub(crate) async fn open_agent(
        &self,
        provider: &Arc<dyn LlmProvider>,
        channel: Arc<dyn Channel>,
        session: &str,
        schema: Option<Value>,
    ) -> Result<Agent, HistoryError> {
        let by = ConversationCaller::default();
        self.open_agent_for(by, provider, channel, session, schema)
            .await
    }

    /// Opens the conversation like [`App::open_agent`], for calls of another caller.
    ///
    /// # Errors
    /// As [`App::open_agent`].
    pub(crate) async fn open_agent_for(
        &self,
        by: ConversationCaller,
        provider: &Arc<dyn LlmProvider>,
        channel: Arc<dyn Channel>,
        session: &str,
        schema: Option<Value>,
    ) -> Result<Agent, HistoryError> {
        let agent = AgentBuilder {
            config: self.agent_config(provider.context_window()),
            iterations: self.iteration_policy(),
            tafc: self.loaded.config.tools.tafc.clone(),
            provider: Arc::clone(provider),
            reformatter: self.reformatter.clone(),
            compressor: self.compressor.clone(),
            embedder: self.embedder.clone(),
            executor: Arc::clone(&self.stack) as _,
            channel,
            undo: Arc::clone(&self.undo),
            caches: self.caches.clone(),
            limits: self.limits.clone(),
            side_usage: Arc::clone(&self.side_usage),
            result_format: self.loaded.config.tools.result_format,
            permissions: self.permissions.clone(),
            more_status: self.more_status(),
            instructions: self.instructions.text.clone(),
            skills: self.skills.clone(),
            hooks: self.hooks.clone().map(|hooks| hooks as _),
            sub_agents: Some(self.sub_agents.clone()),
            parent: None,
            servers: self.mcp.clone().map(|mcp| mcp as _),
            store: self.store.clone(),
            session: session.to_owned(),
            project: self.env.cwd.clone(),
            caller_id: by.caller_id,
            phase: match self.permissions.mode.get() {
                // In this mode the agent explores and writes a plan.
                Mode::Plan if by.phase == Phase::Executor => Phase::Planner,
                _ => by.phase,
            },
            reload: Some(Arc::clone(&self.reload) as _),
            response_schema: schema,
            span_content: telemetry::span_content(&self.loaded, &self.env),
        }
        .build()
        .await?;
        Ok(agent.with_custom_commands(self.commands.clone()))
    }
}
