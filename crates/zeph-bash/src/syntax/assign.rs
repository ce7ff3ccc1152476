//! Assignments: names, subscripts and values.

use super::ast::Command;
use super::lexer::{Cursor, SyntaxError};
use super::parse::is_name;
use super::quote::{Mode, RawWord};
use super::word::{Atom, Word, single};

/// Variables to which bash assigns the result of an arithmetic expression.
pub(crate) const CALCULATED: &[&str] = &[
    "HISTCMD", "LINENO", "OPTIND", "RANDOM", "SECONDS", "SRANDOM",
];
/// Builtins that evaluate a text in parentheses as an array.
const EVALUATES: &[&str] = &["declare", "local", "readonly", "typeset"];

/// Whether bash may evaluate an argument of `declare` and similar builtins as an array. The argument does not have the
/// form `NAME=(…)`. `array` is whether an option makes arrays.
pub(crate) fn evaluates_array(by: &str, argument: &Word, array: bool) -> bool {
    let text = argument.prefix();
    if !EVALUATES.contains(&by) || text.starts_with('-') {
        return false;
    }
    match argument.known() {
        Some(text) => {
            let code = ["$", "`", "<(", ">("]
                .iter()
                .any(|code| text.contains(code));
            text.contains("=(") && code
        }
        None => array || text.contains("=("),
    }
}

impl Cursor<'_> {
    /// Reads the start of an assignment, if one is next. Returns its name, and its text up to the `=`.
    pub(crate) fn assignment(&mut self) -> Result<Option<(String, String)>, SyntaxError> {
        let at = self.at;
        let mut name = String::new();
        while let Some(byte) = self.peek()
            && (byte.is_ascii_alphanumeric() || byte == b'_')
        {
            name.push(char::from(byte));
            self.at += 1;
        }
        if is_name(&name) {
            let mut left = name.clone();
            if self.peek() == Some(b'[') && !self.is_posix() {
                let length = subscript(self.rest()).ok_or_else(|| {
                    self.fail(format!("a subscript of `{name}` that is not literal"))
                })?;
                if self.rest()[..length].contains('$') {
                    self.note_bracket();
                }
                left.push_str(&self.rest()[..length]);
                self.at += length;
                self.calculates();
            }
            if !self.is_posix() && self.eat(b'+') {
                left.push('+');
            }
            if self.eat(b'=') {
                if left != name {
                    self.only_bash("such an assignment");
                }
                left.push('=');
                if CALCULATED.contains(&name.as_str()) {
                    self.calculates();
                }
                self.out.put(&left);
                return Ok(Some((name, left)));
            }
        }
        self.at = at;
        Ok(None)
    }

    /// Reads the value of an assignment.
    pub(crate) fn value(&mut self, command: &mut Command) -> Result<Word, SyntaxError> {
        if self.peek() != Some(b'(') || self.is_posix() {
            let mut raw = self.word(Mode::Plain)?;
            self.note_fragments(&raw.atoms);
            command.substitutions.append(&mut raw.substitutions);
            return Ok(assigned(&raw.atoms));
        }
        self.only_bash("an array");
        self.at += 1;
        self.out.put("(");
        self.calculates();
        let mut raw = RawWord::default();
        loop {
            self.skip_lines()?;
            if self.eat(b')') {
                self.out.attached(")");
                if !self.ends_at(0) {
                    return Err(self.fail("expected the end of the array's word"));
                }
                command.substitutions.append(&mut raw.substitutions);
                command.others.append(&mut raw.others);
                return Ok(Word::unknown(""));
            }
            self.part(&mut raw)?;
        }
    }
}

/// The value of an assignment. A `~` after a `:` is expanded as well.
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

/// The length of the subscript at the start of `text`, including its brackets. Bash reads up to the bracket and
/// accepts any content. `None` if the content has other parts than names, numbers, variables and signs, in double
/// quotes or not.
fn subscript(text: &str) -> Option<usize> {
    let inner = text.strip_prefix('[')?;
    let inner = &inner[..inner.find(']')?];
    let bare = match inner.strip_prefix('"') {
        Some(quoted) => quoted.strip_suffix('"')?,
        None => inner,
    };
    if inner.contains("@P") {
        return None;
    }
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-+@$*/%{}#:.,^!=~".contains(&byte);
    let blanks = bare.len() < inner.len();
    bare.bytes()
        .all(|byte| is_plain(byte) || blanks && byte == b' ')
        .then_some(inner.len() + 2)
}
