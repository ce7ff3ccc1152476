//! Visitor for the parts of a command, at every depth.

use std::path::PathBuf;

use super::blocklist::ShellPolicy;
use super::evaluate::{Decider, Verdict, WorkingDirState};
use super::word_list::NamedWord;
use crate::syntax::ast::Assignment;
use crate::syntax::reading::Parsed;
use crate::syntax::word::Word;

/// A part of a command.
#[derive(Debug, Clone, Copy)]
pub enum Part<'a> {
    /// A simple command: its word and its arguments. A command that another one runs (`env`, `bash -c`,
    /// `find -exec`) is a separate part.
    Command {
        /// The word and the arguments.
        words: &'a [Word],
        /// The assignments before the command word.
        assignments: &'a [Assignment],
        /// The number of commands that contain it.
        depth: usize,
    },
    /// Assignments without a command. They apply to the following commands.
    Assignments {
        /// The assignments.
        assignments: &'a [Assignment],
        /// The number of commands that contain them.
        depth: usize,
    },
    /// A file that a redirection or a command opens for writing.
    Output(&'a Word),
    /// A file that a redirection opens for reading.
    Source(&'a Word),
    /// A file that a redirection opens for writing, with the possible working directories; `None` is any.
    /// The visitor gets it as [`Part::Output`] as well.
    Redirection {
        /// The path of the file.
        target: &'a Word,
        /// The possible working directories.
        places: &'a [Option<PathBuf>],
    },
}

/// A receiver of the parts of a command.
pub type Visit<'v> = &'v mut dyn FnMut(Part<'_>);

/// Visits all parts of `command`. No program is blocked by name. Any verdict other than [`Verdict::Allow`] means
/// that some parts are unknown.
pub fn visit(command: &str, visit: Visit<'_>) -> Verdict {
    // The home directory does not affect the parts of a command.
    let start = WorkingDirState {
        home: Some("/home".into()),
        ..WorkingDirState::default()
    };
    walk(
        &Parsed::new(command),
        &start,
        &ShellPolicy::open(),
        visit,
        false,
    )
    .0
}

/// Visits all parts of a command that starts at `start`, and returns every word that it names. A command that
/// cannot be parsed names no words.
pub fn visit_from(
    command: &Parsed,
    start: &WorkingDirState,
    visit: Visit<'_>,
) -> (Verdict, Vec<NamedWord>) {
    walk(command, start, &ShellPolicy::open(), visit, true)
}

/// Whether [`visit_from`] visits every command that `command` runs. Its verdict may still be
/// [`Verdict::Ask`], because operands of `rm -r`, `chmod -R`, `chown -R` or `chgrp -R` are unknown.
/// These programs run no other command.
#[must_use]
pub fn has_known_commands(command: &Parsed, start: &WorkingDirState) -> bool {
    let policy = ShellPolicy::without_target_rules();
    walk(command, start, &policy, &mut |_| {}, false).0 == Verdict::Allow
}

fn walk(
    command: &Parsed,
    start: &WorkingDirState,
    policy: &ShellPolicy,
    visit: Visit<'_>,
    names: bool,
) -> (Verdict, Vec<NamedWord>) {
    match command.tree() {
        Ok(list) => {
            let mut decider = Decider::new(policy, start);
            decider.visit = Some(visit);
            decider.places.returns = false;
            decider.named = names.then(Vec::new);
            decider.walk(list);
            (decider.verdict, decider.named.unwrap_or_default())
        }
        Err(error) => {
            let what = error.to_string();
            (Verdict::Block { what }, Vec::new())
        }
    }
}
