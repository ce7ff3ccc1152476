//! `find` and `xargs`, which run other commands with paths.

use super::arguments::{read, unresolved};
use super::location::{FOUND, Location};
use super::simple::{command, options_and_operands};
use super::table::{Row, table};
use super::{NOT_LISTED, ReadOnly, unknown_word};
use crate::syntax::word::{Atom, Word, from_atoms};

/// Operators between the tests of `find`.
const OPERATORS: &[&str] = &["(", ")", "!", ","];

fn is_one_of(word: &Word, texts: &[&str]) -> bool {
    word.known().is_some_and(|text| texts.contains(&text))
}

/// Checks `find`. Its actions run commands with paths that begin with one of its operands.
pub(super) fn find(
    name: &str,
    row: &Row,
    arguments: &[Word],
    location: &Location,
    found: &mut ReadOnly,
) -> Result<(), String> {
    let mut words: Vec<Word> = Vec::new();
    let mut actions: Vec<&[Word]> = Vec::new();
    let mut rest = arguments;
    while let Some((word, after)) = rest.split_first() {
        rest = after;
        match word.known() {
            Some("-exec") => {
                let is_end = |at: &usize| match rest[*at].known() {
                    Some(";") => true,
                    Some("+") => *at > 0 && rest[at - 1].known() == Some("{}"),
                    _ => false,
                };
                let end = (0..rest.len()).find(is_end);
                let end = end.ok_or("the end of `find -exec` is missing")?;
                actions.push(&rest[..end]);
                rest = &rest[end + 1..];
            }
            Some(text) if OPERATORS.contains(&text) => {}
            // The words after it may be actions.
            Some("--") => return Err(unknown_word(word)),
            _ => words.push(word.clone()),
        }
    }
    let mut given = read(name, row, &words, None)?;
    given.follows |= !actions.is_empty() && !selects_regular_files(arguments);
    options_and_operands(name, row, &given, location, found)?;
    let path = found_path();
    for action in actions {
        if action
            .first()
            .is_some_and(|word| word.prefix().contains("{}"))
        {
            return Err("a file that the search finds runs as a command".to_owned());
        }
        let replaced = |word: &Word| match word.known() {
            Some("{}") => Ok(path.clone()),
            Some(text) if text.contains("{}") => Err(unresolved(word)),
            _ => Ok(word.clone()),
        };
        let inner: Result<Vec<Word>, String> = action.iter().map(replaced).collect();
        command(&inner?, location, found, true)?;
    }
    Ok(())
}

/// A word for the paths of the files that `find` passes to a command.
fn found_path() -> Word {
    let path: Vec<Atom> = FOUND.chars().map(|c| Atom::Char(c, false)).collect();
    from_atoms(&path, true)
}

/// Whether the expression of `find` passes on regular files only, and no links. `find` evaluates it
/// from left to right, so a test has no effect on the actions before it.
fn selects_regular_files(arguments: &[Word]) -> bool {
    const EITHER: &[&str] = &["-o", "-or", "!", "-not", ",", "(", "-L", "-follow"];
    const ACTIONS: &[&str] = &["-exec", "-print0"];
    let mut tests = arguments.split(|word| is_one_of(word, ACTIONS));
    let mut pairs = tests.next().unwrap_or_default().windows(2);
    pairs.any(|two| is_one_of(&two[0], &["-type"]) && is_one_of(&two[1], &["f"]))
        && !arguments.iter().any(|word| is_one_of(word, EITHER))
}

/// Adds the paths from which `find … -print0` lists files for `xargs -0`. Such a path begins with an operand of `find`,
/// so it is not an option. Without `-print0`, a file name with blanks or line breaks may become any words.
fn add_found_files(location: &Location, found: &mut ReadOnly) -> Result<bool, String> {
    let Some((first, arguments)) = location.writer.as_deref().and_then(<[Word]>::split_first)
    else {
        return Ok(false);
    };
    // These print other texts.
    const OTHERS: &[&str] = &["-print", "-printf", "-ls", "-exec"];
    if !is_one_of(first, &["find"])
        || !arguments.iter().any(|word| is_one_of(word, &["-print0"]))
        || arguments.iter().any(|word| is_one_of(word, OTHERS))
    {
        return Ok(false);
    }
    let row = table()?.row(&["find"]).ok_or("`find` is missing")?;
    let words: Vec<Word> = arguments
        .iter()
        .filter(|word| !is_one_of(word, OPERATORS))
        .cloned()
        .collect();
    let mut given = read("find", row, &words, None)?;
    given.follows |= !selects_regular_files(arguments);
    options_and_operands("find", row, &given, location, found)?;
    Ok(true)
}

/// Checks `xargs`. The words from its input may be any options and any paths, except those that `find` lists.
pub(super) fn xargs(
    name: &str,
    row: &Row,
    arguments: &[Word],
    location: &Location,
    found: &mut ReadOnly,
) -> Result<(), String> {
    let given = read(name, row, arguments, Some(0))?;
    options_and_operands(name, row, &given, location, found)?;
    let rest = &arguments[given.rest..];
    let at = arguments[..given.rest]
        .iter()
        .position(|word| word.prefix().starts_with("-I"));
    // The last of several such options applies. In a bundle such as `-0I@`, `at` does not find it.
    let replacements = given.seen.iter().filter(|option| *option == "-I").count();
    let others = ["-n", "-L", "--max-args", "--max-lines"].map(str::to_owned);
    if replacements > usize::from(at.is_some()) || (replacements > 0 && given.has(&others)) {
        return Err(format!(
            "`{name} -I` in a bundle, twice, or with `-n` or `-L` {NOT_LISTED}"
        ));
    }
    let is_separated = given.has(&["-0".to_owned(), "--null".to_owned()]);
    let is_listed = at.is_none() && is_separated && add_found_files(location, found)?;
    let mut inner: Vec<Word> = match at {
        Some(at) => {
            let attached = arguments[at].prefix().strip_prefix("-I");
            let next = arguments.get(at + 1).map(Word::prefix);
            let replaced = match (attached.unwrap_or_default(), next) {
                ("", Some(next)) => next,
                (attached, _) => attached,
            };
            rest.iter()
                .map(|word| word.with_unknown(replaced))
                .collect()
        }
        None => rest.to_vec(),
    };
    if at.is_none() {
        inner.push(match is_listed {
            true => found_path(),
            false => Word::unknown(""),
        });
    }
    if rest.is_empty() {
        inner.insert(0, Word::literal("echo"));
    }
    command(&inner, location, found, true)
}
