//! Matches a line against the patterns of facts.
//!
//! A search for the required literals of the patterns precedes the search for the patterns: random text would make
//! the automaton of all patterns build new states all the time.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use regex::bytes::{Regex, RegexBuilder, RegexSet, RegexSetBuilder};
use regex_syntax::ParserBuilder;
use regex_syntax::hir::Hir;

use super::literals::required;
use super::patterns::{HARMLESS, ROWS};
use super::prefix::without_prefix;
use super::shape::Shape;

/// Bytes of a line that are matched.
const MAX_BYTES: usize = 4 * 1024;
/// Bytes of the shortest line that a pattern matches.
const MIN_FACT_BYTES: usize = 2;
/// Bytes that the automaton of a set may take: with less it builds the same states again and again.
const MAX_DFA_BYTES: usize = 16 * 1024 * 1024;

/// The patterns of all rows and exceptions in one set: one search finds all that match.
struct Matcher {
    /// The required literals of the patterns that have some.
    literals: Option<AhoCorasick>,
    /// The patterns without required literals.
    others: Option<RegexSet>,
    /// [`HARMLESS`], the patterns of [`ROWS`], then their distinct exceptions.
    patterns: Option<RegexSet>,
    /// The index of the exception of each row.
    exceptions: Vec<Option<usize>>,
}

static MATCHER: LazyLock<Matcher> = LazyLock::new(Matcher::new);

/// The result of a search in one line.
#[derive(Default)]
struct Found {
    /// The shape of the first row that matches.
    shape: Option<Shape>,
    is_harmless: bool,
}

impl Matcher {
    fn new() -> Self {
        let mut patterns = vec![HARMLESS];
        patterns.extend(ROWS.iter().map(|row| row.pattern));
        let mut index = |pattern| {
            let known = patterns.iter().position(|known| *known == pattern);
            known.unwrap_or_else(|| {
                patterns.push(pattern);
                patterns.len() - 1
            })
        };
        let exceptions = ROWS.iter().map(|row| row.unless.map(&mut index)).collect();
        let (mut literals, mut others) = (Vec::new(), Vec::new());
        for row in ROWS {
            match parsed(row.pattern).as_ref().and_then(required) {
                Some(some) => literals.extend(some),
                None => others.push(row.pattern),
            }
        }
        let literals = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .build(&literals);
        Self {
            literals: literals.ok(),
            others: set(others),
            patterns: set(patterns),
            exceptions,
        }
    }

    /// Whether a pattern may match.
    fn may_match(&self, line: &[u8]) -> bool {
        let literals = self.literals.as_ref();
        let others = self.others.as_ref();
        literals.is_none_or(|literals| literals.is_match(line))
            || others.is_none_or(|others| others.is_match(line))
    }

    fn find(&self, line: &[u8]) -> Found {
        let Some(patterns) = self.patterns.as_ref().filter(|_| self.may_match(line)) else {
            return Found::default();
        };
        let found = patterns.matches(line);
        let mut rows = ROWS.iter().zip(&self.exceptions).zip(1..);
        let row = rows.find(|((_, exception), at)| {
            found.matched(*at) && !exception.is_some_and(|exception| found.matched(exception))
        });
        Found {
            shape: row.map(|((row, _), _)| row.shape),
            is_harmless: found.matched(0),
        }
    }
}

/// The shape of a line by itself.
pub(super) fn shape_alone(text: &str) -> Option<Shape> {
    let text = &text[..text.floor_char_boundary(MAX_BYTES)];
    if text.len() < MIN_FACT_BYTES {
        return None;
    }
    let found = MATCHER.find(text.as_bytes());
    if found.is_harmless || found.shape.is_some() {
        return found.shape.filter(|_| !found.is_harmless);
    }
    let rest = without_prefix(text);
    let is_shorter = rest.len() < text.len() && !rest.is_empty();
    is_shorter.then(|| MATCHER.find(rest.as_bytes()).shape)?
}

/// The pattern with classes of ASCII alone.
fn ascii(pattern: &str) -> String {
    pattern.replace(r"\s", r"[ \t]").replace(r"\S", r"[^ \t]")
}

/// One automaton for several patterns.
fn set(patterns: Vec<&str>) -> Option<RegexSet> {
    let patterns = RegexSetBuilder::new(patterns.into_iter().map(ascii))
        .unicode(false)
        .dfa_size_limit(MAX_DFA_BYTES)
        .build();
    patterns.ok()
}

/// The pattern as a syntax tree.
pub(super) fn parsed(pattern: &str) -> Option<Hir> {
    let mut parser = ParserBuilder::new().unicode(false).utf8(false).build();
    parser.parse(&ascii(pattern)).ok()
}

/// Compiles a pattern whose classes are ASCII, and whose `.` is any byte.
pub(super) fn build(pattern: &str) -> Option<Regex> {
    RegexBuilder::new(&ascii(pattern))
        .unicode(false)
        .build()
        .ok()
}
