//! The words that a command names at every depth, with the directories to which they are relative.

use std::path::PathBuf;
use std::sync::Arc;

use super::blocklist::ShellPolicy;
use super::evaluate::{CommandContext, Decider, Input, WorkingDirState};
use super::programs::takes_programs;
use crate::syntax::alternatives::{has_alternative, possible};
use crate::syntax::reading::Parsed;
use crate::syntax::word::Word;

/// The role of a word in its command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// The command word.
    Command,
    /// An argument, a file that is read, or a value.
    Argument,
    /// A file that is written.
    Target,
    /// An argument or a script of a command that runs programs. It can contain file names.
    Program,
}

/// A word that a command names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedWord {
    /// The word.
    pub word: Word,
    /// Its role.
    pub role: Role,
    /// The directories to which the word may be relative; `None` is any. Words with the same directories share them.
    pub places: Arc<[Option<PathBuf>]>,
}

impl ShellPolicy {
    /// The words that a command names if it starts at `start`. A command that cannot be parsed names none.
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
    /// Adds words to the list, and the words that result from values and alternatives in `${…}`.
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

    /// Adds the texts of a script that the alternatives in `${…}` make possible.
    pub(super) fn name_alternatives(&mut self, text: &Word) {
        if text
            .parts()
            .is_some_and(|parts| parts.iter().any(has_alternative))
        {
            self.name(Role::Program, std::slice::from_ref(text));
        }
    }

    /// Adds the words of the simple command `name`, and the text on its standard input.
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
