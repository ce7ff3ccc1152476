//! Parsed text: its tree and its canonical text.

use super::ast::List;
use super::dialect::Dialect;
use super::lexer::{Budget, Cursor, SyntaxError};

/// The result of parsing a text.
#[derive(Debug)]
pub(crate) struct Reading {
    /// Its tree.
    pub(crate) list: List,
    /// The same command as canonical text.
    pub(crate) canonical: String,
    /// Whether the canonical text differs in more than quoting and layout.
    pub(crate) rewritten: bool,
}

/// Parses a command.
///
/// # Errors
/// [`SyntaxError`] with the position.
pub fn parse(text: &str) -> Result<List, SyntaxError> {
    Ok(read(text, Dialect::Bash)?.list)
}

/// Parses a text for a shell.
pub(crate) fn read(text: &str, dialect: Dialect) -> Result<Reading, SyntaxError> {
    let budget = Budget::new(dialect);
    let (mut list, canonical) = parse_nested(text, 0, budget.clone())?;
    list.signs = budget.signs();
    list.doubt = budget.doubts();
    Ok(Reading {
        list,
        canonical,
        rewritten: budget.is_rewritten(),
    })
}

/// A parsed command that several components share.
#[derive(Debug)]
pub struct Parsed {
    text: String,
    reading: Result<Reading, SyntaxError>,
}

impl Parsed {
    /// Parses a command.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            reading: read(text, Dialect::Bash),
        }
    }

    /// Whether this is the parsed form of `text`.
    #[must_use]
    pub fn is_of(&self, text: &str) -> bool {
        self.text == text
    }

    /// The user's text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The tree of the command.
    ///
    /// # Errors
    /// [`SyntaxError`] if the text cannot be parsed.
    pub fn tree(&self) -> Result<&List, &SyntaxError> {
        self.reading.as_ref().map(|reading| &reading.list)
    }

    /// Returns the canonical form of the command, which the shell runs; `None` if the command cannot be parsed.
    #[must_use]
    pub fn canonical(&self) -> Option<&str> {
        let reading = self.reading.as_ref().ok()?;
        Some(&reading.canonical)
    }

    /// The canonical text, if it differs in more than quoting and layout.
    #[must_use]
    pub fn rewritten(&self) -> Option<&str> {
        let reading = self.reading.as_ref().ok()?;
        reading.rewritten.then_some(reading.canonical.as_str())
    }
}

/// Parses a text inside of another one, `depth` levels deep, and writes its canonical text.
pub(crate) fn parse_nested(
    text: &str,
    depth: usize,
    budget: Budget,
) -> Result<(List, String), SyntaxError> {
    let mut cursor = Cursor::new(text, depth, budget)?;
    let list = cursor.list()?;
    match cursor.peek() {
        None => Ok((list, cursor.out.into_text())),
        Some(_) => Err(cursor.unexpected()),
    }
}
