//! The fact guard: whatever a rule does, what a developer needs is still there afterwards.
//!
//! While lines pass, those with the shape of a fact ([`shape`]) are noted. When the rule is done,
//! each has to be found in the result; what is not is put back, raw, at its place. A wrong rule
//! then costs size, never a fact.

mod quiet;
mod shape;

use std::collections::HashSet;

use super::kept::KeptLine;
use super::line::{Held, Line};
use super::timing::without_time;
use quiet::Quiet;

pub(super) use shape::{Shape, Shapes};

/// Bytes of facts that are noted.
const MOST_BYTES: usize = 512 * 1024;
/// Bytes of one fact: of what is longer, the beginning.
const MOST_LINE: usize = 2 * 1024;
/// How often a shape that is mostly chatter is noted: equal but for digits.
const SAME_CHATTER: u32 = 5;

/// Notes the facts of one output.
#[derive(Debug, Default)]
pub(super) struct Guard {
    shapes: Shapes,
    quiet: Quiet,
    facts: Vec<Held>,
    bytes: usize,
    chatter: std::collections::BTreeMap<u64, u32>,
    /// Facts that were not noted, for there were too many.
    surplus: u64,
}

impl Guard {
    /// Looks at the next line.
    pub(super) fn see(&mut self, line: Line<'_>) {
        // Most lines look like one that was no fact already.
        let seen = (!self.shapes.expects_more()).then(|| Quiet::hash(line.text));
        if seen.is_some_and(|hash| self.quiet.has(hash)) {
            return;
        }
        let Some(shape) = self.shapes.of(line.text) else {
            if let Some(hash) = seen {
                self.quiet.add(hash);
            }
            return;
        };
        if shape == Shape::Chatter && !self.is_new(line.text) {
            return;
        }
        if self.bytes + line.text.len().min(MOST_LINE) > MOST_BYTES {
            self.surplus += 1;
            return;
        }
        let text = &line.text[..line.text.floor_char_boundary(MOST_LINE)];
        self.bytes += text.len();
        self.facts.push(Held {
            number: line.number,
            text: text.to_owned(),
        });
    }

    /// Whether chatter of this form came seldom so far.
    fn is_new(&mut self, text: &str) -> bool {
        let key = masked(text);
        if self.chatter.len() > 1024 && !self.chatter.contains_key(&key) {
            return false;
        }
        let seen = self.chatter.entry(key).or_default();
        *seen += 1;
        *seen <= SAME_CHATTER
    }

    /// Whether facts had to be let go.
    pub(super) fn surplus(&self) -> u64 {
        self.surplus
    }

    /// The facts that `lines` do not tell.
    pub(super) fn missing(&self, lines: &[KeptLine]) -> Vec<&Held> {
        if self.facts.is_empty() {
            return Vec::new();
        }
        let told = Told::new(lines);
        let missing = self.facts.iter().filter(|fact| !told.tells(&fact.text));
        missing.collect()
    }
}

/// FNV-1a over the text without digits, <http://www.isthe.com/chongo/tech/comp/fnv/>.
fn masked(text: &str) -> u64 {
    let bytes = text.bytes().filter(|byte| !byte.is_ascii_digit());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// What a result tells.
struct Told<'r> {
    lines: HashSet<&'r str>,
    words: HashSet<&'r str>,
}

impl<'r> Told<'r> {
    fn new(result: &'r [KeptLine]) -> Self {
        let mut lines = HashSet::new();
        let mut words = HashSet::new();
        for line in result {
            lines.insert(line.text.trim());
            words.extend(words_of(&line.text));
        }
        Self { lines, words }
    }

    /// Whether a line says it, or its words are said in another form: grouped by lint, for one,
    /// with the places behind one another.
    fn tells(&self, fact: &str) -> bool {
        let fact = without_time(fact.trim());
        self.lines.contains(fact) || words_of(fact).all(|word| self.words.contains(word))
    }
}

/// The words of a line, without the punctuation that sets them apart; those without a letter or
/// a digit do not count.
fn words_of(line: &str) -> impl Iterator<Item = &str> {
    line.split_whitespace()
        .map(|word| {
            word.trim_matches(|c: char| {
                matches!(
                    c,
                    ',' | ';' | '(' | ')' | '[' | ']' | '`' | '\'' | '"' | ':' | '.'
                )
            })
        })
        .filter(|word| word.chars().any(char::is_alphanumeric))
}
