//! Checks simple commands by the table of read-only commands.

use std::path::PathBuf;
use std::rc::Rc;

use super::arguments::{Arguments, Operand, read, unresolved};
use super::scripts::objection;
use super::table::{Form, Operands, Row, Table, table};
use super::{PIPE, ReadOnly, ReadPath, check_assignment, unknown_word};
use crate::judge::places::normalize_path;
use crate::syntax::ast::Assignment;
use crate::syntax::word::{Atom, Word, from_atoms};

/// The pattern that replaces the paths that `find` passes to a command. `find` reports the folders that it searches.
const FOUND: &str = "/dev/null/*";

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

/// The directories from which a command runs.
#[derive(Debug, Clone)]
pub(super) struct Scene {
    /// The possible working directories, if all of them are known.
    pub(super) places: Option<Vec<PathBuf>>,
    /// The directory in which the whole command starts.
    pub(super) start: PathBuf,
    pub(super) home: Option<PathBuf>,
    /// The words of the simple command that writes to standard input.
    pub(super) writer: Option<Rc<[Word]>>,
}

impl Scene {
    /// Adds a path that the command reads.
    pub(super) fn add(
        &self,
        word: &Word,
        follows_links: bool,
        can_be_option: bool,
        found: &mut ReadOnly,
    ) -> Result<(), String> {
        let Some(text) = word.pattern() else {
            return Err(unresolved(word));
        };
        if matches!(text, "" | "-" | "/dev/null" | "/dev/stdin" | PIPE | FOUND) {
            return Ok(());
        }
        let is_glob = word.known().is_none();
        let bases = match (&self.places, text.starts_with('/')) {
            (_, true) => vec![PathBuf::from(text)],
            (Some(places), _) => places.iter().map(|place| place.join(text)).collect(),
            (None, _) => {
                return Err(format!(
                    "the directory of `{text}` cannot be known before the command runs"
                ));
            }
        };
        let path = ReadPath {
            given: text.to_owned(),
            bases,
            is_glob,
            follows_links,
            can_be_option: is_glob && can_be_option && text.starts_with(['*', '?', '[']),
        };
        if !found.paths.contains(&path) {
            found.paths.push(path);
        }
        Ok(())
    }

    /// Adds the patterns among words that are not paths: the shell reads their directories.
    pub(super) fn add_globs(&self, words: &[Word], found: &mut ReadOnly) -> Result<(), String> {
        let mut globs = words
            .iter()
            .filter(|word| word.known().is_none() && word.pattern().is_some());
        globs.try_for_each(|word| self.add(word, false, false, found))
    }

    /// The scene in the directory that an option names.
    fn moved(&self, directory: &Word, found: &mut ReadOnly) -> Result<Self, String> {
        self.add(directory, false, false, found)?;
        let to = directory.known().ok_or_else(|| unresolved(directory))?;
        let places = self.places.as_ref();
        Ok(Self {
            places: match to.starts_with('/') {
                true => Some(vec![PathBuf::from(to)]),
                false => places.map(|places| places.iter().map(|place| place.join(to)).collect()),
            },
            ..self.clone()
        })
    }
}

/// Checks the words of a simple command.
pub(super) fn check(words: &[Word], scene: &Scene, found: &mut ReadOnly) -> Result<(), String> {
    command(words, scene, found, false)
}

/// Checks a simple command; with `is_inner`, one that another command runs.
fn command(
    words: &[Word],
    scene: &Scene,
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
    let row = table.row(name).ok_or_else(|| unknown_word(first))?;
    if !row.builtin {
        add_program(name, found);
    }
    if let Some(word) = words.iter().find(|word| has_refused(row, word)) {
        return Err(unknown_word(word));
    }
    match row.form {
        Some(Form::Cd) if is_inner => Err(unknown_word(first)),
        Some(Form::Cd) => change_directory(name, row, arguments, scene, found),
        Some(Form::Test) => check_conditions(arguments, false, scene, found),
        Some(Form::Find) => find(name, row, arguments, scene, found),
        Some(Form::Xargs) => xargs(name, row, arguments, scene, found),
        None if row.subcommands => subcommand(table, name, row, arguments, scene, found),
        None if row.inner.is_some() => wrapper(name, row, arguments, scene, found),
        None => {
            let given = read(name, row, arguments, None)?;
            options_and_operands(name, row, &given, scene, found)
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
    row.refuses.iter().any(|refused| text.contains(refused))
}

/// Checks the options, files, scripts and operands of a command.
fn options_and_operands(
    name: &str,
    row: &Row,
    given: &Arguments,
    scene: &Scene,
    found: &mut ReadOnly,
) -> Result<(), String> {
    let moved = match &given.directory {
        Some(directory) => scene.moved(directory, found)?,
        None => scene.clone(),
    };
    let scene = &moved;
    if !row.needs.is_empty() && !given.has(&row.needs) {
        return Err(format!(
            "`{name}` without `{}` is not in the table of read-only commands",
            row.needs.join("` or `")
        ));
    }
    let follows = given.follows && (row.follows_need.is_empty() || given.has(&row.follows_need));
    for file in &given.files {
        scene.add(file, follows, false, found)?;
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
                scene.add(word, follows, operand.can_be_option, found)?;
                is_named = true;
            }
            Operands::Text | Operands::None if word.known().is_none() => {
                if word.pattern().is_some() {
                    scene.add(word, false, operand.can_be_option, found)?;
                }
            }
            Operands::Text | Operands::None => {}
        }
    }
    if let Some(here) = &row.here
        && !is_named
        && (here.is_empty() || given.has(here))
    {
        scene.add(&Word::literal("."), follows, false, found)?;
    }
    Ok(())
}

/// Checks the number and the texts of operands.
fn check_operands(
    name: &str,
    row: &Row,
    given: &Arguments,
    operands: &[Operand],
) -> Result<(), String> {
    let Some(operand) = operands.first() else {
        return Ok(());
    };
    let unlisted = |word: &Word| {
        format!(
            "`{name} {}` is not in the table of read-only commands",
            word.shown()
        )
    };
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
    scene: &Scene,
    found: &mut ReadOnly,
) -> Result<(), String> {
    let given = read(name, row, arguments, Some(0))?;
    let rest = &arguments[given.rest..];
    let moved = match &given.directory {
        Some(directory) => scene.moved(directory, found)?,
        None => scene.clone(),
    };
    let Some(first) = rest.first() else {
        return Err(format!(
            "`{name}` without a subcommand is not in the table of read-only commands"
        ));
    };
    let first = first.known().ok_or_else(|| unresolved(first))?;
    let one = format!("{name} {first}");
    let two = rest
        .get(1)
        .and_then(Word::known)
        .map(|second| format!("{one} {second}"));
    let longer = two.and_then(|two| Some((table.row(&two)?, two, 2)));
    let shorter = || table.row(&one).map(|row| (row, one.clone(), 1));
    let Some((row, name, count)) = longer.or_else(shorter) else {
        return Err(format!("`{one}` is not in the table of read-only commands"));
    };
    if let Some(word) = rest.iter().find(|word| has_refused(row, word)) {
        return Err(unknown_word(word));
    }
    let given = read(&name, row, &rest[count..], None)?;
    options_and_operands(&name, row, &given, &moved, found)
}

/// Checks a command that runs the command formed by its operands: `timeout 5 ls`.
fn wrapper(
    name: &str,
    row: &Row,
    arguments: &[Word],
    scene: &Scene,
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
        return Err(format!(
            "`{name}` without a command is not in the table of read-only commands"
        ));
    }
    command(rest, scene, found, true)
}

/// Checks a `cd`. A directory that does not exist makes the shell resolve `..` after links, so `..` is admitted only
/// if the result certainly exists.
fn change_directory(
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
fn find(
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
fn xargs(
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
