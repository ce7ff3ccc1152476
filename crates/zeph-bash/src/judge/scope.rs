//! Assignments, loops and function calls: they set the values of variables that commands see.

use super::blocklist::file_name;
use super::effects::Effects;
use super::evaluate::{CommandContext, Decider};
use super::setters::is_special;
use super::values::Possible;
use super::word_list::Role;
use crate::syntax::ast::{Assignment, Command, List, Shape};
use crate::syntax::word::{UNRESOLVED, Word};

/// The maximum number of function calls that are followed in one command.
const MAX_CALLS: usize = 256;
/// The maximum depth to which function calls are followed.
const MAX_CALL_DEPTH: usize = 8;
/// The number of positional parameters that are tracked.
const MAX_POSITIONAL: usize = 9;

impl Decider<'_> {
    /// Judges a simple command with the assignments before it.
    pub(super) fn assigning(
        &mut self,
        assignments: &[Assignment],
        words: &[Word],
        around: &CommandContext,
    ) {
        if assignments.is_empty() && words.iter().all(|word| word.parts().is_none()) {
            return self.simple(words, around);
        }
        let has_command = !words.is_empty();
        let before = self.places.values.clone();
        self.each_reading(words, true, |decider, reading| {
            let mut front = assignments.to_vec();
            for assignment in &mut front {
                let given = decider.given(assignment);
                decider.assign(assignment, &given, has_command, around);
            }
            if decider.visit.is_some() {
                decider.front = front;
            }
            decider.simple(&reading.words, around);
            if has_command && !reading.words.is_empty() {
                let names = assignments
                    .iter()
                    .map(|assignment| assignment.name.as_str());
                let name = reading.words[0].known().map(file_name);
                let lasting = name
                    .is_none_or(|name| is_special(name) || decider.functions.contains_key(name));
                let values = &mut decider.places.values;
                if lasting {
                    values.join_names(names, &before);
                } else {
                    values.restore(names, &before);
                }
            }
        });
    }

    /// Applies one assignment; with `exported`, only for a command.
    fn assign(
        &mut self,
        assignment: &mut Assignment,
        given: &Possible,
        exported: bool,
        around: &CommandContext,
    ) {
        let values: Vec<Word> = match given.known_texts() {
            [] => vec![assignment.word.clone()],
            texts => texts.iter().map(Word::literal).collect(),
        };
        for value in &values {
            self.name(Role::Argument, std::slice::from_ref(value));
            self.assigned(&assignment.name, value, around);
        }
        if let ([value], false) = (values.as_slice(), assignment.partial) {
            assignment.value = value.known().map(str::to_owned);
        }
        self.places.values.assign(&assignment.name, given.clone());
        if exported {
            self.places.values.export(&assignment.name, given);
        }
    }

    /// Judges the lists of a compound command.
    pub(super) fn compound(
        &mut self,
        shape: &Shape,
        lists: &[List],
        command: &Command,
        around: &CommandContext,
    ) {
        if *shape == Shape::Group {
            lists.iter().for_each(|list| self.list(list, around));
            return;
        }
        let repeats = matches!(shape, Shape::Loop | Shape::Each { .. });
        if repeats {
            let mut effects = Effects::default();
            effects.command(command);
            self.places.values.may_have_changed(&effects);
            if effects.moves {
                self.places.may_be_anywhere();
            }
        }
        let mut values = self.places.values.clone();
        if let Shape::Each { name, listed } = shape {
            let given = match listed {
                true => Possible {
                    patterns: self.patterns(&command.others),
                    ..self.listed(&command.others)
                },
                false => Possible::unknown(),
            };
            self.places.values.assign(name, given);
        }
        for list in lists {
            self.list(list, around);
            self.places.forget_success();
            values.join(&self.places.values);
            if *shape == Shape::Branches {
                self.places.values.clone_from(&values);
            }
        }
        self.places.values = values;
    }

    /// Sets the positional parameters from `$1` on to these words.
    pub(super) fn set_positional(&mut self, words: &[Word]) {
        let mut resolved = true;
        for number in 1..=MAX_POSITIONAL {
            let word = words.get(number - 1);
            // An unresolved word may expand to no word, or to several.
            resolved &= word.is_none_or(|word| word.known().is_some());
            let text = word.map_or(Some(""), Word::known).filter(|_| resolved);
            let given = Possible::of(std::iter::once(text.map(str::to_owned)));
            let name = number.to_string();
            self.places.values.assign(&name, given.clone());
            self.places.values.export(&name, &given);
        }
    }

    /// Makes the positional parameters unknown.
    pub(super) fn forget_positional(&mut self) {
        self.set_positional(&[Word::unknown("")]);
    }

    /// Follows a call of a function that the command defines.
    pub(super) fn call(&mut self, name: &str, words: &[Word], around: &CommandContext) {
        let Some(body) = self.bodies.get(name).cloned() else {
            return;
        };
        if self.visit.is_some() || self.calls == MAX_CALLS || self.call_depth == MAX_CALL_DEPTH {
            return self.functions_may_run();
        }
        self.calls += 1;
        self.call_depth += 1;
        let before = self.places.values.clone();
        self.set_positional(&words[1..]);
        self.command(&body, around);
        self.call_depth -= 1;
        let names: Vec<String> = (1..=MAX_POSITIONAL)
            .map(|number| number.to_string())
            .collect();
        let values = &mut self.places.values;
        values.restore(names.iter().map(String::as_str), &before);
        // Local variables are out of scope.
        values.join(&before);
    }

    /// Applies the effects of all functions: from here on, each may run at any time.
    pub(super) fn functions_may_run(&mut self) {
        for body in self.bodies.values() {
            let mut effects = Effects::default();
            effects.command(body);
            self.places.values.may_change(&effects);
        }
    }

    /// Judges a command word that is an alias or another name for a program.
    pub(super) fn renamed(&mut self, name: &str, words: &[Word], around: &CommandContext) {
        if self.renaming.iter().any(|active| active == name) {
            return;
        }
        let (alias, program) = (
            self.aliases.get(name).cloned(),
            self.hashes.get(name).cloned(),
        );
        if alias.is_none() && program.is_none() {
            return;
        }
        self.renaming.push(name.to_owned());
        if let Some(program) = program {
            let words: Vec<Word> = std::iter::once(program)
                .chain(words[1..].iter().cloned())
                .collect();
            self.simple(&words, around);
        }
        if let Some(alias) = alias {
            let mut text = alias;
            for word in &words[1..] {
                let quoted = word.script().replace('\'', "'\\''");
                text.push_str(&format!(" '{quoted}'"));
            }
            self.script("alias", &text, around);
        }
        self.renaming.pop();
    }

    /// Judges `alias NAME=VALUE`: the value alone, and the value before other words.
    pub(super) fn alias(&mut self, arguments: &[Word], around: &CommandContext) {
        self.later += 1;
        for word in arguments {
            let Some(at) = word.prefix().find('=') else {
                if word.known().is_none() {
                    self.ask("the name of the alias is unknown before it runs");
                }
                continue;
            };
            let value = word.after(at + 1);
            self.joined("alias", std::slice::from_ref(&value), around);
            let text = value.script();
            self.read_script("alias", &format!("{text} {UNRESOLVED}"), around, false);
            self.aliases.insert(word.prefix()[..at].to_owned(), text);
        }
        self.later -= 1;
    }
}
