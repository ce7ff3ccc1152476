//! Commands that run other commands: the start of the inner command.

use super::blocklist::file_name;
use super::evaluate::{CommandContext, Decider};
use super::programs;
use crate::syntax::word::Word;

/// The options of a command that runs another one. An option that is missing here hides the start of the inner
/// command, so the whole command requires confirmation.
pub(super) struct Wrapper {
    pub(super) name: &'static str,
    /// Letters of options without a value.
    pub(super) flags: &'static str,
    /// Letters of options with a value.
    pub(super) values: &'static str,
    pub(super) long_flags: &'static [&'static str],
    pub(super) long_values: &'static [&'static str],
}

pub(super) const fn plain(
    name: &'static str,
    flags: &'static str,
    values: &'static str,
) -> Wrapper {
    Wrapper {
        name,
        flags,
        values,
        long_flags: &[],
        long_values: &[],
    }
}

/// Whether a command with this name runs another command from its arguments.
pub(super) fn runs_others(name: &str) -> bool {
    const OTHERS: &[&str] = &[
        "env", "xargs", "parallel", "watch", "trap", "alias", "ssh", "eval", "source", ".", "sudo",
        "sudoedit", "su", "pkexec", "run0", "npx", "bunx", "pnpx", "uvx", "pipx",
    ];
    OTHERS.contains(&name)
        || programs::is_wrapper(name)
        || name.starts_with("ld-linux")
        || name.starts_with("ld-musl")
}

/// Whether a command with this name may run one of its arguments, and no rule describes which one.
pub fn runs_unlisted_program(name: &str) -> bool {
    const READ: &[&str] = &[
        "env", "xargs", "parallel", "watch", "trap", "alias", "eval", "source", ".", "find", "fd",
        "fdfind", "git",
    ];
    let name = file_name(name);
    !READ.contains(&name) && (programs::is_loose(name) || !programs::is_wrapper(name))
}

/// Whether `command` with these arguments only prints the meaning of a name: `-v` or `-V` before the name.
pub(super) fn only_looks_up(arguments: &[Word]) -> bool {
    let options = arguments.iter().take_while(|word| {
        let is_option = word.prefix().starts_with('-');
        is_option && word.known().is_some_and(|word| word != "--")
    });
    let mut options = options.map(Word::prefix);
    options.any(|option| option.contains(['v', 'V']))
}

impl Decider<'_> {
    /// Judges the command that `name` runs.
    pub(super) fn wrapped(&mut self, name: &str, words: &[Word], around: &CommandContext) {
        let arguments = &words[1..];
        self.unconfined(name, arguments);
        match name {
            "env" => self.env(arguments, around),
            "xargs" => self.xargs(arguments, around),
            "parallel" => self.parallel(arguments, around),
            "find" | "gfind" | "bfs" => self.find(arguments, around),
            "fd" | "fdfind" => self.fd(arguments, around),
            "trap" => {
                let first = arguments.iter().find(|word| word.known() != Some("--"));
                if let Some(word) = first.filter(|word| !word.prefix().starts_with('-')) {
                    self.later += 1;
                    self.joined(name, std::slice::from_ref(word), around);
                    self.later -= 1;
                }
            }
            "alias" => self.alias(arguments, around),
            "command" if only_looks_up(arguments) => {}
            "exec" => self.exec(words, around),
            _ if name.starts_with("ld-linux") || name.starts_with("ld-musl") => {
                self.loose(name, arguments, around);
            }
            _ => self.by_table(name, arguments, around),
        }
    }

    /// The index of the first operand.
    pub(super) fn skip_options(&mut self, wrapper: &Wrapper, words: &[Word]) -> usize {
        let mut at = 0;
        while let Some(word) = words.get(at) {
            let text = word.prefix();
            if word.known() == Some("--") {
                return at + 1;
            }
            if word.known().is_none() && text.is_empty() {
                return at;
            }
            if !text.starts_with('-') || text == "-" {
                return at;
            }
            at += 1;
            if let Some(long) = text.strip_prefix("--") {
                let (name, value) = match long.split_once('=') {
                    Some((name, value)) => (name, Some(value)),
                    None => (long, None),
                };
                if wrapper.long_values.contains(&name) {
                    at += usize::from(value.is_none());
                } else if !wrapper.long_flags.contains(&name) {
                    // It may be an abbreviation.
                    self.unclear(wrapper.name, text);
                }
                continue;
            }
            for (place, letter) in text[1..].char_indices() {
                let rest = 1 + place + letter.len_utf8();
                if wrapper.values.contains(letter) {
                    at += usize::from(rest == text.len());
                    break;
                }
                if !wrapper.flags.contains(letter) {
                    self.unclear(wrapper.name, text);
                    break;
                }
            }
        }
        at.min(words.len())
    }

    fn unclear(&mut self, name: &str, option: &str) {
        self.ask(format!(
            "the start of the command of `{name} {option}` is unknown before it runs"
        ));
    }
}
