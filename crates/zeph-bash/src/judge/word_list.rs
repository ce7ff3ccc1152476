//! What a command names: every word at every depth, with the directories from which it counts.

use std::path::PathBuf;
use std::sync::Arc;

use super::blocklist::ShellPolicy;
use super::evaluate::{CommandContext, Decider, Input, WorkingDirState};
use super::programs::takes_programs;
use crate::syntax::alternatives::{has_alternative, possible};
use crate::syntax::reading::Parsed;
use crate::syntax::word::Word;

/// What a word is to its command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
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
pub struct NamedWord {
    /// The word.
    pub word: Word,
    /// Its role.
    pub role: Role,
    /// The directories from which it may count; `None` is any. Words that count from the same share them.
    pub places: Arc<[Option<PathBuf>]>,
}

impl ShellPolicy {
    /// What a command that starts at `start` names. A command that cannot be read names nothing.
    pub fn named(&self, command: &str, start: &WorkingDirState) -> Vec<NamedWord> {
        let parsed = Parsed::new(command);
        let Ok(list) = parsed.tree() else {
            return Vec::new();
        };
        let mut decider = Decider::new(self, start);
        decider.named = Some(Vec::new());
        decider.places.returns = false;
        decider.walk(list);
        decider.named.unwrap_or_default()
    }
}

impl Decider<'_> {
    /// Notes words, and those that they become by the alternatives inside of `${…}`.
    pub(super) fn name(&mut self, role: Role, words: &[Word]) {
        if self.named.is_none() {
            return;
        }
        let possible: Vec<Word> = words.iter().flat_map(possible).collect();
        let readings = match possible.is_empty() {
            true => Vec::new(),
            false => self.readings(&possible, true),
        };
        let possible = readings.iter().flat_map(|reading| &reading.words);
        let Some(named) = &mut self.named else { return };
        let now = self.places.now();
        let anywhere = (self.later > 0 && !now.contains(&None)).then_some(None);
        let same = |places: &Arc<[Option<PathBuf>]>| places.iter().eq(now.iter().chain(&anywhere));
        let last = named.last().map(|named| Arc::clone(&named.places));
        let places = match last.filter(same) {
            Some(places) => places,
            None => now.iter().cloned().chain(anywhere).collect(),
        };
        named.extend(words.iter().chain(possible).map(|word| NamedWord {
            word: word.clone(),
            role,
            places: Arc::clone(&places),
        }));
    }

    /// Notes the texts of a command that the alternatives inside of `${…}` make possible.
    pub(super) fn name_alternatives(&mut self, text: &Word) {
        if text
            .parts()
            .is_some_and(|parts| parts.iter().any(has_alternative))
        {
            self.name(Role::Program, std::slice::from_ref(text));
        }
    }

    /// The words of the simple command `name`, and the text that it reads.
    pub(super) fn name_all(&mut self, name: &str, words: &[Word], around: &CommandContext) {
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
