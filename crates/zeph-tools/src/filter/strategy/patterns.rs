//! Patterns that are looked for in every line.
//!
//! Most lines tell by their first bytes that no pattern is in them, and what a search by the library prepares takes
//! longer than that. So the automaton of the patterns is written down as a table, as far as lines come by it: the
//! next state for each state and byte.

use std::sync::{Arc, OnceLock};

use foldhash::HashMap;
use regex::{RegexSet, RegexSetBuilder};
use regex_automata::hybrid::LazyStateID;
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::util::look::{Look, LookSet};
use regex_automata::util::start;

use super::{MAX_COMPILED, checked_pattern, in_a_line};

/// Patterns of which one has to be found, compiled together.
#[derive(Debug)]
pub(super) struct Patterns {
    set: RegexSet,
    /// Of all patterns together; none where it might judge a line in another way.
    automaton: OnceLock<Option<DFA>>,
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
            automaton: OnceLock::new(),
        })
    }

    fn automaton(&self) -> Option<&DFA> {
        let automaton = self.automaton.get_or_init(|| automaton(&self.set));
        automaton.as_ref()
    }
}

fn automaton(set: &RegexSet) -> Option<DFA> {
    // Where a word ends among letters beyond ASCII is not looked at.
    let config = DFA::config().unicode_word_boundary(true);
    let built = DFA::builder().configure(config).build_many(set.patterns());
    let dfa = built.ok()?;
    // What is found within a character would have to be nothing.
    let ends = LookSet::empty().insert(Look::Start).insert(Look::End);
    let nfa = dfa.get_nfa();
    let within = nfa.has_empty() && !nfa.look_set_any().subtract(ends).is_empty();
    (!within).then_some(dfa)
}

/// Looks for patterns in the lines of one output.
#[derive(Debug)]
pub(super) struct Finder {
    patterns: Arc<Patterns>,
    table: Option<Table>,
}

impl Finder {
    /// Looks for `patterns`.
    pub(super) fn new(patterns: &Arc<Patterns>) -> Self {
        Self {
            table: patterns.automaton().and_then(Table::new),
            patterns: Arc::clone(patterns),
        }
    }

    /// Whether one of them is in a line.
    pub(super) fn is_match(&mut self, line: &str) -> bool {
        if let Some(table) = &mut self.table {
            match table.follow(line.as_bytes()) {
                DEAD => return false,
                MATCH => return true,
                _ => {}
            }
            if let Some(dfa) = self.patterns.automaton()
                && let Some(found) = table.learn(dfa, line.as_bytes())
            {
                return found;
            }
        }
        self.patterns.set.is_match(line)
    }
}

/// States from which no other is reached: what follows is not known yet, no pattern matches, one does, or the
/// automaton cannot tell.
const UNKNOWN: u16 = 0;
const DEAD: u16 = 0x100;
const MATCH: u16 = 0x200;
const UNTOLD: u16 = 0x300;
/// Where lines begin.
const START: u16 = 0x400;
/// States of a table.
const STATES: usize = 256;

/// What is known of an automaton. A state is where in the table its row begins.
#[derive(Debug)]
struct Table {
    next: Box<[u16; STATES << 8]>,
    /// Where a line ends in a state: one of those from which no other is reached.
    at_end: [u16; STATES],
    /// The states of the automaton, from [`START`] on.
    known: Vec<LazyStateID>,
    numbers: HashMap<LazyStateID, u16>,
    cache: Cache,
}

impl Table {
    fn new(dfa: &DFA) -> Option<Self> {
        let mut cache = dfa.create_cache();
        let start = dfa.start_state(&mut cache, &start::Config::new()).ok()?;
        if start.is_tagged() {
            return None;
        }
        let next = vec![UNKNOWN; STATES << 8].into_boxed_slice();
        let mut table = Self {
            next: next.try_into().ok()?,
            at_end: [UNKNOWN; STATES],
            known: vec![start],
            numbers: [(start, START)].into_iter().collect(),
            cache,
        };
        for state in [DEAD, MATCH, UNTOLD] {
            table.next[usize::from(state)..][..STATES].fill(state);
            table.at_end[usize::from(state >> 8)] = state;
        }
        Some(table)
    }

    /// What is known of a line: one of the states from which no other is reached.
    fn follow(&self, line: &[u8]) -> u16 {
        let step = |state, byte: &u8| self.next[usize::from(state | u16::from(*byte))];
        let (blocks, rest) = line.as_chunks::<8>();
        let mut state = START;
        for block in blocks {
            state = block.iter().fold(state, step);
            if state < START {
                return state;
            }
        }
        state = rest.iter().fold(state, step);
        self.at_end[usize::from(state >> 8)]
    }

    /// Whether a pattern is in a line of which that was not known; it is known now. `None`: the automaton cannot tell.
    fn learn(&mut self, dfa: &DFA, line: &[u8]) -> Option<bool> {
        let mut state = START;
        for byte in line {
            let mut next = self.next[usize::from(state | u16::from(*byte))];
            if next == UNKNOWN {
                next = self.learn_step(dfa, state, *byte)?;
            }
            state = next;
        }
        let row = usize::from(state >> 8);
        if self.at_end[row] == UNKNOWN {
            let id = *self.known.get(row - usize::from(START >> 8))?;
            let end = dfa.next_eoi_state(&mut self.cache, id).ok()?;
            self.at_end[row] = if end.is_match() { MATCH } else { DEAD };
        }
        match self.at_end[row] {
            DEAD => Some(false),
            MATCH => Some(true),
            _ => None,
        }
    }

    /// The state behind a byte. `None` where there are too many.
    fn learn_step(&mut self, dfa: &DFA, state: u16, byte: u8) -> Option<u16> {
        let row = usize::from((state - START) >> 8);
        let id = *self.known.get(row)?;
        let id = dfa.next_state(&mut self.cache, id, byte).ok()?;
        if self.cache.clear_count() > 0 {
            // What the states are called is not known any more.
            self.known.clear();
            return None;
        }
        let next = match self.numbers.get(&id) {
            _ if id.is_match() => MATCH,
            _ if id.is_dead() => DEAD,
            _ if id.is_tagged() => UNTOLD,
            Some(number) => *number,
            None => {
                let number = usize::from(START >> 8) + self.known.len();
                if number >= STATES {
                    return None;
                }
                let number = (number << 8) as u16;
                self.known.push(id);
                self.numbers.insert(id, number);
                number
            }
        };
        // The same for each byte that no pattern tells from this one.
        let classes = dfa.byte_classes();
        let class = classes.get(byte);
        let row = &mut self.next[usize::from(state)..][..STATES];
        for (byte, known) in (0..=u8::MAX).zip(row) {
            if classes.get(byte) == class {
                *known = next;
            }
        }
        Some(next)
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
                prop_assert_eq!(finder.is_match(line), patterns.set.is_match(line), "{:?} {:?}", patterns.set, line);
            }
        }
    }
}
