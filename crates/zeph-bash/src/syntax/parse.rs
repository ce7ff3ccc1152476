//! Strict recursive-descent parser for the commands of bash. Unknown syntax is an error, so that the shell runs no
//! command that it reads differently than this parser.

use super::assign::evaluates_array;
use super::ast::{Assignment, Command, Connector, Kind, List, Pipeline};
use super::compound::COMPOUND;
use super::dialect::MODIFIERS;
use super::lexer::{Cursor, SyntaxError, ends_word};
use super::quote::{Mode, RawWord};
use super::word::{Atom, Word, expand, single};

/// Words with a special meaning at the start of a command.
const RESERVED: &[&str] = &[
    "!", "[[", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function",
    "if", "select", "then", "time", "until", "while", "{", "}",
];
/// Reserved words that end a list.
const CLOSING: &[&str] = &["do", "done", "elif", "else", "esac", "fi", "then", "}"];
/// Builtins that accept arrays as arguments.
const DECLARES: &[&str] = &["declare", "export", "local", "readonly", "typeset"];
/// Other builtins that evaluate subscripts in their arguments.
const SUBSCRIPTED: &[&str] = &[
    "[",
    "let",
    "mapfile",
    "printf",
    "read",
    "readarray",
    "test",
    "unset",
    "wait",
];
/// The maximum number of arguments that result from the braces of one command.
const MAX_WORDS: usize = 8192;

/// Words that only bash reserves.
const EXTENSIONS: &[&str] = &["[[", "coproc", "function", "select", "time"];

impl Cursor<'_> {
    /// Reads commands up to the end of the list.
    pub(crate) fn list(&mut self) -> Result<List, SyntaxError> {
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
                Some(b'\n') => Connector::Next,
                // `;;` ends a branch of `case`.
                Some(b';') if !self.is_double_semicolon() => {
                    self.at += 1;
                    self.out.attached(";");
                    Connector::Next
                }
                Some(b'&') => {
                    self.at += 1;
                    if self.eat(b'&') {
                        self.out.operator("&&");
                        self.continued()?;
                        Connector::And
                    } else {
                        self.out.operator("&");
                        Connector::Background
                    }
                }
                Some(b'|') => {
                    // A single `|` would belong to the pipeline.
                    self.at += 1;
                    self.expect(b'|')?;
                    self.out.operator("||");
                    self.continued()?;
                    Connector::Or
                }
                _ => {
                    list.pipelines.push(Pipeline {
                        commands,
                        then: Connector::Next,
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

    /// Requires a command after an operator, on the same or a later line.
    fn continued(&mut self) -> Result<(), SyntaxError> {
        self.skip_lines()?;
        let closed = self.reserved().is_some_and(|word| CLOSING.contains(&word));
        if closed || matches!(self.peek(), None | Some(b')' | b';' | b'&' | b'|')) {
            return Err(self.unexpected());
        }
        Ok(())
    }

    pub(crate) fn skip_lines(&mut self) -> Result<(), SyntaxError> {
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
                self.out.operator(&self.rest()[..2]);
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
            if self.eat(b'&') {
                self.only_bash("`|&`");
                self.out.operator("|&");
            } else {
                self.out.operator("|");
            }
            self.continued()?;
            commands.push(self.command()?);
        }
    }

    pub(crate) fn ends_at(&self, bytes: usize) -> bool {
        let next = self.text.as_bytes().get(self.at + bytes);
        next.is_none_or(|byte| ends_word(*byte))
    }

    /// The next reserved word, if one is next.
    pub(crate) fn reserved(&mut self) -> Option<&'static str> {
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
        let word = RESERVED.iter().find(|word| ended && **word == text)?;
        (!self.is_posix() || !EXTENSIONS.contains(word)).then_some(*word)
    }

    /// Takes a reserved word.
    pub(crate) fn eat_word(&mut self, word: &str) {
        self.out.operator(word);
        for byte in word.bytes() {
            self.eat(byte);
        }
    }

    pub(crate) fn expect_word(&mut self, word: &'static str) -> Result<(), SyntaxError> {
        self.skip_blanks();
        if self.reserved() == Some(word) {
            self.eat_word(word);
            Ok(())
        } else {
            Err(self.fail(format!("expected `{word}`")))
        }
    }

    pub(crate) fn unexpected(&mut self) -> SyntaxError {
        match self.rest().chars().next() {
            None => self.fail("the command ends too early"),
            Some('\n') => self.fail("the line ends too early"),
            Some(character) => self.fail(format!("unexpected `{character}`")),
        }
    }

    pub(crate) fn command(&mut self) -> Result<Command, SyntaxError> {
        self.skip_blanks();
        self.enter()?;
        let command = match self.reserved() {
            Some(word) if COMPOUND.contains(&word) => self.compound(word)?,
            Some("function") => {
                self.only_bash("`function`");
                self.eat_word("function");
                self.skip_blanks();
                let name = self.word(Mode::Plain)?;
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
        // Arguments that do not have the syntax of an array.
        let mut texts: Vec<Word> = Vec::new();
        let start = self.at;
        loop {
            self.skip_blanks();
            self.out.gap();
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
                let written = self.peek() == Some(b'(');
                let word = self.value(&mut command)?;
                if words.is_empty() {
                    assignments.push(Assignment {
                        partial: target.len() > name.len() + 1,
                        value: word.known().map(str::to_owned),
                        name,
                        word,
                    });
                } else {
                    let word = word.after_text(&target);
                    if !written {
                        texts.push(word.clone());
                    }
                    words.push(word);
                }
                continue;
            }
            let at = self.at;
            let mut raw = self.word(Mode::Plain)?;
            if self.at == at {
                return Err(self.unexpected());
            }
            let by = words.first().and_then(Word::known);
            if by.is_some_and(sets) {
                self.note_fragments(&raw.atoms);
            } else if by.is_some_and(|by| SUBSCRIPTED.contains(&by)) && raw.has_bracket() {
                self.note_bracket();
            }
            let substituted = !raw.substitutions.is_empty();
            if self.is_posix() {
                without_braces(&mut raw.atoms);
            }
            let before = words.len();
            if declares {
                texts.push(single(&raw.atoms, false));
            }
            words.extend(expand(&raw.atoms, substituted));
            if words.len() != before + 1 && raw.atoms.iter().any(|atom| atom.is('{')) {
                self.only_bash("braces");
            }
            if raw.atoms.first().is_some_and(|atom| atom.is('=')) {
                self.only_bash("a word that begins with `=`");
            }
            if before == 0
                && let Some(name) = words.first().and_then(Word::known)
                && MODIFIERS.contains(&name)
            {
                self.only_bash(&format!("`{name}`"));
            }
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
        if !texts.is_empty()
            && let Some(by) = words.first().and_then(Word::known)
        {
            let is_array = |word: &Word| {
                let text = word.prefix();
                text.starts_with('-') && text.contains(['a', 'A'])
            };
            let array = words.iter().any(is_array);
            if texts.iter().any(|word| evaluates_array(by, word, array)) {
                self.budget
                    .doubt(format!("`{by}` evaluates the text of an array again"));
            }
        }
        command.kind = Kind::Simple { assignments, words };
        Ok(command)
    }
}

/// Marks braces as plain characters.
fn without_braces(atoms: &mut [Atom]) {
    for atom in atoms {
        if atom.is('{') {
            *atom = Atom::Char('{', true);
        }
    }
}

/// Whether a builtin of this name assigns its arguments to variables.
fn sets(name: &str) -> bool {
    DECLARES.contains(&name) || name == "set"
}

pub(crate) fn plain(kind: Kind) -> Command {
    Command {
        kind,
        redirects: Vec::new(),
        substitutions: Vec::new(),
        others: Vec::new(),
    }
}

pub(crate) fn is_name(text: &str) -> bool {
    text.bytes()
        .next()
        .is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
