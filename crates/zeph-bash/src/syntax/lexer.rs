//! Cursor over the text of a command, with the limits of parsing and the syntax error.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::dialect::Dialect;
use super::eval_flags::EvalFlags;
use super::render::Canonical;

/// The maximum length of a command in bytes. Linux does not pass a longer one to a shell.
pub const MAX_COMMAND: usize = 128 * 1024;
/// The maximum nesting depth of commands.
pub const MAX_DEPTH: usize = 64;
/// The maximum number of bytes that are read for one command, including strings that are parsed again. It replaces
/// a deadline: parsing takes linear time, and the same text always has the same result.
const MAX_WORK: usize = 1024 * 1024;

/// The reason why a command cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
#[non_exhaustive]
pub struct SyntaxError {
    /// The expected or unsupported construct.
    pub message: String,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
}

/// The remaining work for one command, and the findings so far. All texts inside of the command share it.
#[derive(Debug, Clone)]
pub(crate) struct Budget {
    work: Rc<Cell<usize>>,
    /// The signs of double evaluation so far.
    signs: Rc<Cell<EvalFlags>>,
    /// The first construct with an uncertain meaning.
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

    /// Records a construct with an uncertain meaning, so that the command requires confirmation.
    pub(crate) fn doubt(&self, why: impl Into<String>) {
        self.doubt.borrow_mut().get_or_insert(why.into());
    }

    /// The first construct with an uncertain meaning.
    pub(crate) fn doubts(&self) -> Option<String> {
        self.doubt.borrow().clone()
    }

    /// Records that the canonical text differs in more than quoting and layout.
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

/// Texts of here-documents that the cursor still has to skip.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Documents {
    /// The offset of the line break before the texts.
    pub(crate) line_break: usize,
    /// The offset of their end.
    pub(crate) end: usize,
    /// The number of substitutions that contain their operators.
    pub(crate) nesting: usize,
}

/// The text and the current position.
pub(crate) struct Cursor<'t> {
    pub(crate) text: &'t str,
    pub(crate) at: usize,
    pub(crate) depth: usize,
    pub(crate) budget: Budget,
    pub(crate) documents: Option<Documents>,
    /// The number of substitutions of this text that contain the position.
    pub(crate) nesting: usize,
    /// Whether the text sets `IFS`, so that its value is unknown.
    pub(crate) sets_ifs: bool,
    /// The canonical text of the part before the position.
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

    /// Subtracts `bytes` from the remaining work.
    pub(crate) fn spend(&self, bytes: usize) -> Result<(), SyntaxError> {
        if self.budget.spend(bytes) {
            Ok(())
        } else {
            Err(self.fail("the constructs are nested too deeply"))
        }
    }

    /// Records a construct that evaluates arithmetic, or takes names of variables.
    pub(crate) fn calculates(&self) {
        self.budget.saw(EvalFlags {
            calculates: true,
            ..EvalFlags::default()
        });
    }

    /// Records a subscript that could be evaluated.
    pub(crate) fn has_subscript(&self) {
        self.budget.saw(EvalFlags {
            subscript: true,
            ..EvalFlags::default()
        });
    }

    /// Enters a nesting level; [`Cursor::leave`] leaves it.
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

    /// The next byte after line continuations.
    pub(crate) fn peek(&mut self) -> Option<u8> {
        while self.rest().starts_with("\\\n") {
            self.at += 2;
        }
        self.raw()
    }

    /// The next byte. A line continuation is not skipped.
    pub(crate) fn raw(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    pub(crate) fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Takes the next character. A line continuation is not skipped.
    pub(crate) fn next_char(&mut self) -> Option<char> {
        let next = self.rest().chars().next()?;
        self.at += next.len_utf8();
        Some(next)
    }

    /// Takes `byte` if it is next.
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

    /// Takes a line break, if one is next, with the here-documents after it.
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

    /// Refuses a here-document if its text would begin inside of another construct.
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

    /// Skips blanks and a comment.
    pub(crate) fn skip_blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t')) {
            self.at += 1;
        }
        if self.raw() == Some(b'#') {
            self.at += self.rest().find('\n').unwrap_or(self.rest().len());
        }
    }
}

const MISPLACED: &str = "the text of a here-document begins inside another construct";
const TOO_DEEP: &str = "commands are nested too deeply";

/// Whether a byte ends a word outside of quotes.
pub(crate) fn ends_word(byte: u8) -> bool {
    matches!(
        byte,
        b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'(' | b')' | b'<' | b'>'
    )
}
