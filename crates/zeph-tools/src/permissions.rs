//! Decides whether a call may run: pure, without I/O.

use crate::def::{Annotations, Risk};
use crate::mode::Mode;

/// What is decided about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// It may run.
    Allow,
    /// A person has to agree first.
    Ask {
        /// Why.
        reason: &'static str,
        /// What would let it run where nobody can be asked.
        hint: &'static str,
    },
    /// It may not run.
    Deny {
        /// Why, and what would change it.
        reason: &'static str,
    },
}

/// Decides by the mode and the nature of the tool.
///
/// Tools that only look at this machine, and tools that change the session's own state, need no
/// question; what they may look at is the sandbox's business.
#[must_use]
pub fn decide(mode: Mode, tool: &Annotations) -> Decision {
    let looks_here = tool.read_only && !tool.open_world;
    let own_state = tool.risk == Risk::Safe && !tool.open_world;
    if looks_here || own_state {
        return Decision::Allow;
    }
    let edits_files = !tool.open_world && tool.risk <= Risk::Medium;
    match mode {
        Mode::Plan if tool.read_only => ask(tool),
        Mode::Plan => Decision::Deny {
            reason: "the session is in plan mode, where only read-only tools run; \
                     the user can switch with --mode ask",
        },
        Mode::Full => Decision::Allow,
        Mode::AutoEdit if edits_files => Decision::Allow,
        Mode::Ask | Mode::AutoEdit => ask(tool),
    }
}

fn ask(tool: &Annotations) -> Decision {
    let reason = if tool.read_only {
        "it reaches beyond this machine."
    } else if tool.open_world || tool.risk > Risk::Medium {
        "it can change whatever you can change."
    } else {
        "it changes files."
    };
    Decision::Ask {
        reason,
        hint: "Nobody can be asked here: --yes allows every question once, \
               --mode auto-edit allows changes of files.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves PERM-5.
    #[test]
    fn the_mode_and_the_nature_of_the_tool_decide() {
        let read = Annotations::READ;
        let web = Annotations {
            open_world: true,
            ..Annotations::READ
        };
        let edit = Annotations::MUTATE;
        let shell = Annotations::ANYTHING;
        let tasks = Annotations::SESSION_STATE;
        let check = |mode: Mode, tool: &Annotations, expect: &str| {
            let got = match decide(mode, tool) {
                Decision::Allow => "allow",
                Decision::Ask { .. } => "ask",
                Decision::Deny { .. } => "deny",
            };
            assert_eq!(got, expect, "{mode:?} {tool:?}");
        };
        for mode in [Mode::Plan, Mode::Ask, Mode::AutoEdit, Mode::Full] {
            check(mode, &read, "allow");
            check(mode, &tasks, "allow");
        }
        check(Mode::Plan, &web, "ask");
        check(Mode::Plan, &edit, "deny");
        check(Mode::Plan, &shell, "deny");
        check(Mode::Ask, &web, "ask");
        check(Mode::Ask, &edit, "ask");
        check(Mode::Ask, &shell, "ask");
        check(Mode::AutoEdit, &web, "ask");
        check(Mode::AutoEdit, &edit, "allow");
        check(Mode::AutoEdit, &shell, "ask");
        check(Mode::Full, &web, "allow");
        check(Mode::Full, &edit, "allow");
        check(Mode::Full, &shell, "allow");
    }
}
