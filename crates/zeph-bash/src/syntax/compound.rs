//! Compound commands: groups, loops, conditionals, `case`, functions, `[[ … ]]`.

use super::assign::CALCULATED;
use super::ast::{Assignment, Command, Connector, Kind, List, Pipeline, Shape};
use super::dollar::Arithmetic;
use super::lexer::{Cursor, SyntaxError};
use super::parse::{is_name, plain};
use super::quote::{Mode, RawWord};
use super::special_variables::{is_environment, is_telling};
use super::word::{expand, single};

/// Words that begin a compound command.
pub(crate) const COMPOUND: &[&str] = &["[[", "case", "for", "if", "select", "until", "while", "{"];

/// A loop over a variable that programs may see sets this variable for all commands in the loop.
fn looped(name: String) -> Option<List> {
    is_environment(&name).then(|| List {
        pipelines: vec![Pipeline {
            commands: vec![plain(Kind::Simple {
                assignments: vec![Assignment::unknown(name)],
                words: Vec::new(),
            })],
            then: Connector::Next,
        }],
        ..List::default()
    })
}

impl Cursor<'_> {
    pub(crate) fn coproc(&mut self) -> Result<Command, SyntaxError> {
        self.eat_word("coproc");
        self.only_bash("`coproc`");
        self.skip_blanks();
        let (at, mark) = (self.at, self.mark());
        if !self.begins_compound() {
            self.out.gap();
            let name = self.word(Mode::Plain)?;
            self.skip_blanks();
            if !self.begins_compound() {
                self.spend(self.at - at)?;
                self.reset(&mark);
            } else if !name.bare_text().is_some_and(|name| is_name(&name)) {
                return Err(self.fail("a name of a `coproc` that is not literal"));
            }
        }
        let command = self.command()?;
        let pipeline = Pipeline {
            commands: vec![command],
            then: Connector::Background,
        };
        Ok(plain(Kind::Subshell(List {
            pipelines: vec![pipeline],
            ..List::default()
        })))
    }

    fn begins_compound(&mut self) -> bool {
        self.peek() == Some(b'(') || self.reserved().is_some_and(|word| COMPOUND.contains(&word))
    }

    pub(crate) fn function(&mut self, name: &RawWord) -> Result<Command, SyntaxError> {
        let is_plain =
            |name: &String| !name.is_empty() && name.chars().all(|c| c.is_ascii_graphic());
        let Some(name) = name.bare_text().filter(is_plain) else {
            return Err(self.fail("a function name that is not literal"));
        };
        self.out.attached(" ()");
        self.skip_lines()?;
        if !self.begins_compound() {
            return Err(self.fail("expected the body of a function"));
        }
        let body = Box::new(self.command()?);
        Ok(plain(Kind::Function { name, body }))
    }

    pub(crate) fn compound(&mut self, word: &'static str) -> Result<Command, SyntaxError> {
        let mut raw = RawWord::default();
        let kind = match word {
            "(" => {
                let at = self.at;
                self.at += 1;
                self.out.gap();
                let double = self.peek() == Some(b'(') && !self.is_posix();
                if double && self.arithmetic(Arithmetic::Command, false, &mut raw)? {
                    self.only_bash("`((…))`");
                    self.check_documents()?;
                    Kind::Expression
                } else {
                    self.at = at + 1;
                    self.out.operator("(");
                    let list = self.list()?;
                    self.expect(b')')?;
                    self.out.operator(")");
                    Kind::Subshell(list)
                }
            }
            "[[" => {
                self.only_bash("`[[`");
                self.eat_word(word);
                self.test(&mut raw)?;
                Kind::Expression
            }
            _ => {
                self.eat_word(word);
                let mut lists = Vec::new();
                let shape = match word {
                    "{" => {
                        lists.push(self.list()?);
                        self.expect_word("}")?;
                        Shape::Group
                    }
                    "if" => {
                        self.conditional(&mut lists)?;
                        Shape::Branches
                    }
                    "while" | "until" => {
                        lists.push(self.list()?);
                        self.body(&mut lists)?;
                        Shape::Loop
                    }
                    "case" => {
                        self.case(&mut lists, &mut raw)?;
                        Shape::Branches
                    }
                    _ => self.each(word == "for", &mut lists, &mut raw)?,
                };
                Kind::Compound(shape, lists)
            }
        };
        let mut command = plain(kind);
        command.substitutions = raw.substitutions;
        command.others = raw.others;
        loop {
            self.skip_blanks();
            if !self.redirect(&mut command)? {
                return Ok(command);
            }
        }
    }

    fn body(&mut self, lists: &mut Vec<List>) -> Result<(), SyntaxError> {
        self.expect_word("do")?;
        lists.push(self.list()?);
        self.expect_word("done")
    }

    fn conditional(&mut self, lists: &mut Vec<List>) -> Result<(), SyntaxError> {
        loop {
            lists.push(self.list()?);
            self.expect_word("then")?;
            lists.push(self.list()?);
            match self.reserved() {
                Some("elif") => self.eat_word("elif"),
                Some("else") => {
                    self.eat_word("else");
                    lists.push(self.list()?);
                    return self.expect_word("fi");
                }
                _ => return self.expect_word("fi"),
            }
        }
    }

    /// Reads `for` and `select` after that word. Only `for` uses each of its words as a value.
    fn each(
        &mut self,
        is_for: bool,
        lists: &mut Vec<List>,
        raw: &mut RawWord,
    ) -> Result<Shape, SyntaxError> {
        let mut shape = Shape::Loop;
        if !is_for {
            self.only_bash("`select`");
        }
        self.skip_blanks();
        self.out.gap();
        if self.peek() == Some(b'(') {
            self.only_bash("`for ((`");
            self.at += 1;
            if self.peek() != Some(b'(') || !self.arithmetic(Arithmetic::Command, false, raw)? {
                return Err(self.fail("expected `((` or a name"));
            }
        } else {
            let name = self.word(Mode::Plain)?.bare_text();
            self.out.gap();
            let Some(name) = name.filter(|name| is_name(name)) else {
                return Err(self.fail("expected the name of a variable"));
            };
            if is_telling(&name) {
                return Err(self.fail(
                    "a loop over a variable that determines the commands that \
                    run",
                ));
            }
            if CALCULATED.contains(&name.as_str()) {
                self.calculates();
            }
            lists.extend(looped(name.clone()));
            let mut listed = false;
            self.skip_lines()?;
            if self.rest().starts_with("in") && self.ends_at(2) {
                self.at += 2;
                self.out.operator("in");
                listed = is_for;
                loop {
                    self.skip_blanks();
                    if matches!(self.peek(), None | Some(b'\n' | b';')) {
                        break;
                    }
                    self.part(raw)?;
                }
            }
            shape = Shape::Each { name, listed };
        }
        self.skip_blanks();
        if self.eat(b';') {
            self.out.attached(";");
        }
        self.skip_lines()?;
        self.body(lists)?;
        Ok(shape)
    }

    /// Reads a word that is not an argument.
    pub(crate) fn part(&mut self, raw: &mut RawWord) -> Result<(), SyntaxError> {
        let at = self.at;
        let mut word = self.word(Mode::Plain)?;
        if self.at == at {
            return Err(self.unexpected());
        }
        self.out.gap();
        self.note_fragments(&word.atoms);
        let substituted = !word.substitutions.is_empty();
        raw.others.extend(expand(&word.atoms, substituted));
        raw.substitutions.append(&mut word.substitutions);
        Ok(())
    }

    fn case(&mut self, lists: &mut Vec<List>, raw: &mut RawWord) -> Result<(), SyntaxError> {
        self.skip_blanks();
        self.part(raw)?;
        self.skip_lines()?;
        if !(self.rest().starts_with("in") && self.ends_at(2)) {
            return Err(self.fail("expected `in`"));
        }
        self.at += 2;
        self.out.operator("in");
        loop {
            self.skip_lines()?;
            if self.reserved() == Some("esac") {
                self.eat_word("esac");
                return Ok(());
            }
            self.eat(b'(');
            self.out.operator("(");
            loop {
                self.skip_blanks();
                self.part(raw)?;
                self.skip_blanks();
                if !self.eat(b'|') {
                    break;
                }
                self.out.operator("|");
            }
            self.expect(b')')?;
            self.out.operator(")");
            lists.push(self.list()?);
            self.skip_lines()?;
            if self.eat(b';') {
                let end = if !self.eat(b';') {
                    self.expect(b'&')?;
                    ";&"
                } else if self.eat(b'&') {
                    ";;&"
                } else {
                    ";;"
                };
                if end != ";;" {
                    self.only_bash("`;&`");
                }
                self.out.operator(end);
            } else if self.reserved() != Some("esac") {
                return Err(self.fail("expected `;;` or `esac`"));
            }
        }
    }

    /// Reads `[[ … ]]`, from the position after the opening brackets.
    fn test(&mut self, raw: &mut RawWord) -> Result<(), SyntaxError> {
        let mut mode = Mode::Plain;
        let mut numbers = false;
        let first = raw.others.len();
        self.calculates();
        loop {
            self.skip_lines()?;
            let operator = match self.peek() {
                None => return Err(self.fail("a `[[` that is not closed")),
                Some(b'<' | b'>') if self.is_process_substitution() => None,
                Some(b'(') if mode != Mode::Regex => Some("("),
                Some(b')') => Some(")"),
                Some(b'<') => Some("<"),
                Some(b'>') => Some(">"),
                Some(b'|') if mode != Mode::Regex => Some("||"),
                Some(b'&') => Some("&&"),
                _ => None,
            };
            if let Some(operator) = operator {
                for byte in operator.bytes() {
                    self.expect(byte)?;
                }
                self.out.operator(operator);
                mode = Mode::Plain;
                continue;
            }
            let at = self.at;
            self.out.gap();
            let mut word = self.word(mode)?;
            if self.at == at {
                return Err(self.unexpected());
            }
            self.out.gap();
            if word.has_bracket() && !word.bare {
                self.note_bracket();
            }
            raw.substitutions.append(&mut word.substitutions);
            raw.others.push(single(&word.atoms, false));
            mode = match word.bare_text().as_deref() {
                Some("]]") => {
                    let texts = raw.others[first..].iter().filter(|_| numbers);
                    let set: Vec<_> = texts
                        .filter_map(|word| super::arithmetic::substitution(word.prefix()))
                        .collect();
                    raw.substitutions.extend(set);
                    return Ok(());
                }
                Some("-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge") => {
                    numbers = true;
                    Mode::Plain
                }
                Some("=~") => Mode::Regex,
                Some("=" | "==" | "!=") => Mode::Pattern,
                _ => Mode::Plain,
            };
        }
    }
}
