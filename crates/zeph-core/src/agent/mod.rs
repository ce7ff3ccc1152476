//! The agent: one conversation between a person, a model and the tools.

pub mod commands;
pub mod compact;
mod confirm;
pub mod dispatch;
mod hallucination;
pub mod history;
pub mod limits;
pub mod outcome;
mod permissions;
pub mod prompt;
mod reflection;
pub mod reformat;
mod said;
mod skills;
mod status;
mod strip_reasoning;
pub mod tokens;
mod tool_batch;
mod tool_selection;
pub mod turn;
mod volatile_text;

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;
use tokio_util::sync::CancellationToken;
use zeph_llm::{HistoryId, LlmProvider, Message, ToolDefinition};
use zeph_memory::{Store, StoredSummary};
use zeph_tools::argument_repair::ArgumentRepairer;
use zeph_tools::cache::ResultCaches;
use zeph_tools::gate::CallLimits;
use zeph_tools::gate::anomaly::Rate;
use zeph_tools::layers::grants::ActiveGrant;
use zeph_tools::tafc::TafcConfig;
use zeph_tools::{
    ErasedToolExecutor, Origin, Permissions, Phase, ResultFormat, ToolCall, ToolRegistry, Undo,
    UndoError, UndoReport, content_for_llm,
};

use crate::channel::Channel;
use crate::config::AgentConfig;
use crate::embedding::Embedder;
use crate::mcp_port::ToolServers;
use crate::native::{self, skills::SkillCatalog};
use crate::reload::{ConfigReload, ConfigUpdate};
use crate::spending::{AuxiliaryUsage, Spending};
use commands::{Command, Input, parse};
use compact::{CompactionState, Compressor};
use dispatch::{CallerIdentity, Dispatcher};
use history::{History, HistoryError};
use outcome::TurnOutcome;
use tool_selection::ToolSelection;

/// A line of `/status`: what it is of, and what it says now of a session.
pub type StatusLine = (&'static str, Arc<dyn Fn(&str) -> String + Send + Sync>);

/// The parts that an agent is built from.
pub struct AgentBuilder {
    /// `[agent]`.
    pub config: AgentConfig,
    /// `[tools.tafc]`.
    pub tafc: TafcConfig,
    /// The model.
    pub provider: Arc<dyn LlmProvider>,
    /// In which form the model reads results.
    pub result_format: ResultFormat,
    /// Who puts arguments right that do not fit; `None` where they are refused.
    pub reformatter: Option<Arc<dyn ArgumentRepairer>>,
    /// Who sums up older messages.
    pub compressor: Compressor,
    /// Who makes vectors of texts, to find the tools that are near to what was said; `None` where words
    /// are compared.
    pub embedder: Option<Embedder>,
    /// The stack of tools.
    pub executor: Arc<dyn ErasedToolExecutor>,
    /// The other side.
    pub channel: Arc<dyn Channel>,
    /// Takes back what the file tools changed.
    pub undo: Arc<dyn Undo>,
    /// What the stack answers again; `None` where it does not.
    pub caches: Option<Arc<ResultCaches>>,
    /// What limits the session's calls, which the stack sees to.
    pub limits: CallLimits,
    /// What is asked of models beside the conversation: it counts to the turn.
    pub side_usage: Arc<AuxiliaryUsage>,
    /// What the stack decides by whether calls may run.
    pub permissions: Permissions,
    /// More lines of `/status`: what they are of, and what they say.
    pub more_status: Vec<StatusLine>,
    /// What the project says to agents, in the system prompt; empty where it says nothing.
    pub instructions: String,
    /// The skills that it may run.
    pub skills: SkillCatalog,
    /// Servers that bring tools; `None` where there are none.
    pub servers: Option<Arc<dyn ToolServers>>,
    /// Where the conversation is kept.
    pub store: Store,
    /// The session, which exists in the store.
    pub session: String,
    /// The directory the session works in.
    pub project: PathBuf,
    /// The channel's own id of the caller; `None` for the command line's user.
    pub caller_id: Option<String>,
    /// The phase of the work, for the gates.
    pub phase: Phase,
    /// Where the configuration changes from; `None` where it cannot.
    pub reload: Option<Arc<dyn ConfigReload>>,
    /// JSON Schema that the answer has to follow.
    pub response_schema: Option<Value>,
}

/// One conversation.
pub struct Agent {
    config: AgentConfig,
    provider: Arc<dyn LlmProvider>,
    executor: Arc<dyn ErasedToolExecutor>,
    channel: Arc<dyn Channel>,
    dispatcher: Arc<Dispatcher>,
    undo: Arc<dyn Undo>,
    caches: Option<Arc<ResultCaches>>,
    limits: CallLimits,
    side_usage: Arc<AuxiliaryUsage>,
    /// What the session spent, and what of it is stored.
    spending: Spending,
    result_format: ResultFormat,
    permissions: Permissions,
    /// What `/permissions` listed, by number.
    listed: Vec<ActiveGrant>,
    more_status: Vec<StatusLine>,
    skills: SkillCatalog,
    servers: Option<Arc<dyn ToolServers>>,
    /// The window that the cached results were read in.
    window: HistoryId,
    history: History,
    /// What became of room in the turn under way.
    room: CompactionState,
    /// The rounds of calls of the last turn.
    rounds: usize,
    /// Whether the model was seen to reason before it answers.
    reasons: bool,
    compressor: Compressor,
    store: Store,
    project: PathBuf,
    /// The system prompt without what is known of messages that left the window.
    prompt: String,
    /// What is known of them.
    knowledge: Vec<StoredSummary>,
    /// The system prompt as it is sent.
    system: String,
    offer: ToolSelection,
    tools: Vec<ToolDefinition>,
    reload: Option<Arc<dyn ConfigReload>>,
    response_schema: Option<Value>,
}

/// What is said where no server is configured.
const NO_SERVER: &str = "no MCP server is configured; [[mcp.servers]] names them";

/// What became of one input.
#[derive(Debug)]
pub enum Reply {
    /// There was nothing to do.
    Nothing,
    /// The model had its turn.
    Turn(TurnOutcome),
    /// A text for the person.
    Text(String),
    /// What was asked for was not done; why.
    Failed(String),
    /// The person's own command ran; its output went to the channel.
    Ran,
    /// The person wants to go on with something else, for which the agent is opened anew.
    Switch(SessionSwitch),
    /// The person wants to leave.
    Quit,
}

impl From<CommandOutput> for Reply {
    fn from(told: CommandOutput) -> Self {
        match told {
            Ok(text) => Self::Text(text),
            Err(why) => Self::Failed(why),
        }
    }
}

/// What a command says; an error where it did not do what was asked for.
type CommandOutput = Result<String, String>;

/// What a person wants to go on with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionSwitch {
    /// `/model`: nothing yet; which providers there are.
    Models,
    /// `/model NAME`: the provider of this name, or this model of the one that is asked.
    Model(String),
    /// `/resume ID`: the session whose id begins so.
    Session(String),
}

impl AgentBuilder {
    /// Builds the agent: opens the session's conversation.
    ///
    /// # Errors
    /// [`HistoryError`] when it cannot be read back.
    pub async fn build(self) -> Result<Agent, HistoryError> {
        let parts = self;
        let said = [
            parts.instructions,
            native::skills::prompt(&parts.skills.skills),
        ]
        .concat();
        let prompt = prompt::system_prompt(&parts.project, &said);
        let knowledge = parts.store.summaries(&parts.session).await?;
        let system = prompt::with_knowledge(&prompt, &knowledge);
        parts.compressor.requests.begin(&parts.session);
        let registry = ToolRegistry::new(parts.executor.tool_definitions_erased());
        let fixed_bytes = system.len() + tokens::definition_bytes(&registry);
        let compacted_at = knowledge.last().map_or(0, |summary| summary.created_at);
        let store = parts.store.clone();
        let secrets = Arc::clone(&parts.compressor.secrets);
        let history = History::resume(store, &parts.session, fixed_bytes, compacted_at).await?;
        let history = history.with_redaction(Arc::clone(&secrets));
        skills::read_before(&parts.skills.skills, &history);
        let stored = parts.store.spending(&parts.session).await?;
        let dispatcher = Dispatcher::new(
            Arc::clone(&parts.executor),
            Arc::clone(&parts.channel),
            CallerIdentity {
                conversation: parts.session,
                caller_id: parts.caller_id,
                phase: parts.phase,
                origin: Origin::Model,
            },
        )
        .redacting(secrets)
        .with_config_reload(parts.reload.clone())
        .with_grants(Arc::clone(&parts.permissions.grants))
        .taking_images(parts.provider.supports_images())
        .reformatting(parts.reformatter);
        Ok(Agent {
            offer: ToolSelection::new(parts.config.tool_filter.clone(), parts.tafc, parts.embedder),
            config: parts.config,
            provider: parts.provider,
            executor: parts.executor,
            channel: Arc::clone(&dispatcher.channel),
            dispatcher: Arc::new(dispatcher),
            undo: parts.undo,
            caches: parts.caches,
            limits: parts.limits,
            side_usage: parts.side_usage,
            spending: Spending::of_stored(stored),
            result_format: parts.result_format,
            permissions: parts.permissions,
            listed: Vec::new(),
            more_status: parts.more_status,
            skills: parts.skills,
            servers: parts.servers,
            window: history.id(),
            history,
            room: CompactionState::default(),
            rounds: 0,
            reasons: false,
            compressor: parts.compressor,
            store: parts.store,
            project: parts.project,
            prompt,
            knowledge,
            system,
            tools: Vec::new(),
            reload: parts.reload,
            response_schema: parts.response_schema,
        })
    }
}

impl Agent {
    /// The session's id.
    #[must_use]
    pub fn session(&self) -> &str {
        self.history.session()
    }

    /// The conversation so far, as the model is sent it.
    #[must_use]
    pub fn messages(&self) -> &[Message] {
        self.history.messages()
    }

    /// Takes whatever a person typed: a prompt, a slash command, `!command`.
    pub async fn handle(&mut self, text: &str, cancel: &CancellationToken) -> Reply {
        match parse(text) {
            Input::Empty => Reply::Nothing,
            Input::Prompt(prompt) => Reply::Turn(self.run_turn(prompt, cancel).await),
            Input::Shell(command) => match self.run_shell(command, cancel).await {
                Ok(()) => Reply::Ran,
                Err(error) => Reply::Failed(error.to_string()),
            },
            Input::Command(Command::Quit) => Reply::Quit,
            Input::Command(Command::Compact) => self.compact_as_told(cancel).await.into(),
            Input::Command(Command::Models) => Reply::Switch(SessionSwitch::Models),
            Input::Command(command) => match self.run_command(command).await {
                Ok(told) => told.into(),
                Err(error) => Reply::Failed(error.to_string()),
            },
            Input::Unblock(tool) => self.unblock(tool).into(),
            Input::Approve(server, yes) => self.approve(server, yes).into(),
            Input::Model(name) => Reply::Switch(SessionSwitch::Model(name.to_owned())),
            Input::Resume(id) => Reply::Switch(SessionSwitch::Session(id.to_owned())),
            Input::Unknown { name, near } => Reply::Failed(match near {
                Some(near) => format!("{name} is no command; did you mean {near}? /help lists all"),
                None => format!("{name} is no command; /help lists all"),
            }),
        }
    }

    /// Runs a command as the person, and lets the model see what came of it.
    async fn run_shell(
        &mut self,
        command: &str,
        cancel: &CancellationToken,
    ) -> Result<(), HistoryError> {
        let call = ToolCall::new(
            format!("user_{}", uuid::Uuid::new_v4().simple()),
            "bash",
            serde_json::json!({ "command": command }),
            self.history.session(),
        );
        let result = self.dispatcher.run_user_call(&call, cancel).await;
        let told = format!(
            "[the user ran a command]\n$ {command}\n{}",
            content_for_llm(&result)
        );
        self.history.push(Message::user(told), None).await?;
        Ok(())
    }

    async fn run_command(&mut self, command: Command) -> Result<CommandOutput, HistoryError> {
        Ok(Ok(match command {
            Command::Help => commands::help(),
            Command::Clear => {
                self.history.clear().await?;
                self.forget_knowledge();
                self.follow_window();
                self.permissions.grants.clear(self.history.session());
                self.offer.forget();
                self.skills.skills.forget(self.history.session());
                if let Some(dependencies) = &self.limits.dependencies {
                    dependencies.forget(self.history.session());
                }
                "The conversation starts over; what was said stays in the store.".to_owned()
            }
            Command::Status => self.status().await,
            Command::Cost => self.cost(),
            Command::Tools => self.tool_list(),
            Command::Skills => self.skills.listing(),
            Command::Unblock => return Ok(Err(self.name_a_tool())),
            Command::Mcp => match &self.servers {
                Some(servers) => servers.listing(),
                None => NO_SERVER.to_owned(),
            },
            Command::McpApprove => {
                let said = "/mcp approve NAME takes the name of a server; /mcp lists them";
                return Ok(Err(said.to_owned()));
            }
            Command::Sessions => self.session_list().await?,
            Command::Reload => match &self.reload {
                Some(reload) => match reload.reload().await {
                    ConfigUpdate::Taken(text) => text,
                    ConfigUpdate::Refused(text) => return Ok(Err(text)),
                },
                None => return Ok(Err("there is no configuration to read again".to_owned())),
            },
            Command::Undo => return self.undo_last().await,
            Command::UndoForget => {
                let forgot = self.undo.forget_last(self.history.session()).await;
                return Ok(lines(forgot));
            }
            Command::Permissions => return Ok(self.list_permissions().await),
            Command::PermissionsRemove(number) => return Ok(self.remove_permission(number).await),
            Command::Compact | Command::Models | Command::Quit => String::new(),
        }))
    }

    /// Shows what is to be agreed to of a server, or agrees to what was shown.
    fn approve(&self, server: &str, yes: bool) -> CommandOutput {
        let servers = self.servers.as_ref().ok_or(NO_SERVER)?;
        match yes {
            true => servers.agree(server),
            false => servers.propose(server),
        }
    }

    /// Undoes the last changes, and lets the model know of it.
    async fn undo_last(&mut self) -> Result<CommandOutput, HistoryError> {
        let undone = {
            let _changing = self.caches.as_ref().map(|caches| caches.changing());
            self.undo.undo_last(self.history.session()).await
        };
        if let Some(utility) = &self.limits.utility {
            utility.files_changed();
        }
        if let Some(note) = undo_note(&undone) {
            self.history.push(Message::user(note), None).await?;
        }
        Ok(lines(undone))
    }

    /// Nothing is answered that was read in another window: its text is not in this one.
    fn follow_window(&mut self) {
        if self.window != self.history.id() {
            self.window = self.history.id();
            if let Some(caches) = &self.caches {
                caches.clear(self.history.session());
            }
            if let Some(utility) = &self.limits.utility {
                utility.forget(self.history.session());
            }
        }
    }

    fn tool_list(&self) -> String {
        let registry = ToolRegistry::new(self.executor.tool_definitions_erased());
        let lines: Vec<_> = registry
            .tools()
            .iter()
            .map(|def| match self.blocked_rate(&def.id) {
                Some(rate) => format!(
                    "{:<18} [blocked: {rate}; /tools unblock {} lets it run again] {}",
                    def.id, def.id, def.description
                ),
                None => format!("{:<18} {}", def.id, def.description),
            })
            .collect();
        lines.join("\n")
    }

    /// How often a tool had failed when it was blocked, if it is.
    fn blocked_rate(&self, tool: &str) -> Option<Rate> {
        let anomalies = self.limits.anomalies.as_ref()?;
        anomalies.blocked(self.history.session(), tool)
    }

    /// Lets a tool run again that failed too often.
    fn unblock(&self, tool: &str) -> CommandOutput {
        let anomalies = self.limits.anomalies.as_ref();
        let session = self.history.session();
        if anomalies.is_some_and(|anomalies| anomalies.unblock(session, tool)) {
            return Ok(format!("{tool} runs again."));
        }
        Err(format!("{tool} is not blocked; {}", self.name_a_tool()))
    }

    /// Which tools are blocked, as a hint.
    fn name_a_tool(&self) -> String {
        let anomalies = self.limits.anomalies.as_ref();
        let blocked = anomalies.map(|anomalies| anomalies.all_blocked(self.history.session()));
        let blocked: Vec<String> = blocked
            .into_iter()
            .flatten()
            .map(|(tool, _)| tool)
            .collect();
        match blocked.as_slice() {
            [] => "no tool is blocked".to_owned(),
            blocked => format!("/tools unblock NAME takes one of: {}", blocked.join(", ")),
        }
    }
}

/// What a person is told of an undo.
fn lines(undone: Result<UndoReport, UndoError>) -> CommandOutput {
    undone
        .map(|undone| undone.lines.join("\n"))
        .map_err(|error| error.to_string())
}

/// What a model is told of an undo; `None` when nothing was changed.
#[must_use]
pub fn undo_note(result: &Result<UndoReport, UndoError>) -> Option<String> {
    let lines = match result {
        Ok(undone) => &undone.lines,
        Err(UndoError::Partial { done, .. }) => done,
        Err(_) => return None,
    };
    Some(format!(
        "[the user took back the last changes; read a file again before you change it]\n{}",
        lines.join("\n")
    ))
}
