//! Reads redirections and the texts of here-documents.

use super::cursor::{Cursor, Documents, SyntaxError};
use super::evaluated::has_subscript;
use super::tree::{Command, Redirect, Substitution};
use super::word::{Atom, Word, from_atoms, single};

impl Cursor<'_> {
    /// Reads a redirection, if one is next, into `command`.
    pub(super) fn redirect(&mut self, command: &mut Command) -> Result<bool, SyntaxError> {
        let at = self.at;
        self.descriptor();
        let descriptor = &self.text[at..self.at];
        if matches!(descriptor, "{PATH}" | "{HOME}" | "{BASH_ENV}" | "{ENV}")
            && matches!(self.peek(), Some(b'<' | b'>'))
        {
            return Err(self.fail("a descriptor in a variable that decides what runs"));
        }
        if matches!(self.peek(), Some(b'<' | b'>')) {
            let process = self.text.as_bytes().get(self.at + 1) == Some(&b'(');
            if process {
                self.at = at;
                return Ok(false);
            }
        } else {
            self.at = at;
            if !(self.peek() == Some(b'&') && self.text.as_bytes().get(self.at + 1) == Some(&b'>'))
            {
                return Ok(false);
            }
            self.at += 2;
            self.eat(b'>');
            let target = self.target(command)?;
            let stdout = true;
            command.redirects.push(Redirect::Output { target, stdout });
            return Ok(true);
        }
        let input = self.eat(b'<');
        let stdout = matches!(descriptor, "" | "1");
        let redirect = if input {
            if self.eat(b'<') {
                if self.eat(b'<') {
                    Redirect::HereString(self.target(command)?)
                } else {
                    let strip_tabs = self.eat(b'-');
                    self.document(strip_tabs, &mut command.substitutions)?
                }
            } else if self.eat(b'&') {
                Redirect::Input(Word::unknown(self.target(command)?.prefix()))
            } else {
                // `<>` opens for writing as well.
                if self.eat(b'>') {
                    let target = self.target(command)?;
                    command.redirects.push(Redirect::Output {
                        target: target.clone(),
                        stdout: false,
                    });
                    Redirect::Input(target)
                } else {
                    Redirect::Input(self.target(command)?)
                }
            }
        } else {
            self.at += 1;
            if self.eat(b'&') {
                let target = self.target(command)?;
                let is_descriptor = |text: &str| {
                    let digits = text.strip_suffix('-').unwrap_or(text);
                    digits.bytes().all(|byte| byte.is_ascii_digit())
                };
                match target.known() {
                    Some(_) if descriptor == "0" => Redirect::Input(Word::unknown("")),
                    Some(text) if is_descriptor(text) => Redirect::Duplicate,
                    _ => Redirect::Output { target, stdout },
                }
            } else {
                if !self.eat(b'>') {
                    self.eat(b'|');
                }
                let target = self.target(command)?;
                Redirect::Output { target, stdout }
            }
        };
        let elsewhere = input && !matches!(descriptor, "" | "0");
        command.redirects.push(if elsewhere {
            Redirect::Elsewhere(Box::new(redirect))
        } else {
            redirect
        });
        Ok(true)
    }

    /// Passes over the descriptor before a redirection: `2>`, `{name}>`.
    fn descriptor(&mut self) {
        let at = self.at;
        if self.eat(b'{') {
            while self
                .peek()
                .is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            {
                self.at += 1;
            }
            if !self.eat(b'}') {
                self.at = at;
            }
        } else {
            while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
                self.at += 1;
            }
        }
    }

    fn target(&mut self, command: &mut Command) -> Result<Word, SyntaxError> {
        self.skip_blanks();
        let at = self.at;
        let mut raw = self.word(false)?;
        if self.at == at {
            return Err(self.fail("expected what to redirect to or from"));
        }
        let mut word = single(&raw.atoms, true);
        word.substituted = !raw.substitutions.is_empty();
        command.substitutions.append(&mut raw.substitutions);
        Ok(word)
    }

    /// A here-document from behind its operator on. Its text is looked up on the lines that
    /// follow; the cursor jumps over it when it comes there.
    fn document(
        &mut self,
        strip_tabs: bool,
        substitutions: &mut Vec<Substitution>,
    ) -> Result<Redirect, SyntaxError> {
        self.skip_blanks();
        let at = self.at;
        let raw = self.word(false)?;
        if self.at == at
            || !raw.substitutions.is_empty()
            || raw.atoms.iter().any(Atom::is_unresolved)
        {
            return Err(self.fail("expected the delimiter of a here-document"));
        }
        let quoted = !raw.bare;
        let delimiter: String = raw
            .atoms
            .iter()
            .filter_map(|atom| match atom {
                Atom::Char(character, _) => Some(*character),
                _ => None,
            })
            .collect();
        let (line_break, start) = match self.documents {
            Some(documents) if documents.nesting == self.nesting => {
                (documents.line_break, documents.end)
            }
            Some(_) => return Err(self.fail("a here-document inside of another one's command")),
            None => {
                let line_break = self.end_of_line()?;
                (line_break, line_break + 1)
            }
        };
        let mut text = String::new();
        let mut place = start;
        loop {
            let rest = self.text.get(place..).unwrap_or_default();
            if rest.is_empty() {
                return Err(self.fail(format!("a here-document that no `{delimiter}` ends")));
            }
            let line = rest.split('\n').next().unwrap_or_default();
            place += line.len() + usize::from(line.len() < rest.len());
            // Where something is expanded, a line that ends with a backslash goes on in the next
            // one; shells differ in whether such a line can be the last.
            let continues = !quoted && ends_with_continuation(&text);
            let plain = line.trim_start_matches('\t');
            let shown = if strip_tabs && !continues {
                plain
            } else {
                line
            };
            if continues {
                text.truncate(text.len() - 2);
                let begun = text.rfind('\n').map_or(0, |at| at + 1);
                let joined = [&text[begun..], line].concat();
                if plain == delimiter || joined.trim_start_matches('\t') == delimiter {
                    return Err(self.fail("the end of a here-document is continued"));
                }
            } else if shown == delimiter {
                break;
            }
            self.spend(shown.len())?;
            text.push_str(shown);
            text.push('\n');
        }
        self.spend(place - start)?;
        // The line break before what follows is part of the last line of the text.
        self.documents = Some(Documents {
            line_break,
            end: place,
            nesting: self.nesting,
        });
        if quoted {
            if has_subscript(text.chars()) {
                self.has_subscript();
            }
            return Ok(Redirect::HereDocument(Word::literal(text)));
        }
        let mut inner = Cursor::new(&text, self.depth + 1, self.budget.clone())?;
        let word = inner
            .here_text()
            .map_err(|error| self.fail(format!("inside of a here-document: {error}")))?;
        substitutions.extend(word.substitutions);
        Ok(Redirect::HereDocument(from_atoms(&word.atoms, false)))
    }

    /// The line break that ends this line, continued lines included.
    fn end_of_line(&self) -> Result<usize, SyntaxError> {
        let mut from = self.at;
        loop {
            let Some(offset) = self.text.get(from..).and_then(|rest| rest.find('\n')) else {
                return Err(self.fail("the text of a here-document is missing"));
            };
            let at = from + offset;
            if !ends_with_continuation(&self.text[self.at..=at]) {
                return Ok(at);
            }
            from = at + 1;
        }
    }
}

/// Whether the last line break of a text is escaped.
fn ends_with_continuation(text: &str) -> bool {
    let text = text.strip_suffix('\n').unwrap_or(text);
    text.bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1
}
