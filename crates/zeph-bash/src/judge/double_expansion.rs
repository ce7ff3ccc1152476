//! Text that bash evaluates a second time, so that quoted text becomes a command: variables that name
//! programs or hold scripts, subscripts in calculations, and builtins that call back.

use super::evaluate::{CommandContext, Decider};
use super::setters::is_setter;
use crate::syntax::special_variables::is_telling;
use crate::syntax::word::Word;

/// Whether a prompt may hold a command. Bash expands a prompt before it prints it.
fn is_code(prompt: &str) -> bool {
    let octal = prompt.as_bytes().windows(2);
    // `+=` may complete such a sign at the end.
    prompt.contains("$(")
        || prompt.ends_with(['$', '\\', '@'])
        || prompt.contains(['`', '['])
        || prompt.contains("@P")
        || octal
            .into_iter()
            .any(|two| two[0] == b'\\' && two[1].is_ascii_digit())
}

impl Decider<'_> {
    /// Judges the assignment of a value to a variable.
    pub(super) fn assigned(&mut self, name: &str, value: &Word, around: &CommandContext) {
        match (name, value.known()) {
            ("BASH_ENV" | "ENV", _) => {
                self.ask(format!("`{name}` names a script that shells run first"));
            }
            // `cd` then searches other directories.
            ("CDPATH", _) => self.later += 1,
            ("BASH_CMDS", Some(path)) => {
                self.simple(&[Word::literal(path)], around);
                self.ask("`BASH_CMDS` makes a command name run another program");
            }
            ("PS0" | "PS1" | "PS2" | "PS4", Some(prompt)) if !is_code(prompt) => {}
            ("PROMPT_COMMAND" | "BASH_ALIASES", Some(_)) => {
                self.joined(name, std::slice::from_ref(value), around);
            }
            _ if is_telling(name) => {
                self.ask(format!(
                    "the commands that bash runs because of `{name}` are unknown"
                ));
            }
            _ if name.starts_with("BASH_FUNC_") => {
                self.ask(format!("`{name}` is a function that bash imports"));
            }
            _ => self.variable(name, value, around),
        }
    }

    /// Judges builtins that set variables, call back, or run a word that is not the command word.
    pub(super) fn evaluates(&mut self, name: &str, words: &[Word], around: &CommandContext) {
        let arguments = &words[1..];
        if is_setter(name) {
            self.signs.calculates = true;
            self.sets(name, arguments, around);
        }
        match name {
            "test" | "[" => self.signs.calculates = true,
            "hash" | "enable" | "mapfile" | "readarray" | "compgen" | "complete" => {
                self.calls_back(name, arguments, around);
            }
            // `cd` then follows variables or links, or affects the shell from a pipeline.
            "shopt" => {
                self.may_wander(arguments, &["cdable_vars", "lastpipe"]);
                if arguments
                    .iter()
                    .any(|word| matches!(word.known(), None | Some("lastpipe")))
                {
                    self.places.values.make_all_volatile();
                }
            }
            "set" => {
                self.may_wander(arguments, &["-P", "physical"]);
                self.set_options(arguments);
            }
            "shift" => self.forget_positional(),
            "jobs" => {
                let is_one = |word: &Word| {
                    let text = word.prefix();
                    text.starts_with('-') && text.contains('x')
                };
                if let Some(at) = arguments.iter().position(is_one) {
                    let rest = &arguments[at + 1..];
                    let ends = rest.first().and_then(Word::known) == Some("--");
                    self.simple(&rest[usize::from(ends)..], around);
                }
            }
            "fc" if !arguments.iter().any(|word| word.known() == Some("-l")) => {
                self.ask("the commands that `fc` repeats are unknown before it runs");
            }
            _ => {}
        }
    }

    /// Handles an option that lets `cd` go to another directory than its operand names.
    fn may_wander(&mut self, arguments: &[Word], options: &[&str]) {
        let is_one = |word: &Word| match word.known() {
            Some(text) => options.contains(&text) || (text.starts_with('-') && text.contains('P')),
            None => true,
        };
        if arguments.iter().any(is_one) {
            self.later += 1;
        }
    }

    /// Options whose value is a command or a path: `hash -p`, `mapfile -C`, `compgen -C`.
    fn calls_back(&mut self, by: &str, arguments: &[Word], around: &CommandContext) {
        let letter = match by {
            "hash" => 'p',
            "enable" => 'f',
            _ => 'C',
        };
        for (at, word) in arguments.iter().enumerate() {
            let text = word.prefix();
            if !text.starts_with('-') {
                continue;
            }
            if by == "compgen" || by == "complete" {
                let expands = text.contains('W')
                    && arguments
                        .iter()
                        .any(|word| word.prefix().contains(['$', '`']));
                if expands {
                    self.ask(format!(
                        "the words that `{by} -W` expands are unknown before it \
                        runs"
                    ));
                }
            }
            let Some(place) = text.find(letter) else {
                continue;
            };
            let value = if place + 1 < text.len() {
                Some(word.after(place + 1))
            } else {
                arguments.get(at + 1).cloned()
            };
            let Some(value) = value else { continue };
            match by {
                "hash" => {
                    self.simple(std::slice::from_ref(&value), around);
                    self.ask("`hash -p` makes a command name run another program");
                    for name in arguments.iter().filter_map(Word::known) {
                        self.hashes.insert(name.to_owned(), value.clone());
                    }
                }
                "enable" => self.ask("the code that `enable -f` loads is unknown"),
                _ => self.joined(by, &[value], around),
            }
        }
    }
}
