//! The text of a command with a place in it, the limits of reading, and what is said when it
//! cannot be read.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::dialect::Dialect;
use super::eval_flags::EvalFlags;
use super::render::Canonical;

/// The longest command that is read, in bytes; Linux passes no longer one to a shell.
pub const MAX_COMMAND: usize = 128 * 1024;
/// How deep commands may be nested in each other.
pub const MAX_DEPTH: usize = 64;
/// How many bytes are read for one command in all, what stands inside of strings included. It
/// takes the place of a deadline: reading is linear in it, and the same text always has the same
/// answer.
const MAX_WORK: usize = 1024 * 1024;

/// Why a command cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct SyntaxError {
    /// What was expected, or is not supported.
    pub message: String,
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
}

/// What remains of the work that one command may cost, and what was seen; shared by all texts inside of it.
#[derive(Debug, Clone)]
pub(crate) struct Budget {
    work: Rc<Cell<usize>>,
    /// What was seen so far that could be evaluated a second time.
    signs: Rc<Cell<EvalFlags>>,
    /// The first construct whose meaning is not certain.
    doubt: Rc<RefCell<Option<String>>>,
    /// Whether the canonical text differs in more than quoting and layout.
    rewritten: Rc<Cell<bool>>,
    dialect: Dialect,
}

impl Budget {
    pub(crate) fn new(dialect: Dialect) -> Self {
        Self {
            work: Rc::new(Cell::new(MAX_WORK)),
            signs: Rc::default(),
            doubt: Rc::default(),
            rewritten: Rc::default(),
            dialect,
        }
    }

    pub(crate) fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Notes a construct whose meaning is not certain, so that the command requires confirmation.
    pub(crate) fn doubt(&self, why: impl Into<String>) {
        self.doubt.borrow_mut().get_or_insert(why.into());
    }

    /// The first construct whose meaning is not certain.
    pub(crate) fn doubts(&self) -> Option<String> {
        self.doubt.borrow().clone()
    }

    /// Notes that the canonical text differs in more than quoting and layout.
    pub(crate) fn rewrite(&self) {
        self.rewritten.set(true);
    }

    pub(crate) fn is_rewritten(&self) -> bool {
        self.rewritten.get()
    }

    fn spend(&self, bytes: usize) -> bool {
        let left = self.work.get().checked_sub(bytes);
        self.work.set(left.unwrap_or(0));
        left.is_some()
    }

    pub(crate) fn saw(&self, signs: EvalFlags) {
        self.signs.set(self.signs.get().or(signs));
    }

    pub(crate) fn signs(&self) -> EvalFlags {
        self.signs.get()
    }
}

/// Texts of here-documents that the cursor has still to jump over.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Documents {
    /// The line break behind which they begin.
    pub(crate) line_break: usize,
    /// Where they end.
    pub(crate) end: usize,
    /// In how many substitutions their operators stand.
    pub(crate) nesting: usize,
}

/// The text and the place.
pub(crate) struct Cursor<'t> {
    pub(crate) text: &'t str,
    pub(crate) at: usize,
    pub(crate) depth: usize,
    pub(crate) budget: Budget,
    pub(crate) documents: Option<Documents>,
    /// In how many substitutions of this text the place lies.
    pub(crate) nesting: usize,
    /// Whether the text sets `IFS`, so that its value is not known.
    pub(crate) sets_ifs: bool,
    /// The canonical text of the part that was read.
    pub(crate) out: Canonical,
}

impl<'t> Cursor<'t> {
    pub(crate) fn new(text: &'t str, depth: usize, budget: Budget) -> Result<Self, SyntaxError> {
        let joined = text.replace("\\\n", "");
        let cursor = Self {
            text,
            at: 0,
            depth,
            sets_ifs: joined.match_indices("IFS").any(|(at, _)| {
                let before = &joined[..at];
                !(before.ends_with('$') || before.ends_with("${"))
            }),
            budget,
            documents: None,
            nesting: 0,
            out: Canonical::default(),
        };
        if text.len() > MAX_COMMAND {
            return Err(cursor.fail(format!(
                "the command has {} bytes, more than {MAX_COMMAND}",
                text.len()
            )));
        }
        cursor.spend(text.len() + 1)?;
        if depth > MAX_DEPTH {
            return Err(cursor.fail(TOO_DEEP));
        }
        Ok(cursor)
    }

    pub(crate) fn fail(&self, message: impl Into<String>) -> SyntaxError {
        let before = self.text.get(..self.at).unwrap_or(self.text);
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        SyntaxError {
            message: message.into(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }

    /// Accounts for `bytes` that are read.
    pub(crate) fn spend(&self, bytes: usize) -> Result<(), SyntaxError> {
        if self.budget.spend(bytes) {
            Ok(())
        } else {
            Err(self.fail("too much is nested inside of each other"))
        }
    }

    /// Notes something that calculates, or takes names of variables.
    pub(crate) fn calculates(&self) {
        self.budget.saw(EvalFlags {
            calculates: true,
            ..EvalFlags::default()
        });
    }

    /// Notes a subscript that could be evaluated.
    pub(crate) fn has_subscript(&self) {
        self.budget.saw(EvalFlags {
            subscript: true,
            ..EvalFlags::default()
        });
    }

    /// One level deeper; [`Cursor::leave`] comes back.
    pub(crate) fn enter(&mut self) -> Result<(), SyntaxError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.fail(TOO_DEEP));
        }
        Ok(())
    }

    pub(crate) fn leave(&mut self) {
        self.depth -= 1;
    }

    /// The next byte, line continuations left out.
    pub(crate) fn peek(&mut self) -> Option<u8> {
        while self.rest().starts_with("\\\n") {
            self.at += 2;
        }
        self.raw()
    }

    /// The next byte as it stands.
    pub(crate) fn raw(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    pub(crate) fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// The next character as it stands, passed over.
    pub(crate) fn next_char(&mut self) -> Option<char> {
        let next = self.rest().chars().next()?;
        self.at += next.len_utf8();
        Some(next)
    }

    /// Passes over `byte` if it is the next one.
    pub(crate) fn eat(&mut self, byte: u8) -> bool {
        let there = self.peek() == Some(byte);
        if there {
            self.at += 1;
        }
        there
    }

    pub(crate) fn expect(&mut self, byte: u8) -> Result<(), SyntaxError> {
        if self.eat(byte) {
            Ok(())
        } else {
            Err(self.fail(format!("expected `{}`", char::from(byte))))
        }
    }

    /// Passes over a line break, if one is next, and over the here-documents that follow it.
    pub(crate) fn line_break(&mut self) -> Result<bool, SyntaxError> {
        if self.peek() != Some(b'\n') {
            return Ok(false);
        }
        match self.documents.take() {
            None => self.at += 1,
            Some(documents)
                if documents.line_break == self.at && documents.nesting == self.nesting =>
            {
                self.at = documents.end;
            }
            Some(_) => return Err(self.fail(MISPLACED)),
        }
        self.out.line_break();
        Ok(true)
    }

    /// Refuses a here-document whose text would begin inside of something else.
    pub(crate) fn check_documents(&self) -> Result<(), SyntaxError> {
        match self.documents {
            Some(documents)
                if documents.line_break < self.at || documents.nesting > self.nesting =>
            {
                Err(self.fail(MISPLACED))
            }
            _ => Ok(()),
        }
    }

    /// Passes over blanks and a comment.
    pub(crate) fn skip_blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t')) {
            self.at += 1;
        }
        if self.raw() == Some(b'#') {
            self.at += self.rest().find('\n').unwrap_or(self.rest().len());
        }
    }
}

const MISPLACED: &str = "the text of a here-document begins inside of something else";
const TOO_DEEP: &str = "commands are nested too deeply";

/// What ends a word outside of quotes.
pub(crate) fn ends_word(byte: u8) -> bool {
    matches!(
        byte,
        b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'(' | b')' | b'<' | b'>'
    )
}
