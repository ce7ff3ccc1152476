//! Reads the commands of bash: a strict recursive descent. What it does not know is an error, so
//! that nothing runs which was understood differently here than by the shell.

use super::compound::COMPOUND;
use super::cursor::{Budget, Cursor, SyntaxError, ends_word};
use super::quote::RawWord;
use super::tree::{Assignment, Command, Kind, List, Pipeline, Then};
use super::word::{Atom, Word, expand, single};

/// Words with a meaning of their own where a command begins.
const RESERVED: &[&str] = &[
    "!", "[[", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function",
    "if", "select", "then", "time", "until", "while", "{", "}",
];
/// Those that end a list.
const CLOSING: &[&str] = &["do", "done", "elif", "else", "esac", "fi", "then", "}"];
/// Commands whose arguments may be arrays.
const DECLARES: &[&str] = &["declare", "export", "local", "readonly", "typeset"];
/// The most arguments that the braces of one command may make.
const MAX_WORDS: usize = 8192;

/// Reads a command.
///
/// # Errors
/// [`SyntaxError`] with the place.
pub fn parse(text: &str) -> Result<List, SyntaxError> {
    let budget = Budget::new();
    let mut list = parse_nested(text, 0, budget.clone())?;
    list.signs = budget.signs();
    Ok(list)
}

/// A command that was read, for all who look at it.
#[derive(Debug)]
pub(crate) struct Parsed {
    text: String,
    tree: Result<List, SyntaxError>,
}

impl Parsed {
    /// Reads a command.
    pub(crate) fn of(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            tree: parse(text),
        }
    }

    /// Whether it is this command.
    pub(crate) fn is_of(&self, text: &str) -> bool {
        self.text == text
    }

    /// Its tree, or why it has none.
    pub(super) fn tree(&self) -> Result<&List, &SyntaxError> {
        self.tree.as_ref()
    }
}

/// Reads a text that stands inside of another one, `depth` levels deep.
pub(super) fn parse_nested(text: &str, depth: usize, budget: Budget) -> Result<List, SyntaxError> {
    let mut cursor = Cursor::new(text, depth, budget)?;
    let list = cursor.list()?;
    match cursor.peek() {
        None => Ok(list),
        Some(_) => Err(cursor.unexpected()),
    }
}

impl Cursor<'_> {
    /// Reads commands until something that ends a list.
    pub(super) fn list(&mut self) -> Result<List, SyntaxError> {
        let mut list = List::default();
        loop {
            self.skip_lines()?;
            let closed = self.reserved().is_some_and(|word| CLOSING.contains(&word));
            if closed || matches!(self.peek(), None | Some(b')' | b';')) {
                return Ok(list);
            }
            let commands = self.pipeline()?;
            self.skip_blanks();
            let then = match self.peek() {
                Some(b'\n') => Then::Next,
                // `;;` ends a branch of `case`.
                Some(b';') if !self.is_double_semicolon() => {
                    self.at += 1;
                    Then::Next
                }
                Some(b'&') => {
                    self.at += 1;
                    if self.eat(b'&') {
                        self.continued()?;
                        Then::And
                    } else {
                        Then::Background
                    }
                }
                Some(b'|') => {
                    // A single one would belong to the pipeline.
                    self.at += 1;
                    self.expect(b'|')?;
                    self.continued()?;
                    Then::Or
                }
                _ => {
                    list.pipelines.push(Pipeline {
                        commands,
                        then: Then::Next,
                    });
                    return Ok(list);
                }
            };
            list.pipelines.push(Pipeline { commands, then });
        }
    }

    fn is_double_semicolon(&mut self) -> bool {
        let at = self.at;
        self.at += 1;
        let double = matches!(self.peek(), Some(b';' | b'&'));
        self.at = at;
        double
    }

    /// After an operator something must follow, perhaps on a later line.
    fn continued(&mut self) -> Result<(), SyntaxError> {
        self.skip_lines()?;
        let closed = self.reserved().is_some_and(|word| CLOSING.contains(&word));
        if closed || matches!(self.peek(), None | Some(b')' | b';' | b'&' | b'|')) {
            return Err(self.unexpected());
        }
        Ok(())
    }

    pub(super) fn skip_lines(&mut self) -> Result<(), SyntaxError> {
        loop {
            self.skip_blanks();
            if !self.line_break()? {
                return Ok(());
            }
        }
    }

    fn pipeline(&mut self) -> Result<Vec<Command>, SyntaxError> {
        let mut timed = false;
        loop {
            match self.reserved() {
                Some("!") => self.eat_word("!"),
                Some("time") => {
                    self.eat_word("time");
                    timed = true;
                }
                _ => break,
            }
            self.skip_blanks();
            while timed
                && (self.rest().starts_with("-p") || self.rest().starts_with("--"))
                && self.ends_at(2)
            {
                self.at += 2;
                self.skip_blanks();
            }
        }
        if timed && matches!(self.peek(), None | Some(b'\n' | b';' | b'&' | b')')) {
            return Ok(Vec::new());
        }
        let mut commands = vec![self.command()?];
        loop {
            self.skip_blanks();
            if self.peek() != Some(b'|') {
                return Ok(commands);
            }
            let at = self.at;
            self.at += 1;
            if self.peek() == Some(b'|') {
                self.at = at;
                return Ok(commands);
            }
            self.eat(b'&');
            self.continued()?;
            commands.push(self.command()?);
        }
    }

    pub(super) fn ends_at(&self, bytes: usize) -> bool {
        let next = self.text.as_bytes().get(self.at + bytes);
        next.is_none_or(|byte| ends_word(*byte))
    }

    /// The reserved word that is next.
    pub(super) fn reserved(&mut self) -> Option<&'static str> {
        let at = self.at;
        let mut text = String::new();
        let ended = loop {
            match self.peek() {
                None => break true,
                Some(byte) if ends_word(byte) => break true,
                Some(byte @ (b'a'..=b'z' | b'{' | b'}' | b'!' | b'[')) if text.len() < 9 => {
                    text.push(char::from(byte));
                    self.at += 1;
                }
                Some(_) => break false,
            }
        };
        self.at = at;
        RESERVED
            .iter()
            .find(|word| ended && **word == text)
            .copied()
    }

    pub(super) fn eat_word(&mut self, word: &str) {
        for byte in word.bytes() {
            self.eat(byte);
        }
    }

    pub(super) fn expect_word(&mut self, word: &'static str) -> Result<(), SyntaxError> {
        self.skip_blanks();
        if self.reserved() == Some(word) {
            self.eat_word(word);
            Ok(())
        } else {
            Err(self.fail(format!("expected `{word}`")))
        }
    }

    pub(super) fn unexpected(&mut self) -> SyntaxError {
        match self.rest().chars().next() {
            None => self.fail("the command ends too early"),
            Some('\n') => self.fail("the line ends too early"),
            Some(character) => self.fail(format!("unexpected `{character}`")),
        }
    }

    pub(super) fn command(&mut self) -> Result<Command, SyntaxError> {
        self.skip_blanks();
        self.enter()?;
        let command = match self.reserved() {
            Some(word) if COMPOUND.contains(&word) => self.compound(word)?,
            Some("function") => {
                self.eat_word("function");
                self.skip_blanks();
                let name = self.word(false)?;
                self.skip_blanks();
                if self.eat(b'(') {
                    self.skip_blanks();
                    self.expect(b')')?;
                }
                self.function(&name)?
            }
            Some("coproc") => self.coproc()?,
            Some(_) => return Err(self.unexpected()),
            None if self.peek() == Some(b'(') => self.compound("(")?,
            None => self.simple()?,
        };
        self.leave();
        Ok(command)
    }

    fn simple(&mut self) -> Result<Command, SyntaxError> {
        let mut command = plain(Kind::Expression);
        let mut assignments = Vec::new();
        let mut words: Vec<Word> = Vec::new();
        let start = self.at;
        loop {
            self.skip_blanks();
            if self.redirect(&mut command)? {
                continue;
            }
            match self.peek() {
                Some(b'(') if words.len() == 1 && assignments.is_empty() => {
                    let name = self.text[start..self.at].trim_end_matches([' ', '\t']);
                    self.at += 1;
                    self.skip_blanks();
                    self.expect(b')')?;
                    let mut raw = RawWord {
                        bare: !name.contains(['\\', '\'', '"', '$', '`', ' ', '<', '>']),
                        ..RawWord::default()
                    };
                    raw.push(name);
                    return self.function(&raw);
                }
                Some(b'(') => return Err(self.unexpected()),
                Some(byte) if !ends_word(byte) => {}
                Some(b'<' | b'>') => {}
                _ => break,
            }
            let declares = words
                .first()
                .and_then(Word::known)
                .is_some_and(|name| DECLARES.contains(&name));
            if (words.is_empty() || declares)
                && let Some((name, target)) = self.assignment()?
            {
                let subscript = target[name.len()..].trim_end_matches(['=', '+']);
                command
                    .substitutions
                    .extend(super::arithmetic::substitution(subscript));
                let word = self.value(&mut command)?;
                if words.is_empty() {
                    assignments.push(Assignment {
                        partial: target.len() > name.len() + 1,
                        value: word.known().map(str::to_owned),
                        name,
                        word,
                    });
                } else {
                    words.push(word.after_text(&target));
                }
                continue;
            }
            let at = self.at;
            let mut raw = self.word(false)?;
            if self.at == at {
                return Err(self.unexpected());
            }
            let substituted = !raw.substitutions.is_empty();
            words.extend(expand(&raw.atoms, substituted));
            if words.len() > MAX_WORDS {
                return Err(self.fail("too many arguments"));
            }
            command.substitutions.append(&mut raw.substitutions);
        }
        if words.is_empty()
            && assignments.is_empty()
            && command.redirects.is_empty()
            && command.substitutions.is_empty()
            && self.at == start
        {
            return Err(self.unexpected());
        }
        command.kind = Kind::Simple { assignments, words };
        Ok(command)
    }

    /// The name of the assignment that begins here, and its text up to the `=`, which is then passed.
    fn assignment(&mut self) -> Result<Option<(String, String)>, SyntaxError> {
        let at = self.at;
        let mut name = String::new();
        while let Some(byte) = self.peek()
            && (byte.is_ascii_alphanumeric() || byte == b'_')
        {
            name.push(char::from(byte));
            self.at += 1;
        }
        if is_name(&name) {
            let end = self.at;
            if self.peek() == Some(b'[') {
                let length = subscript(self.rest()).ok_or_else(|| {
                    self.fail(format!("a subscript of `{name}` that is not plain"))
                })?;
                self.at += length;
                self.calculates();
            }
            self.eat(b'+');
            if self.eat(b'=') {
                let target = format!("{name}{}", &self.text[end..self.at]);
                return Ok(Some((name, target)));
            }
        }
        self.at = at;
        Ok(None)
    }

    /// The value of an assignment.
    fn value(&mut self, command: &mut Command) -> Result<Word, SyntaxError> {
        if self.peek() != Some(b'(') {
            let mut raw = self.word(false)?;
            command.substitutions.append(&mut raw.substitutions);
            return Ok(assigned(&raw.atoms));
        }
        self.at += 1;
        self.calculates();
        let mut raw = RawWord::default();
        loop {
            self.skip_lines()?;
            if self.eat(b')') {
                command.substitutions.append(&mut raw.substitutions);
                command.others.append(&mut raw.others);
                return Ok(Word::unknown(""));
            }
            self.part(&mut raw)?;
        }
    }
}

/// The value of an assignment, in which a `~` after a `:` is replaced as well.
fn assigned(atoms: &[Atom]) -> Word {
    let tilde = |two: &[Atom]| two[0].is(':') && two[1].is('~');
    match atoms.windows(2).position(tilde) {
        Some(at) => {
            let mut atoms = atoms.to_vec();
            atoms[at + 1] = Atom::Unknown;
            single(&atoms, false)
        }
        None => single(atoms, false),
    }
}

/// The bytes of the subscript, brackets included, that `text` begins with. Bash reads it to its
/// bracket whatever stands in it; `None` for one with more in it than names, numbers, variables
/// and signs, in double quotes perhaps.
fn subscript(text: &str) -> Option<usize> {
    let inner = text.strip_prefix('[')?;
    let inner = &inner[..inner.find(']')?];
    let bare = match inner.strip_prefix('"') {
        Some(quoted) => quoted.strip_suffix('"')?,
        None => inner,
    };
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-+@$*/%{}#:.,^!=~".contains(&byte);
    let blanks = bare.len() < inner.len();
    bare.bytes()
        .all(|byte| is_plain(byte) || blanks && byte == b' ')
        .then_some(inner.len() + 2)
}

pub(super) fn plain(kind: Kind) -> Command {
    Command {
        kind,
        redirects: Vec::new(),
        substitutions: Vec::new(),
        others: Vec::new(),
    }
}

pub(super) fn is_name(text: &str) -> bool {
    text.bytes()
        .next()
        .is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
