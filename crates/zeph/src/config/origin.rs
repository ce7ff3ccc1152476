//! The origin of a value.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use zeph_tools::gate::rule;

/// The source of a value, from the weakest to the strongest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The default value.
    Default,
    /// A line of the user's file.
    User(Place),
    /// A line of the project's file.
    Project(Place),
    /// An environment variable, by its name.
    Environment(String),
    /// A flag, as it is written on the command line.
    Flag(String),
}

/// A place in a file; line and column count from 1, the column in characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// The file.
    pub(crate) file: Arc<Path>,
    /// Its line.
    pub(crate) line: usize,
    /// The character in the line.
    pub(crate) column: usize,
}

/// Which key has which origin. Keys as in `tools.shell.timeout` and `llm.providers[0].model`; a
/// key that is not in it has its default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Provenance(BTreeMap<String, Origin>);

impl Provenance {
    /// The origin of the value of `key`.
    pub(crate) fn of(&self, key: &str) -> &Origin {
        self.0.get(key).unwrap_or(&Origin::Default)
    }

    /// The keys that are set, with their origins.
    pub(crate) fn set_keys(&self) -> impl Iterator<Item = (&str, &Origin)> {
        self.0.iter().map(|(key, origin)| (key.as_str(), origin))
    }

    /// Forgets the origin of `key`.
    pub(crate) fn remove(&mut self, key: &str) {
        self.0.remove(key);
    }

    /// Records the origin of `key`, and removes the origins of earlier items of a list.
    pub(crate) fn set(&mut self, key: &str, origin: Origin) {
        let items: Vec<String> = self
            .0
            .range(format!("{key}[")..format!("{key}\\"))
            .map(|(item, _)| item.clone())
            .collect();
        for item in items {
            self.0.remove(&item);
        }
        self.0.insert(key.to_owned(), origin);
    }

    /// Lays stronger origins over these.
    pub(crate) fn extend(&mut self, over: Self) {
        // A list sorts before its items.
        for (key, origin) in over.0 {
            self.set(&key, origin);
        }
    }
}

impl Origin {
    /// The position for rules.
    pub(crate) fn place(&self) -> rule::Place {
        match self {
            Self::User(place) | Self::Project(place) => {
                rule::Place::Line(Arc::clone(&place.file), place.line)
            }
            other => rule::Place::Said(other.to_string()),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file.display(), self.line, self.column)
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::User(Place { file, line, .. }) => {
                write!(f, "user file {}:{line}", file.display())
            }
            Self::Project(Place { file, line, .. }) => {
                write!(f, "project file {}:{line}", file.display())
            }
            Self::Environment(name) => write!(f, "environment {name}"),
            Self::Flag(flag) => write!(f, "flag {flag}"),
        }
    }
}

/// Turns offsets in a text into lines and columns.
#[derive(Debug)]
pub(crate) struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    /// Finds the lines of `text`.
    pub(crate) fn new(text: &'a str) -> Self {
        let after = text.match_indices('\n').map(|(at, _)| at + 1);
        Self {
            text,
            starts: std::iter::once(0).chain(after).collect(),
        }
    }

    /// Line and column of a byte offset; offsets past the end count as the end.
    pub(crate) fn position(&self, offset: usize) -> (usize, usize) {
        let offset = self.text.floor_char_boundary(offset);
        let line = self.starts.partition_point(|start| *start <= offset).max(1);
        let start = self.starts.get(line - 1).copied().unwrap_or(0);
        let column = self
            .text
            .get(start..offset)
            .map_or(0, |before| before.chars().count());
        (line, column + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offset_is_converted_to_line_and_column() {
        let check = |text: &str, offset: usize, expect: (usize, usize)| {
            assert_eq!(
                Lines::new(text).position(offset),
                expect,
                "{text:?} {offset}"
            );
        };
        check("", 0, (1, 1));
        check("", 9, (1, 1));
        check("ab\ncd", 0, (1, 1));
        check("ab\ncd", 2, (1, 3));
        check("ab\ncd", 3, (2, 1));
        check("ab\r\ncd\n", 4, (2, 1));
        check("ä\nöx", 5, (2, 2));
        check("ä", 1, (1, 1));
        check("ab\n", usize::MAX, (2, 1));
    }

    #[test]
    fn replaced_list_drops_the_origins_of_its_items() {
        let mut weak = Provenance::default();
        for key in ["a", "a[0].x", "a[1].x", "ab", "b"] {
            weak.set(key, Origin::Flag("weak".to_owned()));
        }
        let mut strong = Provenance::default();
        for key in ["a", "a[0].y"] {
            strong.set(key, Origin::Flag("strong".to_owned()));
        }
        weak.extend(strong);
        let names: Vec<&str> = weak.0.keys().map(String::as_str).collect();
        assert_eq!(names, ["a", "a[0].y", "ab", "b"]);
        assert_eq!(weak.of("a").to_string(), "flag strong");
        assert_eq!(weak.of("ab").to_string(), "flag weak");
        assert_eq!(weak.of("c"), &Origin::Default);
    }
}
