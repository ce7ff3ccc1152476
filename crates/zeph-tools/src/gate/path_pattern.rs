//! Patterns of paths: their start directory, braces and classes.

use std::path::{Component, Path, PathBuf};

use super::glob::{Bound, Class, Glob, Token};
use super::path_resolver::PathResolver;
use super::pattern::{PatternError, PatternScope, escaped, fault, finished, literal};

/// The maximum number of alternatives from the braces of a pattern.
const MAX_ALTERNATIVES: usize = 64;

/// Compiles a pattern to globs, with the scope of the paths that they match.
pub(super) fn compile(
    text: &str,
    places: &PathResolver,
) -> Result<(Vec<Glob>, PatternScope), PatternError> {
    let (whole, reach) = rooted(text, places)?;
    // A directory with all of its contents.
    let whole = match whole.strip_suffix('/') {
        Some(directory) if !directory.ends_with('\\') => {
            format!("{}/**", directory.trim_end_matches('/'))
        }
        _ => whole,
    };
    let mut forms = vec![whole];
    if reach == PatternScope::Absolute
        && let Some(real) = real_form(&forms[0], places)
    {
        forms.push(real);
    }
    let mut globs = Vec::new();
    for form in forms {
        let pieces = pieces(&form)?;
        for alternative in alternatives(&pieces)? {
            globs.push(path_glob(&alternative)?);
        }
    }
    Ok((globs, reach))
}

/// Resolves the start of a pattern (`~`, `./`, `../`) and returns the scope of the result.
pub(super) fn rooted(
    text: &str,
    places: &PathResolver,
) -> Result<(String, PatternScope), PatternError> {
    if let Some(rest) = text.strip_prefix('~') {
        if !rest.is_empty() && !rest.starts_with('/') {
            return fault("`~user` is not supported; only `~/` is");
        }
        let Some(home) = places.home().and_then(Path::to_str) else {
            return fault("there is no home directory for `~`");
        };
        let home = escape(home.trim_end_matches('/'));
        return Ok((format!("{home}{rest}"), PatternScope::Absolute));
    }
    if text.starts_with('/') {
        return Ok((text.to_owned(), PatternScope::Absolute));
    }
    if text.starts_with("**") {
        return Ok((text.to_owned(), PatternScope::Any));
    }
    let mut rest = text;
    let mut above = places.real_cwd();
    let mut climbed = false;
    loop {
        if let Some(after) = rest.strip_prefix("./").filter(|after| !after.is_empty()) {
            rest = after.trim_start_matches('/');
        } else if let Some(after) = rest.strip_prefix("../") {
            climbed = true;
            above = above.parent().unwrap_or(above);
            rest = after.trim_start_matches('/');
        } else {
            break;
        }
    }
    if rest.split('/').any(|part| part == "..") {
        return fault("it has `..` after a name, and no real path has that");
    }
    if !climbed {
        return Ok((rest.to_owned(), PatternScope::Relative));
    }
    let Some(above) = above.to_str() else {
        return fault("the path of the parent directory is not UTF-8");
    };
    let above = escape(above.trim_end_matches('/'));
    Ok((format!("{above}/{rest}"), PatternScope::Absolute))
}

/// Escapes a path to a pattern that matches only this path.
#[must_use]
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        if matches!(character, '*' | '?' | '[' | ']' | '{' | '}' | '\\' | ',') {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}

/// Returns the pattern with the real path of its start directory, if that differs.
fn real_form(text: &str, places: &PathResolver) -> Option<String> {
    let plain = |part: &Component<'_>| match part {
        Component::Normal(name) => name
            .to_str()
            .is_some_and(|name| !name.contains(['*', '?', '[', ']', '{', '}', ',', '\\'])),
        _ => true,
    };
    let path = Path::new(text);
    let plain: PathBuf = path.components().take_while(plain).collect();
    let (there, real) = plain
        .ancestors()
        .find_map(|above| Some((above, places.existing(above)?)))?;
    if there == real {
        return None;
    }
    let rest = path.strip_prefix(there).ok()?.to_str()?;
    let real = escape(real.to_str()?.trim_end_matches('/'));
    Some(if rest.is_empty() {
        real
    } else {
        format!("{real}/{rest}")
    })
}

/// A piece of a path pattern, before its braces are expanded.
#[derive(Debug, Clone, PartialEq)]
enum Piece {
    Literal(char),
    One,
    Many,
    Class(Class),
    Open,
    Comma,
    Close,
}

fn pieces(text: &str) -> Result<Vec<Piece>, PatternError> {
    let mut pieces = Vec::new();
    let mut open = 0_usize;
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        pieces.push(match character {
            '\\' => Piece::Literal(escaped(characters.next())?),
            '*' => Piece::Many,
            '?' => Piece::One,
            '[' => Piece::Class(class(&mut characters)?),
            '{' => {
                open += 1;
                Piece::Open
            }
            '}' if open > 0 => {
                open -= 1;
                Piece::Close
            }
            '}' => return fault("it closes a `}` that was not opened; write `\\}`"),
            ',' if open > 0 => Piece::Comma,
            other => Piece::Literal(other),
        });
    }
    if open > 0 {
        return fault("it has an unclosed `{`; write `\\{` for the character");
    }
    Ok(pieces)
}

/// Parses a class, after its `[`.
fn class(characters: &mut std::str::Chars<'_>) -> Result<Class, PatternError> {
    let unclosed =
        || PatternError("it has an unclosed `[`; write `\\[` for the character".to_owned());
    let mut negated = false;
    let mut ranges: Vec<(char, char)> = Vec::new();
    let mut first = true;
    loop {
        let mut character = characters.next().ok_or_else(unclosed)?;
        if first && !negated && matches!(character, '!' | '^') {
            negated = true;
            continue;
        }
        if character == ']' && !first {
            break;
        }
        first = false;
        if character == '\\' {
            character = escaped(characters.next())?;
        }
        let mut ahead = characters.clone();
        if ahead.next() == Some('-')
            && let Some(mut to) = ahead.next()
            && to != ']'
        {
            if to == '\\' {
                to = escaped(ahead.next())?;
            }
            if to < character {
                return fault(format!("the range `{character}-{to}` is empty"));
            }
            ranges.push((character, to));
            *characters = ahead;
        } else {
            ranges.push((character, character));
        }
    }
    Ok(Class { negated, ranges })
}

/// Expands the braces of a pattern.
fn alternatives(pieces: &[Piece]) -> Result<Vec<Vec<Piece>>, PatternError> {
    let mut done: Vec<Vec<Piece>> = vec![Vec::new()];
    let mut at = 0;
    while let Some(piece) = pieces.get(at) {
        if *piece != Piece::Open {
            for form in &mut done {
                form.push(piece.clone());
            }
            at += 1;
            continue;
        }
        let mut level = 0_usize;
        let mut parts: Vec<Vec<Piece>> = vec![Vec::new()];
        loop {
            let Some(piece) = pieces.get(at) else {
                return fault("it has an unclosed `{`");
            };
            at += 1;
            match piece {
                Piece::Open => level += 1,
                Piece::Close => level -= 1,
                _ => {}
            }
            match piece {
                Piece::Close if level == 0 => break,
                Piece::Open if level == 1 => {}
                Piece::Comma if level == 1 => parts.push(Vec::new()),
                other => {
                    if let Some(part) = parts.last_mut() {
                        part.push(other.clone());
                    }
                }
            }
        }
        let mut opened = Vec::new();
        for part in &parts {
            opened.extend(alternatives(part)?);
        }
        if done.len() * opened.len() > MAX_ALTERNATIVES {
            return fault(format!(
                "its braces expand to more than {MAX_ALTERNATIVES} patterns"
            ));
        }
        done = done
            .iter()
            .flat_map(|form| {
                opened
                    .iter()
                    .map(move |part| [form.as_slice(), part].concat())
            })
            .collect();
    }
    Ok(done)
}

fn path_glob(pieces: &[Piece]) -> Result<Glob, PatternError> {
    let slash = Token::Is(u32::from('/'));
    let mut tokens: Vec<Token> = Vec::new();
    let mut early = None;
    let mut at = 0;
    while let Some(piece) = pieces.get(at) {
        at += 1;
        match piece {
            Piece::Literal(character) => literal(*character, &mut tokens),
            Piece::One => tokens.push(Token::One(Bound::Slash)),
            Piece::Class(class) => tokens.push(Token::Class(Box::new(class.clone()))),
            Piece::Many => {
                let starts = tokens.is_empty()
                    || tokens.last() == Some(&slash)
                    || tokens.last() == Some(&Token::Within);
                let stars = 1 + pieces[at..]
                    .iter()
                    .take_while(|next| **next == Piece::Many)
                    .count();
                at += stars - 1;
                match pieces.get(at) {
                    Some(Piece::Literal('/')) if stars > 1 && starts => {
                        at += 1;
                        tokens.push(Token::Directories);
                        tokens.push(Token::Within);
                    }
                    None if stars > 1 && starts => {
                        // The pattern also matches the directory itself.
                        early = tokens.len().checked_sub(1).filter(|slash| {
                            *slash > 0 && tokens.get(*slash) == Some(&Token::Is(u32::from('/')))
                        });
                        tokens.push(Token::Many(Bound::Nothing));
                    }
                    _ if stars > 1 => tokens.push(Token::Many(Bound::Nothing)),
                    _ => tokens.push(Token::Many(Bound::Slash)),
                }
            }
            Piece::Open | Piece::Comma | Piece::Close => {}
        }
    }
    finished(tokens, early)
}
