//! The table of options that leave a command as harmless as it is without them.
//!
//! The table is data: `harmless.toml`, in the format of the table of programs. A remembered approval covers
//! other options only if the table lists each of them. The write detection uses it as well.

use std::sync::LazyLock;

use super::row::Row;
use super::walk::{Argument, walk};
use super::{Rows, Table, file_name};
use crate::syntax::word::Word;

const SOURCE: &[(&str, &str)] = &[("harmless.toml", include_str!("harmless.toml"))];

static TABLE: LazyLock<Result<Table, String>> = LazyLock::new(read);

fn read() -> Result<Table, String> {
    let mut table = Table::read(SOURCE)?;
    for row in &mut table.rows {
        row.exact = true;
    }
    Ok(table)
}

/// The options of a simple command, judged by the table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProgramOptions {
    /// The indexes of the words with an option that the table does not list.
    pub unlisted: Vec<usize>,
    /// The number of leading words for which one approval can allow all calls with listed options; 0 if one
    /// approval cannot.
    pub offered: usize,
    /// Whether the command only reads.
    pub reads: bool,
}

/// Judges the options of a simple command by the table.
pub fn program_options(words: &[Word]) -> ProgramOptions {
    let Some((first, arguments)) = words.split_first() else {
        return ProgramOptions::default();
    };
    let (Ok(table), Some(name)) = (TABLE.as_ref(), first.known()) else {
        return ProgramOptions {
            unlisted: (1..words.len()).collect(),
            ..ProgramOptions::default()
        };
    };
    let name = file_name(name);
    let rows = table.rows(name, arguments);
    let from = listed(table, name, &rows, arguments);
    let last = rows.last().filter(|_| from == arguments.len());
    let mut unlisted = unlisted(&rows, arguments);
    let rest = arguments[from..].iter().enumerate();
    unlisted.extend(
        rest.filter(|(_, word)| may_be_option(word))
            .map(|(at, _)| from + at + 1),
    );
    ProgramOptions {
        offered: last.map_or(0, |(row, from)| {
            match row.offered && row.is_named(&words[..=*from]) {
                true => from + 1,
                false => 0,
            }
        }),
        reads: unlisted.is_empty() && last.is_some_and(|(row, _)| row.reads),
        unlisted,
    }
}

/// The number of arguments that the rows describe: all of them, unless a subcommand has no row.
fn listed(table: &Table, name: &str, rows: &Rows<'_>, arguments: &[Word]) -> usize {
    let Some((row, from)) = rows.last() else {
        return 0;
    };
    let is_parent =
        row.names.iter().any(|full| table.parents.contains(full)) || table.parents.contains(name);
    if !row.stops || !is_parent {
        return arguments.len();
    }
    let found = walk(row, &arguments[*from..]);
    let subcommand = found.iter().find_map(|found| match found {
        Argument::Operand(at) | Argument::Hole(at) => Some(from + at),
        _ => None,
    });
    subcommand.unwrap_or(arguments.len())
}

impl Row {
    /// Whether the words are one of the row's names.
    fn is_named(&self, words: &[Word]) -> bool {
        let words: Vec<&str> = words.iter().map(Word::prefix).collect();
        self.names.contains(&words.join(" "))
    }
}

fn unlisted(rows: &Rows<'_>, arguments: &[Word]) -> Vec<usize> {
    let mut unlisted = Vec::new();
    for (index, (row, from)) in rows.iter().enumerate() {
        let end = rows
            .get(index + 1)
            .map_or(arguments.len(), |(_, next)| next - 1);
        let arguments = arguments.get(*from..end).unwrap_or_default();
        let at = |found: Argument| match found {
            Argument::Unknown(at) | Argument::Partial(at) | Argument::Hole(at) => {
                Some(from + at + 1)
            }
            Argument::Option { .. } | Argument::Operand(_) => None,
        };
        unlisted.extend(walk(row, arguments).into_iter().filter_map(at));
    }
    unlisted.dedup();
    unlisted
}

/// Whether a word of a command without a row may be an option, or a setting such as `of=FILE`.
fn may_be_option(word: &Word) -> bool {
    word.known()
        .is_none_or(|text| (text.len() > 1 && text.starts_with(['-', '+'])) || text.contains('='))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn of(command: &str) -> ProgramOptions {
        program_options(&command.split(' ').map(Word::literal).collect::<Vec<_>>())
    }

    /// Proves PERM-7a.
    #[test]
    fn table_of_harmless_options_is_valid() {
        let table = read().unwrap();
        assert!(table.rows.len() > 30);
    }

    /// Proves PERM-7a: options of the table, in all spellings.
    #[test]
    fn harmless_options_are_listed() {
        let commands = include_str!("tests/harmless.txt");
        assert!(commands.lines().count() >= 100);
        let wrong: Vec<_> = commands
            .lines()
            .filter(|line| !of(line).unlisted.is_empty())
            .collect();
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    /// Proves PERM-7a: options that run, write or work elsewhere, in all spellings.
    #[test]
    fn other_options_are_not_listed() {
        let commands = include_str!("tests/unlisted.txt");
        assert!(commands.lines().count() >= 100);
        let wrong: Vec<_> = commands
            .lines()
            .filter(|line| of(line).unlisted.is_empty())
            .collect();
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    #[test]
    fn unlisted_words_have_their_indexes() {
        let check =
            |command: &str, expect: &[usize]| assert_eq!(of(command).unlisted, expect, "{command}");
        check("sort -u f", &[]);
        check("sort -uo f g", &[1]);
        check("git --no-pager log -C x --output=y", &[5]);
        check("git -C x log", &[1]);
        check("git push -f origin", &[2]);
        check("make -j4 CC=x all", &[1, 2]);
        check("tar tf a.tar", &[]);
        check("tar cIf ./x a.tar", &[1]);
        assert_eq!(of("git log -p").offered, 2);
        assert_eq!(of("git stash list").offered, 3);
        assert_eq!(of("git --no-pager log").offered, 0);
        assert_eq!(of("/usr/bin/git log").offered, 0);
        assert!(of("git log -p").reads);
        assert!(!of("git log --output=x").reads);
        assert_eq!(of("git push").offered, 0);
        assert_eq!(of("cargo test").offered, 2);
        assert_eq!(of("cargo nextest run").offered, 3);
        assert!(!of("cargo test").reads);
    }
}
