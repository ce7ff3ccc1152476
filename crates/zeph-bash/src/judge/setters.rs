//! Builtins that set variables, options and positional parameters of the shell.

use super::evaluate::{CommandContext, Decider};
use super::values::Possible;
use crate::syntax::parse::is_name;
use crate::syntax::special_variables::{decides_what_runs, is_telling};
use crate::syntax::word::Word;

/// Builtins that set the variables in their arguments.
const SETTERS: &[&str] = &[
    "declare",
    "typeset",
    "local",
    "export",
    "readonly",
    "read",
    "mapfile",
    "readarray",
    "getopts",
    "printf",
    "wait",
    "let",
    "unset",
];

/// Whether a builtin of this name sets the variables in its arguments.
pub(super) fn is_setter(name: &str) -> bool {
    SETTERS.contains(&name)
}

/// Whether assignments before a builtin of this name may last.
pub(super) fn is_special(name: &str) -> bool {
    const SPECIAL: &[&str] = &[
        ":", ".", "source", "eval", "exec", "exit", "export", "readonly", "return", "set", "shift",
        "times", "trap", "unset", "break", "continue", "builtin", "command",
    ];
    SPECIAL.contains(&name)
}

/// The options of a builtin that take a value.
fn valued(by: &str) -> &'static str {
    match by {
        "read" => "dinNptu",
        "mapfile" | "readarray" => "dnOsuCc",
        _ => "",
    }
}

/// The arguments of a builtin that may name variables, including options.
fn set_words<'w>(by: &str, arguments: &'w [Word]) -> Vec<&'w Word> {
    let option = match by {
        "printf" => "-v",
        "wait" => "-p",
        _ => "",
    };
    if !option.is_empty() {
        let is_one = |word: &Word| word.prefix().starts_with(option);
        // The option may occur again; the last one counts.
        let follows = |at: usize| is_one(&arguments[at]) || (at > 0 && is_one(&arguments[at - 1]));
        let places = (0..arguments.len()).filter(|at| follows(*at));
        return places.map(|at| &arguments[at]).collect();
    }
    let mut value = false;
    let named = |word: &&Word| {
        let text = word.prefix();
        let is_value = std::mem::take(&mut value);
        value = !is_value && text.starts_with('-') && text.ends_with(|c| valued(by).contains(c));
        !is_value
    };
    arguments.iter().filter(named).collect()
}

/// The name at the start of an argument, and the text after it. The name is `None` if it is unresolved.
fn named(word: &Word) -> Option<(Option<&str>, &str)> {
    let text = word.prefix().trim_start_matches("-v");
    let end = text.find(['=', '[', '+']).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    if word.known().is_none() && rest.is_empty() && !text.starts_with('-') {
        return Some((None, rest));
    }
    is_name(name).then_some((Some(name), rest))
}

/// The variables that a builtin sets; `None` is an unknown variable.
pub(super) fn assigned_names(by: &str, arguments: &[Word]) -> Vec<Option<String>> {
    let words = set_words(by, arguments);
    let names = words.into_iter().filter_map(named);
    names.map(|(name, _)| name.map(str::to_owned)).collect()
}

impl Decider<'_> {
    /// Applies a builtin that sets variables.
    pub(super) fn sets(&mut self, by: &str, arguments: &[Word], around: &CommandContext) {
        if by == "let" {
            return self.calculates(arguments);
        }
        let arguments = set_words(by, arguments);
        let declares = matches!(by, "declare" | "typeset" | "local" | "export" | "readonly");
        let has = |letters: &str| {
            declares
                && arguments.iter().any(|word| {
                    let text = word.known().unwrap_or_default();
                    text.starts_with(['-', '+']) && text.contains(|letter| letters.contains(letter))
                })
        };
        // `-n` makes another name of a variable. The other options let bash change the value.
        let (another, changed) = (has("n"), has("aAilcu"));
        if another {
            self.places.values.make_all_volatile();
        }
        for word in &arguments {
            let Some((name, rest)) = named(word) else {
                continue;
            };
            let Some(name) = name else {
                self.places.values.make_all_volatile();
                if by != "unset" {
                    self.ask(format!(
                        "the variable that `{by}` sets is unknown before it runs"
                    ));
                }
                continue;
            };
            let value = rest.find('=').map(|at| {
                let start = word.prefix().len() - rest.len() + at + 1;
                word.after(start)
            });
            if another && value.as_ref().is_some_and(|value| value.known().is_none()) {
                self.ask(format!(
                    "the variable that `{name}` refers to is unknown before it runs"
                ));
            }
            if another && value.is_none() && !matches!(by, "export" | "readonly") {
                self.ask(format!(
                    "the variable that `{name}` will refer to is unknown before it runs"
                ));
            }
            match &value {
                Some(value) => {
                    self.assigned(name, value, around);
                    if value.known().is_some_and(is_telling) {
                        self.ask(format!("`{by}` creates a reference to a variable"));
                    }
                }
                None if name == "CDPATH" => self.assigned(name, &Word::unknown(""), around),
                None if is_telling(name) && by != "unset" && by != "export" => {
                    self.ask(format!(
                        "the value that `{by}` sets for `{name}` is unknown before it \
                        runs"
                    ));
                }
                None => {}
            }
            let now = self.places.value(name);
            let whole = rest.starts_with('=');
            let given = match &value {
                Some(value) if whole => {
                    Possible::of(std::iter::once(value.known().map(str::to_owned)))
                }
                None if matches!(by, "export" | "readonly") => now,
                _ => Possible::unknown(),
            };
            let values = &mut self.places.values;
            values.assign(name, given.clone());
            if by == "export" || has("x") {
                values.export(name, &given);
            }
            if by == "readonly" || has("r") {
                values.fix(name);
            }
            if changed {
                values.make_volatile(name);
            }
        }
    }

    /// Applies the assignments of `let`.
    fn calculates(&mut self, arguments: &[Word]) {
        for word in arguments {
            for name in crate::syntax::arithmetic::assigned(&word.script()) {
                if decides_what_runs(&name) {
                    self.ask(format!(
                        "an arithmetic expression sets `{name}`, which determines the commands \
                         that run"
                    ));
                }
                self.places.values.forget(&name);
            }
            if word.prefix().is_empty() && word.known().is_none() {
                self.places.values.make_all_volatile();
            }
        }
    }

    /// Applies the options and positional parameters of `set`.
    pub(super) fn set_options(&mut self, arguments: &[Word]) {
        let mut at = 0;
        while let Some(word) = arguments.get(at) {
            let Some(text) = word.known() else {
                self.ask("the options that `set` changes are unknown before it runs");
                self.forget_positional();
                return;
            };
            at += 1;
            if matches!(text, "--" | "-") {
                return self.set_positional(&arguments[at..]);
            }
            let Some(letters) = text.strip_prefix(['-', '+']) else {
                return self.set_positional(&arguments[at - 1..]);
            };
            let keyword = letters.contains('o')
                && arguments
                    .get(at)
                    .is_some_and(|word| matches!(word.known(), None | Some("keyword")));
            if letters.contains('k') || keyword {
                self.ask("with `set -k`, arguments of commands set variables");
            }
            at += usize::from(letters.contains('o'));
        }
    }
}
