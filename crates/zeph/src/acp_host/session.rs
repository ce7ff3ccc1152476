//! One open session of `zeph acp`: an agent with its assembly and the lock on its conversation.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;
use zeph_acp::{
    ClientServer, ConfigOption, HostError, HostedSession, ModeChoice, OptionKind, Prompt,
    PromptEnd, SlashCommand,
};
use zeph_core::{
    Agent, Channel, CustomCommands, LoopbackEvent, Reply, SessionSwitch, TurnEnd, TurnOutcome,
};
use zeph_llm::{LlmProvider, StopReason};
use zeph_memory::{SessionLock, Store};
use zeph_tools::secrets::SecurityPatterns;
use zeph_tools::{Mode, Permissions};

use super::commands::commands;
use super::servers::ClientServers;
use super::{close, failed, of_store, options, text_of};
use crate::assemble::{App, stored_events};
use crate::export;
use crate::session_choices::{ModelChoice, StoredChoices};

/// The response to a `!command`. In an editor, text of other authors reaches a prompt more easily than a command line.
const NO_SHELL: &str =
    "!command is not available in an editor; ask for the command, or run it in a terminal";
/// The response to `/resume`.
const NO_RESUME: &str = "open another session in the editor instead";
/// The response to `/copy`.
const NO_COPY: &str = "copy the response in the editor instead";
/// The response to `/fork`.
const NO_FORK: &str = "fork the session in the editor instead";
/// The response to `/quit`.
const NO_QUIT: &str = "close the session in the editor instead";

/// The maximum time that a prompt waits for newly approved MCP servers. Tools of slower servers are offered later.
const MAX_SERVER_WAIT: Duration = Duration::from_secs(2);

/// An open session.
pub(super) struct AcpSession {
    id: String,
    channel: Arc<dyn Channel>,
    models: Arc<ModelChoice>,
    choices: StoredChoices,
    servers: ClientServers,
    /// Messages for the start of the session.
    messages: Vec<String>,
    handles: Handles,
    /// `None` after the session was closed.
    conversation: Mutex<Option<ConversationParts>>,
}

/// The parts of the assembly that are used while a prompt runs.
struct Handles {
    permissions: Permissions,
    store: Store,
    secrets: Arc<SecurityPatterns>,
    commands: CustomCommands,
    /// The directory of the session.
    cwd: PathBuf,
}

impl Handles {
    fn of(app: &App) -> Self {
        Self {
            permissions: app.permissions.clone(),
            store: app.store.clone(),
            secrets: Arc::clone(&app.compressor.secrets),
            commands: app.commands.clone(),
            cwd: app.env.cwd.clone(),
        }
    }
}

/// The values of a session that the user chooses.
pub(super) struct Options {
    pub(super) models: Arc<ModelChoice>,
    pub(super) choices: StoredChoices,
}

/// The parts of a session that one prompt uses at a time.
pub(super) struct ConversationParts {
    pub(super) app: App,
    pub(super) agent: Agent,
    pub(super) lock: SessionLock,
    /// The provider that the agent asks.
    pub(super) provider: Arc<dyn LlmProvider>,
}

impl AcpSession {
    pub(super) fn new(
        id: String,
        channel: Arc<dyn Channel>,
        Options { models, choices }: Options,
        (servers, messages): (ClientServers, Vec<String>),
        parts: ConversationParts,
    ) -> Self {
        Self {
            id,
            channel,
            models,
            choices,
            servers,
            messages,
            handles: Handles::of(&parts.app),
            conversation: Mutex::new(Some(parts)),
        }
    }

    /// Adds newly approved MCP servers of the client, and approves the first tools of each.
    async fn add_servers(&self, app: &App) {
        let Some(mcp) = &app.mcp else {
            return;
        };
        if self.servers.add_to(mcp) {
            mcp.servers.wait_for_tools(MAX_SERVER_WAIT).await;
        }
        self.servers.approve_first_tools(mcp);
    }

    /// Handles a text that the user typed.
    async fn typed(&self, agent: &mut Agent, text: &str, cancel: &CancellationToken) -> PromptEnd {
        if text.trim_start().starts_with('!') {
            return self.says(NO_SHELL);
        }
        match agent.handle(text, cancel).await {
            Reply::Turn(outcome) => end_of(outcome),
            Reply::Diff(diff) => self.says(&format!("```diff\n{diff}\n```")),
            Reply::Copy(_) => self.says(NO_COPY),
            Reply::Text(text) | Reply::Failed(text) | Reply::Usage(text) => self.says(&text),
            Reply::Switch(SessionSwitch::Models) => self.says(&self.listing()),
            Reply::Switch(SessionSwitch::Model { name, effort }) => {
                match self.models.choose(&name, effort.as_deref()) {
                    Ok(()) => self.says(&format!(
                        "requests go to {} from now on",
                        self.models.description()
                    )),
                    Err(error) => self.says(&text_of(&error)),
                }
            }
            Reply::Switch(SessionSwitch::Session(_) | SessionSwitch::ChooseSession) => {
                self.says(NO_RESUME)
            }
            Reply::Switch(SessionSwitch::Fork) => self.says(NO_FORK),
            Reply::Switch(SessionSwitch::Export(file)) => self.export(file.as_deref()).await,
            Reply::Quit => self.says(NO_QUIT),
            Reply::Nothing | Reply::Ran => done(),
        }
    }

    /// Runs a turn for a prompt with more than a text. It is never a command, and its typed part attaches files.
    async fn mixed(
        &self,
        agent: &mut Agent,
        prompt: Prompt,
        cancel: &CancellationToken,
    ) -> PromptEnd {
        let attached = match agent.attach(&prompt.typed, cancel).await {
            Ok(attached) => attached,
            Err(why) => return self.says(&why),
        };
        let contents = attached.text.strip_prefix(&prompt.typed);
        let (contents, resources) = (contents.unwrap_or_default(), &prompt.resources);
        let text = format!("{}{contents}{resources}", prompt.text);
        let mut images = prompt.images;
        images.extend(attached.images);
        end_of(agent.run_turn_with_images(&text, images, cancel).await)
    }

    /// Writes the conversation to a file.
    async fn export(&self, file: Option<&str>) -> PromptEnd {
        let Handles { store, cwd, .. } = &self.handles;
        let written = export::to_file(store, &self.id, file, cwd).await;
        match written {
            Ok(path) => self.says(&format!("wrote {}", path.display())),
            Err(error) => self.says(&text_of(&error)),
        }
    }

    /// The models for `/model`.
    fn listing(&self) -> String {
        let mut text = format!("requests go to {}", self.models.description());
        for option in options::options(&self.models) {
            if option.kind == OptionKind::Model {
                for choice in option.choices {
                    text.push_str(&format!("\n/model {}  {}", choice.value, choice.name));
                }
            }
        }
        text
    }

    /// Sends a text of Zeph itself, not of the model.
    fn says(&self, text: &str) -> PromptEnd {
        self.channel.emit(LoopbackEvent::Text(text.to_owned()));
        done()
    }
}

/// Opens the agent again if another model was chosen.
async fn follow_choice(
    parts: &mut ConversationParts,
    chosen: Arc<dyn LlmProvider>,
    channel: &Arc<dyn Channel>,
    id: &str,
) -> Result<(), HostError> {
    if Arc::ptr_eq(&parts.provider, &chosen) {
        return Ok(());
    }
    let agent = parts.app.open_agent(&chosen, Arc::clone(channel), id, None);
    let agent = agent.await.map_err(|error| failed(&error.into()))?;
    parts.agent = agent
        .without_commands(&super::commands::WITHOUT)
        .with_hook_context_of(&mut parts.agent);
    parts.provider = chosen;
    Ok(())
}

#[async_trait]
impl HostedSession for AcpSession {
    async fn prompt(
        &self,
        prompt: Prompt,
        cancel: &CancellationToken,
    ) -> Result<PromptEnd, HostError> {
        let mut conversation = self.conversation.lock().await;
        let Some(parts) = conversation.as_mut() else {
            return Err(HostError::UnknownSession(self.id.clone()));
        };
        self.add_servers(&parts.app).await;
        follow_choice(parts, self.models.provider(), &self.channel, &self.id).await?;
        let agent = &mut parts.agent;
        if prompt.is_typed {
            return Ok(self.typed(agent, &prompt.text, cancel).await);
        }
        Ok(self.mixed(agent, prompt, cancel).await)
    }

    async fn history(&self) -> Result<Vec<LoopbackEvent>, HostError> {
        let Handles { store, secrets, .. } = &self.handles;
        let events = stored_events(store, &self.id, secrets).await;
        events.map_err(of_store)
    }

    fn mode(&self) -> Mode {
        self.handles.permissions.mode.get()
    }

    fn modes(&self) -> Vec<ModeChoice> {
        let permissions = &self.handles.permissions;
        let modes = Mode::ALL.into_iter();
        let modes = modes.filter(|mode| permissions.can_have(*mode));
        let modes = modes.map(|mode| ModeChoice {
            mode,
            description: zeph_core::effect_of_mode(mode, permissions),
        });
        modes.collect()
    }

    fn set_mode(&self, mode: Mode) -> Result<(), HostError> {
        let permissions = &self.handles.permissions;
        if !permissions.can_have(mode) {
            return Err(HostError::Invalid(zeph_core::NO_FULL_MODE.to_owned()));
        }
        permissions.mode.set(mode);
        Ok(())
    }

    fn options(&self) -> Vec<ConfigOption> {
        options::options(&self.models)
    }

    async fn set_option(&self, kind: OptionKind, value: &str) -> Result<(), HostError> {
        options::set(&self.models, kind, value)
    }

    async fn save_choices(&self) {
        let saved = self.choices.save(self.mode(), self.models.chosen_model());
        if let Err(error) = saved.await {
            self.channel.emit(LoopbackEvent::Warning(text_of(&error)));
        }
    }

    fn commands(&self) -> Vec<SlashCommand> {
        commands(&self.handles.commands)
    }

    fn begin(&self) -> Vec<ClientServer> {
        for message in &self.messages {
            self.channel.emit(LoopbackEvent::Warning(message.clone()));
        }
        self.servers.waiting()
    }

    fn approve_server(&self, server: &ClientServer, is_kept: bool) {
        if let Err(error) = self.servers.approve(server, is_kept) {
            self.channel.emit(LoopbackEvent::Warning(format!(
                "the approval of the MCP server {:?} applies only to this session, because it \
                 could not be stored: {error}",
                server.name
            )));
        }
    }

    fn takes_images(&self) -> bool {
        self.models.provider().supports_images()
    }

    async fn close(&self) {
        let Some(parts) = self.conversation.lock().await.take() else {
            return;
        };
        let ConversationParts {
            app, agent, lock, ..
        } = parts;
        drop((agent, lock));
        close(app).await;
    }
}

/// The end of a prompt that asked no model.
fn done() -> PromptEnd {
    PromptEnd {
        end: TurnEnd::Done,
        stop: StopReason::EndTurn,
        message: None,
    }
}

fn end_of(outcome: TurnOutcome) -> PromptEnd {
    PromptEnd {
        end: outcome.end,
        stop: outcome.stop,
        message: outcome.message,
    }
}
