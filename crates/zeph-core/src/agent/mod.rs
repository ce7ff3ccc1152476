//! The agent: one conversation between a user, a model and tools.
//!
//! [`Agent`] consists of a `Session` (conversation and costs), a `ModelClient` (requests) and a `ToolRunner` (calls). `turn` is the
//! loop that connects them.

mod builder;
mod check_in;
pub mod compact;
mod custom;
mod hallucination;
pub mod history;
pub mod hooks;
pub mod limits;
mod mentions;
mod model_client;
pub mod outcome;
mod project_commands;
pub mod prompt;
mod reflection;
pub mod reformat;
pub mod replay;
mod response_relay;
mod rewind;
mod run_slash_command;
mod session;
pub mod slash_commands;
mod spans;
mod status;
mod strip_reasoning;
pub mod sub_agent;
mod submitted_prompts;
pub mod tokens;
pub(crate) mod tool_runner;
mod tool_selection;
pub mod turn;
mod user_command;
mod volatile_text;

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use zeph_llm::Message;

use crate::channel::{Channel, LoopbackEvent};
use crate::config::AgentConfig;
use crate::custom_commands::CustomCommands;
pub use builder::AgentBuilder;
use compact::Compressor;
use history::HistoryError;
use hooks::SessionHooks;
use limits::IterationPolicy;
use model_client::ModelClient;
use outcome::TurnOutcome;
use session::Session;
use slash_commands::{Input, parse, starts_with_path};
use sub_agent::ParentAgent;
use tool_runner::ToolRunner;
pub use tool_runner::file_attachments::AttachedPrompt;

/// A line of `/status`: its name, and a function from the session's id to its text.
pub type StatusLine = (&'static str, Arc<dyn Fn(&str) -> String + Send + Sync>);

/// An agent that holds one conversation.
pub struct Agent {
    config: AgentConfig,
    iterations: IterationPolicy,
    channel: Arc<dyn Channel>,
    session: Session,
    model: ModelClient,
    tools: ToolRunner,
    compressor: Compressor,
    more_status: Vec<StatusLine>,
    hooks: Option<Arc<dyn SessionHooks>>,
    /// The agent for which this sub-agent works.
    parent: Option<ParentAgent>,
    /// The texts of hooks for the next prompt.
    hook_context: String,
    commands: CustomCommands,
    /// The commands that `/help` omits.
    unavailable: &'static [&'static str],
}

/// The outcome of one input.
#[derive(Debug)]
pub enum Reply {
    /// The input was empty.
    Nothing,
    /// A turn ran.
    Turn(TurnOutcome),
    /// A text for the user.
    Text(String),
    /// A diff for the user.
    Diff(String),
    /// A text for the clipboard of the user.
    Copy(String),
    /// The command failed, for this reason.
    Failed(String),
    /// The input is not a command, or a command with wrong arguments, for this reason. Nothing ran.
    Usage(String),
    /// The user's own command ran; the channel got its output.
    Ran,
    /// The user chose another model or session, for which a new agent is built.
    Switch(SessionSwitch),
    /// The user wants to leave.
    Quit,
}

impl From<CommandOutput> for Reply {
    fn from(output: CommandOutput) -> Self {
        match output {
            Ok(text) => Self::Text(text),
            Err(reason) => Self::Failed(reason),
        }
    }
}

/// The output of a command, or the reason why it failed.
type CommandOutput = Result<String, String>;

/// The model or session that a user wants to continue with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionSwitch {
    /// `/model`: lists the providers and changes nothing.
    Models,
    /// `/model NAME EFFORT`: the provider with this name, or else this model of the current provider.
    Model {
        /// The name of the provider or the model.
        name: String,
        /// How much the model reasons; `None` for the configured value.
        effort: Option<String>,
    },
    /// `/resume ID`: the session with this id or unique prefix of an id.
    Session(String),
    /// `/resume`: the user selects a session.
    ChooseSession,
    /// `/fork`: a copy of this session.
    Fork,
    /// `/export FILE`: writes the conversation to a file and changes nothing else. `None` for a file with the name of the
    /// session.
    Export(Option<String>),
}

impl Agent {
    /// Removes the state of calls of a session that ends.
    fn forget_calls(&mut self) {
        self.tools.clear(&self.session);
        if let Some(caches) = &self.tools.caches {
            caches.clear(self.session.id());
        }
    }

    /// The session's id.
    #[must_use]
    pub fn session(&self) -> &str {
        self.session.id()
    }

    /// The messages of the conversation that requests contain.
    #[must_use]
    pub fn messages(&self) -> &[Message] {
        self.session.history.messages()
    }

    /// Handles one input of the user: a prompt, a slash command or `!command`.
    pub async fn handle(&mut self, text: &str, cancel: &CancellationToken) -> Reply {
        if let Some((command, arguments)) = self.commands.invoked(text) {
            return self.run_custom_command(&command, arguments, cancel).await;
        }
        match parse(text) {
            Input::Empty => Reply::Nothing,
            Input::Prompt(prompt) => self.prompt(prompt, cancel).await,
            Input::ServerPrompt {
                server,
                prompt,
                arguments,
            } => {
                let command = (server, prompt);
                match self.tools.server_prompt(command, arguments, cancel).await {
                    Ok(prompt) => Reply::Turn(self.run_turn(&prompt, cancel).await),
                    Err(why) => Reply::Failed(why),
                }
            }
            Input::Shell(command) => {
                let ran = self
                    .tools
                    .run_user_command(&mut self.session, command, cancel);
                match ran.await {
                    Ok(()) => Reply::Ran,
                    Err(error) => Reply::Failed(error.to_string()),
                }
            }
            Input::Command(command) => self.run_slash_command(command, cancel).await,
            Input::Unblock(tool) => self.tools.unblock(self.session.id(), tool).into(),
            Input::Approve(server, yes) => {
                self.tools.wait_for_servers().await;
                self.tools.approve_server(server, yes).into()
            }
            Input::Model(name, effort) => Reply::Switch(SessionSwitch::Model {
                name: name.to_owned(),
                effort: effort.map(str::to_owned),
            }),
            Input::Mode(name) => self.tools.set_mode(name).into(),
            Input::Review(target) => self.review(Some(target), cancel).await,
            Input::StopJob(job) => self.stop_job(job, cancel).await.into(),
            Input::Resume(id) => Reply::Switch(SessionSwitch::Session(id.to_owned())),
            Input::Export(file) => Reply::Switch(SessionSwitch::Export(Some(file.to_owned()))),
            Input::Rename(title) => match self.rename(title).await {
                Ok(text) => Reply::Text(text),
                Err(error) => Reply::Failed(error.to_string()),
            },
            Input::Rewind(number, yes) => match self.rewind(number, yes).await {
                Ok(output) => output.into(),
                Err(error) => Reply::Failed(error.to_string()),
            },
            Input::Unknown { .. } if starts_with_path(text) => self.prompt(text, cancel).await,
            Input::Unknown { name, near } => {
                let near = near
                    .map(str::to_owned)
                    .or_else(|| self.commands.nearest(name));
                Reply::Usage(match near {
                    Some(near) => {
                        format!("{name} is not a command; did you mean {near}? /help lists all")
                    }
                    None => format!("{name} is not a command; /help lists all"),
                })
            }
        }
    }

    /// Runs a turn for a prompt with the files and resources that it names.
    async fn prompt(&mut self, prompt: &str, cancel: &CancellationToken) -> Reply {
        match self.attach(prompt, cancel).await {
            Ok(AttachedPrompt { text, images }) => {
                Reply::Turn(self.run_turn_with_images(&text, images, cancel).await)
            }
            Err(why) => Reply::Failed(why),
        }
    }

    /// Reads the files and the resources of MCP servers that a prompt of the user names.
    ///
    /// # Errors
    /// The reason why one of them cannot be attached.
    pub async fn attach(
        &self,
        prompt: &str,
        cancel: &CancellationToken,
    ) -> Result<AttachedPrompt, String> {
        let session = self.session.id();
        let text = self.tools.with_resources(session, prompt, cancel).await?;
        let attached = text[prompt.len()..].to_owned();
        let place = (session, self.session.project.as_path());
        let files = self.tools.with_files(place, prompt.to_owned(), cancel);
        let mut prompt = files.await?;
        prompt.text.push_str(&attached);
        Ok(prompt)
    }

    /// `/rename TITLE`
    async fn rename(&self, title: &str) -> Result<String, HistoryError> {
        let title = self.session.rename(title).await?;
        self.channel.emit(LoopbackEvent::Title(title.clone()));
        Ok(format!("this session is now called {title:?}"))
    }
}
