//! The command of a tool that a skill declares: text with `{{name}}` as placeholder for a value.
//!
//! A value is inserted as one word in single quotes, so that no character of it is special to the shell. That is
//! safe only if the text around it is not quoted. So a placeholder is refused inside of quotes. Constructs with
//! their own quoting rules are also refused: comments, backquotes, here-documents, arithmetic, `[[ ]]`, `$'…'`, a
//! substitution in double quotes, and each `${…}` that is not a plain name.

use std::fmt;

use serde_json::{Map, Value};

/// The maximum length of a command in bytes.
const MAX_BYTES: usize = 4096;

/// A part of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    /// Literal text.
    Text(String),
    /// The value of this parameter.
    Value(String),
}

/// A command with placeholders for values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    text: String,
    pieces: Vec<Piece>,
}

/// The error of an invalid command, or of an invalid value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TemplateError {
    /// The command is empty.
    #[error("the command is empty")]
    Empty,
    /// The command is too long.
    #[error("the command has more than {MAX_BYTES} bytes: move it into a file of the skill")]
    Long,
    /// The command has a construct for which the quoting of values is not safe.
    #[error(
        "the command contains {0}, so a value could not be quoted safely: move the command into a \
         file of the skill"
    )]
    Unsafe(&'static str),
    /// An invalid placeholder.
    #[error(
        "`{0}` is not a valid placeholder: write {{{{name}}}} with lowercase letters, digits \
        and `_`"
    )]
    Place(String),
    /// A placeholder inside of quotes.
    #[error("{{{{{0}}}}} is in quotes: values are quoted automatically; remove the quotes")]
    Quoted(String),
    /// A quote without an end.
    #[error("a quote is not closed")]
    Open,
    /// A placeholder without a value.
    #[error("/{0}: a value is missing")]
    Missing(String),
    /// A value that cannot be a word.
    #[error("/{0}: expected a string without NUL, a number or a boolean")]
    Value(String),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Plain,
    Single,
    Double,
}

impl Template {
    /// Parses a command.
    ///
    /// # Errors
    /// [`TemplateError`] with the part that is not safe.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(TemplateError::Empty);
        }
        if text.len() > MAX_BYTES {
            return Err(TemplateError::Long);
        }
        let mut pieces = Vec::new();
        let mut plain = String::new();
        let mut state = State::Plain;
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            if let Some(inner) = rest.strip_prefix("{{") {
                let (name, after) = place(inner)?;
                if state != State::Plain || plain.ends_with('\\') {
                    return Err(TemplateError::Quoted(name.to_owned()));
                }
                pieces.push(Piece::Text(std::mem::take(&mut plain)));
                pieces.push(Piece::Value(name.to_owned()));
                rest = after;
                continue;
            }
            if let Some(what) = unsafe_here(state, rest, &plain, pieces.is_empty()) {
                return Err(TemplateError::Unsafe(what));
            }
            let mut taken = first.len_utf8();
            state = match (state, first) {
                (State::Single, '\'') | (State::Double, '"') => State::Plain,
                (State::Plain, '\'') => State::Single,
                (State::Plain, '"') => State::Double,
                (State::Plain | State::Double, '\\') => {
                    let escaped = rest.get(1..).and_then(|rest| rest.chars().next());
                    match escaped {
                        Some('{') if rest.get(1..).is_some_and(|rest| rest.starts_with("{{")) => {}
                        Some(escaped) => taken += escaped.len_utf8(),
                        None => return Err(TemplateError::Unsafe("a backslash at its end")),
                    }
                    state
                }
                (state, _) => state,
            };
            plain.push_str(rest.get(..taken).unwrap_or_default());
            rest = rest.get(taken..).unwrap_or_default();
        }
        if state != State::Plain {
            return Err(TemplateError::Open);
        }
        pieces.push(Piece::Text(plain));
        Ok(Self {
            text: text.to_owned(),
            pieces,
        })
    }

    /// Returns the parameters that have a placeholder.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Value(name) => Some(name.as_str()),
            Piece::Text(_) => None,
        })
    }

    /// Returns the command with these values.
    ///
    /// # Errors
    /// [`TemplateError`] for a missing value, or one that cannot be a word.
    pub fn render(&self, values: &Map<String, Value>) -> Result<String, TemplateError> {
        let mut command = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => command.push_str(text),
                Piece::Value(name) => {
                    let wrong = || TemplateError::Value(name.clone());
                    let value = values.get(name);
                    let value = match value.ok_or_else(|| TemplateError::Missing(name.clone()))? {
                        Value::String(text) => text.clone(),
                        Value::Number(number) => number.to_string(),
                        Value::Bool(is) => is.to_string(),
                        _ => return Err(wrong()),
                    };
                    if value.contains('\0') {
                        return Err(wrong());
                    }
                    command.push_str(&quoted(&value));
                }
            }
        }
        Ok(command)
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Returns the name of a placeholder, and the text after it.
fn place(inner: &str) -> Result<(&str, &str), TemplateError> {
    let shown = || inner.chars().take(40).collect::<String>();
    let none = || TemplateError::Place(format!("{{{{{}", shown()));
    let (name, after) = inner.split_once("}}").ok_or_else(none)?;
    let name = name.trim();
    match is_parameter(name) {
        true => Ok((name, after)),
        false => Err(none()),
    }
}

/// Whether `name` is a valid name of a parameter.
#[must_use]
pub fn is_parameter(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    name.len() <= 64
        && name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.bytes().all(plain)
}

/// Returns the construct with its own quoting rules that begins here, if any.
fn unsafe_here(state: State, rest: &str, before: &str, at_start: bool) -> Option<&'static str> {
    let begins = |what: &str| rest.starts_with(what);
    let control = |first: char| first.is_control() && !matches!(first, '\n' | '\t');
    match state {
        _ if rest.starts_with(control) => Some("a control character"),
        State::Single => None,
        _ if begins("`") => Some("a backquote"),
        _ if begins("${") => match simple_variable(rest) {
            true => None,
            false => Some("a `${…}` that is more than a name"),
        },
        _ if begins("$[") || begins("$((") => Some("arithmetic"),
        State::Double if begins("$(") => Some("a substitution in double quotes"),
        State::Double => None,
        State::Plain if begins("$'") || begins("$\"") => Some("a quote after `$`"),
        State::Plain if begins("<<") => Some("a here-document"),
        State::Plain if begins("((") => Some("arithmetic"),
        State::Plain if begins("[[") => Some("`[[`"),
        State::Plain if begins("#") => {
            let word = |last: char| !last.is_whitespace() && !";&|()<>".contains(last);
            let in_word = match before.chars().next_back() {
                Some(last) => word(last),
                None => !at_start,
            };
            (!in_word).then_some("a comment")
        }
        State::Plain => None,
    }
}

/// Whether `rest` begins with a plain `${NAME}`.
fn simple_variable(rest: &str) -> bool {
    let inner = rest
        .strip_prefix("${")
        .and_then(|inner| inner.split_once('}'));
    inner.is_some_and(|(name, _)| {
        !name.is_empty()
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    })
}

/// Quotes `value` as one word of a shell.
#[must_use]
pub fn quoted(value: &str) -> String {
    format!("'{}'", value.replace('\'', "'\\''"))
}
