//! The conditions of `test`, `[` and `[[`.

use super::arguments::unresolved;
use super::location::Location;
use super::{ReadOnly, unknown_word};
use crate::syntax::word::{Atom, Word};

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

/// Checks the words of `test` and `[`, or with `is_keyword`, of `[[`. In `test`, a word with an unknown text must not
/// be an operator.
pub(super) fn check_conditions(
    words: &[Word],
    is_keyword: bool,
    location: &Location,
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
            location.add(word, found)?;
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
                location.add_globs(std::slice::from_ref(word), found)?;
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
