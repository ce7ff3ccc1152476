//! Matches a line against the patterns of facts.
//!
//! One search for the required literals of all patterns selects the patterns that may match; only these are tried.

use std::sync::{LazyLock, OnceLock};

use aho_corasick::{AhoCorasick, AhoCorasickBuilder, MatchKind};
use regex::bytes::{Regex, RegexBuilder};
use regex_syntax::ParserBuilder;
use regex_syntax::hir::Hir;

use super::literals::required;
use super::patterns::{HARMLESS, ROWS, Row};
use super::prefix::without_prefix;
use super::shape::Shape;

/// Bytes of a line that are matched.
const MAX_BYTES: usize = 4 * 1024;

/// A compiled row of the table.
struct Compiled {
    row: &'static Row,
    pattern: OnceLock<Option<Regex>>,
    unless: OnceLock<Option<Regex>>,
}

impl Compiled {
    fn matches(&self, line: &[u8]) -> bool {
        let pattern = self.pattern.get_or_init(|| build(self.row.pattern));
        if !pattern
            .as_ref()
            .is_some_and(|pattern| pattern.is_match(line))
        {
            return false;
        }
        let Some(unless) = self.row.unless else {
            return true;
        };
        let unless = self.unless.get_or_init(|| build(unless));
        !unless.as_ref().is_some_and(|unless| unless.is_match(line))
    }
}

/// All patterns, and the search that selects among them.
struct Matcher {
    rows: Vec<Compiled>,
    literals: Option<AhoCorasick>,
    /// The row of each literal.
    owners: Vec<usize>,
    /// Rows that are tried on every line.
    always: Candidates,
    harmless: Option<Regex>,
}

/// Rows that may match, by their index.
#[derive(Clone, Copy, Default)]
struct Candidates(u128);

impl Candidates {
    fn insert(&mut self, row: usize) {
        self.0 |= 1 << row;
    }

    fn iter(mut self) -> impl Iterator<Item = usize> {
        std::iter::from_fn(move || {
            let row = self.0.trailing_zeros();
            // Clears the lowest bit.
            self.0 &= self.0.checked_sub(1)?;
            Some(row as usize)
        })
    }
}

const _: () = assert!(ROWS.len() <= u128::BITS as usize);

static MATCHER: LazyLock<Matcher> = LazyLock::new(Matcher::new);

impl Matcher {
    fn new() -> Self {
        let mut literals = Vec::new();
        let mut owners = Vec::new();
        let mut always = Candidates::default();
        for (index, row) in ROWS.iter().enumerate() {
            match parsed(row.pattern).as_ref().and_then(required) {
                Some(some) => {
                    owners.extend(some.iter().map(|_| index));
                    literals.extend(some);
                }
                None => always.insert(index),
            }
        }
        let searcher = AhoCorasickBuilder::new()
            .ascii_case_insensitive(true)
            .match_kind(MatchKind::Standard)
            .build(&literals)
            .ok();
        if searcher.is_none() {
            (0..ROWS.len()).for_each(|row| always.insert(row));
        }
        let compiled = |row| Compiled {
            row,
            pattern: OnceLock::new(),
            unless: OnceLock::new(),
        };
        Self {
            rows: ROWS.iter().map(compiled).collect(),
            literals: searcher,
            owners,
            always,
            harmless: build(HARMLESS),
        }
    }

    fn candidates(&self, line: &[u8]) -> Candidates {
        let mut candidates = self.always;
        if let Some(literals) = &self.literals {
            for found in literals.find_overlapping_iter(line) {
                if let Some(row) = self.owners.get(found.pattern().as_usize()) {
                    candidates.insert(*row);
                }
            }
        }
        candidates
    }

    fn first(&self, candidates: Candidates, line: &[u8]) -> Option<Shape> {
        let rows = candidates.iter().filter_map(|row| self.rows.get(row));
        let mut found = rows.filter(|row| row.matches(line));
        found.next().map(|row| row.row.shape)
    }

    fn shape(&self, text: &str) -> Option<Shape> {
        let text = &text[..text.floor_char_boundary(MAX_BYTES)];
        let candidates = self.candidates(text.as_bytes());
        let shape = self.first(candidates, text.as_bytes()).or_else(|| {
            let rest = without_prefix(text);
            let shorter = rest.len() < text.len() && !rest.is_empty();
            shorter
                .then(|| self.first(candidates, rest.as_bytes()))
                .flatten()
        })?;
        let harmless = self.harmless.as_ref();
        (!harmless.is_some_and(|harmless| harmless.is_match(text.as_bytes()))).then_some(shape)
    }
}

/// The shape of a line by itself.
pub(super) fn shape_alone(text: &str) -> Option<Shape> {
    MATCHER.shape(text)
}

/// The pattern with classes of ASCII alone.
fn ascii(pattern: &str) -> String {
    pattern.replace(r"\s", r"[ \t]").replace(r"\S", r"[^ \t]")
}

/// Compiles a pattern whose classes are ASCII, and whose `.` is any byte.
pub(super) fn build(pattern: &str) -> Option<Regex> {
    RegexBuilder::new(&ascii(pattern))
        .unicode(false)
        .build()
        .ok()
}

/// The pattern as a syntax tree.
pub(super) fn parsed(pattern: &str) -> Option<Hir> {
    let mut parser = ParserBuilder::new().unicode(false).utf8(false).build();
    parser.parse(&ascii(pattern)).ok()
}
