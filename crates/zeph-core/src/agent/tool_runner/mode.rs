//! `/mode`: the permission mode of the session.

use std::fmt::Write as _;

use zeph_tools::{Mode, Permissions, Phase};

use super::ToolRunner;
use crate::agent::CommandOutput;
use crate::channel::LoopbackEvent;

/// The error of mode `full` without an OS sandbox.
pub const NO_FULL_MODE: &str = "mode full needs an OS sandbox around commands, and it is off or \
    incomplete here; zeph doctor shows the reason, and `zeph --unsandboxed` allows the mode without it";

/// The word of `/mode` that selects the next mode.
const NEXT: &str = "next";

/// The effect of a mode, for the user.
fn effect_of(mode: Mode) -> &'static str {
    match mode {
        Mode::Plan => "only reads",
        Mode::Ask => "asks before changes and other commands",
        Mode::AutoEdit => "changes files in the project; asks before other commands",
        Mode::Auto => {
            "changes files in the project, and runs commands that the OS sandbox confines to it"
        }
        Mode::Full => "asks only about commands that cannot be judged before they run",
    }
}

/// The effect of a mode with these permissions, for the user.
#[must_use]
pub fn effect_of_mode(mode: Mode, permissions: &Permissions) -> String {
    let effect = effect_of(mode);
    if mode == Mode::Auto && !permissions.sandbox.is_complete() {
        return format!(
            "{effect}; the OS sandbox is off or incomplete here, so commands require confirmation"
        );
    }
    effect.to_owned()
}

/// The mode that Shift-Tab selects after `mode`. It never selects `full`.
#[must_use]
pub fn next_mode(mode: Mode) -> Mode {
    match mode {
        Mode::Plan => Mode::Ask,
        Mode::Ask => Mode::AutoEdit,
        Mode::AutoEdit => Mode::Auto,
        Mode::Auto | Mode::Full => Mode::Plan,
    }
}

impl ToolRunner {
    /// Changes the mode of the session.
    pub(in crate::agent) fn set_mode(&mut self, name: &str) -> CommandOutput {
        let mode = match name {
            NEXT => next_mode(self.permissions.mode.get()),
            name => Mode::from_name(name).ok_or_else(|| {
                let names: Vec<&str> = Mode::ALL.iter().map(|mode| mode.as_str()).collect();
                format!("{name:?} is not a mode; the modes are {}", names.join(", "))
            })?,
        };
        if !self.permissions.can_have(mode) {
            return Err(NO_FULL_MODE.to_owned());
        }
        self.permissions.mode.set(mode);
        self.dispatcher.channel.emit(LoopbackEvent::Mode(mode));
        self.follow_mode();
        Ok(format!("mode {}: {}", mode.as_str(), self.effect(mode)))
    }

    /// Sets the phase of the caller to the one of the mode, which the channel can change between turns.
    pub(in crate::agent) fn follow_mode(&mut self) {
        let phase = &mut self.dispatcher.caller.phase;
        *phase = match (self.permissions.mode.get(), *phase) {
            (Mode::Plan, Phase::Executor) => Phase::Planner,
            (Mode::Plan, phase) => phase,
            (_, Phase::Planner) => Phase::Executor,
            (_, phase) => phase,
        };
    }

    /// Lists the modes. A `*` marks the current one.
    pub(in crate::agent) fn mode_listing(&self) -> String {
        let current = self.permissions.mode.get();
        let mut text = String::new();
        for mode in Mode::ALL {
            let mark = if mode == current { '*' } else { ' ' };
            let _ = writeln!(text, "{mark} {:<10} {}", mode.as_str(), self.effect(mode));
        }
        text.push_str("/mode NAME or Shift-Tab changes it for this session.");
        text
    }

    fn effect(&self, mode: Mode) -> String {
        effect_of_mode(mode, &self.permissions)
    }
}
