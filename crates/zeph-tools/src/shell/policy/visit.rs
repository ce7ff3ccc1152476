//! Shows the parts of a command, at every depth, to whoever wants to know what it is made of.

use super::blocklist::ShellPolicy;
use super::decide::{Decider, Start, Verdict};
use super::parse::parse;
use super::word::Word;

/// A part of a command.
#[derive(Debug, Clone, Copy)]
pub(in crate::shell) enum Part<'a> {
    /// A simple command: its word and its arguments. One that another runs (`env`, `bash -c`,
    /// `find -exec`) is a part of its own.
    Command(&'a [Word]),
    /// What a redirection or a command's argument opens for writing.
    Output(&'a Word),
}

/// Receives parts.
pub(in crate::shell) type Visit<'v> = &'v mut dyn FnMut(Part<'_>);

/// Shows all parts of `command`. What remains to be said of it where nothing is blocked by name:
/// anything but [`Verdict::Allow`] means that some parts cannot be known.
pub(in crate::shell) fn visit(command: &str, visit: Visit<'_>) -> Verdict {
    // Which home it is makes no difference to what a command is made of.
    let home = "/home";
    match parse(command, Some(home)) {
        Ok(list) => {
            let policy = ShellPolicy::open();
            let start = Start {
                home: Some(home.into()),
                ..Start::default()
            };
            let mut decider = Decider::new(&policy, &start);
            decider.visit = Some(visit);
            decider.decide(&list)
        }
        Err(error) => Verdict::Block {
            what: error.to_string(),
        },
    }
}
