//! One tool invocation asked for by a model or a user.

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::error::ToolError;

/// In which part of the work a call is made. Set at the call site, never inferred from the
/// tool's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// While a plan is made.
    Planner,
    /// While the work is done: the agent's loop and a person's own calls.
    #[default]
    Executor,
    /// While the work is checked.
    Verifier,
    /// Without anyone watching: the scheduler, background work.
    Autonomous,
}

impl Phase {
    /// The name in audit entries.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Planner => "planner",
            Self::Executor => "executor",
            Self::Verifier => "verifier",
            Self::Autonomous => "autonomous",
        }
    }

    /// What lets a call run that would be asked about where nobody can be.
    pub(crate) fn without_questions(self) -> &'static str {
        match self {
            Self::Autonomous => {
                "Nobody can be asked here, and --yes does not answer in a scheduled run: \
                 scheduler.skip_questions in the user's configuration lets run what is not denied"
            }
            _ => "Nobody can be asked here: --yes allows every question once",
        }
    }
}

/// One call.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// The id of the call; unique in its conversation.
    pub id: String,
    /// The tool's id; as the caller wrote it until the `known` layer resolved aliases.
    pub tool: String,
    /// The arguments. From the `known` layer inward always an object that fits the tool's schema;
    /// before it whatever came (a string when the arguments were no JSON).
    pub params: Value,
    /// Who calls: a channel's session or a sub-agent; `None` for the command line's own user.
    pub caller_id: Option<String>,
    /// The phase of the work.
    pub phase: Phase,
    /// The conversation (session) that the call belongs to.
    pub conversation: String,
    /// What is undone together with what it changes: the calls of one answer of a model have one.
    /// `None` is a batch of its own.
    pub batch: Option<String>,
}

impl ToolCall {
    /// A call in phase [`Phase::Executor`] without a caller id.
    #[must_use]
    pub fn new(
        id: impl Into<String>,
        tool: impl Into<String>,
        params: Value,
        conversation: impl Into<String>,
    ) -> Self {
        Self {
            id: id.into(),
            tool: tool.into(),
            params,
            caller_id: None,
            phase: Phase::Executor,
            conversation: conversation.into(),
            batch: None,
        }
    }

    /// The arguments as the tool's parameter struct.
    ///
    /// # Errors
    /// [`ToolError::InvalidParameters`] when they do not fit; the `known` layer has refused such
    /// calls already, so this is the second lock on the door.
    pub fn parse<P: DeserializeOwned>(&self) -> Result<P, ToolError> {
        P::deserialize(&self.params).map_err(|error| ToolError::invalid(error.to_string()))
    }

    /// A string argument, when there is one of that name.
    #[must_use]
    pub fn str_param(&self, name: &str) -> Option<&str> {
        self.params.get(name).and_then(Value::as_str)
    }
}
