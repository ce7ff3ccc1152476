//! What bash evaluates a second time, so that quoted text becomes a command after all: variables
//! that name programs or hold scripts, subscripts in calculations, builtins that call back.

use super::decide::{Around, Decider};
use super::parse::is_name;
use super::values::Possible;
use super::word::{Atom, Word};

/// Variables that decide which commands run, whatever their value.
const TELLING: &[&str] = &[
    "BASH_ENV",
    "ENV",
    "BASH_CMDS",
    "BASH_ALIASES",
    "PS4",
    "PROMPT_COMMAND",
];
/// Builtins that set the variables that they are given by name.
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

/// What in a text, and in those nested in it, could be evaluated a second time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Signs {
    /// A name with a subscript in which a substitution stands, as in `'a[$(date)]'`: plain text
    /// until bash calculates with it.
    pub subscript: bool,
    /// Something that calculates, or takes names of variables.
    pub calculates: bool,
}

impl Signs {
    /// What is in either.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            subscript: self.subscript || other.subscript,
            calculates: self.calculates || other.calculates,
        }
    }
}

/// Whether a variable of this name decides which commands run.
pub(super) fn is_telling(name: &str) -> bool {
    TELLING.contains(&name)
}

/// Whether a variable is named as those are that programs see: in capitals, or as proxies.
pub(super) fn is_environment(name: &str) -> bool {
    let capital = |byte: u8| !byte.is_ascii_lowercase();
    (name.len() > 1 && name.bytes().all(capital)) || name.ends_with("_proxy")
}

/// Whether a text has a name with a subscript in which a substitution stands.
pub(super) fn has_subscript(text: impl Iterator<Item = char>) -> bool {
    let (mut before, mut inside) = (' ', false);
    for character in text {
        inside |= character == '[' && (before.is_ascii_alphanumeric() || before == '_');
        if inside && (character == '`' || (before == '$' && matches!(character, '(' | '{'))) {
            return true;
        }
        before = character;
    }
    false
}

/// The same of a word.
pub(super) fn atoms_have_subscript(atoms: &[Atom]) -> bool {
    atoms
        .iter()
        .any(|atom| atom.is('[') || *atom == Atom::Char('[', true))
        && has_subscript(atoms.iter().filter_map(|atom| match atom {
            Atom::Char(character, _) => Some(*character),
            _ => None,
        }))
}

/// Whether a prompt, which is expanded before it is shown, may hold a command.
fn is_code(prompt: &str) -> bool {
    let octal = prompt.as_bytes().windows(2);
    prompt.contains("$(")
        || prompt.contains(['`', '['])
        || prompt.contains("@P")
        || octal
            .into_iter()
            .any(|two| two[0] == b'\\' && two[1].is_ascii_digit())
}

/// Whether a builtin of this name sets variables that it is given by name.
pub(super) fn is_setter(name: &str) -> bool {
    SETTERS.contains(&name)
}

/// Whether assignments in front of a builtin of this name may last.
pub(super) fn is_special(name: &str) -> bool {
    const SPECIAL: &[&str] = &[
        ":", ".", "source", "eval", "exec", "exit", "export", "readonly", "return", "set", "shift",
        "times", "trap", "unset", "break", "continue", "builtin", "command",
    ];
    SPECIAL.contains(&name)
}

/// The arguments of a builtin that name variables.
fn set_words<'w>(by: &str, arguments: &'w [Word]) -> &'w [Word] {
    let option = match by {
        "printf" => "-v",
        "wait" => "-p",
        _ => return arguments,
    };
    let at = arguments
        .iter()
        .position(|w| w.prefix().starts_with(option));
    at.map_or(&[], |at| &arguments[at..arguments.len().min(at + 2)])
}

/// The variables that a builtin sets; `None` is one that is not known.
pub(super) fn assigned_names<'w>(
    by: &str,
    arguments: &'w [Word],
) -> impl Iterator<Item = Option<String>> + use<'w> {
    set_words(by, arguments).iter().filter_map(|word| {
        let text = word.prefix().trim_start_matches("-v");
        let end = text.find(['=', '[', '+']).unwrap_or(text.len());
        match &text[..end] {
            name if is_name(name) && (end < text.len() || word.known().is_some()) => {
                Some(Some(name.to_owned()))
            }
            _ if word.known().is_none() => Some(None),
            _ => None,
        }
    })
}

impl Decider<'_> {
    /// A variable is given a value.
    pub(super) fn assigned(&mut self, name: &str, value: &Word, around: &Around) {
        match (name, value.known()) {
            ("BASH_ENV" | "ENV", _) => {
                self.ask(format!("`{name}` names a script that shells run first"));
            }
            // `cd` then looks for directories elsewhere.
            ("CDPATH", _) => self.later += 1,
            ("BASH_CMDS", Some(path)) => self.simple(&[Word::literal(path)], around),
            ("PS4", Some(prompt)) if !is_code(prompt) => {}
            ("PROMPT_COMMAND" | "BASH_ALIASES", Some(_)) => {
                self.joined(name, std::slice::from_ref(value), around);
            }
            _ if is_telling(name) => {
                self.ask(format!("what `{name}` makes bash run cannot be known"));
            }
            _ if name.starts_with("BASH_FUNC_") => {
                self.ask(format!("`{name}` is a function that bash takes over"));
            }
            _ => self.variable(name, value, around),
        }
    }

    /// Builtins that set variables, call back, or run what is no command word.
    pub(super) fn evaluates(&mut self, name: &str, words: &[Word], around: &Around) {
        let arguments = &words[1..];
        if SETTERS.contains(&name) {
            self.signs.calculates = true;
            self.sets(name, arguments, around);
        }
        match name {
            "test" | "[" => self.signs.calculates = true,
            "hash" | "enable" | "mapfile" | "readarray" | "compgen" | "complete" => {
                self.calls_back(name, arguments, around);
            }
            // `cd` then goes by variables, by links, or in what was another process.
            "shopt" => self.may_wander(arguments, &["cdable_vars", "lastpipe"]),
            "set" => self.may_wander(arguments, &["-P", "physical"]),
            "jobs" => {
                if let Some(at) = arguments.iter().position(|word| word.known() == Some("-x")) {
                    self.simple(&arguments[at + 1..], around);
                }
            }
            "fc" if !arguments.iter().any(|word| word.known() == Some("-l")) => {
                self.ask("what `fc` runs again cannot be known");
            }
            _ => {}
        }
    }

    /// An option by which `cd` leads elsewhere than it says.
    fn may_wander(&mut self, arguments: &[Word], options: &[&str]) {
        let is_one = |word: &Word| match word.known() {
            Some(text) => options.contains(&text) || (text.starts_with('-') && text.contains('P')),
            None => true,
        };
        if arguments.iter().any(is_one) {
            self.later += 1;
        }
    }

    fn sets(&mut self, by: &str, arguments: &[Word], around: &Around) {
        let arguments = set_words(by, arguments);
        let declares = matches!(by, "declare" | "typeset" | "local" | "export" | "readonly");
        let has = |letters: &str| {
            declares
                && arguments.iter().any(|word| {
                    let text = word.known().unwrap_or_default();
                    text.starts_with(['-', '+']) && text.contains(|letter| letters.contains(letter))
                })
        };
        // Another name of a variable, or a value that bash changes.
        let (another, changed) = (has("n"), has("aAilcu"));
        if another {
            self.places.values.make_all_volatile();
        }
        for word in arguments {
            let text = word.prefix().trim_start_matches("-v");
            let end = text.find(['=', '[', '+']).unwrap_or(text.len());
            let (name, rest) = text.split_at(end);
            let value = rest.find('=').map(|at| {
                let start = word.prefix().len() - rest.len() + at + 1;
                word.after(start)
            });
            if !is_name(name) {
                if word.known().is_none() && !name.starts_with('-') {
                    self.places.values.make_all_volatile();
                    if by != "unset" {
                        self.ask(format!("which variable `{by}` sets cannot be known"));
                    }
                }
                continue;
            }
            match &value {
                Some(value) => {
                    self.assigned(name, value, around);
                    if value.known().is_some_and(is_telling) {
                        self.ask(format!("`{by}` makes another name of a variable"));
                    }
                }
                None if name == "CDPATH" => self.assigned(name, &Word::unknown(""), around),
                None if is_telling(name) && by != "unset" && by != "export" => {
                    self.ask(format!("what `{by}` sets `{name}` to cannot be known"));
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

    /// Options whose value is a command or a path: `hash -p`, `mapfile -C`, `compgen -C`.
    fn calls_back(&mut self, by: &str, arguments: &[Word], around: &Around) {
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
                    self.ask(format!("what `{by} -W` expands cannot be known"));
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
                "hash" => self.simple(&[value], around),
                "enable" => self.ask("what `enable -f` loads cannot be known"),
                _ => self.joined(by, &[value], around),
            }
        }
    }
}
