//! The port to the person or program on the other side of the conversation.

use async_trait::async_trait;
use serde_json::Value;
use zeph_llm::Usage;
use zeph_tools::gate::Grant;
use zeph_tools::layers::grants::GrantScope;
use zeph_tools::{
    Confirmation, FileLocation, FilterStats, OutputStream, RolledBack, ToolErrorCategory,
};

/// Something that happens in a turn, in order.
#[derive(Debug, Clone, PartialEq)]
pub enum LoopbackEvent {
    /// A request goes to the model.
    Requesting {
        /// Iteration, from 1.
        iteration: usize,
    },
    /// A model is asked to sum up older messages.
    SummingUp,
    /// More of the model's text.
    Text(String),
    /// More of the model's reasoning.
    Reasoning(String),
    /// A call begins.
    ToolStarted {
        /// The call's id.
        id: String,
        /// The tool, as the model called it.
        tool: String,
        /// The arguments as they came.
        params: Value,
    },
    /// A running command prints.
    ToolOutput {
        /// The call's id.
        id: String,
        /// Which stream.
        stream: OutputStream,
        /// The text.
        text: String,
        /// Line breaks that were printed before this text and are in no event.
        skipped_lines: u64,
    },
    /// A call ended.
    ToolFinished {
        /// The call's id.
        id: String,
        /// The tool.
        tool: String,
        /// `None` for success.
        failure: Option<ToolErrorCategory>,
        /// What a person reads.
        display: String,
        /// What a filter took away.
        filter: Option<FilterStats>,
        /// Files read or changed.
        locations: Vec<FileLocation>,
        /// How long it took, waiting for a person excluded.
        duration_ms: u64,
    },
    /// A question was answered.
    Permission {
        /// The call's id.
        id: String,
        /// The tool.
        tool: String,
        /// Whether it may run.
        allowed: bool,
        /// The answer: `once`, `session`, `always` or `no`.
        answer: &'static str,
    },
    /// Something a person should know.
    Notice(String),
    /// Something may be wrong; shown however quiet it is to be.
    Warning(String),
    /// Something is wrong beside the turn; shown however quiet it is to be.
    Error(String),
    /// A command failed, and what it had done was taken back.
    Rollback {
        /// The call's id.
        id: String,
        /// What was done.
        changes: RolledBack,
    },
    /// The tokens of one request, or of all that were made beside the conversation.
    Usage(Usage),
}

/// A person's answer to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UserAnswer {
    /// Run it, this once.
    Once,
    /// Run it, and what the question offered besides until the conversation starts over.
    Session,
    /// Run it, and whatever these cover from now on.
    Always(Vec<Grant>, GrantScope),
    /// Do not run it; the text, if any, is told to the model.
    No(Option<String>),
}

impl UserAnswer {
    /// Its name in events.
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

/// Shows what happens and asks what has to be asked.
#[async_trait]
pub trait Channel: Send + Sync {
    /// Shows an event. Neither blocks nor fails.
    fn emit(&self, event: LoopbackEvent);

    /// Whether there is someone to ask.
    fn can_ask(&self) -> bool;

    /// Whether a person looks at questions before they are answered; not where all are answered by a flag.
    fn shows_questions(&self) -> bool {
        true
    }

    /// Asks whether a call may run. Called for one call at a time.
    async fn confirm(&self, question: &Confirmation, params: &Value) -> UserAnswer;
}
