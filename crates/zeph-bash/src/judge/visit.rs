//! Shows the parts of a command, at every depth, to whoever wants to know what it is made of.

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
    /// A simple command: its word and its arguments. One that another runs (`env`, `bash -c`,
    /// `find -exec`) is a part of its own.
    Command {
        /// The word and the arguments.
        words: &'a [Word],
        /// What is assigned in front of it.
        assignments: &'a [Assignment],
        /// In how many others it is nested.
        depth: usize,
    },
    /// Assignments without a command: they hold for what follows.
    Assignments {
        /// What is assigned.
        assignments: &'a [Assignment],
        /// In how many commands it is nested.
        depth: usize,
    },
    /// What a redirection or a command's argument opens for writing.
    Output(&'a Word),
    /// What a redirection opens for reading.
    Source(&'a Word),
    /// What a redirection opens for writing, and the directories from which it may count; `None` is
    /// any. It is an [`Part::Output`] as well.
    Redirection {
        /// The file.
        target: &'a Word,
        /// The directories.
        places: &'a [Option<PathBuf>],
    },
}

/// Receives parts.
pub type Visit<'v> = &'v mut dyn FnMut(Part<'_>);

/// Shows all parts of `command`. What remains to be said of it where nothing is blocked by name:
/// anything but [`Verdict::Allow`] means that some parts cannot be known.
pub fn visit(command: &str, visit: Visit<'_>) -> Verdict {
    // Which home it is makes no difference to what a command is made of.
    let start = WorkingDirState {
        home: Some("/home".into()),
        ..WorkingDirState::default()
    };
    walk(&Parsed::new(command), &start, visit, false).0
}

/// The same of a command that starts at `start`, and every word that it names; one that cannot be read
/// names nothing.
pub fn visit_from(
    command: &Parsed,
    start: &WorkingDirState,
    visit: Visit<'_>,
) -> (Verdict, Vec<NamedWord>) {
    walk(command, start, visit, true)
}

fn walk(
    command: &Parsed,
    start: &WorkingDirState,
    visit: Visit<'_>,
    names: bool,
) -> (Verdict, Vec<NamedWord>) {
    match command.tree() {
        Ok(list) => {
            let policy = ShellPolicy::open();
            let mut decider = Decider::new(&policy, start);
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
