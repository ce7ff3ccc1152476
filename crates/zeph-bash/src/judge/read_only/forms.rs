//! Commands with rules of their own: `cd`, `test`, `find` and `xargs`.

use std::path::PathBuf;

use super::arguments::{read, unresolved};
use super::scene::{FOUND, Scene};
use super::simple::{check_operands, command, options_and_operands};
use super::table::{Row, table};
use super::{ReadOnly, unknown_word};
use crate::judge::places::normalize_path;
use crate::syntax::word::{Atom, Word, from_atoms};

/// Operators of `test` before a file.
const FILE_TESTS: &[&str] = &[
    "-b", "-c", "-d", "-e", "-f", "-g", "-h", "-k", "-p", "-r", "-s", "-u", "-w", "-x", "-G", "-L",
    "-N", "-O", "-S",
];
/// Operators of `test` between two files.
const FILE_COMPARISONS: &[&str] = &["-nt", "-ot", "-ef"];
/// Operators of `test` around texts and numbers.
const TEXT_TESTS: &[&str] = &["-n", "-z", "-t"];
const TEXT_COMPARISONS: &[&str] = &[
    "=", "==", "!=", "<", ">", "=~", "-eq", "-ne", "-lt", "-le", "-gt", "-ge",
];

/// Checks a `cd`. A directory that does not exist makes the shell resolve `..` after links, so `..` is admitted only
/// if the result certainly exists.
pub(super) fn change_directory(
    name: &str,
    row: &Row,
    arguments: &[Word],
    scene: &Scene,
    found: &mut ReadOnly,
) -> Result<(), String> {
    let given = read(name, row, arguments, None)?;
    let Some(operand) = given.operands.first() else {
        let home = scene.home.as_ref().and_then(|home| home.to_str());
        let home = home.ok_or("the home directory is not known")?;
        return scene.add(&Word::literal(home), false, false, found);
    };
    check_operands(name, row, &given, &given.operands)?;
    let text = operand
        .word
        .known()
        .ok_or_else(|| unresolved(&operand.word))?;
    if text == "-" {
        return Err("the directory of `cd -` cannot be known before the command runs".to_owned());
    }
    let mut names = text
        .split('/')
        .skip_while(|part| matches!(*part, ".." | "." | ""));
    let is_inside = names.any(|part| part == "..");
    let climbs = text.split('/').any(|part| part == "..");
    if climbs && (is_inside || text.starts_with('/')) {
        return Err(format!("the directory of `cd {text}` may depend on links"));
    }
    if climbs {
        let exists = |place: &PathBuf| {
            let to = normalize_path(&place.join(text));
            scene.start.starts_with(place) || scene.start.starts_with(to)
        };
        if !scene
            .places
            .as_ref()
            .is_some_and(|places| places.iter().all(exists))
        {
            return Err(format!("the directory of `cd {text}` may depend on links"));
        }
    }
    scene.add(&operand.word, false, false, found)
}

/// Checks the words of `test` and `[`, or with `is_keyword`, of `[[`. In `test`, a word with an unknown text must not
/// be an operator.
pub(super) fn check_conditions(
    words: &[Word],
    is_keyword: bool,
    scene: &Scene,
    found: &mut ReadOnly,
) -> Result<(), String> {
    let is_alone = words
        .iter()
        .filter(|word| word.known() != Some("]"))
        .count()
        == 1;
    let is = |at: Option<usize>, lists: &[&[&str]]| {
        let text = at.and_then(|at| words.get(at)).and_then(Word::known);
        text.is_some_and(|text| lists.iter().any(|list| list.contains(&text)))
    };
    for (at, word) in words.iter().enumerate() {
        let (before, after) = (at.checked_sub(1), Some(at + 1));
        if is(before, &[FILE_TESTS, FILE_COMPARISONS]) || is(after, &[FILE_COMPARISONS]) {
            scene.add(word, false, false, found)?;
            continue;
        }
        let is_operand =
            is(before, &[TEXT_TESTS, TEXT_COMPARISONS]) || is(after, &[TEXT_COMPARISONS]);
        match word.known() {
            // A subscript in the value is evaluated.
            Some("-v" | "-R") => return Err(unknown_word(word)),
            Some("-a" | "-o") if at == 0 => return Err(unknown_word(word)),
            Some(_) => {}
            None if word.pattern().is_some() => {
                scene.add_globs(std::slice::from_ref(word), found)?;
            }
            None if is_keyword || (is_single(word) && (is_operand || is_alone)) => {}
            None => return Err(unresolved(word)),
        }
    }
    Ok(())
}

/// Whether an unresolved word is certainly a single word: all variables in it are quoted.
fn is_single(word: &Word) -> bool {
    word.parts().is_some_and(|parts| {
        parts.iter().all(|atom| match atom {
            Atom::Char(..) | Atom::Nothing => true,
            Atom::Variable(variable) => variable.quoted,
            Atom::Split | Atom::Unknown => false,
        })
    })
}

/// Checks `find`. Its actions run commands with paths that begin with one of its operands.
pub(super) fn find(
    name: &str,
    row: &Row,
    arguments: &[Word],
    scene: &Scene,
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
            Some("(" | ")" | "!" | ",") => {}
            // The words after it may be actions.
            Some("--") => return Err(unknown_word(word)),
            _ => words.push(word.clone()),
        }
    }
    let mut given = read(name, row, &words, None)?;
    given.follows |= !actions.is_empty() && !selects_regular_files(arguments);
    options_and_operands(name, row, &given, scene, found)?;
    let path = found_path();
    for action in actions {
        if action
            .first()
            .is_some_and(|word| word.prefix().contains("{}"))
        {
            return Err("a file that was found is run as a command".to_owned());
        }
        let replaced = |word: &Word| match word.known() {
            Some("{}") => Ok(path.clone()),
            Some(text) if text.contains("{}") => Err(unresolved(word)),
            _ => Ok(word.clone()),
        };
        let inner: Result<Vec<Word>, String> = action.iter().map(replaced).collect();
        command(&inner?, scene, found, true)?;
    }
    Ok(())
}

/// A word for the paths of the files that `find` passes to a command.
fn found_path() -> Word {
    let path: Vec<Atom> = FOUND.chars().map(|c| Atom::Char(c, false)).collect();
    from_atoms(&path, true)
}

/// Whether the expression of `find` selects regular files only, and no links.
fn selects_regular_files(arguments: &[Word]) -> bool {
    const EITHER: &[&str] = &["-o", "-or", "!", "-not", ",", "(", "-L", "-follow"];
    let is = |word: &Word, texts: &[&str]| word.known().is_some_and(|text| texts.contains(&text));
    let mut pairs = arguments.windows(2);
    pairs.any(|two| is(&two[0], &["-type"]) && is(&two[1], &["f"]))
        && !arguments.iter().any(|word| is(word, EITHER))
}

/// Adds the paths from which `find … -print0` lists files for `xargs -0`. Such a path begins with an operand of `find`,
/// so it is not an option. Without `-print0`, a file name with blanks or line breaks may become any words.
fn add_found_files(scene: &Scene, found: &mut ReadOnly) -> Result<bool, String> {
    let Some((first, arguments)) = scene.writer.as_deref().and_then(<[Word]>::split_first) else {
        return Ok(false);
    };
    // These print other texts.
    const OTHERS: &[&str] = &["-print", "-printf", "-ls", "-exec"];
    let is = |word: &Word, texts: &[&str]| word.known().is_some_and(|text| texts.contains(&text));
    if !is(first, &["find"])
        || !arguments.iter().any(|word| is(word, &["-print0"]))
        || arguments.iter().any(|word| is(word, OTHERS))
    {
        return Ok(false);
    }
    let row = table()?.row("find").ok_or("`find` is missing")?;
    let is_operator = |word: &Word| is(word, &["(", ")", "!", ","]);
    let words: Vec<Word> = arguments
        .iter()
        .filter(|word| !is_operator(word))
        .cloned()
        .collect();
    let mut given = read("find", row, &words, None)?;
    given.follows |= !selects_regular_files(arguments);
    options_and_operands("find", row, &given, scene, found)?;
    Ok(true)
}

/// Checks `xargs`. The words from its input may be any options and any paths, except those that `find` lists.
pub(super) fn xargs(
    name: &str,
    row: &Row,
    arguments: &[Word],
    scene: &Scene,
    found: &mut ReadOnly,
) -> Result<(), String> {
    let given = read(name, row, arguments, Some(0))?;
    options_and_operands(name, row, &given, scene, found)?;
    let rest = &arguments[given.rest..];
    let at = arguments[..given.rest]
        .iter()
        .position(|word| word.prefix().starts_with("-I"));
    let is_separated = given.has(&["-0".to_owned(), "--null".to_owned()]);
    let is_listed = at.is_none() && is_separated && add_found_files(scene, found)?;
    let mut inner: Vec<Word> = match at {
        Some(at) => {
            let attached = arguments[at].prefix().trim_start_matches("-I");
            let next = arguments.get(at + 1).map(Word::prefix);
            let replaced = match (attached, next) {
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
    command(&inner, scene, found, true)
}
