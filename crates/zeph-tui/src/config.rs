//! `[terminal]`: settings of the interface at the terminal.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The interface at the terminal (`[terminal]`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TerminalConfig {
    /// The keys that edit the prompt.
    pub keys: KeyBindings,
    /// The signal for the end of a long turn, and for a question in it.
    pub notify: Notify,
    /// A turn of at least this many seconds is long.
    #[schemars(range(max = 86_400))]
    pub notify_after_secs: u64,
    /// Whether the title of the window shows the state of the session.
    pub title: bool,
}

impl Default for TerminalConfig {
    fn default() -> Self {
        Self {
            keys: KeyBindings::Emacs,
            notify: Notify::Bell,
            notify_after_secs: 10,
            title: true,
        }
    }
}

/// The keys that edit the prompt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum KeyBindings {
    /// As in Emacs and in most shells.
    #[default]
    Emacs,
    /// As in vi: Esc leaves the insert mode.
    Vi,
}

/// The signal for the user at another window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Notify {
    /// The bell.
    #[default]
    Bell,
    /// A notification of the desktop (OSC 9).
    Osc9,
    /// None.
    Off,
}
