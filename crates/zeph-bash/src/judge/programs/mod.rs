//! The table of programs that execute text from their arguments or input.
//!
//! The table is data: `wrappers.toml`, `interpreters.toml`, `tools.toml` and `variables.toml`. `row`
//! describes the format, `walk` reads arguments, `judge` decides, and `languages` and `sed` inspect scripts.
//! If the table cannot be read, no command runs. `harmless` is the table of options that leave a command
//! harmless.

mod harmless;
mod judge;
mod languages;
mod row;
mod sed;
mod variables;
mod walk;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::LazyLock;

use serde::Deserialize;

pub use harmless::{ProgramOptions, program_options};
pub(super) use languages::awk_starts_commands;
use row::{Keys, Kind, Row, Written, matches};
pub(super) use sed::sed_only_reads_input;
use walk::{Argument, first_operand, walk};

use super::blocklist::file_name;
use crate::syntax::word::Word;

const SOURCES: &[(&str, &str)] = &[
    ("wrappers.toml", include_str!("wrappers.toml")),
    ("interpreters.toml", include_str!("interpreters.toml")),
    ("tools.toml", include_str!("tools.toml")),
    ("variables.toml", include_str!("variables.toml")),
];

static TABLE: LazyLock<Result<Table, String>> = LazyLock::new(|| Table::read(SOURCES));

/// A variable that makes a program run its value.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Variable {
    names: Vec<String>,
    kind: Kind,
    /// The program that reads the options in the value.
    #[serde(default)]
    program: Option<String>,
    /// Whether an unresolved value is accepted.
    #[serde(default)]
    lenient: bool,
}

/// A list of keys that several rows share.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SharedKeys {
    name: String,
    globs: BTreeMap<Kind, Vec<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Source {
    program: Vec<Written>,
    variable: Vec<Variable>,
    keys: Vec<SharedKeys>,
}

/// The table of programs and variables.
#[derive(Debug, Default)]
pub(super) struct Table {
    rows: Vec<Row>,
    by_name: HashMap<String, usize>,
    /// Names that have subcommands in the table.
    parents: BTreeSet<String>,
    variables: Vec<Variable>,
}

/// The table, or the reason why it cannot be read.
pub(super) fn table() -> Result<&'static Table, &'static str> {
    TABLE.as_ref().map_err(String::as_str)
}

/// The rows that describe a command, each with the index of its first argument.
pub(super) type Rows<'t> = Vec<(&'t Row, usize)>;

impl Table {
    fn read(sources: &[(&str, &str)]) -> Result<Self, String> {
        let mut table = Self::default();
        let mut shared: BTreeMap<String, Keys> = BTreeMap::new();
        let mut written = Vec::new();
        for (file, text) in sources {
            let source: Source =
                toml::from_str(text).map_err(|error| format!("{file}: {error}"))?;
            for keys in source.keys {
                shared.insert(keys.name, row::keys(&keys.globs, None));
            }
            written.extend(source.program.into_iter().map(|row| (*file, row)));
            for variable in source.variable {
                table.variables.push(variable);
            }
        }
        for (file, row) in written {
            let row = row
                .compile(&shared)
                .map_err(|error| format!("{file}: {error}"))?;
            let index = table.rows.len();
            for name in &row.names {
                if table.by_name.insert(name.clone(), index).is_some() {
                    return Err(format!("{file}: {name:?} has two rows"));
                }
                for (at, _) in name.match_indices(' ') {
                    table.parents.insert(name[..at].to_owned());
                }
            }
            table.rows.push(row);
        }
        Ok(table)
    }

    /// The row of a program, found by its name or by its name without a version.
    fn row(&self, name: &str) -> Option<&Row> {
        let exact = self.by_name.get(name).map(|index| &self.rows[*index]);
        exact.or_else(|| {
            let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || ".-".contains(c));
            let row = &self.rows[*self.by_name.get(plain)?];
            row.versions.then_some(row)
        })
    }

    /// The rows of a command: the row of the program, and that of its subcommand.
    pub(super) fn rows(&self, name: &str, arguments: &[Word]) -> Rows<'_> {
        let mut rows: Rows<'_> = self.row(name).into_iter().map(|row| (row, 0)).collect();
        let mut key = name.to_owned();
        let mut from = 0;
        while self.parents.contains(&key) {
            let row = self.by_name.get(&key).map(|index| &self.rows[*index]);
            let rest = arguments.get(from..).unwrap_or_default();
            let Some(at) = first_operand(row, rest) else {
                break;
            };
            // `cargo +nightly build`
            let Some(word) = rest[at].known() else { break };
            from += at + 1;
            if word.starts_with('+') {
                continue;
            }
            key = format!("{key} {word}");
            if let Some(index) = self.by_name.get(&key) {
                rows.push((&self.rows[*index], from));
            }
        }
        rows
    }

    /// Whether the program has subcommands, and the subcommand in these arguments is unresolved.
    pub(super) fn hides_subcommand(&self, name: &str, arguments: &[Word]) -> bool {
        self.parents.contains(name)
            && first_operand(self.row(name), arguments)
                .is_some_and(|at| arguments[at].known().is_none())
    }

    fn variable(&self, name: &str) -> Option<&Variable> {
        let fits = |variable: &&Variable| variable.names.iter().any(|glob| matches(glob, name));
        self.variables.iter().find(fits)
    }
}

/// Whether a command with this name runs a script.
pub(super) fn is_interpreter(name: &str) -> bool {
    table().is_ok_and(|table| table.row(name).is_some_and(|row| row.interpreter))
}

/// Whether a command with this name takes scripts as arguments or input. Scripts can contain file names.
pub(super) fn takes_programs(name: &str) -> bool {
    let programs = |row: &Row| row.programs || row.operand == Some(Kind::Program);
    table().is_ok_and(|table| table.row(name).is_some_and(programs))
}

/// Whether a command with this name runs one of its arguments, and the table does not list which one.
pub(super) fn is_loose(name: &str) -> bool {
    table().is_ok_and(|table| table.row(name).is_some_and(|row| row.loose))
}

/// Whether a command with this name runs the command formed by its operands.
pub(super) fn is_wrapper(name: &str) -> bool {
    table().is_ok_and(|table| table.row(name).is_some_and(|row| row.rest.is_some()))
}

/// Whether unresolved words of a command may be options that start another command. For `sed` with a known script,
/// such an option is unlikely: its usual operands are file names.
pub(super) fn takes_options(words: &[Word]) -> bool {
    let (Ok(table), Some((first, arguments))) = (table(), words.split_first()) else {
        return true;
    };
    let Some(name) = first.known().map(file_name) else {
        return true;
    };
    table.rows(name, arguments).iter().any(|(row, from)| {
        let found = walk(row, &arguments[*from..]);
        row.language != row::Language::Sed
            && row.rest.is_none()
            && row.starts()
            && found.iter().any(|found| matches!(found, Argument::Hole(_)))
    })
}

/// Whether the words of a command make it run another command.
pub(super) fn runs(words: &[Word]) -> bool {
    let (Ok(table), Some((first, arguments))) = (table(), words.split_first()) else {
        return true;
    };
    let Some(name) = first.known().map(file_name) else {
        return true;
    };
    table.rows(name, arguments).iter().any(|(row, from)| {
        let found = walk(row, &arguments[*from..]);
        row.asks
            || row.rest.is_some()
            || (row.operands == Some(Kind::Script))
            || found.iter().any(|found| row.starts_command(found))
    })
}

impl Row {
    fn starts_command(&self, found: &Argument) -> bool {
        let Argument::Option { opt, value, .. } = found else {
            return matches!(found, Argument::Partial(_)) && self.has_runs();
        };
        match (opt.kind, value) {
            (Some(Kind::Setting), Some(value)) => self.setting_kind(value).is_none_or(Kind::runs),
            (Some(kind), _) => kind.runs(),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests;
