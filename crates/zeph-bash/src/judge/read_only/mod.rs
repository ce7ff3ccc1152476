//! Decides whether a command only reads, and collects the paths that it names.
//!
//! `reads.toml` is the table of commands that only read, with the options and operands that keep them so. Its header
//! describes the fields, and `table` compiles it. This module checks everything around simple commands. A construct without a
//! rule is not read-only.
//!
//! - `simple` checks a simple command. `arguments` reads its words by its row, and `location` completes its paths.
//! - Some commands have rules of their own: `cd` (`change_directory`), `test` (`conditions`), `find` and `xargs` (`find`).
//! - `scripts` checks the scripts for `awk`, `sed`, `jq` and `printf`.

mod arguments;
mod change_directory;
mod conditions;
mod find;
mod location;
mod scripts;
mod simple;
mod table;

use std::path::{Path, PathBuf};

use super::blocklist::ShellPolicy;
use super::evaluate::{CommandContext, Decider, Verdict, WorkingDirState};
use crate::syntax::ast::{Assignment, Command, Connector, Construct, Kind, Redirect, Shape};
use crate::syntax::reading::Parsed;
use crate::syntax::special_variables::{decides_what_runs, is_environment};
use crate::syntax::word::{Atom, Word, from_atoms};
use arguments::unresolved;
use location::Location;
use table::table;

/// The path of the pipe that a process substitution passes to a command.
const PIPE: &str = "/dev/fd/63";
/// The end of the message about a word that no rule of the table admits.
const NOT_LISTED: &str = "is not in the table of read-only commands";
/// The maximum number of paths that are collected for one command.
const MAX_PATHS: usize = 1000;

/// A command that only reads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReadOnly {
    /// The paths that it names or reads by default, each once.
    pub paths: Vec<ReadPath>,
    /// The names of the programs that it and its programs start from `PATH`, each once.
    pub programs: Vec<String>,
}

/// A path that a command reads.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReadPath {
    /// The given text.
    pub given: String,
    /// The possible absolute paths. `..` and links are not resolved: the system resolves links before `..`.
    pub bases: Vec<PathBuf>,
    /// Whether it is a pattern that the shell replaces by the files that match.
    pub is_glob: bool,
    /// Whether the command follows links that it finds below the path.
    pub follows_links: bool,
    /// Whether a match of the pattern that begins with `-` would be an option. A command with such a match is not
    /// read-only.
    pub can_be_option: bool,
}

/// The reason why a command may do more than read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
#[non_exhaustive]
pub struct NotReadOnly {
    /// The reason.
    pub why: String,
}

/// Decides whether a command that starts at `start` only reads: it writes no files, uses no network, and starts no
/// programs other than those in the table of read-only commands.
///
/// # Errors
/// [`NotReadOnly`] with the first part that may do more, or that is known only when the command runs.
pub fn read_only(parsed: &Parsed, start: &WorkingDirState) -> Result<ReadOnly, NotReadOnly> {
    let no = |why: String| NotReadOnly { why };
    let list = parsed.tree().map_err(|error| no(error.to_string()))?;
    let policy = ShellPolicy::open();
    let mut decider = Decider::new(&policy, start);
    decider.places.returns = false;
    decider.reads = Some(Box::new(Collector {
        start: start.cwd.clone(),
        ..Collector::default()
    }));
    decider.walk(list);
    let collector = decider.reads.take().map(|collector| *collector);
    let collector = collector.unwrap_or_default();
    match (collector.why, decider.verdict) {
        (Some(why), _) | (None, Verdict::Ask { why, .. } | Verdict::Block { what: why }) => {
            Err(no(why))
        }
        (None, Verdict::Allow) => Ok(collector.found),
    }
}

/// The paths and programs of a command, and the first reason why it does more than read.
#[derive(Debug, Default)]
pub(super) struct Collector {
    start: PathBuf,
    found: ReadOnly,
    why: Option<String>,
}

impl Collector {
    fn refuse(&mut self, why: impl Into<String>) {
        self.why.get_or_insert_with(|| why.into());
    }
}

impl Decider<'_> {
    /// Refuses commands that continue in the background.
    pub(super) fn check_connector(&mut self, then: Connector) {
        if let (Some(reads), Connector::Background) = (&mut self.reads, then) {
            reads.refuse("a command in the background");
        }
    }

    /// Checks a command before it is judged, but not the commands inside of it.
    pub(super) fn check_reads(&mut self, command: &Command, around: &CommandContext) {
        let Some(mut reads) = self.reads.take() else {
            return;
        };
        if reads.why.is_none()
            && let Err(why) = self.check_command(command, around, &mut reads)
        {
            reads.refuse(why);
        }
        self.reads = Some(reads);
    }

    fn check_command(
        &self,
        command: &Command,
        around: &CommandContext,
        reads: &mut Collector,
    ) -> Result<(), String> {
        let now = self.places.now();
        let known = (self.later == 0).then(|| now.iter().cloned().collect());
        let location = Location {
            places: known.flatten(),
            start: reads.start.clone(),
            home: self.places.home_path().map(Path::to_owned),
            writer: around.writer.clone(),
        };
        let found = &mut reads.found;
        let is_piped = is_only_piped(command);
        for redirect in &command.redirects {
            self.check_redirect(redirect, is_piped, &location, found)?;
        }
        match &command.kind {
            Kind::Simple { assignments, words } => {
                for assignment in assignments {
                    check_assignment(assignment, !words.is_empty())?;
                }
                location.add_globs(&command.others, found)?;
                for words in self.choices(words, is_piped) {
                    simple::command(&words, &location, found, false)?;
                }
            }
            Kind::Compound(Shape::Each { .. }, _) => {
                for reading in self.readings(&command.others, true) {
                    location.add_globs(&reading.words, found)?;
                }
            }
            Kind::Subshell(_) | Kind::Compound(..) => {}
            Kind::Expression => {
                conditions::check_conditions(&command.others, true, &location, found)?;
            }
            Kind::Function { name, .. } => return Err(format!("it defines the function `{name}`")),
        }
        if found.paths.len() > MAX_PATHS {
            return Err("it has too many paths".to_owned());
        }
        Ok(())
    }

    fn check_redirect(
        &self,
        redirect: &Redirect,
        is_piped: bool,
        location: &Location,
        found: &mut ReadOnly,
    ) -> Result<(), String> {
        match redirect {
            Redirect::Output { target, .. } => {
                let readings = self.readings(std::slice::from_ref(target), false);
                let mut words = readings.iter().flat_map(|reading| &reading.words);
                match words.find(|word| word.known() != Some("/dev/null")) {
                    Some(word) => Err(format!("it writes to `{}`", word.shown())),
                    None => Ok(()),
                }
            }
            Redirect::Input(word) => {
                for reading in self.readings(std::slice::from_ref(word), false) {
                    for word in &reading.words {
                        let word = if is_piped {
                            as_pipe(word)
                        } else {
                            word.clone()
                        };
                        // The shell opens connections with these paths.
                        if word.prefix().starts_with("/dev/tcp/")
                            || word.prefix().starts_with("/dev/udp/")
                        {
                            return Err(format!("`{}` is a connection", word.shown()));
                        }
                        location.add(&word, found)?;
                    }
                }
                Ok(())
            }
            Redirect::Elsewhere(inner) => self.check_redirect(inner, is_piped, location, found),
            Redirect::Duplicate | Redirect::HereDocument(_) | Redirect::HereString(_) => Ok(()),
        }
    }

    /// The words for each known value of the variables in them, and for each pattern of a loop.
    fn choices(&self, words: &[Word], is_piped: bool) -> Vec<Vec<Word>> {
        let mut choices = Vec::new();
        for reading in self.readings(words, true) {
            let mut words = reading.words;
            if is_piped {
                words.iter_mut().for_each(|word| *word = as_pipe(word));
            }
            let patterns = words.iter().find_map(|word| self.pattern_variable(word));
            let Some((name, patterns)) = patterns else {
                choices.push(words);
                continue;
            };
            for pattern in &patterns {
                let replaced = |word: &Word| with_pattern(word, &name, pattern);
                choices.push(words.iter().map(replaced).collect());
            }
        }
        choices
    }

    /// The variable of a loop over patterns in a word, and the patterns.
    fn pattern_variable(&self, word: &Word) -> Option<(String, Vec<Word>)> {
        word.parts()?.iter().find_map(|atom| {
            let Atom::Variable(variable) = atom else {
                return None;
            };
            let patterns = self.places.value(&variable.name).patterns;
            (!patterns.is_empty()).then(|| (variable.name.clone(), patterns))
        })
    }
}

/// The word in which a quoted variable is replaced by a pattern for its values. An unquoted value may be several words.
fn with_pattern(word: &Word, name: &str, pattern: &Word) -> Word {
    let Some(parts) = word.parts() else {
        return word.clone();
    };
    let mut atoms = Vec::with_capacity(parts.len());
    for part in parts {
        match part {
            Atom::Variable(variable)
                if variable.name == name && variable.quoted && variable.operator.is_empty() =>
            {
                atoms.extend(pattern.atoms());
            }
            other => atoms.push(other.clone()),
        }
    }
    from_atoms(&atoms, true)
}

/// Whether all substitutions in the words of a command are process substitutions.
fn is_only_piped(command: &Command) -> bool {
    let mut constructs = command
        .substitutions
        .iter()
        .map(|substitution| substitution.construct);
    constructs.all(|construct| construct == Construct::ProcessSubstitution)
}

/// A word that is a process substitution, as the path of its pipe. Other words are unchanged.
fn as_pipe(word: &Word) -> Word {
    match word.parts() {
        Some([Atom::Unknown]) if word.substituted => Word::literal(PIPE),
        _ => word.clone(),
    }
}

/// Checks an assignment: before a command, or for the shell itself.
fn check_assignment(assignment: &Assignment, is_for_command: bool) -> Result<(), String> {
    let name = assignment.name.as_str();
    if table()?.admits_variable(name) {
        // Paths in these variables would name other files.
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "._+:-@,/".contains(c);
        let value = assignment.word.known().filter(|_| !assignment.partial);
        let is_known = value.is_some_and(|value| {
            value.chars().all(is_plain) && !value.starts_with(['/', ':']) && !value.contains("..")
        });
        return match is_known {
            true => Ok(()),
            false => Err(format!("the value of `{name}` may name a file")),
        };
    }
    // A variable that programs see remains in their environment.
    let lower = name.to_ascii_lowercase();
    let is_special = is_environment(name)
        || decides_what_runs(name)
        || name == "_"
        || lower.starts_with("npm_")
        || lower.starts_with("bash_");
    match is_for_command || is_special {
        true => Err(format!("it sets the variable `{name}`")),
        false => Ok(()),
    }
}

/// The error for a word that no rule of the table admits.
fn unknown_word(word: &Word) -> String {
    match word.pattern() {
        None => unresolved(word),
        Some(text) => format!("`{text}` {NOT_LISTED}"),
    }
}

#[cfg(test)]
mod tests;
