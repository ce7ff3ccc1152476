//! What a command names: every word at every depth, with the directories from which it counts.

use std::path::PathBuf;

use super::blocklist::ShellPolicy;
use super::decide::{Around, Decider, Input, Start};
use super::parse::parse;
use super::shells::takes_programs;
use super::word::Word;

/// What a word is to its command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::shell) enum Role {
    /// What runs.
    Command,
    /// An argument, a file that is read, a value.
    Argument,
    /// A file that is written.
    Target,
    /// An argument of, or a text for, something that takes programs; files may be named in it.
    Program,
}

/// A word that a command names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::shell) struct Named {
    pub(in crate::shell) word: Word,
    pub(in crate::shell) role: Role,
    /// The directories from which it may count; `None` is any.
    pub(in crate::shell) places: Vec<Option<PathBuf>>,
}

impl ShellPolicy {
    /// What a command that starts at `start` names. A command that cannot be read names nothing.
    pub(in crate::shell) fn named(&self, command: &str, start: &Start) -> Vec<Named> {
        let home = start.home.as_deref().and_then(|home| home.to_str());
        let Ok(list) = parse(command, home) else {
            return Vec::new();
        };
        let mut decider = Decider::new(self, start);
        decider.named = Some(Vec::new());
        decider.walk(&list);
        decider.named.unwrap_or_default()
    }
}

impl Decider<'_> {
    pub(super) fn name(&mut self, role: Role, words: &[Word]) {
        let Some(named) = &mut self.named else { return };
        let mut places = self.places.now().to_vec();
        if self.later > 0 && !places.contains(&None) {
            places.push(None);
        }
        named.extend(words.iter().map(|word| Named {
            word: word.clone(),
            role,
            places: places.clone(),
        }));
    }

    /// The words of the simple command `name`, and the text that it reads.
    pub(super) fn name_all(&mut self, name: &str, words: &[Word], around: &Around) {
        if self.named.is_none() {
            return;
        }
        let Some((command, arguments)) = words.split_first() else {
            return;
        };
        self.name(Role::Command, std::slice::from_ref(command));
        if !takes_programs(name) {
            self.name(Role::Argument, arguments);
            return;
        }
        self.name(Role::Program, arguments);
        if let Input::Text(text) = &around.input {
            self.name(Role::Program, &[Word::literal(text)]);
        }
    }
}
