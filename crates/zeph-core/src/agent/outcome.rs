//! The outcome of a turn.

use serde::Serialize;
use zeph_llm::{StopReason, Usage, Usd};

/// The reason why a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnEnd {
    /// The model gave a response without calls.
    Done,
    /// The model requested calls too often.
    IterationCap,
    /// The tool calls gave the same results three times in a row.
    DoomLoop,
    /// The conversation takes over 80 % of its budget.
    ContextBudget,
    /// The calls of the session are used up.
    Quota,
    /// The budget of the session, in tokens or money, is used up.
    Budget,
    /// The last calls were refused, and the model said nothing after them.
    Refused,
    /// The user cancelled it.
    Cancelled,
    /// The provider or the store failed.
    Error,
}

impl TurnEnd {
    /// Its name in logs and telemetry.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::IterationCap => "iteration_cap",
            Self::DoomLoop => "doom_loop",
            Self::ContextBudget => "context_budget",
            Self::Quota => "quota",
            Self::Budget => "budget",
            Self::Refused => "refused",
            Self::Cancelled => "cancelled",
            Self::Error => "error",
        }
    }
}

/// The outcome of a turn.
#[derive(Debug, Clone)]
pub struct TurnOutcome {
    /// The reason why it ended.
    pub end: TurnEnd,
    /// The model's last text.
    pub text: String,
    /// Responses with calls.
    pub iterations: usize,
    /// Calls that the model requested.
    pub tool_calls: usize,
    /// Tokens of all requests.
    pub usage: Usage,
    /// The cost of all requests; `None` if a price is unknown.
    pub cost: Option<Usd>,
    /// The error, or the limit that was reached.
    pub message: Option<String>,
    /// The reason why the model ended its last response.
    pub stop: StopReason,
}

impl TurnOutcome {
    /// The outcome of a turn that has not begun.
    #[must_use]
    pub fn new() -> Self {
        Self {
            end: TurnEnd::Done,
            text: String::new(),
            iterations: 0,
            tool_calls: 0,
            usage: Usage::default(),
            cost: Some(Usd::default()),
            message: None,
            stop: StopReason::EndTurn,
        }
    }
}

impl Default for TurnOutcome {
    fn default() -> Self {
        Self::new()
    }
}
