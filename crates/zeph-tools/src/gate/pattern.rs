//! The patterns of rules: globs over commands, paths and URLs. All of them ignore case.
//!
//! | | `*` | `**` | `?` | `[…]` `{…,…}` | `\` |
//! |---|---|---|---|---|---|
//! | command, arguments | any text | as `*` | one character | themselves | the next character as it is |
//! | path | any text without `/` | any text; `**/` whole directories | one character but `/` | a class, alternatives | as above |
//! | URL | any text; in the host one without `/ ? # @ \ :` | as `*` | one character | themselves | as above |
//!
//! Patterns that allow commands distinguish words: `\ ` is a blank inside a word, and a plain blank separates
//! words. A pattern that is only `*` or `**` matches everything, for each kind of pattern.

use super::glob::{BLANK, Bound, Glob, Symbol, Text, Token, fold};
use super::path_pattern;
use super::path_resolver::PathResolver;

/// The maximum number of characters of a pattern.
pub const MAX_CHARS: usize = 512;

/// The fault of a pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PatternError(pub(super) String);

pub(super) fn fault<T>(why: impl Into<String>) -> Result<T, PatternError> {
    Err(PatternError(why.into()))
}

/// The kind of text that a pattern is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatternKind {
    /// The parts of a command.
    Command,
    /// The canonical arguments.
    Text,
    /// Paths.
    Path,
    /// A URL.
    Url,
}

/// A compiled pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    globs: Vec<Glob>,
    reach: PatternScope,
}

/// The kind of texts that the globs match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PatternScope {
    /// All texts: the pattern matches without a comparison.
    Everything,
    /// The text of a command, the arguments, a URL, or any form of a path.
    Any,
    /// Absolute paths.
    Absolute,
    /// Paths relative to the working directory.
    Relative,
}

impl Pattern {
    /// Compiles `text`.
    ///
    /// # Errors
    /// The fault of the pattern.
    pub fn new(kind: PatternKind, text: &str, places: &PathResolver) -> Result<Self, PatternError> {
        if text.trim().is_empty() {
            return fault("it is empty; `*` matches everything");
        }
        let length = text.chars().count();
        if length > MAX_CHARS {
            return fault(format!("it has {length} characters, more than {MAX_CHARS}"));
        }
        if let Some(control) = text
            .chars()
            .find(|c| c.is_control() && *c != '\n' && *c != '\t')
        {
            return fault(format!(
                "it has the control character {}",
                control.escape_default()
            ));
        }
        if matches!(text, "*" | "**") || (kind == PatternKind::Path && text == "**/*") {
            return Ok(Self {
                globs: Vec::new(),
                reach: PatternScope::Everything,
            });
        }
        match kind {
            PatternKind::Command | PatternKind::Text => Ok(Self {
                globs: vec![command(text, u32::from(' '))?],
                reach: PatternScope::Any,
            }),
            PatternKind::Url => Ok(Self {
                globs: url(text)?,
                reach: PatternScope::Any,
            }),
            PatternKind::Path => {
                let (globs, reach) = path_pattern::compile(text, places)?;
                Ok(Self { globs, reach })
            }
        }
    }

    /// Compiles a pattern that allows parts of commands: an escaped blank is inside a word, and a plain blank
    /// separates words.
    ///
    /// # Errors
    /// The fault of the pattern.
    pub(super) fn of_words(text: &str, places: &PathResolver) -> Result<Self, PatternError> {
        let mut pattern = Self::new(PatternKind::Command, text, places)?;
        if !pattern.is_catch_all() {
            pattern.globs = vec![command(text, BLANK)?];
        }
        Ok(pattern)
    }

    /// Whether it matches everything without a comparison.
    #[must_use]
    pub fn is_catch_all(&self) -> bool {
        self.reach == PatternScope::Everything
    }

    /// Returns the kind of texts that it matches.
    pub(super) fn reach(&self) -> PatternScope {
        self.reach
    }

    /// Whether it matches for any text in the holes.
    pub(super) fn matches(&self, text: &Text) -> bool {
        self.is_catch_all() || self.globs.iter().any(|glob| glob.matches(text))
    }

    /// Whether it matches for some text in the holes.
    pub(super) fn may_match(&self, text: &Text) -> bool {
        self.is_catch_all() || self.globs.iter().any(|glob| glob.may_match(text))
    }
}

pub(super) fn finished(tokens: Vec<Token>, early: Option<usize>) -> Result<Glob, PatternError> {
    match Glob::new(tokens, early) {
        Some(glob) => Ok(glob),
        None => fault("it is too long"),
    }
}

pub(super) fn literal(character: char, tokens: &mut Vec<Token>) {
    let mut symbols = Vec::new();
    fold(character.encode_utf8(&mut [0; 4]), &mut symbols);
    tokens.extend(symbols.into_iter().map(Token::Is));
}

/// Returns the character after a backslash.
pub(super) fn escaped(next: Option<char>) -> Result<char, PatternError> {
    match next {
        Some(character) => Ok(character),
        None => fault(
            "it ends with `\\`, which escapes the next character; write `\\\\` for a backslash",
        ),
    }
}

/// Compiles the pattern of a command. `*` matches any text. ` *` at the end also matches nothing. An escaped
/// blank becomes `blank`.
fn command(text: &str, blank: Symbol) -> Result<Glob, PatternError> {
    let mut tokens = Vec::new();
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '*' => {
                if tokens.last() != Some(&Token::Many(Bound::Nothing)) {
                    tokens.push(Token::Many(Bound::Nothing));
                }
            }
            '?' => tokens.push(Token::One(Bound::Nothing)),
            '\\' => match escaped(characters.next())? {
                ' ' => tokens.push(Token::Is(blank)),
                other => literal(other, &mut tokens),
            },
            other => literal(other, &mut tokens),
        }
    }
    let early = match tokens.as_slice() {
        [_, .., Token::Is(blank), Token::Many(_)] if *blank == u32::from(' ') => {
            Some(tokens.len() - 2)
        }
        _ => None,
    };
    finished(tokens, early)
}

/// Compiles the pattern of a URL. A wildcard in the host does not match beyond the host. A pattern without `://`
/// begins at the host, unless it begins with a `*` that matches any prefix. A pattern without a path matches all
/// paths.
fn url(text: &str) -> Result<Vec<Glob>, PatternError> {
    let anywhere = text.starts_with('*') && !text.starts_with("*.") && !text.contains("://");
    let whole = match text {
        _ if anywhere || text.contains("://") => text.to_owned(),
        host => format!("*://{host}"),
    };
    let host = (!anywhere)
        .then(|| whole.find("://").map(|at| at + 3))
        .flatten();
    let path = host.map(|host| whole[host..].find('/').map_or(whole.len(), |at| host + at));
    let mut tokens = Vec::new();
    let mut characters = whole.char_indices();
    while let Some((at, character)) = characters.next() {
        let within = host.is_some_and(|host| at >= host) && path.is_some_and(|path| at < path);
        // `https://*` and `https://docs.*` also match the path.
        let bound = match within && at + 1 < whole.len() {
            true => Bound::Host,
            false if host.is_some_and(|host| at < host) => Bound::Slash,
            false => Bound::Nothing,
        };
        match character {
            '*' => tokens.push(Token::Many(bound)),
            '?' if within => tokens.push(Token::One(bound)),
            '?' => tokens.push(Token::One(Bound::Nothing)),
            '\\' => literal(escaped(characters.next().map(|(_, c)| c))?, &mut tokens),
            other => literal(other, &mut tokens),
        }
    }
    let mut globs = Vec::new();
    if path == Some(whole.len()) && !whole.ends_with('*') {
        let mut all = tokens.clone();
        all.push(Token::Is(u32::from('/')));
        all.push(Token::Many(Bound::Nothing));
        globs.push(finished(all, None)?);
    }
    globs.push(finished(tokens, None)?);
    Ok(globs)
}
