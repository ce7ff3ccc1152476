//! Checks simple commands by the table of read-only commands.

use super::arguments::{Arguments, Operand, read, unresolved};
use super::change_directory::change_directory;
use super::conditions::check_conditions;
use super::find::{find, xargs};
use super::location::Location;
use super::scripts::objection;
use super::table::{Form, Operands, Row, Table, table};
use super::{NOT_LISTED, ReadOnly, check_assignment, unknown_word};
use crate::syntax::ast::Assignment;
use crate::syntax::word::Word;

/// Checks a simple command; with `is_inner`, one that another command runs.
pub(super) fn command(
    words: &[Word],
    location: &Location,
    found: &mut ReadOnly,
    is_inner: bool,
) -> Result<(), String> {
    let Some((first, arguments)) = words.split_first() else {
        return Ok(());
    };
    let name = first.known().ok_or_else(|| unresolved(first))?;
    let table = table()?;
    if let [argument] = arguments
        && let Some(argument) = argument.known()
        && table.prints_version(name, argument)
    {
        add_program(name, found);
        return Ok(());
    }
    let row = table.row(&[name]).ok_or_else(|| unknown_word(first))?;
    if !row.builtin {
        add_program(name, found);
    }
    for program in &row.starts {
        add_program(program, found);
    }
    if let Some(word) = words.iter().find(|word| has_refused(row, word)) {
        return Err(unknown_word(word));
    }
    match row.form {
        Some(Form::Cd) if is_inner => Err(unknown_word(first)),
        Some(Form::Cd) => change_directory(name, row, arguments, location, found),
        Some(Form::Test) => check_conditions(arguments, false, location, found),
        Some(Form::Find) => find(name, row, arguments, location, found),
        Some(Form::Xargs) => xargs(name, row, arguments, location, found),
        None if row.subcommands => subcommand(table, name, row, arguments, location, found),
        None if row.inner.is_some() => wrapper(name, row, arguments, location, found),
        None => {
            let given = read(name, row, arguments, None)?;
            options_and_operands(name, row, &given, location, found)
        }
    }
}

fn add_program(name: &str, found: &mut ReadOnly) {
    if !found.programs.iter().any(|program| program == name) {
        found.programs.push(name.to_owned());
    }
}

/// Whether a word contains a text that the row does not admit in any word.
fn has_refused(row: &Row, word: &Word) -> bool {
    let text = word.pattern().unwrap_or_else(|| word.prefix());
    // A pattern may match such a name.
    let is_open = word.known().is_none() && text.starts_with(['*', '?', '[']);
    row.refuses
        .iter()
        .any(|refused| match refused.strip_prefix('^') {
            Some(start) => is_open || text.starts_with(start),
            None => text.contains(refused),
        })
}

/// Checks the options, files, scripts and operands of a command.
pub(super) fn options_and_operands(
    name: &str,
    row: &Row,
    given: &Arguments,
    location: &Location,
    found: &mut ReadOnly,
) -> Result<(), String> {
    let location = &location.of_arguments(given, found)?;
    if !row.needs.is_empty() && !given.has(&row.needs) {
        return Err(format!(
            "`{name}` without `{}` {NOT_LISTED}",
            row.needs.join("` or `")
        ));
    }
    let is_open = |(option, others): &(&String, &Vec<String>)| {
        given.seen.contains(option) && !given.has(others)
    };
    if let Some((option, _)) = row.requires.iter().find(is_open) {
        return Err(format!("`{name} {option}` {NOT_LISTED}"));
    }
    let follows = match &row.follows_unless {
        Some(options) => !given.has(options),
        None => given.follows && (row.follows_need.is_empty() || given.has(&row.follows_need)),
    };
    for file in &given.files {
        location.add_operand(file, follows, false, found)?;
    }
    let has_first = !given.has(&row.unless);
    let count = if has_first { row.first } else { 0 };
    let (first, operands) = given.operands.split_at(count.min(given.operands.len()));
    let mut scripts = given.scripts.clone();
    for operand in first {
        // A pattern or an unresolved word may become several words.
        let text = operand
            .word
            .known()
            .ok_or_else(|| unresolved(&operand.word))?;
        scripts.push(text.to_owned());
    }
    if let Some(language) = row.language {
        let script = scripts.join("\n");
        if let Some(why) = objection(language, &script) {
            return Err(why);
        }
    }
    check_operands(name, row, given, operands)?;
    let mut is_named = !given.files.is_empty() && row.operands != Operands::Paths;
    for operand in operands {
        let word = &operand.word;
        match row.operands {
            Operands::Paths => {
                location.add_operand(word, follows, operand.can_be_option, found)?;
                is_named = true;
            }
            Operands::Text | Operands::None if word.known().is_none() => {
                if word.pattern().is_some() {
                    location.add_operand(word, false, operand.can_be_option, found)?;
                }
            }
            Operands::Text | Operands::None => {}
        }
    }
    if let Some(here) = &row.here
        && !is_named
        && (here.is_empty() || given.has(here))
    {
        location.add_operand(&Word::literal("."), follows, false, found)?;
    }
    Ok(())
}

/// Checks the number and the texts of operands.
pub(super) fn check_operands(
    name: &str,
    row: &Row,
    given: &Arguments,
    operands: &[Operand],
) -> Result<(), String> {
    let Some(operand) = operands.first() else {
        return Ok(());
    };
    let unlisted = |word: &Word| format!("`{name} {}` {NOT_LISTED}", word.shown());
    if row.operands == Operands::None {
        return Err(unlisted(&operand.word));
    }
    if !row.operands_need.is_empty() && !given.has(&row.operands_need) {
        return Err(unlisted(&operand.word));
    }
    if let Some(maximum) = row.maximum {
        if let Some(operand) = operands.get(maximum) {
            return Err(unlisted(&operand.word));
        }
        // A pattern or an unresolved word may become several words.
        if let Some(operand) = operands.iter().find(|given| given.word.known().is_none()) {
            return Err(unresolved(&operand.word));
        }
    }
    // Some programs read options after `+`. Git reads a key as a subcommand if it has no section.
    let is_unsafe = |given: &Operand| {
        let text = given.word.prefix();
        let has_plus =
            row.operands == Operands::Paths && given.can_be_option && text.starts_with('+');
        let is_bare = row.dotted && !text.contains('.');
        has_plus || is_bare
    };
    if let Some(operand) = operands.iter().find(|given| is_unsafe(given)) {
        return Err(unlisted(&operand.word));
    }
    if !row.words.is_empty() {
        let is_listed = |word: &Word| {
            word.known()
                .is_some_and(|text| row.words.iter().any(|known| known == text))
        };
        if let Some(operand) = operands.iter().find(|given| !is_listed(&given.word)) {
            return Err(unlisted(&operand.word));
        }
    }
    Ok(())
}

/// Checks a command with a subcommand: `git log`, `git stash list`.
fn subcommand(
    table: &Table,
    name: &str,
    row: &Row,
    arguments: &[Word],
    location: &Location,
    found: &mut ReadOnly,
) -> Result<(), String> {
    let given = read(name, row, arguments, Some(0))?;
    let rest = &arguments[given.rest..];
    let location = &location.of_arguments(&given, found)?;
    let Some(first) = rest.first() else {
        return Err(format!("`{name}` without a subcommand {NOT_LISTED}"));
    };
    let first = first.known().ok_or_else(|| unresolved(first))?;
    let one = format!("{name} {first}");
    let two = rest.get(1).and_then(Word::known);
    let longer = two.and_then(|second| {
        let row = table.row(&[name, first, second])?;
        Some((row, format!("{one} {second}"), 2))
    });
    let shorter = || table.row(&[name, first]).map(|row| (row, one.clone(), 1));
    let Some((row, name, count)) = longer.or_else(shorter) else {
        return Err(format!("`{one}` {NOT_LISTED}"));
    };
    if let Some(word) = rest.iter().find(|word| has_refused(row, word)) {
        return Err(unknown_word(word));
    }
    for program in &row.starts {
        add_program(program, found);
    }
    let given = read(&name, row, &rest[count..], None)?;
    options_and_operands(&name, row, &given, location, found)
}

/// Checks a command that runs the command formed by its operands: `timeout 5 ls`.
fn wrapper(
    name: &str,
    row: &Row,
    arguments: &[Word],
    location: &Location,
    found: &mut ReadOnly,
) -> Result<(), String> {
    let given = read(name, row, arguments, row.inner)?;
    if given.has(&row.inner_unless) {
        let mut words = arguments[given.rest..].iter();
        return words.try_for_each(|word| word.known().map(drop).ok_or_else(|| unresolved(word)));
    }
    let mut rest = &arguments[given.rest..];
    while row.assigns
        && let Some((word, after)) = rest.split_first()
        && word.prefix().contains('=')
    {
        let (variable, _) = word.prefix().split_once('=').unwrap_or_default();
        let assignment = Assignment {
            word: word.after(variable.len() + 1),
            ..Assignment::unknown(variable)
        };
        check_assignment(&assignment, true)?;
        rest = after;
    }
    if rest.is_empty() && (row.inner != Some(0) || !row.assigns) {
        return Err(format!("`{name}` without a command {NOT_LISTED}"));
    }
    command(rest, location, found, true)
}
