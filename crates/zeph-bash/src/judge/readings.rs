//! The possible readings of a command's words: each known value of a variable makes another reading.

use std::collections::BTreeMap;

use super::evaluate::{Decider, Verdict};
use super::places::Places;
use super::values::Possible;
use crate::syntax::ast::Assignment;
use crate::syntax::word::{Atom, Word, from_atoms};

/// The maximum number of readings of one command's words.
const MAX_READINGS: usize = 64;

/// One reading of the words of a command.
pub(super) struct Reading {
    pub(super) words: Vec<Word>,
    /// Whether this reading certainly occurs.
    pub(super) certain: bool,
}

impl Decider<'_> {
    /// The readings of these words. If no value is known, the only reading has the words as they are.
    /// With `fields`, unquoted values are split into words and used as patterns.
    pub(super) fn readings(&self, words: &[Word], fields: bool) -> Vec<Reading> {
        let mut names: BTreeMap<&str, Possible> = BTreeMap::new();
        for atom in words.iter().filter_map(Word::parts).flatten() {
            if let Atom::Variable(variable) = atom {
                let name = variable.name.as_str();
                names.entry(name).or_insert_with(|| self.value_of(name));
            }
        }
        names.retain(|_, possible| possible.is_known());
        if names.is_empty() {
            return vec![Reading {
                words: words.to_vec(),
                certain: true,
            }];
        }
        // Each choice is a value of each variable; `None` leaves it unresolved.
        let mut choices: Vec<BTreeMap<&str, Option<&str>>> = vec![BTreeMap::new()];
        let mut certain = true;
        for (name, possible) in &names {
            let texts = possible.texts.iter().map(|text| Some(text.as_str()));
            let values: Vec<Option<&str>> = texts.chain(possible.other.then_some(None)).collect();
            if choices.len() * values.len() > MAX_READINGS {
                certain = false;
                continue;
            }
            certain &= values.len() == 1 || (possible.every && !possible.other);
            choices = choices
                .iter()
                .flat_map(|choice| {
                    values.iter().map(|value| {
                        let mut choice = choice.clone();
                        choice.insert(name, *value);
                        choice
                    })
                })
                .collect();
        }
        let certain = certain || choices.len() == 1;
        let read = |choice: &BTreeMap<&str, Option<&str>>| Reading {
            words: words
                .iter()
                .flat_map(|word| self.replaced(word, choice, fields))
                .collect(),
            certain,
        };
        choices.iter().map(read).collect()
    }

    /// The values of a variable. With a visitor, variables that the command sets are unknown.
    fn value_of(&self, name: &str) -> Possible {
        if self.visit.is_some() && self.places.values.get(name).is_some() {
            return Possible::unknown();
        }
        let possible = self.places.value(name);
        let other = possible.other || (self.later > 0 && matches!(name, "PWD" | "OLDPWD"));
        Possible { other, ..possible }
    }

    /// The words that result from `word` with these values of variables.
    fn replaced(
        &self,
        word: &Word,
        choice: &BTreeMap<&str, Option<&str>>,
        fields: bool,
    ) -> Vec<Word> {
        let Some(parts) = word.parts() else {
            return vec![word.clone()];
        };
        let mut atoms = Vec::with_capacity(parts.len());
        let mut assigned = word.assigned;
        for part in parts {
            let value = match part {
                Atom::Variable(variable) => {
                    let text = choice.get(variable.name.as_str()).copied().flatten();
                    let quoted = variable.quoted || !fields;
                    assigned |= text.is_some() && self.places.values.get(&variable.name).is_some();
                    text.and_then(|text| self.places.values.expanded(variable, text))
                        .map(|value| (value, quoted))
                }
                _ => None,
            };
            match value {
                None => atoms.push(part.clone()),
                Some((value, true)) => {
                    atoms.push(Atom::Nothing);
                    atoms.extend(value.chars().map(|c| Atom::Char(c, true)));
                }
                Some((value, false)) if value.contains('\\') => atoms.push(Atom::Unknown),
                Some((value, false)) => atoms.extend(value.chars().map(|c| match c {
                    ' ' | '\t' | '\n' => Atom::Split,
                    _ => Atom::Char(c, !matches!(c, '*' | '?' | '[' | ']')),
                })),
            }
        }
        let whole = |atoms: &[Atom]| {
            let mut whole = from_atoms(atoms, fields);
            whole.substituted = word.substituted;
            whole.assigned = assigned;
            whole
        };
        if !fields {
            return vec![whole(&atoms)];
        }
        let fields = atoms.split(|atom| *atom == Atom::Split);
        fields
            .filter(|field| !field.is_empty())
            .map(whole)
            .collect()
    }

    /// Calls `judge` with each reading of `words`, and combines the verdicts.
    pub(super) fn each_reading(
        &mut self,
        words: &[Word],
        fields: bool,
        mut judge: impl FnMut(&mut Self, &Reading),
    ) {
        let readings = self.readings(words, fields);
        if let [reading] = readings.as_slice() {
            return judge(self, reading);
        }
        let before = std::mem::replace(&mut self.verdict, Verdict::Allow);
        let start = self.places.clone();
        let mut after: Option<Places> = None;
        let (mut blocked, mut asked) = (Vec::new(), None);
        for reading in &readings {
            self.places.clone_from(&start);
            judge(self, reading);
            match &mut after {
                None => after = Some(self.places.clone()),
                Some(after) => after.join(&self.places),
            }
            match std::mem::replace(&mut self.verdict, Verdict::Allow) {
                Verdict::Allow => {}
                Verdict::Ask {
                    why,
                    can_be_allowed_exactly,
                } => {
                    let (_, exact) = asked.get_or_insert((why, true));
                    *exact &= can_be_allowed_exactly;
                }
                Verdict::Block { what } => blocked.push(what),
            }
        }
        self.places = after.unwrap_or(start);
        self.verdict = before;
        let certain = readings.iter().all(|reading| reading.certain);
        let all = blocked.len() == readings.len();
        match blocked.into_iter().next() {
            Some(what) if certain || all => self.block(what),
            Some(what) => self.ask(format!("with one value of its variables: {what}")),
            None => {
                if let Some((why, can_be_allowed_exactly)) = asked {
                    self.ask_about(why, can_be_allowed_exactly);
                }
            }
        }
    }

    /// The values that an assignment sets.
    pub(super) fn given(&self, assignment: &Assignment) -> Possible {
        if !assignment.partial {
            return self.texts(&assignment.word);
        }
        Possible::unknown()
    }

    /// The values of the loop variable over these words.
    pub(super) fn listed(&self, words: &[Word]) -> Possible {
        let readings = self.readings(words, true);
        let certain = readings.iter().all(|reading| reading.certain);
        let words = readings.iter().flat_map(|reading| &reading.words);
        let texts = words.map(|word| word.known().map(str::to_owned));
        Possible {
            every: certain,
            ..Possible::of(texts)
        }
    }

    /// The words of a loop that checks for reads, if all of them are known or patterns of file names.
    pub(super) fn patterns(&self, words: &[Word]) -> Vec<Word> {
        if self.reads.is_none() {
            return Vec::new();
        }
        match self.readings(words, true).as_mut_slice() {
            [reading]
                if reading.words.len() <= MAX_READINGS
                    && reading.words.iter().all(|word| word.pattern().is_some()) =>
            {
                std::mem::take(&mut reading.words)
            }
            _ => Vec::new(),
        }
    }

    /// The possible texts of a word.
    pub(super) fn texts(&self, word: &Word) -> Possible {
        let readings = self.readings(std::slice::from_ref(word), false);
        let every = readings.len() > 1 && readings.iter().all(|reading| reading.certain);
        let texts = readings.iter().map(|reading| {
            let word = reading.words.first()?;
            word.known().map(str::to_owned)
        });
        Possible {
            every,
            ..Possible::of(texts)
        }
    }
}
