//! The port to the sessions: the operations that the protocol needs, without types of the protocol.
//!
//! The binary implements it with the same assembly as every other entry point.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;
use zeph_core::{Channel, LoopbackEvent, TurnEnd};
use zeph_llm::StopReason;
use zeph_tools::file::EditorFiles;
use zeph_tools::shell::CommandRunner;
use zeph_tools::{ImageContent, Mode};

/// A failed operation of the host. The text of the error is shown to the client.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// No model can be asked; the text says how to configure one.
    #[error("{0}")]
    NoProvider(String),
    /// The session does not exist.
    #[error("there is no session {0}; session/list returns the sessions")]
    UnknownSession(String),
    /// The session cannot be used now, for example because another process holds it.
    #[error("{0}")]
    Unavailable(String),
    /// The request has an invalid value.
    #[error("{0}")]
    Invalid(String),
    /// The operation failed.
    #[error("{0}")]
    Failed(String),
}

/// The origin of a session's conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionSource {
    /// A new, empty conversation.
    New,
    /// The stored conversation of the session.
    Stored,
    /// A copy of the stored conversation of another session.
    ForkOf(String),
}

/// The way to reach an MCP server of the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerAddress {
    /// A program.
    Program {
        /// The program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Variables of its environment.
        env: Vec<(String, String)>,
    },
    /// An address of HTTP.
    Url {
        /// The address.
        url: String,
        /// Headers of every request.
        headers: Vec<(String, String)>,
    },
}

/// An MCP server that the client passes with a session.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientServer {
    /// Its name.
    pub name: String,
    /// The way to reach it.
    pub address: ServerAddress,
}

/// A request to open a session.
pub struct OpenRequest {
    /// The id of the session.
    pub id: String,
    /// The origin of the conversation.
    pub source: SessionSource,
    /// The working directory; an absolute path.
    pub cwd: PathBuf,
    /// More directories in which files may be used; absolute paths.
    pub additional_directories: Vec<PathBuf>,
    /// The MCP servers of the client. None of them starts before the user approved it.
    pub servers: Vec<ClientServer>,
    /// The channel to the client.
    pub channel: Arc<dyn Channel>,
    /// The files of the client, if it offers them.
    pub files: EditorFiles,
    /// Runs commands in terminals of the client, if it offers them.
    pub terminals: Option<Arc<dyn CommandRunner>>,
}

/// A stored session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedSession {
    /// Its id.
    pub id: String,
    /// Its working directory.
    pub cwd: PathBuf,
    /// Its title.
    pub title: Option<String>,
    /// The time of its last message, in the format of RFC 3339.
    pub updated_at: String,
}

/// A permission mode that a session can have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModeChoice {
    /// The mode.
    pub mode: Mode,
    /// Its effect.
    pub description: String,
}

/// The meaning of a configuration option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionKind {
    /// The model.
    Model,
    /// How much the model reasons.
    Effort,
}

/// A value of a configuration option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// The value.
    pub value: String,
    /// The name for display.
    pub name: String,
}

/// A configuration option of a session, in addition to its mode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigOption {
    /// The meaning.
    pub kind: OptionKind,
    /// The current value, which is one of the choices.
    pub current: String,
    /// The possible values.
    pub choices: Vec<Choice>,
}

/// A slash command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlashCommand {
    /// The name without the slash.
    pub name: String,
    /// Its effect.
    pub description: String,
    /// The arguments, if it takes any.
    pub hint: Option<String>,
}

/// A prompt of the user.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prompt {
    /// The text, with references to files and resources.
    pub text: String,
    /// The part of the text that the user typed. Only this part attaches files.
    pub typed: String,
    /// The texts of resources, which follow the text.
    pub resources: String,
    /// Whether the user typed the complete text. Only then it can be a command.
    pub is_typed: bool,
    /// The images.
    pub images: Vec<ImageContent>,
}

/// The end of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptEnd {
    /// The reason why the turn ended.
    pub end: TurnEnd,
    /// The reason why the model ended its last response.
    pub stop: StopReason,
    /// The error, or the limit that was reached.
    pub message: Option<String>,
}

/// An open session. It stays open until [`HostedSession::close`] or the end of the process.
#[async_trait]
pub trait HostedSession: Send + Sync {
    /// Handles a prompt; its events go to the channel. Only one prompt runs at a time.
    ///
    /// # Errors
    /// [`HostError`] if the prompt could not be handled.
    async fn prompt(
        &self,
        prompt: Prompt,
        cancel: &CancellationToken,
    ) -> Result<PromptEnd, HostError>;

    /// The stored conversation as events.
    ///
    /// # Errors
    /// [`HostError`] if the conversation cannot be read.
    async fn history(&self) -> Result<Vec<LoopbackEvent>, HostError>;

    /// The current permission mode.
    fn mode(&self) -> Mode;

    /// The modes that the session can have.
    fn modes(&self) -> Vec<ModeChoice>;

    /// Changes the mode, also while a prompt runs.
    ///
    /// # Errors
    /// [`HostError::Invalid`] if the session cannot have the mode.
    fn set_mode(&self, mode: Mode) -> Result<(), HostError>;

    /// The other configuration options.
    fn options(&self) -> Vec<ConfigOption>;

    /// Changes a configuration option. While a prompt runs, it applies to the next one.
    ///
    /// # Errors
    /// [`HostError::Invalid`] if the value is not possible.
    async fn set_option(&self, kind: OptionKind, value: &str) -> Result<(), HostError>;

    /// Stores the mode and the configuration options, if they changed, so that the session has them when it is opened again.
    async fn save_choices(&self);

    /// The slash commands.
    fn commands(&self) -> Vec<SlashCommand>;

    /// Begins the session after the client knows it. Returns the MCP servers of the client that the user has not
    /// approved.
    fn begin(&self) -> Vec<ClientServer>;

    /// Approves an MCP server of the client, also for later sessions if `is_kept`. It is part of the session from the next
    /// prompt on.
    fn approve_server(&self, server: &ClientServer, is_kept: bool);

    /// Whether the model of the session takes images.
    fn takes_images(&self) -> bool;

    /// Ends everything that runs in the session, and releases it. No prompt runs.
    async fn close(&self);
}

/// A port that opens, lists and deletes sessions.
#[async_trait]
pub trait SessionHost: Send + Sync {
    /// The reason why no model can be asked, and how to configure one; `None` if one can be asked.
    ///
    /// # Errors
    /// [`HostError::Failed`] if the configuration is invalid.
    fn missing_provider(&self) -> Result<Option<String>, HostError>;

    /// Whether the model takes images.
    fn takes_images(&self) -> bool;

    /// Opens a session.
    ///
    /// # Errors
    /// [`HostError`] if the session cannot be opened.
    async fn open(&self, request: OpenRequest) -> Result<Arc<dyn HostedSession>, HostError>;

    /// The stored sessions, of `cwd` or of all directories, the latest first.
    ///
    /// # Errors
    /// [`HostError`] if the sessions cannot be read.
    async fn list(&self, cwd: Option<&Path>) -> Result<Vec<ListedSession>, HostError>;

    /// Deletes a stored session. A session that does not exist is deleted.
    ///
    /// # Errors
    /// [`HostError`] if the session cannot be deleted.
    async fn delete(&self, id: &str) -> Result<(), HostError>;

    /// Shows a message to the user of the process, because the client does not show notices. A problem is shown even if
    /// output should be quiet.
    fn report(&self, text: &str, is_problem: bool);
}
