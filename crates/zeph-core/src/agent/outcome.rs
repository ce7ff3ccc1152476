//! What a turn comes to.

use serde::Serialize;
use zeph_llm::{Usage, Usd};

/// Why a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnEnd {
    /// The model answered.
    Done,
    /// The model asked for calls too often.
    IterationCap,
    /// The same calls gave the same results three times in a row.
    DoomLoop,
    /// The conversation takes over 80 % of its budget.
    ContextBudget,
    /// The calls of the session are used up.
    Quota,
    /// What the session may cost, or take of tokens, is used up.
    Budget,
    /// It ended on a refusal: the model had nothing more to say after it.
    Refused,
    /// The user cancelled it.
    Cancelled,
    /// The provider or the store failed.
    Error,
}

/// What a turn came to.
#[derive(Debug, Clone)]
pub struct TurnOutcome {
    /// Why it ended.
    pub end: TurnEnd,
    /// The model's last text.
    pub text: String,
    /// Responses with calls.
    pub iterations: usize,
    /// Calls asked for.
    pub tool_calls: usize,
    /// Tokens of all requests.
    pub usage: Usage,
    /// What they cost; `None` where that is not known of all.
    pub cost: Option<Usd>,
    /// The error, or what the limit was.
    pub message: Option<String>,
}

impl TurnOutcome {
    /// That of a turn which has done nothing yet.
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
        }
    }
}

impl Default for TurnOutcome {
    fn default() -> Self {
        Self::new()
    }
}
