//! The words of a command line without a command: a prompt, or a mistyped command.

use clap::CommandFactory as _;
use zeph_tools::registry::nearest;

use super::args::Cli;
use super::run::Prompt;
use super::usage;

/// The rule, for `--help`.
pub(super) const RULE: &str = "\
Prompt or command: the words of PROMPT are joined with spaces. An argument with a space, as in zeph \"fix the tests\", \
is always a prompt. A single word, as in zeph tolls, is always a command, and an error if no command has this name. \
Several words are a prompt, unless the first one nearly is the name of a command: zeph sesions list is an error. \
Use quotes, -p or -- for a prompt that starts with the name of a command.";

/// The least length of a name for which one typing error is recognized without its subcommand.
const MIN_NAME_CHARS: usize = 4;
/// The least length of a name for which two typing errors are recognized.
const MIN_LONG_NAME_CHARS: usize = 8;

/// The source of the prompt without a command.
#[derive(Debug)]
pub(super) enum PromptSource {
    /// One turn.
    OneTurn(Prompt),
    /// A session, with its first input.
    Session(Option<String>),
}

impl PromptSource {
    /// The source of `-p` and of further words.
    ///
    /// # Errors
    /// A usage error if the words are a mistyped command, or stand next to `-p`.
    pub(super) fn of(prompt: Option<String>, words: Vec<String>) -> anyhow::Result<Self> {
        if let Some(text) = prompt {
            return match words.as_slice() {
                [] => Ok(Self::OneTurn(Prompt::Text(text))),
                [dash] if dash == "-" => Ok(Self::OneTurn(Prompt::TextAndStdin(text))),
                [word, ..] => Err(usage(format!(
                    "-p takes one TEXT, and {word:?} follows it; quote the prompt. Only `-` can \
                     follow and appends stdin"
                ))),
            };
        }
        if !follows_end_of_options()
            && let Some(mistyped) = mistyped(&words, &commands())
        {
            return Err(usage(mistyped));
        }
        match words.as_slice() {
            [] => Ok(Self::Session(None)),
            [dash] if dash == "-" => Ok(Self::OneTurn(Prompt::Stdin)),
            [words @ .., dash] if dash == "-" => {
                Ok(Self::OneTurn(Prompt::TextAndStdin(words.join(" "))))
            }
            words => match words.join(" ") {
                shell if shell.trim_start().starts_with('!') => Err(usage(
                    "!command is not available on the command line; run the command itself, or type it in a session",
                )),
                text => Ok(Self::Session(Some(text))),
            },
        }
    }
}

/// Whether the command line has `--`, after which each word is text.
fn follows_end_of_options() -> bool {
    std::env::args_os().any(|argument| argument == "--")
}

/// The commands with the names of their subcommands.
fn commands() -> Vec<(String, Vec<String>)> {
    let cli = Cli::command();
    let names = |command: &clap::Command| -> Vec<String> {
        let nested = command.get_subcommands();
        nested.map(|nested| nested.get_name().to_owned()).collect()
    };
    cli.get_subcommands()
        .map(|command| (command.get_name().to_owned(), names(command)))
        .collect()
}

/// The error if `words` are a mistyped command.
fn mistyped(words: &[String], commands: &[(String, Vec<String>)]) -> Option<String> {
    let (first, rest) = words.split_first()?;
    if !first.chars().all(is_name_char) || !first.starts_with(char::is_alphabetic) {
        return None;
    }
    let near = match rest.first() {
        None => {
            let names = commands.iter().map(|(name, _)| name.as_str());
            nearest(first, names, 1).pop()
        }
        Some(second) => {
            let is_mistyped = |name: &str, nested: &[String]| {
                let distance = strsim::damerau_levenshtein(first, name);
                let length = name.chars().count();
                match distance {
                    0 => false,
                    1 => length >= MIN_NAME_CHARS || nested.contains(second),
                    2 => length >= MIN_LONG_NAME_CHARS || nested.contains(second),
                    _ => false,
                }
            };
            let found = commands
                .iter()
                .find(|(name, nested)| is_mistyped(name, nested));
            Some(found?.0.clone())
        }
    };
    let near = near.map_or_else(String::new, |near| format!("; did you mean `zeph {near}`?"));
    Some(format!(
        "{first:?} is not a command{near}\n  help: zeph --help lists the commands. As a prompt: \
         zeph -p {:?}",
        words.join(" ")
    ))
}

/// Whether a name of a command may contain the character.
fn is_name_char(char: char) -> bool {
    char.is_ascii_alphanumeric() || matches!(char, '-' | '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(line: &str) -> Option<String> {
        let words: Vec<String> = line.split('|').map(str::to_owned).collect();
        mistyped(&words, &commands())
    }

    /// Proves CLI-7.
    #[test]
    fn mistyped_command_names_the_nearest_one() {
        let check = |line: &str, near: &str| {
            let error = checked(line).unwrap_or_else(|| panic!("{line} is a prompt"));
            assert!(error.contains(&format!("`zeph {near}`")), "{error}");
        };
        check("tolls", "tools");
        check("sesions|list", "sessions");
        check("sesion|list", "sessions");
        check("mpc|list", "mcp");
        check("docter|now", "doctor");
        assert!(checked("frobnicate").is_some_and(|error| !error.contains("did you mean")));
    }

    /// Proves CLI-7.
    #[test]
    fn sentence_is_a_prompt() {
        for line in [
            "fix the tests",
            "fix|the|tests",
            "can|you|help",
            "add|a|test",
            "what|is|this",
            "/review",
            "@src/lib.rs",
            "why?",
            "tools are broken",
        ] {
            assert_eq!(checked(line), None, "{line}");
        }
    }
}
