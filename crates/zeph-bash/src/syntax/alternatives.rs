//! The alternative texts in `${…}` that bash may use instead of a variable's value.

use super::word::{Atom, Word, expand};

/// The maximum number of words that result from the alternatives of one word.
const MAX_ALTERNATIVES: usize = 64;

/// The text after the operator of `${NAME:-TEXT}`, `${NAME:=TEXT}`, `${NAME:+TEXT}` and
/// `${NAME/PATTERN/TEXT}`. `inner` is the text between `${` and `}`. `None` for other forms.
pub(crate) fn alternative(inner: &[Atom]) -> Option<Vec<Atom>> {
    let character = |at: usize| match inner.get(at) {
        Some(Atom::Char(character, _)) => Some(*character),
        _ => None,
    };
    let mut at = usize::from(matches!(character(0), Some('!' | '#')) && inner.len() > 1);
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    match character(at) {
        Some(first) if is_name(first) => {
            while character(at).is_some_and(is_name) {
                at += 1;
            }
        }
        Some('@' | '*' | '?' | '-' | '$' | '#') => at += 1,
        // `$!`, or a `#` that is the parameter itself.
        _ if at > 0 => {}
        _ => return None,
    }
    if character(at) == Some('[') {
        let mut depth = 0_usize;
        while at < inner.len() {
            match character(at) {
                Some('[') => depth += 1,
                Some(']') => depth -= 1,
                _ => {}
            }
            at += 1;
            if depth == 0 {
                break;
            }
        }
    }
    if character(at) == Some('/') {
        let mut start = at + 1;
        if matches!(character(start), Some('/' | '#' | '%')) {
            start += 1;
        }
        // A `/` of the pattern may be escaped. If no plain `/` ends the pattern, any `/` may.
        let end = (start..inner.len()).find(|at| inner[*at].is('/'));
        let end = end.or_else(|| (start..inner.len()).find(|at| character(*at) == Some('/')));
        return end.map(|end| inner[end + 1..].to_vec());
    }
    at += usize::from(character(at) == Some(':'));
    matches!(character(at), Some('-' | '=' | '+')).then(|| inner[at + 1..].to_vec())
}

/// The words that `word` may be if bash uses the alternatives in its `${…}`.
pub(crate) fn possible(word: &Word) -> Vec<Word> {
    let Some(parts) = word.parts() else {
        return Vec::new();
    };
    let mut texts: Vec<Vec<Atom>> = vec![Vec::new()];
    let mut alone: Vec<Vec<Atom>> = Vec::new();
    for part in parts {
        let choices = choices(part);
        if choices.len() > 1 {
            alone.extend(choices[1..].iter().cloned());
        }
        if texts.len() * choices.len() > MAX_ALTERNATIVES {
            texts.iter_mut().for_each(|text| text.push(part.clone()));
            continue;
        }
        texts = texts
            .iter()
            .flat_map(|text| {
                let joined = |choice: &Vec<Atom>| [text.as_slice(), choice].concat();
                choices.iter().map(joined).collect::<Vec<_>>()
            })
            .collect();
    }
    if alone.is_empty() {
        return Vec::new();
    }
    // The first text is the word itself.
    let whole: Vec<Word> = words(&texts[1..]);
    let unresolved = whole.iter().any(|word| word.pattern().is_none());
    alone.truncate(MAX_ALTERNATIVES);
    let alone = if unresolved {
        words(&alone)
    } else {
        Vec::new()
    };
    whole.into_iter().chain(alone).collect()
}

/// Whether bash may use another text instead of the value of this part.
pub(crate) fn has_alternative(part: &Atom) -> bool {
    matches!(part, Atom::Variable(variable) if variable.alternative.is_some())
}

/// The part itself and its alternatives, including nested ones.
fn choices(part: &Atom) -> Vec<Vec<Atom>> {
    let mut choices = vec![vec![part.clone()]];
    let Atom::Variable(variable) = part else {
        return choices;
    };
    let Some(alternative) = &variable.alternative else {
        return choices;
    };
    let mut texts: Vec<Vec<Atom>> = vec![Vec::new()];
    for inner in alternative.iter() {
        let inner = self::choices(inner);
        if texts.len() * inner.len() > MAX_ALTERNATIVES {
            texts
                .iter_mut()
                .for_each(|text| text.extend(inner[0].clone()));
            continue;
        }
        texts = texts
            .iter()
            .flat_map(|text| inner.iter().map(|more| [text.as_slice(), more].concat()))
            .collect();
    }
    choices.extend(texts);
    choices
}

fn words(texts: &[Vec<Atom>]) -> Vec<Word> {
    texts
        .iter()
        .flat_map(|atoms| expand(atoms, false))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves SH-20a.
    #[test]
    fn text_after_the_operator_is_an_alternative() {
        let check = |inner: &str, expect: Option<&str>| {
            let atoms: Vec<Atom> = inner.chars().map(|c| Atom::Char(c, false)).collect();
            let found = alternative(&atoms).map(|atoms| {
                let text = atoms.iter().map(|atom| match atom {
                    Atom::Char(character, _) => *character,
                    _ => '?',
                });
                text.collect::<String>()
            });
            assert_eq!(found.as_deref(), expect, "{inner}");
        };
        check("a:-.env", Some(".env"));
        check("a-.env", Some(".env"));
        check("a:=.env", Some(".env"));
        check("a=.env", Some(".env"));
        check("a:+.env", Some(".env"));
        check("a+.env", Some(".env"));
        check("1:-.env", Some(".env"));
        check("@:-.env", Some(".env"));
        check("*-.env", Some(".env"));
        check("#:-.env", Some(".env"));
        check("!:-.env", Some(".env"));
        check("?+.env", Some(".env"));
        check("!a:-.env", Some(".env"));
        check("a[0]:-.env", Some(".env"));
        check("a[b[1]]-.env", Some(".env"));
        check("a/x/.env", Some(".env"));
        check("a//x/.env", Some(".env"));
        check("a/#/.env", Some(".env"));
        check("a/%x/.env", Some(".env"));
        check("a[@]/x/.env", Some(".env"));
        check("a:-", Some(""));
        check("a", None);
        check("a/x", None);
        check("a:2", None);
        check("a:?no", None);
        check("a#.env", None);
        check("a%%x", None);
        check("#a", None);
        check("", None);
    }
}
