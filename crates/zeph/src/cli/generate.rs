//! `zeph completions` and `zeph man`.

use std::fs;
use std::path::Path;

use anyhow::Context as _;
use clap::Command;
use clap_mangen::Man;
use zeph_tools::plural::pluralize;
use zeph_tools::registry::nearest;

use super::{Exit, completion, help, print, usage};

/// Prints a completion script.
///
/// # Errors
/// The shell has no script; standard output cannot be written.
pub(crate) fn completions(shell: clap_complete::Shell) -> anyhow::Result<Exit> {
    let script = completion::script(shell)?;
    print(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}

/// Prints the manual page (roff) of the command with these words, or writes the pages of all commands.
///
/// # Errors
/// The command does not exist; a file cannot be written.
pub(crate) fn man(words: &[String], directory: Option<&Path>) -> anyhow::Result<Exit> {
    let mut command = help::command().disable_help_subcommand(true);
    command.build();
    if let Some(directory) = directory {
        let failed = || {
            format!(
                "the manual pages cannot be written to {}",
                directory.display()
            )
        };
        fs::create_dir_all(directory).with_context(failed)?;
        let count = write_all(&command, directory).with_context(failed)?;
        let pages = pluralize(count, "page");
        print(&format!("wrote {pages} to {}", directory.display()))?;
        return Ok(Exit::Done);
    }
    let mut found = &command;
    for word in words {
        found = subcommand(found, word)?;
    }
    let mut text = Vec::new();
    page(found).render(&mut text)?;
    print(&String::from_utf8_lossy(&text))?;
    Ok(Exit::Done)
}

/// The subcommand `word` of `command`.
fn subcommand<'c>(command: &'c Command, word: &str) -> anyhow::Result<&'c Command> {
    command.find_subcommand(word).ok_or_else(|| {
        let names = command.get_subcommands().map(Command::get_name);
        let near = nearest(word, names, 1).pop();
        let near = near.map_or_else(String::new, |near| format!("; did you mean {near:?}?"));
        let above = command.get_bin_name().unwrap_or("zeph");
        usage(format!("`{above}` has no command {word:?}{near}"))
    })
}

/// Writes the page of a command and the pages of its subcommands, and returns their number.
fn write_all(command: &Command, directory: &Path) -> std::io::Result<usize> {
    page(command).generate_to(directory)?;
    let mut count = 1;
    for nested in command
        .get_subcommands()
        .filter(|nested| !nested.is_hide_set())
    {
        count += write_all(nested, directory)?;
    }
    Ok(count)
}

fn page(command: &Command) -> Man {
    let source = concat!("zeph ", env!("CARGO_PKG_VERSION"));
    Man::new(command.clone())
        .source(source)
        .manual("Zeph manual")
}
