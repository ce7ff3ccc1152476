//! The help of all commands: the definitions in [`super::args`], with sentences and an example for each command.

mod texts;

use std::ffi::OsString;

use clap::{Command, CommandFactory as _};

use super::args::Cli;
use texts::{HelpText, TEXTS};

/// The command line with the complete help.
pub(super) fn command() -> Command {
    with_texts(Cli::command(), "")
}

/// Returns the arguments of the process with `zeph help --help` as `zeph help help`. The `help` of clap has no options.
pub(super) fn arguments(given: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut given: Vec<OsString> = given.collect();
    if let [_, help, option] = given.as_mut_slice()
        && help == "help"
        && (option == "--help" || option == "-h")
    {
        option.clone_from(help);
    }
    given
}

/// Adds the texts of `path` and of its subcommands.
fn with_texts(command: Command, path: &str) -> Command {
    let mut command = match TEXTS.iter().find(|text| text.command == path) {
        Some(text) => with_text(command, text),
        None => command,
    };
    let names: Vec<String> = command
        .get_subcommands()
        .map(|nested| nested.get_name().to_owned())
        .collect();
    for name in names {
        let path = match path {
            "" => name.clone(),
            path => format!("{path} {name}"),
        };
        command = command.mut_subcommand(name, |nested| with_texts(nested, &path));
    }
    command
}

fn with_text(command: Command, text: &HelpText) -> Command {
    let example = format!("Example:\n  {}", text.example);
    let rule = command.get_after_long_help().map(ToString::to_string);
    let command = match rule {
        Some(rule) => command.after_long_help(format!("{rule}\n\n{example}")),
        None => command,
    };
    command.long_about(text.sentences).after_help(example)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The paths of all commands that help shows.
    fn paths(command: &Command, path: &str, to: &mut Vec<String>) {
        to.push(path.to_owned());
        for nested in command
            .get_subcommands()
            .filter(|nested| !nested.is_hide_set())
        {
            let path = format!("{path} {}", nested.get_name());
            paths(nested, path.trim(), to);
        }
    }

    /// Splits a command line as a shell does: single quotes, and no operators.
    fn words(line: &str) -> Vec<String> {
        let line = line
            .split([' '])
            .take_while(|word| !matches!(*word, "<" | ">" | "|"));
        let line = line.collect::<Vec<_>>().join(" ");
        let mut words = Vec::new();
        for (at, part) in line.split('\'').enumerate() {
            match at % 2 {
                0 => words.extend(part.split_whitespace().map(str::to_owned)),
                _ => words.push(part.to_owned()),
            }
        }
        words
    }

    /// Proves CLI-2: every command has sentences and an example, and each example is a valid command line of it.
    #[test]
    fn every_command_has_sentences_and_a_valid_example() {
        let mut all = Vec::new();
        paths(&Cli::command(), "", &mut all);
        for path in &all {
            let text = TEXTS.iter().find(|text| text.command == path);
            let text =
                text.unwrap_or_else(|| panic!("`zeph {path}` needs an entry in help/texts.rs"));
            let sentences = text.sentences;
            assert!(
                sentences.ends_with('.') && sentences.starts_with(char::is_uppercase),
                "{path}"
            );
            let line = text.example;
            assert!(
                line.starts_with(format!("zeph {path}").trim_end()),
                "{path}: {line}"
            );
            if let Err(error) = command().try_get_matches_from(words(line)) {
                panic!("{line}: {error}");
            }
        }
        for text in TEXTS {
            assert!(
                all.iter().any(|path| path == text.command),
                "there is no `zeph {}`",
                text.command
            );
        }
    }
}
