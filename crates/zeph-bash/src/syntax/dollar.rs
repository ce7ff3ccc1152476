//! Expansions: `$…`, `${…}`, `$(…)`, `$((…))` and backticks.

use std::sync::Arc;

use super::alternatives::alternative;
use super::ast::{Construct, Substitution};
use super::lexer::{Cursor, SyntaxError};
use super::parameter::{Form, form};
use super::parse::is_name;
use super::quote::{RawWord, Terminator, quoted};
use super::reading::parse_nested;
use super::special_variables::is_telling;
use super::word::{Atom, Variable};

/// A form of arithmetic. They differ in whether a line continuation may separate the last two parentheses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arithmetic {
    /// `((…))`. A line continuation makes it a subshell.
    Command,
    /// `$((…))`. A line continuation is removed.
    Expansion,
}

impl Cursor<'_> {
    /// Reads a text that begins with `$`. `lone` is the canonical form of a `$` without a meaning.
    pub(crate) fn dollar(
        &mut self,
        in_quotes: bool,
        lone: &str,
        word: &mut RawWord,
    ) -> Result<(), SyntaxError> {
        self.at += 1;
        let extended = !in_quotes && !self.is_posix();
        match self.peek() {
            Some(b'\'') if extended => {
                self.only_bash("`$'…'`");
                self.at += 1;
                self.escaped(word)?;
            }
            Some(b'"') if extended => {
                self.only_bash("`$\"…\"`");
                self.double_quoted(word)?;
            }
            Some(b'(') => {
                word.expands = true;
                self.at += 1;
                self.out.put("$");
                if self.peek() == Some(b'(')
                    && self.arithmetic(Arithmetic::Expansion, in_quotes, word)?
                {
                    return Ok(());
                }
                self.out.put("(");
                self.substitution(Construct::CommandSubstitution, word)?;
            }
            Some(b'[') => return Err(self.fail("`$[…]` is not supported: write `$((…))`")),
            Some(b'{') => self.parameter(in_quotes, word)?,
            Some(byte) if byte.is_ascii_alphabetic() || byte == b'_' => {
                let mut name = String::new();
                while let Some(byte) = self.peek()
                    && (byte.is_ascii_alphanumeric() || byte == b'_')
                {
                    name.push(char::from(byte));
                    self.at += 1;
                }
                word.expands = true;
                self.out.put("$");
                self.out.put(&name);
                self.variable(&name, in_quotes, None, word);
            }
            Some(byte @ b'0'..=b'9') => {
                self.at += 1;
                word.expands = true;
                let name = char::from(byte).to_string();
                self.out.put("$");
                self.out.put(&name);
                word.atoms.push(Atom::variable(&name, "", in_quotes));
            }
            Some(byte @ (b'@' | b'*' | b'#' | b'?' | b'-' | b'$' | b'!')) => {
                self.at += 1;
                word.expands = true;
                self.out.put("$");
                self.out.put_char(char::from(byte));
                word.atoms.push(Atom::Unknown);
            }
            _ => {
                self.out.put(lone);
                word.atoms.push(Atom::Char('$', true));
            }
        }
        Ok(())
    }

    /// Reads `$'…'`, from the position after the quote. Bytes that are not UTF-8 stay escaped.
    fn escaped(&mut self, word: &mut RawWord) -> Result<(), SyntaxError> {
        let bytes = self.ansi_c()?;
        self.budget.rewrite();
        if let Ok(text) = std::str::from_utf8(&bytes) {
            self.out.quoted(text);
        } else {
            self.out.put("$'");
            for byte in &bytes {
                match byte {
                    b'\'' | b'\\' => self.out.put(&format!("\\{}", char::from(*byte))),
                    b' '..=b'~' => self.out.put_char(char::from(*byte)),
                    _ => self.out.put(&format!("\\{byte:03o}")),
                }
            }
            self.out.put("'");
        }
        quoted(&String::from_utf8_lossy(&bytes), &mut word.atoms);
        Ok(())
    }

    /// Reads `${…}`, from the position of the brace.
    fn parameter(&mut self, in_quotes: bool, word: &mut RawWord) -> Result<(), SyntaxError> {
        self.at += 1;
        self.enter()?;
        if matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'|')) {
            return Err(self.fail("a command inside `${…}` is not supported"));
        }
        word.expands = true;
        self.out.put("${");
        let start = self.out.len();
        let mut inner = RawWord::default();
        self.quoted_text(Terminator::Brace { quoted: in_quotes }, &mut inner)?;
        self.leave();
        self.note(&inner.atoms);
        word.substitutions.append(&mut inner.substitutions);
        let name = self.out.since(start);
        let name = name.strip_suffix('}').unwrap_or(&name).to_owned();
        match form(&name) {
            Some(Form::Posix) => {}
            Some(Form::Bash) => self.only_bash("this form of `${…}`"),
            None => return Err(self.fail("a form of `${…}` that is not supported")),
        }
        self.evaluated(&name)?;
        // A subscript, or the offset of a substring.
        let calculated = name.find(['[', ':']).map(|at| &name[at..]);
        let calculated = calculated.filter(|text| {
            ![":=", ":-", ":?", ":+"]
                .iter()
                .any(|other| text.starts_with(other))
        });
        word.substitutions
            .extend(calculated.and_then(super::arithmetic::substitution));
        let alternative = alternative(&inner.atoms).map(|mut atoms| {
            if !in_quotes {
                split(&mut atoms);
            }
            atoms.into()
        });
        self.variable(&name, in_quotes, alternative, word);
        Ok(())
    }

    /// Checks whether the text between `${` and `}` evaluates arithmetic, sets a variable, or expands a text again.
    fn evaluated(&self, inner: &str) -> Result<(), SyntaxError> {
        if inner.ends_with("@P") {
            return Err(self.fail("`${…@P}`, which expands a text twice, is not supported"));
        }
        let end = inner
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .unwrap_or(inner.len());
        if inner.starts_with('!') && inner.contains('=') {
            return Err(self.fail(
                "`${!…=…}`, which sets a variable by its name in another \
                variable",
            ));
        }
        if is_telling(&inner[..end]) && inner[end..].trim_start_matches(':').starts_with('=') {
            let name = &inner[..end];
            return Err(self.fail(format!(
                "`{name}` determines the commands that run, and `${{…}}` sets it"
            )));
        }
        if inner.starts_with('!') || inner.contains([':', '[']) {
            self.calculates();
        }
        Ok(())
    }

    fn variable(
        &self,
        name: &str,
        in_quotes: bool,
        alternative: Option<Arc<[Atom]>>,
        word: &mut RawWord,
    ) {
        if name == "IFS" && !in_quotes && !self.sets_ifs {
            word.atoms.push(Atom::Split);
            return;
        }
        let end = name
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .unwrap_or(name.len());
        let (name, operator) = name.split_at(end);
        let positional = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
        let is_variable = is_name(name) || positional;
        word.atoms.push(if is_variable || alternative.is_some() {
            Atom::Variable(Arc::new(Variable {
                // Other parameters have neither a name nor a known value.
                name: (if is_variable { name } else { "" }).to_owned(),
                operator: operator.to_owned(),
                quoted: in_quotes,
                alternative,
            }))
        } else {
            Atom::Unknown
        });
    }

    /// Reads `$((…))` or `((…))`, from the second parenthesis. Returns `false`, and takes nothing, if it is a subshell.
    pub(crate) fn arithmetic(
        &mut self,
        form: Arithmetic,
        in_quotes: bool,
        word: &mut RawWord,
    ) -> Result<bool, SyntaxError> {
        let mark = self.mark();
        let start = self.at;
        self.at += 1;
        self.out.put("((");
        let mut inner = RawWord::default();
        let mut open = 2_usize;
        // Whether the text has quotes or escapes that are valid only in a subshell.
        let mut commands = false;
        self.enter()?;
        while let Some(byte) = self.peek() {
            match byte {
                b'(' => {
                    open += 1;
                    self.at += 1;
                    self.out.put("(");
                }
                b')' => {
                    self.at += 1;
                    open -= 1;
                    self.out.put(")");
                    if open == 1 {
                        self.leave();
                        let next = match form {
                            Arithmetic::Command => self.raw(),
                            Arithmetic::Expansion => self.peek(),
                        };
                        if next != Some(b')') {
                            self.spend(self.at - start)?;
                            self.reset(&mark);
                            return Ok(false);
                        }
                        if commands {
                            return Err(self.fail("a `'` or a `\\` inside of `((…))`"));
                        }
                        self.at += 1;
                        self.out.put(")");
                        self.calculates();
                        if self.text[start..self.at].contains('[') {
                            self.note_bracket();
                        }
                        word.substitutions.append(&mut inner.substitutions);
                        let text = &self.text[start..self.at];
                        word.substitutions
                            .extend(super::arithmetic::substitution(text));
                        word.atoms.push(Atom::Unknown);
                        return Ok(true);
                    }
                }
                b'\\' => {
                    commands = true;
                    self.at += 1;
                    self.next_char();
                }
                b'\'' => {
                    commands = true;
                    self.at += 1;
                    if !in_quotes {
                        self.single_quoted()?;
                    }
                }
                b'"' => {
                    self.at += 1;
                    self.out.put("\"");
                    self.quoted_text(Terminator::Quote, &mut inner)?;
                }
                b'$' => self.dollar(true, "$", &mut inner)?,
                b'`' => self.backticks(true, &mut inner)?,
                _ => {
                    if let Some(next) = self.next_char() {
                        self.out.put_char(next);
                    }
                }
            }
        }
        Err(self.fail("a `((` that is not closed"))
    }

    /// Reads `$(`, `<(` or `>(`, from the position after the parenthesis.
    pub(crate) fn substitution(
        &mut self,
        construct: Construct,
        word: &mut RawWord,
    ) -> Result<(), SyntaxError> {
        let body = self.parenthesized()?;
        word.expands = true;
        word.atoms.push(Atom::Unknown);
        word.substitutions.push(Substitution { construct, body });
        Ok(())
    }

    /// Reads `` `…` ``. The canonical form is `$(…)`.
    pub(crate) fn backticks(
        &mut self,
        in_quotes: bool,
        word: &mut RawWord,
    ) -> Result<(), SyntaxError> {
        self.at += 1;
        let mut text = String::new();
        loop {
            match self.next_char() {
                Some('`') => break,
                Some('\\') => match self.raw() {
                    Some(b'$' | b'`' | b'\\') => text.extend(self.next_char()),
                    Some(b'"') if in_quotes => text.extend(self.next_char()),
                    Some(b'\n') => {
                        self.budget
                            .doubt("shells differ in continued lines inside of backticks");
                        text.push('\\');
                    }
                    _ => text.push('\\'),
                },
                Some(other) => text.push(other),
                None => return Err(self.fail("a backtick that is not closed")),
            }
        }
        let (body, canonical) = parse_nested(&text, self.depth + 1, self.budget.clone())
            .map_err(|error| self.fail(format!("inside of backticks: {error}")))?;
        self.budget.rewrite();
        self.out.put("$(");
        self.out.gap();
        self.out.put(&canonical);
        self.out.gap();
        self.out.put(")");
        word.expands = true;
        word.atoms.push(Atom::Unknown);
        word.substitutions.push(Substitution {
            construct: Construct::Backticks,
            body,
        });
        Ok(())
    }
}

/// Marks unquoted blanks as positions at which the text is split into words.
fn split(atoms: &mut [Atom]) {
    for atom in atoms {
        if matches!(atom, Atom::Char(' ' | '\t' | '\n', false)) {
            *atom = Atom::Split;
        } else if atom.is('{') {
            // Bash does not expand braces in this text.
            *atom = Atom::Char('{', true);
        }
    }
}
