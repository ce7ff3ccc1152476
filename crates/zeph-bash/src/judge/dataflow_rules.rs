//! Rules about a whole command: fork bombs, and downloads that reach a shell.

use std::collections::BTreeSet;

use super::evaluate::{Decider, Verdict};
use super::shells::is_download;
use crate::syntax::ast::{Command, Connector, Kind, List};
use crate::syntax::word::Word;

impl Decider<'_> {
    /// Blocks a function that starts itself repeatedly in another process.
    pub(super) fn fork_bomb(&mut self) {
        for name in self.functions.keys() {
            let mut seen = BTreeSet::new();
            let mut open = vec![(name.as_str(), false)];
            while let Some((function, forked)) = open.pop() {
                for (callee, forks) in self.functions.get(function).into_iter().flatten() {
                    let forked = forked || *forks;
                    if callee == name && forked {
                        let what = format!("a fork bomb (the function `{name}` starts itself)");
                        self.verdict = Verdict::Block { what };
                        return;
                    }
                    if self.functions.contains_key(callee) && seen.insert((callee.as_str(), forked))
                    {
                        open.push((callee, forked));
                    }
                }
            }
        }
    }
}

/// Collects the commands that a function calls, and whether each runs in another process.
pub(super) fn calls_of(command: &Command, forked: bool, calls: &mut BTreeSet<(String, bool)>) {
    for substitution in &command.substitutions {
        calls_of_list(&substitution.body, true, calls);
    }
    match &command.kind {
        Kind::Simple { words, .. } => {
            if let Some(name) = words.first().and_then(Word::known) {
                calls.insert((name.to_owned(), forked));
            }
        }
        Kind::Subshell(list) => calls_of_list(list, true, calls),
        Kind::Compound(_, lists) => lists
            .iter()
            .for_each(|list| calls_of_list(list, forked, calls)),
        Kind::Function { .. } | Kind::Expression => {}
    }
}

fn calls_of_list(list: &List, forked: bool, calls: &mut BTreeSet<(String, bool)>) {
    for pipeline in &list.pipelines {
        let forked =
            forked || pipeline.commands.len() > 1 || pipeline.then == Connector::Background;
        for command in &pipeline.commands {
            calls_of(command, forked, calls);
        }
    }
}

/// Whether a part of a command loads data from the network.
pub(super) fn runs_download(command: &Command) -> bool {
    let inside = match &command.kind {
        Kind::Simple { words, .. } => words.iter().filter_map(Word::known).any(is_download),
        Kind::Subshell(list) => list_downloads(list),
        Kind::Compound(_, lists) => lists.iter().any(list_downloads),
        Kind::Function { .. } | Kind::Expression => false,
    };
    inside
        || command
            .substitutions
            .iter()
            .any(|substitution| list_downloads(&substitution.body))
}

pub(super) fn list_downloads(list: &List) -> bool {
    list.pipelines
        .iter()
        .flat_map(|pipeline| &pipeline.commands)
        .any(runs_download)
}
