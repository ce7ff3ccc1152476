//! Redirections and the texts of here-documents.

use super::ast::{Command, Redirect, Substitution};
use super::eval_flags::has_subscript;
use super::lexer::{Cursor, Documents, SyntaxError};
use super::parse::is_name;
use super::quote::Mode;
use super::word::{Atom, Word, from_atoms, single};

const TWICE: &str = "bash expands the target of `>&` twice, so it is unknown before it runs";
/// The maximum number of digits of a descriptor.
const MAX_DIGITS: usize = 4;

impl Cursor<'_> {
    /// Reads a redirection into `command`, if one is next.
    pub(crate) fn redirect(&mut self, command: &mut Command) -> Result<bool, SyntaxError> {
        let at = self.at;
        let descriptor = self.descriptor()?;
        if matches!(
            descriptor.as_str(),
            "{PATH}" | "{HOME}" | "{BASH_ENV}" | "{ENV}"
        ) && matches!(self.peek(), Some(b'<' | b'>'))
        {
            return Err(self.fail(
                "a descriptor in a variable that determines the commands that \
                run",
            ));
        }
        if matches!(self.peek(), Some(b'<' | b'>')) {
            if self.is_process_substitution() {
                self.at = at;
                return Ok(false);
            }
        } else {
            self.at = at;
            let both =
                self.peek() == Some(b'&') && self.text.as_bytes().get(self.at + 1) == Some(&b'>');
            if !both || self.is_posix() {
                return Ok(false);
            }
            self.only_bash("`&>`");
            self.at += 2;
            let append = self.eat(b'>');
            self.both_outputs(append, None, command)?;
            return Ok(true);
        }
        if descriptor.starts_with('{') {
            self.only_bash("a descriptor in a variable");
        }
        if descriptor.len() > 1 {
            self.only_bash("a descriptor of two digits");
        }
        let start = self.out.len();
        self.out.gap();
        self.out.put(&descriptor);
        if self.eat(b'<') {
            self.input(&descriptor, command)?;
        } else {
            self.at += 1;
            self.output(start, &descriptor, command)?;
        }
        self.out.gap();
        Ok(true)
    }

    /// Whether `<(` or `>(` is next.
    pub(crate) fn is_process_substitution(&self) -> bool {
        let next = self.text.as_bytes().get(self.at + 1);
        matches!(self.raw(), Some(b'<' | b'>')) && next == Some(&b'(') && !self.is_posix()
    }

    /// Reads a redirection of an input, from the position after `<`.
    fn input(&mut self, descriptor: &str, command: &mut Command) -> Result<(), SyntaxError> {
        let redirect = if self.eat(b'<') {
            if self.peek() == Some(b'<') && !self.is_posix() {
                self.only_bash("`<<<`");
                self.at += 1;
                self.out.put("<<<");
                Redirect::HereString(self.target(command)?)
            } else {
                let strip_tabs = self.eat(b'-');
                self.document(strip_tabs, &mut command.substitutions)?
            }
        } else if self.eat(b'&') {
            self.out.put("<&");
            self.skip_blanks();
            if self.eat(b'-') {
                self.out.put("-");
                Redirect::Input(Word::unknown(""))
            } else {
                Redirect::Input(Word::unknown(self.target(command)?.prefix()))
            }
        } else if self.eat(b'>') {
            // `<>` opens the file for writing as well.
            self.out.put("<>");
            let target = self.target(command)?;
            command.redirects.push(Redirect::Output {
                target: target.clone(),
                stdout: false,
                append: true,
            });
            Redirect::Input(target)
        } else {
            self.out.put("<");
            Redirect::Input(self.target(command)?)
        };
        command.redirects.push(match descriptor {
            "" | "0" => redirect,
            _ => Redirect::Elsewhere(Box::new(redirect)),
        });
        Ok(())
    }

    /// Reads a redirection of an output, from the position after `>`. Its canonical text begins at `start`.
    fn output(
        &mut self,
        start: usize,
        descriptor: &str,
        command: &mut Command,
    ) -> Result<(), SyntaxError> {
        let stdout = matches!(descriptor, "" | "1");
        if self.eat(b'&') {
            return self.duplicate(start, descriptor, command);
        }
        let operator = if self.eat(b'>') {
            ">>"
        } else if self.eat(b'|') {
            ">|"
        } else {
            ">"
        };
        self.out.put(operator);
        let target = self.target(command)?;
        command.redirects.push(Redirect::Output {
            target,
            stdout,
            append: operator == ">>",
        });
        Ok(())
    }

    /// Reads a redirection with `>&`, from the position after it.
    fn duplicate(
        &mut self,
        start: usize,
        descriptor: &str,
        command: &mut Command,
    ) -> Result<(), SyntaxError> {
        let stdout = matches!(descriptor, "" | "1");
        let duplicate = |descriptor: &str| match descriptor {
            "0" => Redirect::Input(Word::unknown("")),
            _ => Redirect::Duplicate,
        };
        // The shell reads `>&-` and `>& -` as one operator, so the next characters are another word.
        self.skip_blanks();
        if self.eat(b'-') {
            self.out.put(">&-");
            command.redirects.push(duplicate(descriptor));
            return Ok(());
        }
        self.out.put(">&");
        let written = self.out.len();
        let target = self.target(command)?;
        let is_descriptor = |text: &str| {
            let digits = text.strip_suffix('-').unwrap_or(text);
            !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) || text == "-"
        };
        match target.known() {
            Some(text) if is_descriptor(text) => command.redirects.push(duplicate(descriptor)),
            Some(_) if stdout => {
                // Bash expands such a target twice; the canonical form is expanded once.
                self.only_bash("`>&` before a file");
                if target.prefix().contains(['$', '`', '(']) {
                    self.budget.doubt(TWICE);
                }
                let file = self.out.since(written);
                self.out.truncate(start);
                self.both_outputs(false, Some((target, file)), command)?;
            }
            Some(_) => return Err(self.fail("`>&` of another descriptor before a file")),
            None => {
                if stdout {
                    self.budget.doubt(TWICE);
                }
                command.redirects.push(Redirect::Output {
                    target,
                    stdout,
                    append: false,
                });
            }
        }
        Ok(())
    }

    /// Redirects both outputs to one file: `> FILE 2>&1`. The file is `given`, or is read from the text.
    fn both_outputs(
        &mut self,
        append: bool,
        given: Option<(Word, String)>,
        command: &mut Command,
    ) -> Result<(), SyntaxError> {
        self.budget.rewrite();
        self.out.gap();
        self.out.put(if append { ">>" } else { ">" });
        let target = match given {
            None => self.target(command)?,
            Some((target, text)) => {
                self.out.gap();
                self.out.put(&text);
                target
            }
        };
        self.out.gap();
        self.out.put("2>&1");
        self.out.gap();
        command.redirects.push(Redirect::Output {
            target,
            stdout: true,
            append,
        });
        command.redirects.push(Redirect::Duplicate);
        Ok(())
    }

    /// Reads the descriptor before a redirection: `2>`, `{name}>`. Without one, returns `""` and takes nothing.
    fn descriptor(&mut self) -> Result<String, SyntaxError> {
        if !matches!(self.peek(), Some(b'{' | b'0'..=b'9')) {
            return Ok(String::new());
        }
        let at = self.at;
        let mut text = String::new();
        while let Some(byte) = self.peek()
            && (byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'{' | b'}'))
        {
            text.push(char::from(byte));
            self.at += 1;
        }
        let name = text
            .strip_prefix('{')
            .and_then(|rest| rest.strip_suffix('}'));
        let variable = name.is_some_and(is_name) && !self.is_posix();
        let number = text.bytes().all(|byte| byte.is_ascii_digit());
        let number = number && (text.len() < 2 || !self.is_posix());
        if matches!(self.peek(), Some(b'<' | b'>')) && (variable || number) {
            if text.len() > MAX_DIGITS && number {
                return Err(self.fail("a descriptor with too many digits"));
            }
            return Ok(text);
        }
        self.at = at;
        Ok(String::new())
    }

    fn target(&mut self, command: &mut Command) -> Result<Word, SyntaxError> {
        self.skip_blanks();
        let at = self.at;
        // A digit or a `-` stays attached to `>&` and `<&`.
        if !(self.out.ends_with('&') && matches!(self.peek(), Some(b'0'..=b'9'))) {
            self.out.gap();
        }
        let mut raw = self.word(Mode::Plain)?;
        if self.at == at {
            return Err(self.fail("expected the target of a redirection"));
        }
        let mut word = single(&raw.atoms, true);
        word.substituted = !raw.substitutions.is_empty();
        command.substitutions.append(&mut raw.substitutions);
        Ok(word)
    }

    /// Reads a here-document, from the position after its operator. Its text is on the following lines.
    /// The cursor skips the text when it reaches the line break before it.
    fn document(
        &mut self,
        strip_tabs: bool,
        substitutions: &mut Vec<Substitution>,
    ) -> Result<Redirect, SyntaxError> {
        self.skip_blanks();
        let at = self.at;
        let mark = self.mark();
        let raw = self.word(Mode::Plain)?;
        if self.at == at || raw.expands {
            return Err(self.fail("expected the delimiter of a here-document"));
        }
        let end = self.at;
        self.reset(&mark);
        self.at = end;
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
            Some(_) => return Err(self.fail("a here-document inside the command of another one")),
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
                return Err(self.fail(format!("a here-document without its end `{delimiter}`")));
            }
            let line = rest.split('\n').next().unwrap_or_default();
            place += line.len() + usize::from(line.len() < rest.len());
            // In a text with expansions, a backslash at the end of a line continues the line.
            // Shells differ in whether such a line can be the delimiter.
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
                    return Err(self.fail("a backslash continues the end of a here-document"));
                }
            } else if shown == delimiter {
                break;
            }
            self.spend(shown.len())?;
            text.push_str(shown);
            text.push('\n');
        }
        self.spend(place - start)?;
        // The line break after the delimiter belongs to the last line of the text.
        self.documents = Some(Documents {
            line_break,
            end: place,
            nesting: self.nesting,
        });
        if quoted {
            if has_subscript(text.chars()) {
                self.has_subscript();
            }
            self.out.document(&delimiter, &text, true);
            return Ok(Redirect::HereDocument(Word::literal(text)));
        }
        let mut inner = Cursor::new(&text, self.depth + 1, self.budget.clone())?;
        let word = inner
            .here_text()
            .map_err(|error| self.fail(format!("inside of a here-document: {error}")))?;
        let body = inner.out.into_text();
        substitutions.extend(word.substitutions);
        let plain: String = word
            .atoms
            .iter()
            .filter_map(|atom| match atom {
                Atom::Char(character, _) => Some(*character),
                _ => None,
            })
            .collect();
        if !word.expands {
            self.out.document(&delimiter, &plain, true);
            return Ok(Redirect::HereDocument(Word::literal(plain)));
        }
        self.out.document(&delimiter, &body, false);
        Ok(Redirect::HereDocument(from_atoms(&word.atoms, false)))
    }

    /// The offset of the line break that ends this line, including continued lines.
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
