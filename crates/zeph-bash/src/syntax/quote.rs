//! Words: quotes, escapes, expansions and substitutions.

use super::ast::{Construct, List, Substitution};
use super::eval_flags::{EvalFlags, Fragments, atoms_have_subscript, fragments};
use super::lexer::{Cursor, SyntaxError, ends_word};
use super::word::{Atom, Word};

/// A word before expansion.
#[derive(Debug, Default)]
pub(crate) struct RawWord {
    pub(crate) atoms: Vec<Atom>,
    pub(crate) substitutions: Vec<Substitution>,
    /// Words in it that are not arguments.
    pub(crate) others: Vec<Word>,
    /// Whether no part is quoted or expanded.
    pub(crate) bare: bool,
    /// Whether a part is expanded or substituted.
    pub(crate) expands: bool,
}

/// The syntax in which a word is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// A word in any other context.
    Plain,
    /// A word after `=~`, which includes parentheses and `|`.
    Regex,
    /// A word after `==` in `[[`, which includes `@(…)` and similar patterns.
    Pattern,
}

impl RawWord {
    /// Adds unquoted text.
    pub(crate) fn push(&mut self, text: &str) {
        self.atoms
            .extend(text.chars().map(|character| Atom::Char(character, false)));
    }

    /// Whether it contains a `[`.
    pub(crate) fn has_bracket(&self) -> bool {
        self.atoms
            .iter()
            .any(|atom| matches!(atom, Atom::Char('[', _)))
    }

    /// Its text, if no part is quoted or expanded.
    pub(crate) fn bare_text(&self) -> Option<String> {
        self.bare.then(|| {
            let character = |atom: &Atom| match atom {
                Atom::Char(character, _) => Some(*character),
                _ => None,
            };
            self.atoms.iter().filter_map(character).collect()
        })
    }
}

/// The end of a text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Terminator {
    /// A `"`.
    Quote,
    /// The `}` of a `${`; `quoted` is whether it is inside of double quotes.
    Brace { quoted: bool },
    /// The end of the text: a here-document.
    End,
}

impl<'t> Cursor<'t> {
    /// Reads `( … )` in a word, from the position after the parenthesis.
    pub(crate) fn parenthesized(&mut self) -> Result<List, SyntaxError> {
        self.enter()?;
        self.nesting += 1;
        self.out.gap();
        let list = self.list()?;
        self.nesting -= 1;
        self.expect(b')')?;
        self.out.gap();
        self.out.put(")");
        self.check_documents()?;
        self.leave();
        Ok(list)
    }

    /// Reads a word. The word is empty if no word begins at the position.
    pub(crate) fn word(&mut self, mode: Mode) -> Result<RawWord, SyntaxError> {
        let mut word = RawWord {
            bare: true,
            ..RawWord::default()
        };
        let mut open = 0_usize;
        while let Some(byte) = self.peek() {
            match byte {
                b'<' | b'>' if self.is_process_substitution() => {
                    if open > 0 || mode == Mode::Regex {
                        return Err(self.fail("a process substitution inside of a pattern"));
                    }
                    word.bare = false;
                    self.process(&mut word)?;
                }
                b'<' | b'>' if open == 0 => {
                    if self.rest()[1..].starts_with("\\\n") {
                        return Err(self.fail("a line break inside of an operator"));
                    }
                    let last = word.atoms.len().saturating_sub(1);
                    let is =
                        |at: usize, wanted| word.atoms.get(at).is_some_and(|atom| atom.is(wanted));
                    if last > 1 && is(0, '{') && is(last, '}') {
                        return Err(self.fail("a descriptor in a variable that is not literal"));
                    }
                    break;
                }
                b'(' if open > 0 || opens(mode, &word.atoms) => {
                    open += 1;
                    self.pass(&mut word, true);
                }
                b')' if open > 0 => {
                    open -= 1;
                    self.pass(&mut word, true);
                }
                b'|' if mode == Mode::Regex => self.pass(&mut word, true),
                b'\n' if open > 0 => return Err(self.fail("a line break inside of a pattern")),
                byte if ends_word(byte) => match open {
                    0 => break,
                    _ => self.pass(&mut word, true),
                },
                b'\\' => {
                    self.at += 1;
                    word.bare = false;
                    // This is not a line continuation: `peek` has skipped it.
                    let Some(next) = self.next_char() else {
                        return Err(self.fail("a `\\` at the end"));
                    };
                    word.atoms.push(Atom::Char(next, true));
                    if next.is_ascii_graphic() {
                        self.out.put("\\");
                        self.out.put_char(next);
                    } else {
                        self.out.quoted(next.encode_utf8(&mut [0; 4]));
                    }
                }
                b'\'' => {
                    self.at += 1;
                    word.bare = false;
                    let text = self.single_quoted()?;
                    self.out.quoted(text);
                    quoted(text, &mut word.atoms);
                }
                b'"' => {
                    word.bare = false;
                    self.double_quoted(&mut word)?;
                }
                b'$' => {
                    word.bare = false;
                    let lone = if mode == Mode::Regex { "$" } else { "\\$" };
                    self.dollar(false, lone, &mut word)?;
                }
                b'`' => {
                    word.bare = false;
                    self.backticks(false, &mut word)?;
                }
                _ => self.pass(&mut word, false),
            }
        }
        if open > 0 {
            return Err(self.fail("a pattern that is not closed"));
        }
        self.check_documents()?;
        self.note(&word.atoms);
        Ok(word)
    }

    /// Takes a plain character of a word.
    fn pass(&mut self, word: &mut RawWord, quoted: bool) {
        if let Some(next) = self.next_char() {
            match quoted {
                true => self.out.put_char(next),
                false => self.out.plain(next.encode_utf8(&mut [0; 4])),
            }
            // The canonical text quotes all characters except printable ASCII.
            word.atoms
                .push(Atom::Char(next, quoted || !next.is_ascii_graphic()));
        }
    }

    /// Reads the text of `'…'`, from the position after the quote.
    pub(crate) fn single_quoted(&mut self) -> Result<&'t str, SyntaxError> {
        let Some(end) = self.rest().find('\'') else {
            return Err(self.fail("a `'` that is not closed"));
        };
        let text = &self.rest()[..end];
        self.at += end + 1;
        Ok(text)
    }

    /// Reads `"…"` in a word. Without expansions, the canonical form is `'…'`.
    pub(crate) fn double_quoted(&mut self, word: &mut RawWord) -> Result<(), SyntaxError> {
        self.at += 1;
        word.atoms.push(Atom::Nothing);
        let (first, before) = (word.atoms.len(), std::mem::take(&mut word.expands));
        self.out.put("\"");
        let start = self.out.len() - 1;
        self.quoted_text(Terminator::Quote, word)?;
        if !word.expands {
            let character = |atom: &Atom| match atom {
                Atom::Char(character, _) => Some(*character),
                _ => None,
            };
            let text: String = word.atoms[first..].iter().filter_map(character).collect();
            self.out.truncate(start);
            self.out.quoted(&text);
        }
        word.expands |= before;
        Ok(())
    }

    /// Reads `<(…)` or `>(…)`.
    fn process(&mut self, word: &mut RawWord) -> Result<(), SyntaxError> {
        self.only_bash("`<(…)`");
        self.out.put(&self.rest()[..2]);
        self.at += 2;
        self.substitution(Construct::ProcessSubstitution, word)
    }

    pub(crate) fn note(&self, atoms: &[Atom]) {
        if atoms_have_subscript(atoms) {
            self.has_subscript();
        }
    }

    /// Records a `[` in a text that bash evaluates as arithmetic.
    pub(crate) fn note_bracket(&self) {
        self.budget.saw(EvalFlags {
            fragments: Fragments::BRACKET,
            ..EvalFlags::default()
        });
    }

    /// Records the literal parts of a variable's value.
    pub(crate) fn note_fragments(&self, atoms: &[Atom]) {
        self.budget.saw(EvalFlags {
            fragments: fragments(atoms),
            ..EvalFlags::default()
        });
    }

    /// Reads the text of a here-document with an unquoted delimiter: its substitutions, and whether a part is expanded.
    pub(crate) fn here_text(&mut self) -> Result<RawWord, SyntaxError> {
        let mut word = RawWord::default();
        self.quoted_text(Terminator::End, &mut word)?;
        self.note(&word.atoms);
        Ok(word)
    }

    pub(crate) fn quoted_text(
        &mut self,
        until: Terminator,
        word: &mut RawWord,
    ) -> Result<(), SyntaxError> {
        let quoted_here = !matches!(until, Terminator::Brace { quoted: false });
        let brace = matches!(until, Terminator::Brace { .. });
        while let Some(byte) = self.peek() {
            match byte {
                b'"' if until == Terminator::Quote => {
                    self.at += 1;
                    self.out.put("\"");
                    return Ok(());
                }
                b'}' if brace => {
                    self.at += 1;
                    self.out.put("}");
                    return Ok(());
                }
                b'"' if brace => {
                    self.at += 1;
                    self.out.put("\"");
                    self.quoted_text(Terminator::Quote, word)?;
                }
                b'\'' if until == (Terminator::Brace { quoted: true }) => {
                    return Err(self.fail(
                        "a `'` inside of `${…}` inside of double quotes, which shells read differently",
                    ));
                }
                b'\'' if brace => {
                    self.at += 1;
                    let text = self.single_quoted()?;
                    self.out.quoted(text);
                    quoted(text, &mut word.atoms);
                }
                b'<' | b'>' if brace && self.is_process_substitution() => {
                    if quoted_here {
                        return Err(self.fail("`<(` inside of `${…}` inside of double quotes"));
                    }
                    self.process(word)?;
                }
                b'\\' => {
                    self.at += 1;
                    let special = match self.raw() {
                        Some(b'$' | b'`' | b'\\') => true,
                        Some(b'"') => until == Terminator::Quote,
                        _ => brace,
                    };
                    self.out.put(if special { "\\" } else { "\\\\" });
                    if !special {
                        word.atoms.push(Atom::Char('\\', true));
                    } else if let Some(next) = self.next_char() {
                        self.out.put_char(next);
                        word.atoms.push(Atom::Char(next, true));
                    }
                }
                b'$' => self.dollar(quoted_here, "\\$", word)?,
                b'`' => self.backticks(quoted_here, word)?,
                _ => {
                    if let Some(next) = self.next_char() {
                        self.out.put_char(next);
                        word.atoms.push(Atom::Char(next, quoted_here));
                    }
                }
            }
        }
        match until {
            Terminator::End => Ok(()),
            Terminator::Quote => Err(self.fail("a `\"` that is not closed")),
            Terminator::Brace { .. } => Err(self.fail("a `${` that is not closed")),
        }
    }
}

/// Whether a `(` belongs to the word before it.
fn opens(mode: Mode, atoms: &[Atom]) -> bool {
    let extends = |atom: &Atom| matches!(atom, Atom::Char('?' | '*' | '+' | '@' | '!', false));
    match mode {
        Mode::Plain => false,
        Mode::Regex => true,
        Mode::Pattern => atoms.last().is_some_and(extends),
    }
}

pub(crate) fn quoted(text: &str, atoms: &mut Vec<Atom>) {
    atoms.push(Atom::Nothing);
    atoms.extend(text.chars().map(|character| Atom::Char(character, true)));
}
