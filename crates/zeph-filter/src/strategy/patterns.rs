//! Patterns that are looked for in every line.
//!
//! Most lines tell by their first bytes that no pattern is in them, and what a search by the library prepares takes
//! longer than that. So the automaton of the patterns is written down as a table, as far as lines come by it: the
//! next state for each state and byte.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use regex::{RegexSet, RegexSetBuilder};
use regex_automata::hybrid::LazyStateID;
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::util::look::Look;
use regex_automata::util::start;
use regex_syntax::{Parser, hir};

use super::{MAX_COMPILED, checked_pattern, in_a_line};
use crate::expressions::any_matches;

/// Patterns of which one has to be found, compiled together.
#[derive(Debug)]
pub(super) struct Patterns {
    set: RegexSet,
    /// Of the patterns that begin where a line begins, and of the others; none where they might judge a line in another
    /// way.
    automata: OnceLock<Vec<DFA>>,
}

impl Patterns {
    /// Compiles `patterns`.
    ///
    /// # Errors
    /// What is wrong with one of them.
    pub(super) fn new(patterns: &[String]) -> Result<Self, String> {
        for pattern in patterns {
            checked_pattern(pattern)?;
        }
        let set = RegexSetBuilder::new(patterns)
            .size_limit(MAX_COMPILED)
            .build()
            .map_err(|error| in_a_line(&error))?;
        Ok(Self {
            set,
            automata: OnceLock::new(),
        })
    }

    fn automata(&self) -> &[DFA] {
        let automata = || {
            let patterns = self.set.patterns().iter();
            let (bound, others): (Vec<&String>, Vec<&String>) =
                patterns.partition(|pattern| begins_a_line(pattern));
            let some = [bound, others].into_iter().filter(|some| !some.is_empty());
            let built: Option<Vec<DFA>> = some.map(|some| automaton(&some)).collect();
            built.unwrap_or_default()
        };
        self.automata.get_or_init(automata)
    }
}

fn begins_a_line(pattern: &str) -> bool {
    let parsed = Parser::new().parse(pattern);
    parsed.is_ok_and(|hir| {
        hir.properties()
            .look_set_prefix()
            .contains(hir::Look::Start)
    })
}

fn automaton(patterns: &[&String]) -> Option<DFA> {
    // Where a word ends among letters beyond ASCII is not looked at.
    let config = DFA::config().unicode_word_boundary(true);
    let dfa = DFA::builder().configure(config).build_many(patterns).ok()?;
    // What is found within a character would have to be nothing, where no word is.
    let no_word = [
        Look::WordAsciiNegate,
        Look::WordStartHalfAscii,
        Look::WordEndHalfAscii,
    ];
    let nfa = dfa.get_nfa();
    let looks = nfa.look_set_any();
    let within = nfa.has_empty() && no_word.iter().any(|look| looks.contains(*look));
    (!within).then_some(dfa)
}

/// Looks for patterns in the lines of one output.
#[derive(Debug)]
pub(super) struct Finder {
    patterns: Arc<Patterns>,
    /// One for each automaton of the patterns, or none.
    tables: Vec<Table>,
}

impl Finder {
    /// Looks for `patterns`.
    pub(super) fn new(patterns: &Arc<Patterns>) -> Self {
        let tables: Option<Vec<Table>> = patterns.automata().iter().map(Table::new).collect();
        Self {
            tables: tables.unwrap_or_default(),
            patterns: Arc::clone(patterns),
        }
    }

    /// Whether one of them is in a line.
    pub(super) fn is_match(&mut self, line: &str) -> bool {
        let mut told = DEAD;
        for (at, table) in self.tables.iter_mut().enumerate() {
            told = table.follow(line.as_bytes());
            if told == UNKNOWN
                && let Some(dfa) = self.patterns.automata().get(at)
            {
                told = table.learn(dfa, line.as_bytes());
            }
            if told != DEAD {
                break;
            }
        }
        let set = &self.patterns.set;
        match told {
            DEAD if !self.tables.is_empty() => false,
            MATCH => true,
            UNKNOWN | DEAD => {
                self.tables.clear();
                any_matches(set, line)
            }
            _ => any_matches(set, line),
        }
    }
}

/// States from which no other is reached: what follows is not known yet, no pattern matches, one does, or the
/// automaton cannot tell.
const UNKNOWN: u16 = 0;
const DEAD: u16 = 1;
const MATCH: u16 = 2;
const UNTOLD: u16 = 3;
/// Where lines begin.
const START: u16 = 4;
/// Entries of a table; memory is taken for those alone that are written.
const ENTRIES: usize = 1 << 18;

/// What is known of an automaton.
#[derive(Debug)]
struct Table {
    /// A row for each state: the next one for each class of bytes, and for the end.
    next: Box<[u16; ENTRIES]>,
    /// What no pattern tells apart is of one class.
    classes: [u8; 256],
    end: u8,
    /// The length of a row is 2 to this.
    shift: u32,
    /// The states of the automaton, from [`START`] on.
    known: Vec<LazyStateID>,
    numbers: HashMap<LazyStateID, u16>,
    cache: Cache,
}

impl Table {
    fn new(dfa: &DFA) -> Option<Self> {
        let mut cache = dfa.create_cache();
        let start = dfa.start_state(&mut cache, &start::Config::new()).ok()?;
        let classes = dfa.byte_classes();
        let end = u8::try_from(classes.alphabet_len().checked_sub(1)?).ok()?;
        let next = vec![UNKNOWN; ENTRIES].into_boxed_slice();
        let mut table = Self {
            next: next.try_into().ok()?,
            classes: std::array::from_fn(|byte| classes.get(byte as u8)),
            end,
            shift: (u32::from(end) + 1).next_power_of_two().trailing_zeros(),
            known: vec![start],
            numbers: [(start, START)].into_iter().collect(),
            cache,
        };
        for state in [DEAD, MATCH, UNTOLD] {
            let row = usize::from(state) << table.shift;
            table.next[row..][..1 << table.shift].fill(state);
        }
        (!start.is_tagged()).then_some(table)
    }

    /// What is known of a line: one of the states from which no other is reached.
    fn follow(&self, line: &[u8]) -> u16 {
        let (next, classes, shift) = (&*self.next, &self.classes, self.shift);
        let row = |state| usize::from(state) << shift;
        let step = |state: u16, byte: &u8| {
            let class = classes[usize::from(*byte)];
            next[(row(state) | usize::from(class)) % ENTRIES]
        };
        let (blocks, rest) = line.as_chunks::<8>();
        let mut state = START;
        for block in blocks {
            state = block.iter().fold(state, step);
            if state < START {
                return state;
            }
        }
        state = rest.iter().fold(state, step);
        next[(row(state) | usize::from(self.end)) % ENTRIES]
    }

    /// The same of a line of which that was not known: now it is. If it is still not known, there are too many states.
    fn learn(&mut self, dfa: &DFA, line: &[u8]) -> u16 {
        let mut state = START;
        for byte in line.iter().map(Some).chain([None]) {
            let class = byte.map_or(self.end, |byte| self.classes[usize::from(*byte)]);
            let entry = (usize::from(state) << self.shift) | usize::from(class);
            if self.next[entry] == UNKNOWN {
                let Some(next) = self.learn_step(dfa, state, byte) else {
                    return UNKNOWN;
                };
                self.next[entry] = next;
            }
            state = self.next[entry];
        }
        state
    }

    /// The state behind a byte, or at the end. `None` where there are too many.
    fn learn_step(&mut self, dfa: &DFA, state: u16, byte: Option<&u8>) -> Option<u16> {
        let id = *self.known.get(usize::from(state.checked_sub(START)?))?;
        let cache = &mut self.cache;
        let id = match byte {
            Some(byte) => dfa.next_state(cache, id, *byte).ok()?,
            None => dfa.next_eoi_state(cache, id).ok()?,
        };
        if cache.clear_count() > 0 {
            // What the states are called is not known any more.
            return None;
        }
        Some(match self.numbers.get(&id) {
            _ if id.is_match() => MATCH,
            _ if id.is_dead() || byte.is_none() => DEAD,
            _ if id.is_tagged() => UNTOLD,
            Some(number) => *number,
            None => {
                let number = START + u16::try_from(self.known.len()).ok()?;
                if usize::from(number) >= self.next.len() >> self.shift {
                    return None;
                }
                self.known.push(id);
                self.numbers.insert(id, number);
                number
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn they_are_found_as_the_set_finds_them(
            patterns in proptest::collection::vec(
                "\\^?(a|b|\\\\s\\*|\\\\S\\+|\\\\b|\\\\B|ä|:|\\.\\*|\\[ab\\]\\+|\\(\\?-u:\\\\b\\)|\\(\\?-u:\\\\B\\)|\\(\\?:a\\|ü\\)\\?){0,5}\\$?",
                1..4,
            ),
            lines in proptest::collection::vec("(a|b| |ä|ü|:|\u{a0}|x{20,40}){0,6}", 1..8),
        ) {
            let Ok(patterns) = Patterns::new(&patterns) else {
                return Ok(());
            };
            let patterns = Arc::new(patterns);
            let mut finder = Finder::new(&patterns);
            // What was not known of a line at first is known the second time.
            for line in lines.iter().chain(&lines) {
                let found = patterns.set.matches(line).matched_any();
                prop_assert_eq!(finder.is_match(line), found, "{:?} {:?}", patterns.set, line);
            }
        }
    }
}
