//! Matches a line against the patterns of facts.

use std::sync::LazyLock;

use regex::bytes::{Regex, RegexBuilder, RegexSet, RegexSetBuilder};

use super::patterns::{HARMLESS, ROWS};
use super::prefix::without_prefix;
use super::shape::Shape;

/// Bytes of a line that are matched.
const MAX_BYTES: usize = 4 * 1024;

/// The patterns of all rows and exceptions in one set: one search finds all that match.
struct Matcher {
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
        let patterns = RegexSetBuilder::new(patterns.into_iter().map(ascii))
            .unicode(false)
            .build();
        Self {
            patterns: patterns.ok(),
            exceptions,
        }
    }

    fn find(&self, line: &[u8]) -> Found {
        // Most lines match no pattern, which `is_match` finds faster.
        let Some(patterns) = self.patterns.as_ref().filter(|set| set.is_match(line)) else {
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
    let found = MATCHER.find(text.as_bytes());
    if found.is_harmless || found.shape.is_some() {
        return found.shape.filter(|_| !found.is_harmless);
    }
    let rest = without_prefix(text);
    let is_shorter = rest.len() < text.len() && !rest.is_empty();
    is_shorter.then(|| MATCHER.find(rest.as_bytes()).shape)?
}

/// The pattern with classes of ASCII alone.
pub(super) fn ascii(pattern: &str) -> String {
    pattern.replace(r"\s", r"[ \t]").replace(r"\S", r"[^ \t]")
}

/// Compiles a pattern whose classes are ASCII, and whose `.` is any byte.
pub(super) fn build(pattern: &str) -> Option<Regex> {
    RegexBuilder::new(&ascii(pattern))
        .unicode(false)
        .build()
        .ok()
}
