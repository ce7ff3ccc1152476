//! The builder of an [`Agent`].

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;
use zeph_llm::LlmProvider;
use zeph_llm::traced::SpanContent;
use zeph_memory::Store;
use zeph_tools::argument_repair::ArgumentRepairer;
use zeph_tools::cache::ResultCaches;
use zeph_tools::gate::CallLimits;
use zeph_tools::tafc::TafcConfig;
use zeph_tools::undo::NoJournal;
use zeph_tools::{
    ErasedToolExecutor, Origin, Permissions, Phase, ResultFormat, ToolExecutor, ToolRegistry, Undo,
};

use super::compact::Compressor;
use super::history::HistoryError;
use super::hooks::SessionHooks;
use super::limits::IterationPolicy;
use super::model_client::ModelClient;
use super::session::Session;
use super::sub_agent::{ParentAgent, SubAgentHost};
use super::tool_runner::ToolRunner;
use super::tool_runner::caller::CallerIdentity;
use super::tool_runner::dispatch::Dispatcher;
use super::tool_runner::sampling::Sampler;
use super::tool_selection::ToolSelection;
use super::{Agent, StatusLine, prompt, tokens};
use crate::channel::Channel;
use crate::config::AgentConfig;
use crate::custom_commands::CustomCommands;
use crate::embedding::Embedder;
use crate::event_channel::EventChannel;
use crate::mcp_port::ToolServers;
use crate::native::skills::{self, SkillCatalog};
use crate::reload::ConfigReload;
use crate::spending::AuxiliaryUsage;
use crate::sub_agents::SubAgents;

/// A builder of an [`Agent`].
pub struct AgentBuilder {
    /// `[agent]`.
    pub config: AgentConfig,
    /// The rounds of tool calls of a turn.
    pub iterations: IterationPolicy,
    /// `[tools.tafc]`.
    pub tafc: TafcConfig,
    /// The model.
    pub provider: Arc<dyn LlmProvider>,
    /// The form of results for the model.
    pub result_format: ResultFormat,
    /// Repairs invalid arguments; `None` means that they are refused.
    pub reformatter: Option<Arc<dyn ArgumentRepairer>>,
    /// Summarizes older messages.
    pub compressor: Compressor,
    /// Computes embeddings for the selection of tools; `None` means that keywords are compared.
    pub embedder: Option<Embedder>,
    /// The stack of tools.
    pub executor: Arc<dyn ErasedToolExecutor>,
    /// The channel to the user.
    pub channel: Arc<dyn Channel>,
    /// Undoes changes of the file tools.
    pub undo: Arc<dyn Undo>,
    /// The result cache of the stack; `None` if it is off.
    pub caches: Option<Arc<ResultCaches>>,
    /// The limits of the session's calls, which the stack enforces.
    pub limits: CallLimits,
    /// Costs of requests outside of the conversation. They count to the turn.
    pub side_usage: Arc<AuxiliaryUsage>,
    /// The permissions of the stack.
    pub permissions: Permissions,
    /// More lines of `/status`.
    pub more_status: Vec<StatusLine>,
    /// The project's instructions for the system prompt; may be empty.
    pub instructions: String,
    /// The skills.
    pub skills: SkillCatalog,
    /// The hooks of the conversation; `None` if there are none.
    pub hooks: Option<Arc<dyn SessionHooks>>,
    /// The MCP servers; `None` if there are none.
    pub servers: Option<Arc<dyn ToolServers>>,
    /// The sub-agents that the model can start; `None` if it cannot.
    pub sub_agents: Option<SubAgents>,
    /// The agent for which this sub-agent works; `None` for the agent of a user.
    pub parent: Option<ParentAgent>,
    /// The store of the conversation.
    pub store: Store,
    /// The id of a session in the store.
    pub session: String,
    /// The working directory of the session.
    pub project: PathBuf,
    /// The caller's id in the channel; `None` for the user of the command line.
    pub caller_id: Option<String>,
    /// The phase of the work, for the gates.
    pub phase: Phase,
    /// The source of configuration changes; `None` if the configuration does not change.
    pub reload: Option<Arc<dyn ConfigReload>>,
    /// JSON Schema of the response.
    pub response_schema: Option<Value>,
    /// Whether the spans of calls hold arguments and results.
    pub span_content: SpanContent,
}

impl AgentBuilder {
    /// Creates the builder of an agent that works in `project`, with the default of every other part: it shows nothing and
    /// asks no one. The session must be in the store.
    #[must_use]
    pub fn new(
        provider: Arc<dyn LlmProvider>,
        executor: impl ToolExecutor + 'static,
        store: &Store,
        session: impl Into<String>,
        project: impl Into<PathBuf>,
    ) -> Self {
        Self {
            config: AgentConfig::default(),
            iterations: IterationPolicy::default(),
            tafc: TafcConfig::default(),
            provider,
            result_format: ResultFormat::Text,
            reformatter: None,
            compressor: Compressor::default(),
            embedder: None,
            executor: Arc::new(executor),
            channel: Arc::new(EventChannel::new(|_| ())),
            undo: Arc::new(NoJournal),
            caches: None,
            limits: CallLimits::default(),
            side_usage: Arc::default(),
            permissions: Permissions::default(),
            more_status: Vec::new(),
            instructions: String::new(),
            skills: SkillCatalog::default(),
            hooks: None,
            servers: None,
            sub_agents: None,
            parent: None,
            store: store.clone(),
            session: session.into(),
            project: project.into(),
            caller_id: None,
            phase: Phase::default(),
            reload: None,
            response_schema: None,
            span_content: SpanContent::default(),
        }
    }

    /// Sets the channel that shows events and asks questions. A program that shares its channel sets the field
    /// [`AgentBuilder::channel`] instead.
    #[must_use]
    pub fn with_channel(mut self, channel: impl Channel + 'static) -> Self {
        self.channel = Arc::new(channel);
        self
    }

    /// Sets the permissions that decide about calls; they must be those of the stack.
    #[must_use]
    pub fn with_permissions(mut self, permissions: Permissions) -> Self {
        self.permissions = permissions;
        self
    }

    /// Adds instructions to the system prompt.
    #[must_use]
    pub fn with_instructions(mut self, instructions: impl Into<String>) -> Self {
        self.instructions = instructions.into();
        self
    }

    /// Sets the limits of turns.
    #[must_use]
    pub fn with_config(mut self, config: AgentConfig) -> Self {
        self.iterations = IterationPolicy::new(&config, |_| false);
        self.config = config;
        self
    }

    /// Builds the agent, and opens the conversation of its session.
    ///
    /// # Errors
    /// [`HistoryError`] if the conversation cannot be read.
    pub async fn build(self) -> Result<Agent, HistoryError> {
        let instructions = self.instructions.clone() + &skills::prompt(&self.skills.skills);
        let prompt = prompt::system_prompt(&self.project, &instructions);
        self.compressor.requests.begin(&self.session);
        let registry = ToolRegistry::new(self.executor.tool_definitions_erased());
        let secrets = Arc::clone(&self.compressor.secrets);
        let session = Session::open(
            self.store,
            &self.session,
            self.project,
            prompt,
            tokens::definition_bytes(&registry),
            Arc::clone(&secrets),
        )
        .await?;
        let caller = CallerIdentity {
            conversation: self.session,
            caller_id: self.caller_id,
            phase: self.phase,
            origin: Origin::Model,
        };
        let dispatcher = Dispatcher::new(Arc::clone(&self.executor), self.channel, caller)
            .with_redaction(secrets);
        let asking = dispatcher.question_lock();
        let host = self.sub_agents.map(|agents| {
            Arc::new(SubAgentHost {
                agents,
                config: self.config.clone(),
                iterations: self.iterations,
                tafc: self.tafc.clone(),
                provider: Arc::clone(&self.provider),
                result_format: self.result_format,
                reformatter: self.reformatter.clone(),
                compressor: self.compressor.clone(),
                embedder: self.embedder.clone(),
                stack: Arc::clone(&self.executor),
                channel: Arc::clone(&dispatcher.channel),
                undo: Arc::clone(&self.undo),
                caches: self.caches.clone(),
                limits: self.limits.clone(),
                side_usage: Arc::clone(&self.side_usage),
                permissions: self.permissions.clone(),
                instructions: self.instructions.clone(),
                store: session.store.clone(),
                session: session.id().to_owned(),
                project: session.project.clone(),
                reload: self.reload.clone(),
                span_content: self.span_content,
                asking,
            })
        });
        let dispatcher = dispatcher
            .with_config_reload(self.reload)
            .with_grants(Arc::clone(&self.permissions.grants))
            .with_image_support(self.provider.supports_images())
            .with_argument_repair(self.reformatter)
            .with_span_content(self.span_content)
            .with_sampler(Sampler {
                provider: Arc::clone(&self.provider),
                usage: Arc::clone(&self.side_usage),
            });
        let dispatcher = match &self.parent {
            Some(parent) => dispatcher.with_parent(parent.session.clone(), parent.batch.clone()),
            None => dispatcher,
        };
        let dispatcher = dispatcher.with_sub_agents(host);
        let channel = Arc::clone(&dispatcher.channel);
        let filter = self.config.tool_filter.clone();
        let model = ModelClient {
            provider: self.provider,
            selection: ToolSelection::new(filter, self.tafc, self.embedder),
            tools: Vec::new(),
            response_schema: self.response_schema,
            reasons: false,
            side_usage: self.side_usage,
        };
        let tools = ToolRunner {
            executor: self.executor,
            dispatcher,
            limits: self.limits,
            caches: self.caches,
            permissions: self.permissions,
            listed: Vec::new(),
            skills: self.skills,
            servers: self.servers,
            undo: self.undo,
            result_format: self.result_format,
            window: session.history.id(),
        };
        let messages = session.store.known_messages(session.id()).await?;
        tools.record_loaded_skills(session.id(), &messages);
        Ok(Agent {
            config: self.config,
            iterations: self.iterations,
            channel,
            session,
            model,
            tools,
            compressor: self.compressor,
            more_status: self.more_status,
            hooks: self.hooks,
            hook_context: String::new(),
            parent: self.parent,
            commands: CustomCommands::default(),
            unavailable: &[],
        })
    }
}
