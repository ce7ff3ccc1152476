//! Writer for the canonical text of a command, used while the command is parsed.
//!
//! The shell runs this text instead of the user's. Both have the same tokens. In the canonical text, quotes, blanks
//! and here-documents have one form each, and comments and continued lines are absent.

use super::lexer::{Cursor, Documents};
use super::parse::is_name;

/// A canonical text under construction.
#[derive(Debug, Default)]
pub(crate) struct Canonical {
    text: String,
    /// Whether a blank separates the next piece.
    gap: bool,
    /// The texts of here-documents after the next line break.
    bodies: String,
}

/// A position to return to when a text is parsed again in another way.
#[derive(Debug)]
pub(crate) struct Mark {
    at: usize,
    length: usize,
    gap: bool,
    bodies: usize,
    documents: Option<Documents>,
}

impl Canonical {
    /// Requests a blank before the next piece.
    pub(crate) fn gap(&mut self) {
        self.gap = true;
    }

    /// Adds text unchanged.
    pub(crate) fn put(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        if self.gap
            && !self.text.is_empty()
            && !self.text.ends_with('\n')
            && !text.starts_with('\n')
        {
            self.text.push(' ');
        }
        self.gap = false;
        self.text.push_str(text);
    }

    /// Adds a character unchanged.
    pub(crate) fn put_char(&mut self, character: char) {
        self.put(character.encode_utf8(&mut [0; 4]));
    }

    /// Adds an operator with a blank on both sides.
    pub(crate) fn operator(&mut self, text: &str) {
        self.gap = true;
        self.put(text);
        self.gap = true;
    }

    /// Adds an operator without a blank before it.
    pub(crate) fn attached(&mut self, text: &str) {
        self.gap = false;
        self.put(text);
        self.gap = true;
    }

    /// Adds literal text in single quotes. It separates a backslash from a following line break: in a here-document,
    /// the two would join two lines.
    pub(crate) fn quoted(&mut self, text: &str) {
        if text.is_empty() {
            self.put("''");
        }
        for (at, piece) in text.split('\'').enumerate() {
            if at > 0 {
                self.put("\\'");
            }
            if !piece.is_empty() {
                self.put("'");
                self.put(&piece.replace("\\\n", "\\''\n"));
                self.put("'");
            }
        }
    }

    /// Adds unquoted text that the shell reads as plain characters. Characters other than printable ASCII are quoted.
    pub(crate) fn plain(&mut self, text: &str) {
        let is_safe = |character: char| character.is_ascii_graphic();
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let safe = is_safe(first);
            let end = rest
                .find(|character| is_safe(character) != safe)
                .unwrap_or(rest.len());
            let (run, after) = rest.split_at(end);
            if safe {
                self.put(run);
            } else {
                self.quoted(run);
            }
            rest = after;
        }
    }

    /// Ends the line, and adds the texts of its here-documents.
    pub(crate) fn line_break(&mut self) {
        self.gap = false;
        self.text.push('\n');
        self.text.push_str(&self.bodies);
        self.bodies.clear();
    }

    /// Adds the operator of a here-document, and its text after the line.
    pub(crate) fn document(&mut self, wanted: &str, body: &str, literal: bool) {
        let is_free = |delimiter: &str| body.lines().all(|line| line != delimiter);
        let mut delimiter = wanted.to_owned();
        let mut number = 0_usize;
        while !is_name(&delimiter) || !is_free(&delimiter) {
            delimiter = match number {
                0 => "EOF".to_owned(),
                number => format!("EOF_{number}"),
            };
            number += 1;
        }
        self.put("<<");
        match literal {
            true => self.quoted(&delimiter),
            false => self.put(&delimiter),
        }
        self.bodies.push_str(body);
        self.bodies.push_str(&delimiter);
        self.bodies.push('\n');
    }

    /// The length of the text in bytes.
    pub(crate) fn len(&self) -> usize {
        self.text.len()
    }

    /// Whether the last character is this one, without a blank after it.
    pub(crate) fn ends_with(&self, character: char) -> bool {
        !self.gap && self.text.ends_with(character)
    }

    /// The text after `length` bytes, without the blank before it.
    pub(crate) fn since(&self, length: usize) -> String {
        let text = self.text.get(length..).unwrap_or_default();
        text.strip_prefix(' ').unwrap_or(text).to_owned()
    }

    /// Removes all text after `length` bytes.
    pub(crate) fn truncate(&mut self, length: usize) {
        self.text.truncate(length);
    }

    /// The text.
    pub(crate) fn into_text(self) -> String {
        self.text
    }
}

impl Cursor<'_> {
    /// The position, for [`Cursor::reset`].
    pub(crate) fn mark(&self) -> Mark {
        Mark {
            at: self.at,
            length: self.out.text.len(),
            gap: self.out.gap,
            bodies: self.out.bodies.len(),
            documents: self.documents,
        }
    }

    /// Returns to a position, and removes the canonical text that was written after it.
    pub(crate) fn reset(&mut self, mark: &Mark) {
        self.at = mark.at;
        self.out.text.truncate(mark.length);
        self.out.gap = mark.gap;
        self.out.bodies.truncate(mark.bodies);
        self.documents = mark.documents;
    }
}
