//! The table of read-only commands: `reads.toml`, and its compiled form.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use serde::Deserialize;

const SOURCE: &str = include_str!("reads.toml");

static TABLE: LazyLock<Result<Table, String>> = LazyLock::new(|| Table::read(SOURCE));

/// The table, or the reason why it cannot be read.
pub(super) fn table() -> Result<&'static Table, String> {
    TABLE
        .as_ref()
        .map_err(|error| format!("the table of read-only commands cannot be read: {error}"))
}

/// The meaning of operands, and of values of options.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Operands {
    /// Each names a file.
    #[default]
    Paths,
    /// None names a file.
    Text,
    /// The command takes none.
    None,
}

/// The language of the script of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Language {
    Awk,
    Sed,
    Jq,
    Printf,
}

/// Commands whose arguments no option list describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Form {
    Cd,
    Test,
    Find,
    Xargs,
}

/// The values that an option takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arity {
    /// No value.
    Flag,
    /// A value in the same word, or none.
    Attached,
    /// A value in the same word or the next one.
    Value,
    /// Two values in the next two words; the last one has the kind.
    Pair,
}

/// The kind of the value of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueKind {
    /// It names no file.
    Text,
    /// A file that is read.
    File,
    /// A script in the language of the row.
    Script,
    /// The directory to which the other words are relative.
    Directory,
}

/// An option of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Opt {
    pub(super) arity: Arity,
    pub(super) kind: ValueKind,
    /// Whether the command follows links below its operands.
    pub(super) follows: bool,
}

/// A row: the options and operands with which a command only reads. The header of `reads.toml` describes the fields.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a property of the row in the table"
)]
pub(super) struct Row {
    names: Vec<String>,
    flags: String,
    values: String,
    optional: String,
    files: String,
    scripts: String,
    directories: String,
    follows: String,
    long: String,
    pub(super) builtin: bool,
    pub(super) one_dash: bool,
    pub(super) bundle: bool,
    pub(super) stops: bool,
    pub(super) plus: bool,
    pub(super) assigns: bool,
    pub(super) subcommands: bool,
    pub(super) any_word: bool,
    pub(super) operands: Operands,
    pub(super) first: usize,
    pub(super) unless: Vec<String>,
    pub(super) maximum: Option<usize>,
    pub(super) needs: Vec<String>,
    pub(super) operands_need: Vec<String>,
    pub(super) requires: BTreeMap<String, Vec<String>>,
    pub(super) follows_need: Vec<String>,
    pub(super) follows_unless: Option<Vec<String>>,
    pub(super) here: Option<Vec<String>>,
    pub(super) words: Vec<String>,
    pub(super) dotted: bool,
    pub(super) refuses: Vec<String>,
    pub(super) language: Option<Language>,
    pub(super) inner: Option<usize>,
    pub(super) inner_unless: Vec<String>,
    pub(super) form: Option<Form>,
    pub(super) starts: Vec<String>,
    /// All options with their dashes.
    #[serde(skip)]
    options: BTreeMap<String, Opt>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Source {
    program: Vec<Row>,
    /// Environment variables that a command may set.
    variables: Vec<String>,
    /// The programs that print their version, by the argument.
    versions: BTreeMap<String, Vec<String>>,
    /// Names that start no program, or give it more rights.
    unversioned: Vec<String>,
}

/// The table of read-only commands.
#[derive(Debug, Default)]
pub(super) struct Table {
    rows: Vec<Row>,
    by_name: BTreeMap<String, usize>,
    variables: Vec<String>,
    versions: BTreeMap<String, Vec<String>>,
    unversioned: BTreeSet<String>,
}

impl Table {
    fn read(text: &str) -> Result<Self, String> {
        let source: Source = toml::from_str(text).map_err(|error| error.to_string())?;
        let mut table = Self {
            variables: source.variables,
            versions: source.versions,
            unversioned: source.unversioned.into_iter().collect(),
            ..Self::default()
        };
        for mut row in source.program {
            for name in &row.names {
                if table
                    .by_name
                    .insert(name.clone(), table.rows.len())
                    .is_some()
                {
                    return Err(format!("{name:?} has two rows"));
                }
            }
            row.index_options()?;
            table.rows.push(row);
        }
        Ok(table)
    }

    /// The row of a command, or of a command with its subcommand. A word with a space names another program.
    pub(super) fn row(&self, words: &[&str]) -> Option<&Row> {
        if words.iter().any(|word| word.contains(' ')) {
            return None;
        }
        let index = self.by_name.get(&words.join(" "))?;
        Some(&self.rows[*index])
    }

    /// Whether a command may set the environment variable `name`.
    pub(super) fn admits_variable(&self, name: &str) -> bool {
        let fits = |glob: &String| match glob.strip_suffix('*') {
            Some(prefix) => name.starts_with(prefix),
            None => glob == name,
        };
        self.variables.iter().any(fits)
    }

    /// Whether `name argument` prints the version of any program with this name.
    pub(super) fn prints_version(&self, name: &str, argument: &str) -> bool {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "._+-".contains(c);
        let is_name = name.starts_with(|c: char| c.is_ascii_alphanumeric());
        if !is_name || !name.chars().all(is_plain) || self.unversioned.contains(name) {
            return false;
        }
        let names = self.versions.get(argument);
        names.is_some_and(|names| names.iter().any(|known| known == "*" || known == name))
    }
}

impl Row {
    /// Fills in the index of options.
    fn index_options(&mut self) -> Result<(), String> {
        let new = |arity, kind| Opt {
            arity,
            kind,
            follows: false,
        };
        let plain = new(Arity::Flag, ValueKind::Text);
        let follows = Opt {
            follows: true,
            ..plain
        };
        let letters = [
            (std::mem::take(&mut self.flags), plain),
            (std::mem::take(&mut self.follows), follows),
            (
                std::mem::take(&mut self.values),
                new(Arity::Value, ValueKind::Text),
            ),
            (
                std::mem::take(&mut self.optional),
                new(Arity::Attached, ValueKind::Text),
            ),
            (
                std::mem::take(&mut self.files),
                new(Arity::Value, ValueKind::File),
            ),
            (
                std::mem::take(&mut self.scripts),
                new(Arity::Value, ValueKind::Script),
            ),
            (
                std::mem::take(&mut self.directories),
                new(Arity::Value, ValueKind::Directory),
            ),
        ];
        for (letters, opt) in letters {
            for letter in letters.chars() {
                self.add(format!("-{letter}"), opt)?;
            }
        }
        let dashes = if self.one_dash { "-" } else { "--" };
        for option in std::mem::take(&mut self.long).split_whitespace() {
            let end = option.find(['=', '[', '>']).unwrap_or(option.len());
            let (name, suffix) = option.split_at(end);
            let opt = match suffix {
                "" => plain,
                ">" => follows,
                "[=]" => new(Arity::Attached, ValueKind::Text),
                "=" => new(Arity::Value, ValueKind::Text),
                "=@" => new(Arity::Value, ValueKind::File),
                "=%" => new(Arity::Value, ValueKind::Script),
                "=/" => new(Arity::Value, ValueKind::Directory),
                "==" => new(Arity::Pair, ValueKind::Text),
                "==@" => new(Arity::Pair, ValueKind::File),
                _ => return Err(format!("{option:?} has an unknown suffix")),
            };
            self.add(format!("{dashes}{name}"), opt)?;
        }
        let has_subcommand = self.names.iter().any(|name| name.contains(' '));
        if !has_subcommand && !self.builtin {
            for name in ["--help", "--version"] {
                self.options.entry(name.to_owned()).or_insert(plain);
            }
        }
        Ok(())
    }

    fn add(&mut self, option: String, opt: Opt) -> Result<(), String> {
        match self.options.insert(option.clone(), opt) {
            Some(_) => Err(format!("{option:?} is listed twice")),
            None => Ok(()),
        }
    }

    /// The option with this name, including its dashes. Abbreviations are not recognized.
    pub(super) fn option(&self, name: &str) -> Option<Opt> {
        self.options.get(name).copied()
    }
}

#[cfg(test)]
impl Table {
    /// The names of all rows.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }
}

#[cfg(test)]
impl Row {
    /// All options with their dashes.
    pub(super) fn options(&self) -> impl Iterator<Item = (&str, Opt)> {
        self.options
            .iter()
            .map(|(option, opt)| (option.as_str(), *opt))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// Proves PERM-9.
    #[test]
    fn table_of_the_source_is_valid() {
        let table = Table::read(SOURCE).unwrap();
        assert!(table.rows.len() > 100);
        for (name, index) in &table.by_name {
            if let Some((program, _)) = name.split_once(' ') {
                assert!(table.row(&[program]).unwrap().subcommands, "{name}");
            }
            let row = &table.rows[*index];
            // Only a command that counts its operands or knows their texts can have a limit for them.
            assert!(row.maximum.is_none_or(|maximum| maximum < 4), "{name}");
        }
    }

    /// Proves PERM-9: a table that cannot be read is an error, not an empty table.
    #[test]
    fn table_with_errors_is_refused() {
        let check = |text: &str, expect: &str| {
            let error = Table::read(text).unwrap_err();
            assert!(error.contains(expect), "{text}: {error}");
        };
        check("program = 1", "invalid type");
        check("[[program]]\nnames = ['x', 'x']", "two rows");
        check("[[program]]\nnames = ['x']\nflags = 'aa'", "listed twice");
        check("[[program]]\nnames = ['x']\nlong = 'a=!'", "unknown suffix");
        check("[[program]]\nnames = ['x']\nother = 1", "unknown field");
        check("other = 1", "unknown field");
    }
}
