//! Lasting effects of commands on their shell: variables that they set, directories that they change.

use std::collections::BTreeSet;

use super::setters::{assigned_names, is_setter};
use crate::syntax::ast::{Command, Connector, Construct, Kind, List, Shape};
use crate::syntax::word::Word;

/// The effects of commands on the shell that runs them.
#[derive(Debug, Clone, Default)]
pub(super) struct Effects {
    /// Variables that are set.
    pub(super) names: BTreeSet<String>,
    /// Whether unknown variables are set.
    pub(super) any: bool,
    /// Whether the working directory is changed.
    pub(super) moves: bool,
}

impl Effects {
    /// The effects of a list.
    pub(super) fn of(list: &List) -> Self {
        let mut effects = Self::default();
        effects.list(list);
        effects
    }

    fn list(&mut self, list: &List) {
        for pipeline in &list.pipelines {
            // The others run in their own shells.
            if pipeline.then != Connector::Background
                && let [command] = pipeline.commands.as_slice()
            {
                self.command(command);
            }
        }
    }

    /// Adds the effects of a command.
    pub(super) fn command(&mut self, command: &Command) {
        for substitution in &command.substitutions {
            if substitution.construct == Construct::Arithmetic {
                self.list(&substitution.body);
            }
        }
        match &command.kind {
            Kind::Simple { assignments, words } => {
                let names = assignments.iter().map(|assignment| assignment.name.clone());
                self.names.extend(names);
                self.simple(words);
            }
            Kind::Compound(shape, lists) => {
                if let Shape::Each { name, .. } = shape {
                    self.names.insert(name.clone());
                }
                lists.iter().for_each(|list| self.list(list));
            }
            // The function may be called later.
            Kind::Function { body, .. } => self.command(body),
            Kind::Subshell(_) | Kind::Expression => {}
        }
    }

    fn simple(&mut self, words: &[Word]) {
        let Some(first) = words.first() else { return };
        match first.known() {
            // An unresolved name requires confirmation anyway.
            None => {}
            Some("eval" | "source" | "." | "trap" | "builtin" | "command") => {
                self.any = true;
                self.moves = true;
            }
            Some("cd" | "pushd" | "popd") => {
                self.moves = true;
                self.names.extend(["PWD".to_owned(), "OLDPWD".to_owned()]);
            }
            Some(name) if is_setter(name) => {
                for target in assigned_names(name, &words[1..]) {
                    match target {
                        Some(name) => {
                            self.names.insert(name);
                        }
                        None => self.any = true,
                    }
                }
            }
            Some(_) => {}
        }
    }
}
