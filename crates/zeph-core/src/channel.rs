//! The port to the user or the program at the other end of the conversation.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;
use zeph_llm::{Retry, Usage, Usd};
use zeph_memory::Task;
use zeph_tools::gate::Grant;
use zeph_tools::layers::grants::GrantScope;
use zeph_tools::question::{ServerAnswer, ServerQuestion};
use zeph_tools::user_terminal::UserTerminal;
use zeph_tools::{
    Confirmation, FileChange, FileLocation, FilterStats, ImageContent, Mode, OutputStream,
    RolledBack, ToolErrorCategory,
};

/// An event in a turn. Events are emitted in order.
#[derive(Debug, Clone, PartialEq)]
pub enum LoopbackEvent {
    /// A request is sent to the model.
    Requesting {
        /// Iteration, from 1.
        iteration: usize,
    },
    /// A model is asked to summarize older messages.
    SummingUp,
    /// A part of the model's text.
    Text(String),
    /// A part of the model's reasoning.
    Reasoning(String),
    /// A call begins.
    ToolStarted {
        /// The call's id.
        id: String,
        /// The tool, by the name that the model used.
        tool: String,
        /// The arguments as received.
        params: Value,
    },
    /// A running command prints.
    ToolOutput {
        /// The call's id.
        id: String,
        /// The stream.
        stream: OutputStream,
        /// The text.
        text: String,
        /// Line breaks that were printed before this text and are not part of any event.
        skipped_lines: u64,
    },
    /// A call ended.
    ToolFinished {
        /// The call's id.
        id: String,
        /// The tool.
        tool: String,
        /// The category of the failure; `None` for success.
        failure: Option<ToolErrorCategory>,
        /// The text for the user.
        display: String,
        /// The effect of the output filter.
        filter: Option<FilterStats>,
        /// The files that were read or changed.
        locations: Vec<FileLocation>,
        /// The texts of changed files, before and after.
        changes: Vec<FileChange>,
        /// The duration in milliseconds, without the time in which the user was asked.
        duration_ms: u64,
    },
    /// The user answered a question.
    Permission {
        /// The call's id.
        id: String,
        /// The tool.
        tool: String,
        /// Whether the call may run.
        allowed: bool,
        /// The answer: `once`, `session`, `always` or `no`.
        answer: &'static str,
    },
    /// Information for the user.
    Notice(String),
    /// A request to the model failed, and is sent again after a wait.
    Retrying(Retry),
    /// A possible problem. It is shown in quiet mode too.
    Warning(String),
    /// A problem outside of the turn. It is shown in quiet mode too.
    Error(String),
    /// A command runs in a terminal of the client, which shows its output.
    Terminal {
        /// The call's id.
        id: String,
        /// The id of the terminal.
        terminal: String,
    },
    /// A command failed, and its changes were rolled back.
    Rollback {
        /// The call's id.
        id: String,
        /// The changes that were rolled back.
        changes: RolledBack,
    },
    /// The tokens of one request, or of all requests outside of the conversation.
    Usage(Usage),
    /// The size of the conversation after a response.
    Context {
        /// Estimated tokens of the conversation.
        used: usize,
        /// The tokens that the conversation may take.
        size: usize,
        /// The costs of the session; `None` if a price is unknown.
        cost: Option<Usd>,
    },
    /// A prompt of the user that was submitted during a turn, or is part of a stored conversation that is shown again.
    Prompt(String),
    /// An image of the last prompt, in a stored conversation that is shown again.
    PromptImage(ImageContent),
    /// The title of the session changed.
    Title(String),
    /// The task list of the session, after a call that read or changed it.
    Tasks(Vec<Task>),
    /// The permission mode of the session changed.
    Mode(Mode),
}

/// The user's answer to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UserAnswer {
    /// Run the call this once.
    Once,
    /// Run the call, and the calls that the question proposed, until the conversation is cleared.
    Session,
    /// Run the call, and all calls that these grants cover from now on.
    Always(Vec<Grant>, GrantScope),
    /// Do not run the call. The model gets the text, if there is one.
    No(Option<String>),
}

impl UserAnswer {
    /// The name of the answer in events.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Session => "session",
            Self::Always(..) => "always",
            Self::No(_) => "no",
        }
    }
}

/// The question whether a turn with many rounds of tool calls may continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckIn {
    /// The rounds of the turn so far.
    pub iterations: usize,
    /// The rounds until the next check-in.
    pub more: usize,
}

/// The user's answer to a [`CheckIn`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckInAnswer {
    /// Continue until the next check-in.
    More,
    /// Continue until the turn is done.
    UntilDone,
    /// Stop: the model summarizes in one last request.
    Stop,
}

impl CheckInAnswer {
    /// The name of the answer.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::More => "more",
            Self::UntilDone => "until done",
            Self::Stop => "stop",
        }
    }
}

/// A port that shows events and asks questions. An implementation needs `async_trait`, `serde_json`, `Confirmation` and
/// the module `question` of `zeph-tools`.
#[async_trait]
pub trait Channel: Send + Sync {
    /// Shows an event. It neither blocks nor fails.
    fn emit(&self, event: LoopbackEvent);

    /// Whether the user can be asked.
    fn can_ask(&self) -> bool;

    /// Whether the user sees questions before they are answered. A channel that answers them by a flag returns
    /// `false`.
    fn shows_questions(&self) -> bool {
        true
    }

    /// Asks whether the call with the id `call` may run. Only one question is open at a time.
    async fn confirm(&self, call: &str, question: &Confirmation, params: &Value) -> UserAnswer;

    /// The terminal of the user, for commands that the user typed. A channel without a terminal returns `None`.
    fn user_terminal(&self) -> Option<Arc<dyn UserTerminal>> {
        None
    }

    /// Takes the oldest prompt that the user submitted during the turn. The turn adds it before its next request.
    fn take_prompt(&self) -> Option<String> {
        None
    }

    /// Receives the prompt that was taken last, because the turn ended before it stored the prompt. It is
    /// again the oldest one.
    fn return_prompt(&self, _text: String) {}

    /// Asks whether a turn continues. It is called only if the channel can ask and shows its questions.
    async fn check_in(&self, question: &CheckIn) -> CheckInAnswer;

    /// Asks a question of an MCP server. A channel that shows no questions declines. Only one question is open at a time.
    async fn ask_for_server(&self, question: &ServerQuestion) -> ServerAnswer;
}
