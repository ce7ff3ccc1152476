//! `[[hooks]]`: the programs that see events of a session.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A hook (`[[hooks]]`): your own program that runs at an event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct HookConfig {
    /// The event: `session_start`, `prompt`, `before_call`, `after_call` or `turn_end`.
    pub(crate) event: HookEvent,
    /// Globs of the tools that start the hook, for `before_call` and `after_call`; empty means all.
    #[serde(default)]
    pub(crate) tools: Vec<String>,
    /// The command, which `/bin/sh` runs. It receives one JSON object on standard input.
    pub(crate) command: String,
    /// The time limit of the command in seconds.
    #[serde(default = "default_timeout_secs")]
    #[schemars(range(min = 1))]
    pub(crate) timeout_secs: u64,
}

/// The event at which a hook runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum HookEvent {
    /// Before the first prompt of a session in a process.
    SessionStart,
    /// Before a prompt is sent.
    Prompt,
    /// Before a call that every gate allows.
    BeforeCall,
    /// After a call that ran.
    AfterCall,
    /// After a turn.
    TurnEnd,
}

impl HookEvent {
    /// The name in the configuration and in the input of hooks.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::SessionStart => "session_start",
            Self::Prompt => "prompt",
            Self::BeforeCall => "before_call",
            Self::AfterCall => "after_call",
            Self::TurnEnd => "turn_end",
        }
    }

    /// Whether the event is about a call.
    pub(crate) fn is_about_call(self) -> bool {
        matches!(self, Self::BeforeCall | Self::AfterCall)
    }

    /// Whether a hook can refuse the subject of the event, which has not happened yet.
    pub(crate) fn can_refuse(self) -> bool {
        matches!(self, Self::Prompt | Self::BeforeCall)
    }
}

fn default_timeout_secs() -> u64 {
    10
}
