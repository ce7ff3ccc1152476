//! Reads one word: quotes, escapes, expansions, and what is substituted into it.

use super::cursor::{Cursor, SyntaxError, ends_word};
use super::evaluated::{atoms_have_subscript, has_subscript, is_telling};
use super::parse::{is_name, parse_nested};
use super::tree::{Construct, List, Substitution};
use super::word::{Atom, Word};

/// A word as it stands.
#[derive(Debug, Default)]
pub(super) struct RawWord {
    pub(super) atoms: Vec<Atom>,
    pub(super) substitutions: Vec<Substitution>,
    /// Words that stand in it and are no arguments.
    pub(super) others: Vec<Word>,
    /// Whether nothing in it is quoted or expanded.
    pub(super) bare: bool,
}

impl RawWord {
    /// Adds unquoted text.
    pub(super) fn push(&mut self, text: &str) {
        self.atoms
            .extend(text.chars().map(|character| Atom::Char(character, false)));
    }

    /// Its text, if nothing in it is quoted or expanded.
    pub(super) fn bare_text(&self) -> Option<String> {
        self.bare.then(|| {
            let character = |atom: &Atom| match atom {
                Atom::Char(character, _) => Some(*character),
                _ => None,
            };
            self.atoms.iter().filter_map(character).collect()
        })
    }
}

/// Where the text that is read ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Until {
    /// At `"`.
    Quote,
    /// At the `}` of `${`; inside of double quotes or not.
    Brace { quoted: bool },
    /// At the end: a here-document.
    End,
}

impl Cursor<'_> {
    /// `( … )` from behind the parenthesis on, inside of a word.
    fn parenthesized(&mut self) -> Result<List, SyntaxError> {
        self.enter()?;
        self.nesting += 1;
        let list = self.list()?;
        self.nesting -= 1;
        self.expect(b')')?;
        self.check_documents()?;
        self.leave();
        Ok(list)
    }

    /// Reads a word; empty when none begins here. In a `regex` (after `=~`) parentheses and `|`
    /// belong to it.
    pub(super) fn word(&mut self, regex: bool) -> Result<RawWord, SyntaxError> {
        let mut word = RawWord {
            bare: true,
            ..RawWord::default()
        };
        let mut open = 0_usize;
        while let Some(byte) = self.peek() {
            match byte {
                b'<' | b'>' if !regex => {
                    if self.text.as_bytes().get(self.at + 1) != Some(&b'(') {
                        if self.rest()[1..].starts_with("\\\n") {
                            return Err(self.fail("a line break inside of an operator"));
                        }
                        break;
                    }
                    self.at += 2;
                    word.bare = false;
                    self.substitution(Construct::ProcessSubstitution, &mut word)?;
                }
                b'(' | b')' | b'|' | b'<' | b'>' if regex => {
                    match byte {
                        b'(' => open += 1,
                        b')' if open == 0 => break,
                        b')' => open -= 1,
                        _ => {}
                    }
                    self.at += 1;
                    word.atoms.push(Atom::Char(char::from(byte), true));
                }
                byte if ends_word(byte) && !(regex && open > 0 && byte != b'\n') => break,
                b'\\' => {
                    self.at += 1;
                    word.bare = false;
                    // Not `\` and a line break: that has been passed over.
                    if let Some(next) = self.next_char() {
                        word.atoms.push(Atom::Char(next, true));
                    }
                }
                b'\'' => {
                    self.at += 1;
                    word.bare = false;
                    let Some(end) = self.rest().find('\'') else {
                        return Err(self.fail("a `'` that is not closed"));
                    };
                    let text = &self.rest()[..end];
                    quoted(text, &mut word.atoms);
                    self.at += end + 1;
                }
                b'"' => {
                    self.at += 1;
                    word.bare = false;
                    word.atoms.push(Atom::Nothing);
                    self.quoted_text(Until::Quote, &mut word)?;
                }
                b'$' => {
                    word.bare = false;
                    self.dollar(false, &mut word)?;
                }
                b'`' => {
                    word.bare = false;
                    self.backticks(false, &mut word)?;
                }
                _ => {
                    if let Some(next) = self.next_char() {
                        word.atoms.push(Atom::Char(next, false));
                    }
                }
            }
        }
        self.check_documents()?;
        self.note(&word.atoms);
        Ok(word)
    }

    fn note(&self, atoms: &[Atom]) {
        if atoms_have_subscript(atoms) {
            self.has_subscript();
        }
    }

    /// The text of a here-document in which something may be expanded: what is substituted into
    /// it, and whether anything is expanded.
    pub(super) fn here_text(&mut self) -> Result<RawWord, SyntaxError> {
        let mut word = RawWord::default();
        self.quoted_text(Until::End, &mut word)?;
        self.note(&word.atoms);
        Ok(word)
    }

    fn quoted_text(&mut self, until: Until, word: &mut RawWord) -> Result<(), SyntaxError> {
        let quoted_here = !matches!(until, Until::Brace { quoted: false });
        while let Some(byte) = self.peek() {
            match byte {
                b'"' if until == Until::Quote => {
                    self.at += 1;
                    return Ok(());
                }
                b'}' if matches!(until, Until::Brace { .. }) => {
                    self.at += 1;
                    return Ok(());
                }
                b'"' if matches!(until, Until::Brace { .. }) => {
                    self.at += 1;
                    self.quoted_text(Until::Quote, word)?;
                }
                b'\'' if until == (Until::Brace { quoted: true }) => {
                    return Err(self.fail(
                        "a `'` inside of `${…}` inside of double quotes, which shells read differently",
                    ));
                }
                b'\'' if until == (Until::Brace { quoted: false }) => {
                    self.at += 1;
                    let Some(end) = self.rest().find('\'') else {
                        return Err(self.fail("a `'` that is not closed"));
                    };
                    if has_subscript(self.rest()[..end].chars()) {
                        self.has_subscript();
                    }
                    self.at += end + 1;
                }
                b'\\' => {
                    self.at += 1;
                    let special = match self.raw() {
                        Some(b'$' | b'`' | b'\\') => true,
                        Some(b'"') => until == Until::Quote,
                        _ => matches!(until, Until::Brace { .. }),
                    };
                    if !special {
                        word.atoms.push(Atom::Char('\\', true));
                    } else if let Some(next) = self.next_char() {
                        word.atoms.push(Atom::Char(next, true));
                    }
                }
                b'$' => self.dollar(quoted_here, word)?,
                b'`' => self.backticks(quoted_here, word)?,
                _ => {
                    if let Some(next) = self.next_char() {
                        word.atoms.push(Atom::Char(next, true));
                    }
                }
            }
        }
        match until {
            Until::End => Ok(()),
            Until::Quote => Err(self.fail("a `\"` that is not closed")),
            Until::Brace { .. } => Err(self.fail("a `${` that is not closed")),
        }
    }

    /// What begins with `$`.
    fn dollar(&mut self, in_quotes: bool, word: &mut RawWord) -> Result<(), SyntaxError> {
        self.at += 1;
        match self.peek() {
            Some(b'\'') if !in_quotes => {
                self.at += 1;
                let text = self.ansi_c()?;
                quoted(&text, &mut word.atoms);
            }
            Some(b'"') if !in_quotes => {
                self.at += 1;
                word.atoms.push(Atom::Nothing);
                self.quoted_text(Until::Quote, word)?;
            }
            Some(b'(') => {
                self.at += 1;
                if self.peek() == Some(b'(') && self.arithmetic(word)? {
                    return Ok(());
                }
                self.substitution(Construct::CommandSubstitution, word)?;
            }
            Some(b'[') => return Err(self.fail("`$[…]` is not supported: write `$((…))`")),
            Some(b'{') => {
                self.at += 1;
                let start = self.at;
                self.enter()?;
                if matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'|')) {
                    return Err(self.fail("a command inside of `${…}` is not supported"));
                }
                let mut inner = RawWord::default();
                self.quoted_text(Until::Brace { quoted: in_quotes }, &mut inner)?;
                self.leave();
                self.note(&inner.atoms);
                word.substitutions.append(&mut inner.substitutions);
                let name = &self.text[start..self.at - 1];
                self.evaluated(name)?;
                // A subscript, or the place of a part.
                let calculated = name.find(['[', ':']).map(|at| &name[at..]);
                let calculated = calculated.filter(|text| {
                    ![":=", ":-", ":?", ":+"]
                        .iter()
                        .any(|other| text.starts_with(other))
                });
                word.substitutions
                    .extend(calculated.and_then(super::arithmetic::substitution));
                self.variable(name, in_quotes, word);
            }
            Some(byte) if byte.is_ascii_alphabetic() || byte == b'_' => {
                let mut name = String::new();
                while let Some(byte) = self.peek()
                    && (byte.is_ascii_alphanumeric() || byte == b'_')
                {
                    name.push(char::from(byte));
                    self.at += 1;
                }
                self.variable(&name, in_quotes, word);
            }
            Some(byte @ b'0'..=b'9') => {
                self.at += 1;
                let name = char::from(byte).to_string();
                word.atoms.push(Atom::variable(&name, "", in_quotes));
            }
            Some(b'@' | b'*' | b'#' | b'?' | b'-' | b'$' | b'!') => {
                self.at += 1;
                word.atoms.push(Atom::Unknown);
            }
            _ => word.atoms.push(Atom::Char('$', true)),
        }
        Ok(())
    }

    /// What is between `${` and `}` may calculate, set a variable, or expand a text again.
    fn evaluated(&self, inner: &str) -> Result<(), SyntaxError> {
        let inner = inner.replace("\\\n", "");
        if inner.ends_with("@P") {
            return Err(self.fail("`${…@P}`, which expands a text again, is not supported"));
        }
        let end = inner
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .unwrap_or(inner.len());
        if is_telling(&inner[..end]) && inner[end..].trim_start_matches(':').starts_with('=') {
            let name = &inner[..end];
            return Err(self.fail(format!(
                "`{name}` decides what runs and is set inside of `${{…}}`"
            )));
        }
        if inner.starts_with('!') || inner.contains([':', '[']) {
            self.calculates();
        }
        Ok(())
    }

    fn variable(&self, name: &str, in_quotes: bool, word: &mut RawWord) {
        if name == "IFS" && !in_quotes && !self.sets_ifs {
            word.atoms.push(Atom::Split);
            return;
        }
        let end = name
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .unwrap_or(name.len());
        let (name, operator) = name.split_at(end);
        let positional = name.bytes().all(|byte| byte.is_ascii_digit());
        word.atoms
            .push(if is_name(name) || (positional && !name.is_empty()) {
                Atom::variable(name, operator, in_quotes)
            } else {
                Atom::Unknown
            });
    }

    /// `$((…))` and `((…))` from the second parenthesis on; `false`, at the same place, when it is
    /// a subshell instead.
    pub(super) fn arithmetic(&mut self, word: &mut RawWord) -> Result<bool, SyntaxError> {
        let start = self.at;
        self.at += 1;
        let mut inner = RawWord::default();
        let mut open = 2_usize;
        self.enter()?;
        while let Some(byte) = self.peek() {
            match byte {
                b'(' => {
                    open += 1;
                    self.at += 1;
                }
                b')' => {
                    self.at += 1;
                    open -= 1;
                    if open == 1 {
                        self.leave();
                        if self.raw() == Some(b')') {
                            self.at += 1;
                            self.calculates();
                            word.substitutions.append(&mut inner.substitutions);
                            let text = &self.text[start..self.at];
                            word.substitutions
                                .extend(super::arithmetic::substitution(text));
                            word.atoms.push(Atom::Unknown);
                            return Ok(true);
                        }
                        return self.reread(start);
                    }
                }
                b'\\' => {
                    self.at += 1;
                    self.next_char();
                }
                // What is quoted could hide a parenthesis.
                b'\'' | b'"' => {
                    self.leave();
                    return self.reread(start);
                }
                b'$' => self.dollar(true, &mut inner)?,
                b'`' => self.backticks(true, &mut inner)?,
                _ => {
                    self.next_char();
                }
            }
        }
        Err(self.fail("a `((` that is not closed"))
    }

    /// Goes back to `start`: what was taken for an expression is read again as commands.
    fn reread(&mut self, start: usize) -> Result<bool, SyntaxError> {
        self.spend(self.at - start)?;
        self.at = start;
        Ok(false)
    }

    /// `$(`, `<(` or `>(` from behind the parenthesis on.
    fn substitution(
        &mut self,
        construct: Construct,
        word: &mut RawWord,
    ) -> Result<(), SyntaxError> {
        let body = self.parenthesized()?;
        word.atoms.push(Atom::Unknown);
        word.substitutions.push(Substitution { construct, body });
        Ok(())
    }

    fn backticks(&mut self, in_quotes: bool, word: &mut RawWord) -> Result<(), SyntaxError> {
        self.at += 1;
        let mut text = String::new();
        loop {
            match self.next_char() {
                Some('`') => break,
                Some('\\') => match self.raw() {
                    Some(b'$' | b'`' | b'\\') => text.extend(self.next_char()),
                    Some(b'"') if in_quotes => text.extend(self.next_char()),
                    _ => text.push('\\'),
                },
                Some(other) => text.push(other),
                None => return Err(self.fail("a backtick that is not closed")),
            }
        }
        let body = parse_nested(&text, self.depth + 1, self.budget.clone())
            .map_err(|error| self.fail(format!("inside of backticks: {error}")))?;
        word.atoms.push(Atom::Unknown);
        word.substitutions.push(Substitution {
            construct: Construct::Backticks,
            body,
        });
        Ok(())
    }
}

fn quoted(text: &str, atoms: &mut Vec<Atom>) {
    atoms.push(Atom::Nothing);
    atoms.extend(text.chars().map(|character| Atom::Char(character, true)));
}
