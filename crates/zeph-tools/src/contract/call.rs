//! A tool call that a model or a user requests.

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::error::ToolError;

/// The phase of the work in which a call is made. The call site sets it; it is never inferred from the name of
/// the tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// During planning.
    Planner,
    /// During execution: the loop of the agent, and calls of the user.
    #[default]
    Executor,
    /// During verification.
    Verifier,
    /// Without a user present: the scheduler, background work.
    Autonomous,
}

impl Phase {
    /// Returns the name in audit entries.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Planner => "planner",
            Self::Executor => "executor",
            Self::Verifier => "verifier",
            Self::Autonomous => "autonomous",
        }
    }

    /// Returns a hint how to let calls run that need a question when no user is present.
    pub(crate) fn without_questions(self) -> &'static str {
        match self {
            Self::Autonomous => {
                "No user can answer here, and --yes has no effect in a scheduled run; \
                 scheduler.skip_questions in the user's configuration allows all calls that no rule denies"
            }
            _ => "No user can answer here; --yes approves every question once",
        }
    }
}

/// A tool call.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// The id of the call; unique in its conversation.
    pub id: String,
    /// The id of the tool; as the caller wrote it until the `known` layer resolves aliases.
    pub tool: String,
    /// The arguments. After the `known` layer, always an object that fits the schema of the tool. Before it, any
    /// value (a string if the arguments were not JSON).
    pub params: Value,
    /// The caller: the session of a channel or a sub-agent; `None` for the user of the command line.
    pub caller_id: Option<String>,
    /// The phase of the work.
    pub phase: Phase,
    /// The conversation (session) that the call belongs to.
    pub conversation: String,
    /// The batch of changes that are undone together: the calls of one response of a model share one. `None` is a
    /// separate batch.
    pub batch: Option<String>,
    /// The conversation that the call counts to, for the quota and the undo journal; `None` for its own. The calls of
    /// a sub-agent count to the conversation of its parent.
    pub account: Option<String>,
}

impl ToolCall {
    /// Creates a call in phase [`Phase::Executor`] without a caller id.
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
            account: None,
        }
    }

    /// Returns the conversation that the call counts to, for the quota and the undo journal.
    #[must_use]
    pub fn account(&self) -> &str {
        self.account.as_deref().unwrap_or(&self.conversation)
    }

    /// Deserializes the arguments to the parameter struct of the tool.
    ///
    /// # Errors
    /// [`ToolError::InvalidParameters`] if they do not fit. The `known` layer has already refused such calls, so
    /// this is a second check.
    pub fn parse<P: DeserializeOwned>(&self) -> Result<P, ToolError> {
        P::deserialize(&self.params).map_err(|error| ToolError::invalid(error.to_string()))
    }

    /// Returns the string argument with this name, if present.
    #[must_use]
    pub fn str_param(&self, name: &str) -> Option<&str> {
        self.params.get(name).and_then(Value::as_str)
    }
}
